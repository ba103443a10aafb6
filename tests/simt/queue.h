/*
 * queue.h - streams, events, graphs and what they hold, for queue.cc, stream.cc,
 * graph.cc and node.cc.
 */
#ifndef SIMT_QUEUE_H
#define SIMT_QUEUE_H

#include "core.h"

namespace simt
{

/* One event record: its own, since the event may be recorded again. */
struct Record {
    cudaStream_t stream;
    bool done;
    /* seconds, once done */
    double when;
    /* recorded in this one, after these nodes; 0: in none */
    uint64_t capture;
    std::vector<size_t> after;
    char token;
};

struct Operation {
    const char *what;
    /* empty: only waits */
    Work work;
    std::shared_ptr<Record> after;
    std::shared_ptr<char> token;
};

/* What a stream is given, and what a graph is made of. */
struct Node {
    cudaGraphNodeType type;
    const char *what;
    Work work;
    /* instead, of a kernel but cuBLAS's */
    std::shared_ptr<const Launch> launch;
    /* of a copy */
    cudaMemcpyKind kind;
    std::vector<size_t> after;
    bool enabled;
};
typedef std::vector<Node> Nodes;

struct Chains;

/* All that live. */
extern std::vector<cudaStream_t> streams;

/* Behind what the stream holds, and not before the record is done. */
void push(cudaStream_t s, const char *what, Work work, std::shared_ptr<Record> after);
/* enqueue() of core.h for what a graph can be given new parameters for. */
void enqueue_node(cudaStream_t s, Node node);
Node kernel_node(const Launch &launch);
Node copy_node(void *dst, const void *src, size_t bytes, cudaMemcpyKind kind,
               int device);
Node set_node(void *dst, int value, size_t bytes, int device);
/* A kernel that was launched before, with other arguments. */
Kernel known_kernel(const void *function, void **args, const char **name);
/* Runs until done() is true, which work of the target brings about. */
void run_until(cudaStream_t target, const std::function<bool()> &done);
/* Runs one operation of those that s needs or that may run beside them. */
void run_one(cudaStream_t s);
/* Runs all that the stream holds. */
void finish(cudaStream_t s);

} // namespace simt

/* CUDA's names for them. */
struct CUstream_st {
    int number, device;
    std::deque<simt::Operation> queue;
    /* of TSan, and what its launches leave of them */
    void *context;
    std::shared_ptr<simt::Workers> workers;
    /* NULL: none */
    CUgraph_st *capture;
    /* capturing: the nodes that the next one comes after */
    std::vector<size_t> tail;
    char token;
};

struct CUevent_st {
    std::shared_ptr<simt::Record> record;
    bool timed;
};

struct CUgraphNode_st {
    CUgraph_st *graph;
    size_t place;
};

struct CUgraph_st {
    /* 1, 2, ... */
    uint64_t number;
    simt::Nodes node;
    cudaStream_t origin;
    int device;
    /* of each node, once asked for */
    std::vector<CUgraphNode_st> handle;
};

struct CUgraphExec_st {
    /* number of the one it was made of */
    uint64_t graph;
    int device;
    /* shared with launches that have not run yet */
    std::shared_ptr<simt::Nodes> node;
    std::shared_ptr<simt::Chains> chains;
};

#endif
