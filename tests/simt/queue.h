/*
 * queue.h - streams, events and what they hold, for queue.cc, stream.cc and graph.cc.
 */
#ifndef SIMT_QUEUE_H
#define SIMT_QUEUE_H

#include "core.h"

namespace simt {

/* One event record: its own, since the event may be recorded again. */
struct Record {
    cudaStream_t stream;
    bool done;
    double when;             /* seconds, once done */
    CUgraph_st *graph; /* recorded while capturing: in this graph, behind these nodes */
    std::vector<size_t> behind;
    char token;
};

struct Operation {
    const char *what;
    Work work;               /* empty: only waits */
    std::shared_ptr<Record> after;
    std::shared_ptr<char> token;
};

struct Node {
    const char *what;
    Work work;
    std::vector<size_t> after;
};

/* All that live. */
extern std::vector<cudaStream_t> streams;

/* Behind what the stream holds, and not before the record is done. */
void push(cudaStream_t s, const char *what, Work work, std::shared_ptr<Record> after);
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
    void *context;            /* of TSan, and what its launches leave of them */
    std::shared_ptr<simt::Workers> workers;
    CUgraph_st *capture;      /* NULL: none */
    std::vector<size_t> tail; /* capturing: the nodes that the next one comes behind */
    char token;
};

struct CUevent_st {
    std::shared_ptr<simt::Record> record;
};

struct CUgraph_st {
    std::vector<simt::Node> node;
    cudaStream_t origin;
};

struct CUgraphExec_st {
    std::vector<simt::Node> node;
};

#endif
