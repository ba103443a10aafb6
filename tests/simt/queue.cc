/*
 * queue.cc - streams as queues whose work runs only when the host waits for it.
 *
 * Takes work in order; runs it when a call waits for a stream, an event or a device:
 * what the waited-for work needs and nothing else, or everything else first, or in any
 * order that events allow, by chance. So an event wait that is missing, or a buffer of
 * the host used too early or given up too late, shows in the results.
 */
#include <csignal>
#include <cstdio>
#include <dlfcn.h>
#include <map>
#include <pthread.h>
#include <unistd.h>

#include "queue.h"

namespace simt
{

std::vector<cudaStream_t> streams;

namespace
{

const char *named_kernel;
Site named_site;

struct Known {
    Binder *bind;
    const char *name;
};
std::map<const void *, Known> known; /* kernels that were launched */

/* ---- running what is queued */

bool can_run(cudaStream_t s)
{
    return !s->queue.empty() &&
           (!s->queue.front().after || s->queue.front().after->done);
}

/* Runs or continues the first operation; false if it is not finished. */
bool advance(cudaStream_t s)
{
    Operation &op = s->queue.front();
    void *host = context_current();
    open_memory(s->device);
    context_switch(s->context);
    acquire(op.token.get());
    if (op.after)
        acquire(&op.after->token);
    bool finished = !op.work || op.work();
    if (finished)
        s->queue.pop_front(); /* here: it frees what the work held */
    release(&s->token);
    context_switch(host);
    return finished;
}

/* The stream whose head must run first for s to continue. */
cudaStream_t needed(cudaStream_t s)
{
    while (!can_run(s))
        s = s->queue.front().after->stream;
    return s;
}

enum Order { only_needed, others_first, any_order };

Order draw_order()
{
    const Order orders[] = {only_needed, only_needed, others_first, any_order};
    return orders[below(4)];
}

cudaStream_t choose(cudaStream_t target, Order order)
{
    cudaStream_t need = needed(target);
    std::vector<cudaStream_t> can;
    for (cudaStream_t s : streams)
        if (can_run(s) && (order == any_order || s != need))
            can.push_back(s);
    return order == only_needed || can.empty() ? need : can[below(can.size())];
}

const char *name_of(const void *function)
{
    Dl_info info;
    return dladdr(function, &info) && info.dli_sname ? info.dli_sname : "a kernel";
}

struct AtEnd {
    ~AtEnd()
    {
        for (cudaStream_t s : streams) {
            if (s->capture)
                fprintf(stderr, "simt: the capture of stream %d was not ended\n",
                        s->number);
            if (!s->queue.empty())
                fprintf(stderr,
                        "simt: stream %d holds %zu operations that nobody waited "
                        "for, first %s\n",
                        s->number, s->queue.size(), s->queue.front().what);
        }
    }
} at_end;

} // namespace

void run_until(cudaStream_t target, const std::function<bool()> &done)
{
    Order order = draw_order();
    bool stuck = false;
    while (!done()) {
        cudaStream_t s = choose(target, stuck ? only_needed : order);
        bool finished = advance(s);
        if (!finished && stuck)
            usleep(50); /* others must do their part: NCCL */
        stuck = !finished;
    }
    open_memory(-1);
}

void run_one(cudaStream_t s)
{
    advance(choose(s, draw_order()));
    open_memory(-1);
}

void finish(cudaStream_t s)
{
    if (s->capture)
        error("stream %d is waited for while it is captured", s->number);
    run_until(s, [s] { return s->queue.empty(); });
    acquire(&s->token);
}

void finish_all(int device)
{
    for (cudaStream_t s : streams)
        if (s->device == device)
            finish(s);
}

/* ---- giving it work */

void push(cudaStream_t s, const char *what, Work work, std::shared_ptr<Record> after)
{
    auto token = std::make_shared<char>();
    release(token.get());
    s->queue.push_back({what, std::move(work), std::move(after), token});
}

void enqueue_node(cudaStream_t s, Node node)
{
    if (!s->capture) {
        std::shared_ptr<const Launch> launch = node.launch;
        if (launch)
            node.work = [launch] { return run(*launch), true; };
        push(s, node.what, std::move(node.work), nullptr);
        return;
    }
    node.after = s->tail;
    node.enabled = true;
    s->tail = {s->capture->node.size()};
    s->capture->node.push_back(std::move(node));
}

void enqueue(cudaStream_t s, const char *what, Work work)
{
    enqueue_node(
        s, {cudaGraphNodeTypeKernel, what, std::move(work), nullptr, {}, {}, true});
}

Node kernel_node(const Launch &launch)
{
    return {cudaGraphNodeTypeKernel,
            launch.name,
            nullptr,
            std::make_shared<const Launch>(launch),
            {},
            {},
            true};
}

void name_launch(const char *kernel, Site at)
{
    named_kernel = kernel;
    named_site = at;
}

cudaError_t launch_kernel(Kernel kernel, dim3 grid, dim3 block, size_t shared,
                          cudaStream_t stream, bool cooperative)
{
    enter("cudaLaunchKernel");
    check_stream(stream, "cudaLaunchKernel");
    const char *name = named_kernel ? named_kernel : name_of(kernel.function);
    Launch launch = {std::move(kernel),
                     name,
                     named_kernel ? named_site : Site("?", 0),
                     grid,
                     block,
                     shared,
                     cooperative,
                     stream->workers};
    named_kernel = nullptr;
    cudaError_t status = check_launch(launch);
    if (status == cudaSuccess) {
        known[launch.kernel.function] = {launch.kernel.bind, name};
        enqueue_node(stream, kernel_node(launch));
    }
    return result(status);
}

Kernel known_kernel(const void *function, void **args, const char **name)
{
    auto found = known.find(function);
    if (found == known.end())
        error("a node is given a kernel that was never launched: its arguments' types "
              "are "
              "not known");
    *name = found->second.name;
    return {function, found->second.bind(function, args), found->second.bind};
}

/* ---- checks of every entry point */

void enter(const char *function)
{
    static const pthread_t first = pthread_self();
    static long calls;
    if (self() || working_device() >= 0)
        error("%s called from queued work", function);
    if (!pthread_equal(first, pthread_self()))
        error("%s called from a second thread", function);
    if (settings().dies_at && strcmp(function, settings().dies_in) == 0 &&
        ++calls == settings().dies_at)
        raise(SIGKILL);
}

void check_stream(cudaStream_t s, const char *what)
{
    if (!s || s == cudaStreamLegacy || s == cudaStreamPerThread)
        error("%s uses the default stream", what);
    if (std::find(streams.begin(), streams.end(), s) == streams.end())
        error("%s uses a stream that was destroyed", what);
    if (s->device != current_device())
        error("%s: the stream is of device %d, the current device is %d", what,
              s->device, current_device());
}

void check_no_capture(const char *what)
{
    for (cudaStream_t s : streams)
        if (s->capture)
            error("%s while stream %d is captured", what, s->number);
}

bool is_capturing(cudaStream_t s)
{
    return s->capture;
}

int stream_device(cudaStream_t s)
{
    return s->device;
}

} // namespace simt
