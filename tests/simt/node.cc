/*
 * node.cc - the nodes of a graph, one by one: what they are, and new parameters for
 * them.
 *
 * Takes nodes of the graph that an executable one was made of, which must live still.
 * Gives cudaGraphGetNodes, NodeGetType, KernelNodeGetParams (without the arguments);
 * new parameters for kernels that have been launched before, 1D copies and memsets of
 * bytes; nodes turned off and on. The kernels of cuBLAS are its own: they can be turned
 * off, not changed.
 */
#include "queue.h"

namespace simt
{

namespace
{

/* Stands for the functions of cuBLAS. */
void kernel_of_cublas()
{
}

const Node &node_of(const CUgraphNode_st *handle)
{
    return handle->graph->node[handle->place];
}

/* The node in the executable graph, to change it: not in launches that are queued. */
Node &node_in(cudaGraphExec_t exec, cudaGraphNode_t handle, const char *what)
{
    enter(what);
    if (handle->graph->number != exec->graph)
        error("%s: the node is of another graph than the executable one was made of",
              what);
    Unseen unseen;
    if (exec->node.use_count() > 1)
        exec->node = std::make_shared<Nodes>(*exec->node);
    return (*exec->node)[handle->place];
}

void take_over(Node *node, Node from)
{
    node->work = std::move(from.work);
    node->launch = std::move(from.launch);
    node->kind = from.kind;
}

} // namespace
} // namespace simt

using namespace simt;

extern "C" {

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count)
{
    enter("cudaGraphGetNodes");
    size_t n = graph->node.size();
    graph->handle.resize(n);
    for (size_t i = 0; i < n; i++)
        graph->handle[i] = {graph, i};
    for (size_t i = 0; nodes && i < *count; i++)
        nodes[i] = i < n ? &graph->handle[i] : nullptr;
    *count = nodes ? std::min(n, *count) : n;
    return result(cudaSuccess);
}

cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, cudaGraphNodeType *type)
{
    enter("cudaGraphNodeGetType");
    *type = node_of(node).type;
    return result(cudaSuccess);
}

cudaError_t cudaGraphKernelNodeGetParams(cudaGraphNode_t node, cudaKernelNodeParams *p)
{
    enter("cudaGraphKernelNodeGetParams");
    if (node_of(node).type != cudaGraphNodeTypeKernel)
        return result(cudaErrorInvalidValue);
    *p = {};
    p->func = reinterpret_cast<void *>(kernel_of_cublas);
    if (const Launch *launch = node_of(node).launch.get()) {
        p->func = const_cast<void *>(launch->kernel.function);
        p->gridDim = launch->grid;
        p->blockDim = launch->block;
        p->sharedMemBytes = (unsigned)launch->shared;
    }
    return result(cudaSuccess);
}

cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t exec,
                                             cudaGraphNode_t handle,
                                             const cudaKernelNodeParams *p)
{
    Node &node = node_in(exec, handle, "cudaGraphExecKernelNodeSetParams");
    if (node.type != cudaGraphNodeTypeKernel)
        return result(cudaErrorInvalidValue);
    if (!node.launch)
        error("cudaGraphExecKernelNodeSetParams of a kernel of cuBLAS");
    Launch launch = *node.launch;
    launch.kernel = known_kernel(p->func, p->kernelParams, &launch.name);
    launch.grid = p->gridDim;
    launch.block = p->blockDim;
    launch.shared = p->sharedMemBytes;
    cudaError_t status = check_launch(launch);
    if (status == cudaSuccess)
        take_over(&node, kernel_node(launch));
    return result(status);
}

cudaError_t cudaGraphExecMemcpyNodeSetParams1D(cudaGraphExec_t exec,
                                               cudaGraphNode_t handle, void *dst,
                                               const void *src, size_t bytes,
                                               cudaMemcpyKind kind)
{
    Node &node = node_in(exec, handle, "cudaGraphExecMemcpyNodeSetParams1D");
    if (node.type != cudaGraphNodeTypeMemcpy || node.kind != kind)
        return result(cudaErrorInvalidValue);
    if ((kind == cudaMemcpyHostToDevice && !is_pinned(src, bytes)) ||
        (kind == cudaMemcpyDeviceToHost && !is_pinned(dst, bytes)))
        error("cudaGraphExecMemcpyNodeSetParams1D: pageable memory of the host");
    take_over(&node, copy_node(dst, src, bytes, kind, exec->device));
    return result(cudaSuccess);
}

cudaError_t cudaGraphExecMemsetNodeSetParams(cudaGraphExec_t exec,
                                             cudaGraphNode_t handle,
                                             const cudaMemsetParams *p)
{
    Node &node = node_in(exec, handle, "cudaGraphExecMemsetNodeSetParams");
    if (node.type != cudaGraphNodeTypeMemset || p->elementSize != 1 || p->height != 1)
        return result(cudaErrorInvalidValue);
    take_over(&node, set_node(p->dst, (int)p->value, p->width, exec->device));
    return result(cudaSuccess);
}

cudaError_t cudaGraphNodeSetEnabled(cudaGraphExec_t exec, cudaGraphNode_t handle,
                                    unsigned enabled)
{
    node_in(exec, handle, "cudaGraphNodeSetEnabled").enabled = enabled != 0;
    return result(cudaSuccess);
}

} // extern "C"
