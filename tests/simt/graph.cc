/*
 * graph.cc - capture, and graphs: what was captured, run as one operation of a stream.
 *
 * Takes what streams are given while they are captured: kernels, cooperative ones too,
 * copies, memsets, products of cuBLAS; streams join by cudaStreamWaitEvent and must be
 * joined again. Gives cudaGraphInstantiate, Launch, Upload, ExecUpdate; node.cc has
 * what is done to one node.
 *
 * The nodes of a launch run in an order that their edges allow, drawn anew each time:
 * an edge that is missing shows, and TSan sees each branch as a thread of its own.
 * Arguments are those of the capture until they are updated; launches that are queued
 * keep theirs. A product may be one kernel or two, by its shape, so that a graph of
 * other shapes may have other nodes, as with cuBLAS. While a stream is captured nothing
 * may wait, ask or allocate.
 *
 * Not there: graphs built by hand, NCCL, host functions, child graphs, conditions,
 * pageable memory, launches into a stream that is captured. All of them are refused.
 */
#include "queue.h"

namespace simt
{

/* For TSan: nodes that follow one another share a context; where a graph forks, one
   continues with the old context and the others have their own. The first chain runs on
   the stream's. */
struct Chains {
    /* each node */
    std::vector<size_t> of;
    std::vector<Worker> worker;
    std::vector<std::shared_ptr<Workers>> threads;
    Workers own;
    ~Chains();
};

Chains::~Chains()
{
    Unseen unseen;
    own.spare.insert(own.spare.end(), worker.begin() + 1, worker.end());
}

namespace
{

/* All streams that joined must have been joined again: their last node must be before
   one of the origin's, or the origin's tail. */
void check_joined(cudaStream_t s, const CUgraph_st *graph, cudaStream_t origin)
{
    for (size_t last : s->tail) {
        bool joined = std::find(origin->tail.begin(), origin->tail.end(), last) !=
                      origin->tail.end();
        for (const Node &node : graph->node)
            joined |= std::find(node.after.begin(), node.after.end(), last) !=
                      node.after.end();
        if (!joined)
            error("the capture ends, but %s on stream %d was not joined to stream %d",
                  graph->node[last].what, s->number, origin->number);
    }
}

std::shared_ptr<Chains> make_chains(const Nodes &nodes)
{
    Unseen unseen;
    auto chains = std::make_shared<Chains>();
    std::vector<bool> followed(nodes.size());
    chains->of.resize(nodes.size());
    for (size_t i = 0; i < nodes.size(); i++) {
        size_t chain = chains->worker.size();
        for (size_t before : nodes[i].after)
            if (!followed[before] && chain == chains->worker.size()) {
                followed[before] = true;
                chain = chains->of[before];
            }
        chains->of[i] = chain;
        if (chain == chains->worker.size()) {
            chains->worker.push_back(chain ? take_worker(&chains->own) : Worker());
            chains->threads.push_back(std::make_shared<Workers>());
        }
    }
    if (nodes.empty())
        chains->worker.resize(1);
    return chains;
}

/* One launch of a graph. */
struct Run {
    std::shared_ptr<const Nodes> node;
    std::shared_ptr<Chains> chains;
    /* of the stream */
    std::shared_ptr<Workers> threads;
    /* of each node, and of the beginning */
    std::vector<char> token;
    /* of each node: those before it that have not run */
    std::vector<size_t> missing;
    std::vector<std::vector<size_t>> next;
    std::vector<size_t> ready;
};

void prepare(Run *r)
{
    Unseen unseen;
    size_t n = r->node->size();
    r->token.resize(n + 1);
    r->missing.resize(n);
    r->next.resize(n);
    for (size_t i = 0; i < n; i++) {
        r->missing[i] = (*r->node)[i].after.size();
        for (size_t before : (*r->node)[i].after)
            r->next[before].push_back(i);
        if (r->missing[i] == 0)
            r->ready.push_back(i);
    }
}

size_t take_node(Run *r)
{
    Unseen unseen;
    size_t &last = r->ready.back();
    std::swap(r->ready[below(r->ready.size())], last);
    size_t i = last;
    r->ready.pop_back();
    return i;
}

/* On the heap: for TSan our stack is the host's, who wrote there before. */
std::shared_ptr<Launch> copy_launch(const Launch &launch,
                                    std::shared_ptr<Workers> threads)
{
    Unseen unseen;
    auto copy = std::make_shared<Launch>(launch);
    copy->workers = std::move(threads);
    return copy;
}

void run_node(const Run &r, size_t i)
{
    const Node &node = (*r.node)[i];
    size_t chain = r.chains->of[i];
    if (!node.enabled)
        return;
    if (node.launch)
        run(*copy_launch(*node.launch, chain ? r.chains->threads[chain] : r.threads));
    else if (!node.work())
        error("%s cannot be part of a graph", node.what);
}

void run_nodes(Run *r)
{
    void *stream = context_current();
    size_t n = r->node->size();
    prepare(r);
    release(&r->token[n]);
    for (size_t count = 0; count < n; count++) {
        size_t i = take_node(r), chain = r->chains->of[i];
        if (chain)
            context_switch(r->chains->worker[chain].context);
        acquire(&r->token[n]);
        for (size_t before : (*r->node)[i].after)
            acquire(&r->token[before]);
        run_node(*r, i);
        release(&r->token[i]);
        if (chain)
            context_switch(stream);
        Unseen unseen;
        for (size_t after : r->next[i])
            if (--r->missing[after] == 0)
                r->ready.push_back(after);
    }
    for (size_t i = 0; i < n; i++)
        acquire(&r->token[i]);
}

/* What may not change in an update. */
cudaGraphExecUpdateResult compare(const Nodes &was, const Nodes &is)
{
    for (size_t i = 0; i < was.size() && i < is.size(); i++) {
        const Node &a = was[i], &b = is[i];
        if (a.type != b.type)
            return cudaGraphExecUpdateErrorNodeTypeChanged;
        if (a.after != b.after)
            return cudaGraphExecUpdateErrorTopologyChanged;
        if (a.launch && b.launch && a.launch->cooperative != b.launch->cooperative)
            return cudaGraphExecUpdateErrorAttributesChanged;
        if (a.type == cudaGraphNodeTypeMemcpy && a.kind != b.kind)
            return cudaGraphExecUpdateErrorParametersChanged;
    }
    return was.size() == is.size() ? cudaGraphExecUpdateSuccess
                                   : cudaGraphExecUpdateErrorTopologyChanged;
}

} // namespace
} // namespace simt

using namespace simt;

extern "C" {

/* ---- capture */

cudaError_t cudaStreamBeginCapture(cudaStream_t s, cudaStreamCaptureMode)
{
    static uint64_t count;
    enter("cudaStreamBeginCapture");
    check_stream(s, "cudaStreamBeginCapture");
    if (s->capture)
        error("stream %d is captured already", s->number);
    s->capture = new CUgraph_st();
    s->capture->number = ++count;
    s->capture->origin = s;
    s->capture->device = s->device;
    s->tail.clear();
    return result(cudaSuccess);
}

cudaError_t cudaStreamEndCapture(cudaStream_t s, cudaGraph_t *graph)
{
    enter("cudaStreamEndCapture");
    check_stream(s, "cudaStreamEndCapture");
    if (!s->capture || s->capture->origin != s)
        error("cudaStreamEndCapture: no capture began on stream %d", s->number);
    *graph = s->capture;
    for (cudaStream_t other : streams) {
        if (other->capture != *graph)
            continue;
        if (other != s)
            check_joined(other, *graph, s);
        other->capture = nullptr;
    }
    if (!settings().captures) {
        delete *graph;
        *graph = nullptr;
        return result(cudaErrorStreamCaptureInvalidated);
    }
    return result(cudaSuccess);
}

cudaError_t cudaStreamIsCapturing(cudaStream_t s, cudaStreamCaptureStatus *status)
{
    enter("cudaStreamIsCapturing");
    check_stream(s, "cudaStreamIsCapturing");
    *status = s->capture ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
    return result(cudaSuccess);
}

/* ---- graphs */

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph,
                                 unsigned long long)
{
    enter("cudaGraphInstantiate");
    Unseen unseen;
    *exec = new CUgraphExec_st{graph->number, graph->device,
                               std::make_shared<Nodes>(graph->node),
                               make_chains(graph->node)};
    return result(cudaSuccess);
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *exec, cudaGraph_t graph,
                                          unsigned long long flags)
{
    return cudaGraphInstantiate(exec, graph, flags);
}

/* Launches so far keep what they had. */
cudaError_t cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph,
                                cudaGraphExecUpdateResultInfo *info)
{
    enter("cudaGraphExecUpdate");
    Unseen unseen;
    *info = {};
    info->result = graph->device == exec->device
                       ? compare(*exec->node, graph->node)
                       : cudaGraphExecUpdateErrorParametersChanged;
    if (info->result != cudaGraphExecUpdateSuccess)
        return result(cudaErrorGraphExecUpdateFailure);
    exec->node = std::make_shared<Nodes>(graph->node);
    return result(cudaSuccess);
}

cudaError_t cudaGraphUpload(cudaGraphExec_t, cudaStream_t s)
{
    enter("cudaGraphUpload");
    check_stream(s, "cudaGraphUpload");
    return result(cudaSuccess);
}

/* As CUDA has it, the graph may be destroyed while its launch is still queued. */
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t s)
{
    enter("cudaGraphLaunch");
    check_stream(s, "cudaGraphLaunch");
    if (is_capturing(s))
        error("cudaGraphLaunch into a stream that is captured is not emulated");
    if (exec->device != s->device)
        error("cudaGraphLaunch on device %d of a graph captured on device %d",
              s->device, exec->device);
    Run run = {exec->node, exec->chains, s->workers, {}, {}, {}, {}};
    enqueue(s, "cudaGraphLaunch", [run]() mutable { return run_nodes(&run), true; });
    return result(cudaSuccess);
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec)
{
    enter("cudaGraphExecDestroy");
    delete exec;
    return result(cudaSuccess);
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
    enter("cudaGraphDestroy");
    delete graph;
    return result(cudaSuccess);
}

} // extern "C"
