/*
 * graph.cc - capture, and graphs: what was captured, run as one operation of a stream.
 *
 * The nodes run in an order that their edges allow, drawn anew at each launch: an edge that is
 * missing shows. Arguments are those of the capture.
 */
#include "queue.h"

namespace simt {

namespace {

/* All streams that joined must have been joined again: their last node must be before one of
   the origin's, or the origin's tail. */
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

bool may_run(const CUgraphExec_st *graph, const std::vector<bool> &done, size_t i)
{
    if (done[i])
        return false;
    for (size_t before : graph->node[i].after)
        if (!done[before])
            return false;
    return true;
}

void run_nodes(const CUgraphExec_st *graph)
{
    size_t n = graph->node.size();
    std::vector<bool> done(n);
    for (size_t count = 0; count < n; count++) {
        std::vector<size_t> can;
        for (size_t i = 0; i < n; i++)
            if (may_run(graph, done, i))
                can.push_back(i);
        size_t next = can[below(can.size())];
        if (!graph->node[next].work())
            error("%s cannot be part of a graph", graph->node[next].what);
        done[next] = true;
    }
}

} // namespace
} // namespace simt

using namespace simt;

extern "C" {

/* ---- capture ------------------------------------------------------------------------ */

cudaError_t cudaStreamBeginCapture(cudaStream_t s, cudaStreamCaptureMode)
{
    enter("cudaStreamBeginCapture");
    check_stream(s, "cudaStreamBeginCapture");
    if (s->capture)
        error("stream %d is captured already", s->number);
    s->capture = new CUgraph_st();
    s->capture->origin = s;
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
    return result(cudaSuccess);
}

cudaError_t cudaStreamIsCapturing(cudaStream_t s, cudaStreamCaptureStatus *status)
{
    enter("cudaStreamIsCapturing");
    check_stream(s, "cudaStreamIsCapturing");
    *status = s->capture ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
    return result(cudaSuccess);
}

/* ---- graphs ------------------------------------------------------------------------- */

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long)
{
    enter("cudaGraphInstantiate");
    *exec = new CUgraphExec_st{graph->node};
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
    auto copy = std::make_shared<CUgraphExec_st>(*exec);
    enqueue(s, "cudaGraphLaunch", [copy] { return run_nodes(copy.get()), true; });
    return result(cudaSuccess);
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count)
{
    enter("cudaGraphGetNodes");
    if (nodes)
        error("cudaGraphGetNodes: only the count is emulated");
    *count = graph->node.size();
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
