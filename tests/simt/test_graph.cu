/*
 * test_graph.cu - capture and graphs: launched again and again, updated, node by node,
 * and what may not be captured.
 */
#include "testing.h"

#include <cublas_v2.h>

__global__ void add(float *out, const float *a, const float *b, int n)
{
    int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < n)
        out[i] = a[i] + b[i];
}

__global__ void twice(float *out, const float *a, int n)
{
    int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < n)
        out[i] = 2 * a[i];
}

/* Each block adds what the one before it wrote. */
__global__ void around(float *x, uint32_t *flags)
{
    unsigned n = gridDim.x, me = blockIdx.x;
    if (threadIdx.x == 0)
        x[n + me] = x[me];
    if (grid_barrier(flags, 1) && threadIdx.x == 0)
        x[me] = __ldcg(x + n + (me + n - 1) % n) + 1;
}

static void begin(cudaStream_t s)
{
    EXPECT_CUDA(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal));
}

static cudaGraph_t end(cudaStream_t s)
{
    cudaGraph_t graph;
    EXPECT_CUDA(cudaStreamEndCapture(s, &graph));
    return graph;
}

static cudaGraphExec_t executable(cudaGraph_t graph)
{
    cudaGraphExec_t exec;
    EXPECT_CUDA(cudaGraphInstantiate(&exec, graph, 0));
    return exec;
}

/* ---- capture */

enum { no_fork = 1, no_join, unfinished, waits_inside, alloc_inside };

/* b = in uploaded on s1; c = 1s on s2; out = b + c, three times with new input. */
template <int broken> static void graph()
{
    const int n = 50;
    Stream s1, s2;
    Event fork, join;
    Device<float> b(n), c(n), zero(n), sum(n);
    Pinned in(n), out(n);
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    EXPECT_CUDA(cudaMemsetAsync(zero.p, 0, n * 4, s1));
    EXPECT_CUDA(cudaStreamSynchronize(s1));
    EXPECT_CUDA(cudaStreamBeginCapture(s1, cudaStreamCaptureModeThreadLocal));
    EXPECT_CUDA(cudaMemcpyAsync(b.p, in.p, n * 4, cudaMemcpyHostToDevice, s1));
    EXPECT_CUDA(cudaEventRecord(fork.e, s1));
    if (broken != no_fork)
        EXPECT_CUDA(cudaStreamWaitEvent(s2, fork.e, 0));
    EXPECT_CUDA(launch(add, 2, 32, 0, s2, c.p, b.p, b.p, n));
    EXPECT_CUDA(cudaEventRecord(join.e, s2));
    if (broken != no_join)
        EXPECT_CUDA(cudaStreamWaitEvent(s1, join.e, 0));
    EXPECT_CUDA(launch(add, 2, 32, 0, s1, sum.p, c.p, b.p, n));
    if (broken == waits_inside)
        EXPECT_CUDA(cudaStreamSynchronize(s1));
    if (broken == alloc_inside)
        Device<float> more(4);
    if (broken == unfinished)
        exit(1);
    EXPECT_CUDA(cudaMemcpyAsync(out.p, sum.p, n * 4, cudaMemcpyDeviceToHost, s1));
    EXPECT_CUDA(cudaStreamEndCapture(s1, &graph));
    EXPECT_CUDA(cudaGraphInstantiate(&exec, graph, 0));
    EXPECT_CUDA(cudaGraphDestroy(graph));
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < n; i++)
            in.p[i] = (float)(i + 100 * round);
        EXPECT_CUDA(cudaGraphLaunch(exec, s1));
        EXPECT_CUDA(cudaStreamSynchronize(s1));
        for (int i = 0; i < n; i++)
            EXPECT(out.p[i] == 3.0f * (float)(i + 100 * round));
    }
    EXPECT_CUDA(cudaGraphExecDestroy(exec));
}

static void ends_no_capture()
{
    Stream s;
    cudaGraph_t graph;
    EXPECT_CUDA(cudaStreamEndCapture(s, &graph));
}

/* The event was recorded before the capture: a graph cannot wait for it. */
static void event_from_outside()
{
    Stream s1, s2;
    Event e;
    EXPECT_CUDA(cudaEventRecord(e.e, s2));
    EXPECT_CUDA(cudaStreamBeginCapture(s1, cudaStreamCaptureModeThreadLocal));
    EXPECT_CUDA(cudaStreamWaitEvent(s1, e.e, 0));
}

static void event_of_a_capture_that_ended()
{
    Stream s;
    Event e;
    begin(s);
    EXPECT_CUDA(cudaEventRecord(e.e, s));
    EXPECT_CUDA(cudaGraphDestroy(end(s)));
    EXPECT_CUDA(cudaStreamWaitEvent(s, e.e, 0));
}

static void asks_inside()
{
    Stream s, other;
    Event e;
    begin(s);
    EXPECT_CUDA(cudaEventQuery(e.e));
}

static void pageable_inside()
{
    Stream s;
    Device<float> a(4);
    float x[4];
    begin(s);
    EXPECT_CUDA(cudaMemcpyAsync(x, a.p, 16, cudaMemcpyDeviceToHost, s));
}

/* ---- what graphs hold */

static void cooperative()
{
    const unsigned n = 5;
    Stream s;
    Device<float> x(2 * n);
    Device<uint32_t> flags(n);
    begin(s);
    EXPECT_CUDA(cudaMemsetAsync(x.p, 0, 8 * n, s));
    EXPECT_CUDA(cudaMemsetAsync(flags.p, 0, 4 * n, s));
    EXPECT_CUDA(launch_cooperative(around, n, 32, 0, s, x.p, flags.p));
    cudaGraph_t graph = end(s);
    cudaGraphExec_t exec = executable(graph);
    for (int round = 0; round < 3; round++) {
        EXPECT_CUDA(cudaGraphLaunch(exec, s));
        EXPECT(x.get(s)[n - 1] == 1);
    }
    EXPECT_CUDA(cudaGraphExecDestroy(exec));
    EXPECT_CUDA(cudaGraphDestroy(graph));
}

struct Blas {
    cublasHandle_t h;
    Device<char> workspace;
    explicit Blas(cudaStream_t s) : workspace(4096)
    {
        EXPECT(cublasCreate(&h) == CUBLAS_STATUS_SUCCESS);
        EXPECT(cublasSetStream(h, s) == CUBLAS_STATUS_SUCCESS);
        EXPECT(cublasSetWorkspace(h, workspace.p, 4096) == CUBLAS_STATUS_SUCCESS);
    }
    ~Blas()
    {
        cublasDestroy(h);
    }
};

/* c = a b of ones: n rows and columns, k products. */
static size_t capture_product(Blas *blas, cudaStream_t s, Device<float> *ones, float *c,
                              int n, int k, cudaGraph_t *graph)
{
    const float one = 1, zero = 0;
    size_t count;
    begin(s);
    EXPECT(cublasSgemm(blas->h, CUBLAS_OP_N, CUBLAS_OP_N, n, n, k, &one, ones->p, n,
                       ones->p, k, &zero, c, n) == CUBLAS_STATUS_SUCCESS);
    EXPECT_CUDA(launch(twice, 1, 32, 0, s, c, c, n * n));
    *graph = end(s);
    EXPECT_CUDA(cudaGraphGetNodes(*graph, nullptr, &count));
    return count;
}

/* A product of another shape may have another number of kernels: an update fails, and
   the graph stays what it was. */
static void products()
{
    Stream s;
    Blas blas(s);
    Device<float> ones(64), c(64);
    ones.put(std::vector<float>(64, 1), s);
    cudaGraph_t graph[4];
    size_t count[4];
    for (int n = 2; n < 6; n++)
        count[n - 2] = capture_product(&blas, s, &ones, c.p, n, 7, &graph[n - 2]);
    EXPECT(count[0] == 2 && count[1] == 2 && count[2] == 2 && count[3] == 3);
    cudaGraphExec_t exec = executable(graph[0]);
    cudaGraphExecUpdateResultInfo info;
    EXPECT_CUDA(cudaGraphExecUpdate(exec, graph[2], &info));
    EXPECT(info.result == cudaGraphExecUpdateSuccess);
    EXPECT(cudaGraphExecUpdate(exec, graph[3], &info) ==
           cudaErrorGraphExecUpdateFailure);
    EXPECT(info.result == cudaGraphExecUpdateErrorTopologyChanged);
    EXPECT(cudaGetLastError() == cudaErrorGraphExecUpdateFailure);
    EXPECT_CUDA(cudaMemsetAsync(c.p, 0, 256, s));
    EXPECT_CUDA(cudaGraphLaunch(exec, s));
    std::vector<float> result = c.get(s);
    EXPECT(result[15] == 14 && result[16] == 0);
    EXPECT_CUDA(cudaGraphExecDestroy(exec));
    for (cudaGraph_t g : graph)
        EXPECT_CUDA(cudaGraphDestroy(g));
}

/* ---- updates */

/* out = a + b, then copied out by way of middle: of n elements. */
static cudaGraph_t capture_sum(cudaStream_t s, float *middle, const float *a,
                               const float *b, float *out, int n)
{
    begin(s);
    EXPECT_CUDA(cudaMemsetAsync(middle, 0, (size_t)n * 4, s));
    EXPECT_CUDA(launch(add, (unsigned)(n + 31) / 32, 32, 0, s, middle, a, b, n));
    EXPECT_CUDA(cudaMemcpyAsync(out, middle, (size_t)n * 4, cudaMemcpyDeviceToHost, s));
    return end(s);
}

/* A launch that waits in its stream keeps what it had when it was launched. */
static void updated()
{
    Stream s;
    Device<float> a(100), b(100), middle(100);
    Pinned first(100), second(100);
    cudaGraphExecUpdateResultInfo info;
    a.put(std::vector<float>(100, 1), s);
    b.put(std::vector<float>(100, 10), s);
    cudaGraph_t small = capture_sum(s, middle.p, a.p, a.p, first.p, 3);
    cudaGraph_t large = capture_sum(s, middle.p, a.p, b.p, second.p, 100);
    cudaGraphExec_t exec = executable(small);
    EXPECT_CUDA(cudaGraphLaunch(exec, s));
    EXPECT_CUDA(cudaGraphExecUpdate(exec, large, &info));
    EXPECT_CUDA(cudaGraphDestroy(small));
    EXPECT_CUDA(cudaGraphDestroy(large));
    EXPECT_CUDA(cudaGraphLaunch(exec, s));
    EXPECT_CUDA(cudaGraphExecDestroy(exec)); /* what was launched still runs */
    EXPECT_CUDA(cudaStreamSynchronize(s));
    EXPECT(first.p[0] == 2 && first.p[2] == 2 && second.p[0] == 11 &&
           second.p[99] == 11);
}

/* The graph of capture_sum with one change. */
enum change { other_function, no_copy, copy_to_device, set_for_kernel, cooperation };

static cudaGraph_t capture_changed(change what, cudaStream_t s, float *middle, float *a,
                                   uint32_t *flags, float *out)
{
    begin(s);
    if (what == set_for_kernel)
        EXPECT_CUDA(launch(twice, 1, 32, 0, s, middle, a, 3));
    else
        EXPECT_CUDA(cudaMemsetAsync(middle, 0, 12, s));
    if (what == cooperation)
        EXPECT_CUDA(launch_cooperative(around, 1, 32, 0, s, middle, flags));
    else if (what == other_function)
        EXPECT_CUDA(launch(twice, 1, 32, 0, s, middle, a, 3));
    else
        EXPECT_CUDA(launch(add, 1, 32, 0, s, middle, a, a, 3));
    if (what == copy_to_device)
        EXPECT_CUDA(cudaMemcpyAsync(a, middle, 12, cudaMemcpyDeviceToDevice, s));
    else if (what != no_copy)
        EXPECT_CUDA(cudaMemcpyAsync(out, middle, 12, cudaMemcpyDeviceToHost, s));
    return end(s);
}

static void what_an_update_refuses()
{
    Stream s;
    Device<float> a(100), middle(100);
    Device<uint32_t> flags(4);
    Pinned out(100);
    cudaGraphExecUpdateResultInfo info;
    a.put(std::vector<float>(100, 1), s);
    cudaGraph_t graph = capture_sum(s, middle.p, a.p, a.p, out.p, 3);
    cudaGraphExec_t exec = executable(graph);
    const struct {
        change what;
        cudaGraphExecUpdateResult result;
    } changes[] = {
        {no_copy, cudaGraphExecUpdateErrorTopologyChanged},
        {copy_to_device, cudaGraphExecUpdateErrorParametersChanged},
        {set_for_kernel, cudaGraphExecUpdateErrorNodeTypeChanged},
        {cooperation, cudaGraphExecUpdateErrorAttributesChanged},
        {other_function, cudaGraphExecUpdateSuccess},
    };
    for (const auto &c : changes) {
        cudaGraph_t other = capture_changed(c.what, s, middle.p, a.p, flags.p, out.p);
        EXPECT((cudaGraphExecUpdate(exec, other, &info) == cudaSuccess) ==
               (c.result == cudaGraphExecUpdateSuccess));
        EXPECT(info.result == c.result);
        EXPECT_CUDA(cudaGraphLaunch(exec, s));
        EXPECT_CUDA(cudaStreamSynchronize(s));
        EXPECT(out.p[2] == 2);
        EXPECT_CUDA(cudaGraphDestroy(other));
    }
    EXPECT_CUDA(cudaGraphExecDestroy(exec));
    EXPECT_CUDA(cudaGraphDestroy(graph));
}

/* ---- node by node */

struct Nodes {
    cudaGraphNode_t node[4];
    explicit Nodes(cudaGraph_t graph)
    {
        const cudaGraphNodeType types[] = {
            cudaGraphNodeTypeMemset, cudaGraphNodeTypeKernel, cudaGraphNodeTypeMemcpy};
        size_t count = 4;
        EXPECT_CUDA(cudaGraphGetNodes(graph, node, &count));
        EXPECT(count == 3 && node[3] == nullptr);
        for (int i = 0; i < 3; i++) {
            cudaGraphNodeType type;
            EXPECT_CUDA(cudaGraphNodeGetType(node[i], &type));
            EXPECT(type == types[i]);
        }
    }
};

static void one_by_one()
{
    Stream s;
    Device<float> a(100), b(100), middle(100);
    Pinned out(100);
    a.put(std::vector<float>(100, 1), s);
    b.put(std::vector<float>(100, 10), s);
    cudaGraph_t graph = capture_sum(s, middle.p, a.p, a.p, out.p, 3);
    cudaGraphExec_t exec = executable(graph);
    Nodes nodes(graph);
    cudaKernelNodeParams p;
    EXPECT_CUDA(cudaGraphKernelNodeGetParams(nodes.node[1], &p));
    EXPECT(p.func == reinterpret_cast<void *>(add) && p.gridDim.x == 1 &&
           p.blockDim.x == 32);
    /* all elements, of which the kernel writes 40; the rest stay as they were set */
    cudaMemsetParams set = {};
    set.dst = middle.p;
    set.elementSize = 1;
    set.height = 1;
    set.width = 400;
    int n = 40;
    void *arguments[] = {&middle.p, &b.p, &a.p, &n};
    p.gridDim = dim3(2);
    p.kernelParams = arguments;
    EXPECT_CUDA(cudaGraphExecMemsetNodeSetParams(exec, nodes.node[0], &set));
    EXPECT_CUDA(cudaGraphExecKernelNodeSetParams(exec, nodes.node[1], &p));
    n = 0; /* the argument was copied */
    EXPECT_CUDA(cudaGraphExecMemcpyNodeSetParams1D(exec, nodes.node[2], out.p, middle.p,
                                                   400, cudaMemcpyDeviceToHost));
    EXPECT_CUDA(cudaGraphLaunch(exec, s));
    EXPECT_CUDA(cudaStreamSynchronize(s));
    EXPECT(out.p[0] == 11 && out.p[39] == 11 && out.p[40] == 0 && out.p[99] == 0);
    EXPECT_CUDA(cudaGraphNodeSetEnabled(exec, nodes.node[1], 0));
    EXPECT_CUDA(cudaGraphLaunch(exec, s));
    EXPECT_CUDA(cudaStreamSynchronize(s));
    EXPECT(out.p[0] == 0);
    EXPECT(cudaGraphExecMemcpyNodeSetParams1D(exec, nodes.node[2], a.p, middle.p, 400,
                                              cudaMemcpyDeviceToDevice) ==
           cudaErrorInvalidValue);
    EXPECT_CUDA(cudaGraphExecDestroy(exec));
    EXPECT_CUDA(cudaGraphDestroy(graph));
}

static void node_of_another_graph()
{
    Stream s;
    Device<float> a(100), middle(100);
    Pinned out(100);
    cudaGraph_t one = capture_sum(s, middle.p, a.p, a.p, out.p, 3);
    cudaGraph_t other = capture_sum(s, middle.p, a.p, a.p, out.p, 4);
    Nodes nodes(other);
    EXPECT_CUDA(cudaGraphNodeSetEnabled(executable(one), nodes.node[1], 0));
}

static void parameters_for_cublas()
{
    Stream s;
    Blas blas(s);
    Device<float> ones(64), c(64);
    cudaGraph_t graph;
    cudaGraphNode_t nodes[2];
    cudaKernelNodeParams p;
    size_t count = capture_product(&blas, s, &ones, c.p, 2, 7, &graph);
    EXPECT_CUDA(cudaGraphGetNodes(graph, nodes, &count));
    EXPECT_CUDA(cudaGraphKernelNodeGetParams(nodes[0], &p));
    EXPECT(p.func && p.func != reinterpret_cast<void *>(twice));
    EXPECT_CUDA(cudaGraphExecKernelNodeSetParams(executable(graph), nodes[0], &p));
}

static const Scenario scenarios[] = {
    {"graph", graph<0>, 0, nullptr, nullptr, 20},
    {"graph_without_fork", graph<no_fork>, 86, "between a capture and", nullptr, 0},
    {"graph_without_join", graph<no_join>, 86, "was not joined to stream", nullptr, 0},
    {"capture_not_ended", graph<unfinished>, 1, "was not ended", nullptr, 1},
    {"wait_in_capture", graph<waits_inside>, 86, "cudaStreamSynchronize while stream",
     nullptr, 1},
    {"malloc_in_capture", graph<alloc_inside>, 86, "cudaMalloc while stream", nullptr,
     1},
    {"ends_no_capture", ends_no_capture, 86, "no capture began", nullptr, 1},
    {"event_from_outside", event_from_outside, 86, "between a capture and", nullptr, 1},
    {"event_of_a_capture_that_ended", event_of_a_capture_that_ended, 86,
     "recorded in a capture that has ended", nullptr, 1},
    {"asks_inside", asks_inside, 86, "cudaEventQuery while stream", nullptr, 1},
    {"pageable_inside", pageable_inside, 86, "captures pageable memory", nullptr, 1},
    {"cooperative", cooperative, 0, nullptr, nullptr, 0},
    {"products", products, 0, nullptr, nullptr, 0},
    {"updated", updated, 0, nullptr, nullptr, 0},
    {"what_an_update_refuses", what_an_update_refuses, 0, nullptr, nullptr, 0},
    {"one_by_one", one_by_one, 0, nullptr, nullptr, 0},
    {"node_of_another_graph", node_of_another_graph, 86, "of another graph", nullptr,
     1},
    {"parameters_for_cublas", parameters_for_cublas, 86, "a kernel of cuBLAS", nullptr,
     1},
};

int main(int argc, char **argv)
{
    return run_scenarios(argc, argv, scenarios, sizeof scenarios / sizeof *scenarios);
}
