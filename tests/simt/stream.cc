/*
 * stream.cc - CUDA's calls on streams and events, and copies between host and device.
 *
 * Takes what the program asks, checks pointers and streams, queues it (queue.cc).
 */
#include <cstdio>
#include <ctime>
#include <set>

#include "queue.h"

namespace simt
{

namespace
{

std::set<cudaEvent_t> events;

void check_event(cudaEvent_t e, const char *what)
{
    if (!events.count(e))
        error("%s: no such event, or it was destroyed", what);
}

double now()
{
    Unseen unseen;
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Copies, with the kind of both ends checked now and again when the work runs. */
void check_copy(const void *dst, const void *src, size_t bytes, cudaMemcpyKind kind,
                int device)
{
    bool to = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
    bool from = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
    if (kind != cudaMemcpyHostToDevice && kind != cudaMemcpyDeviceToHost &&
        kind != cudaMemcpyDeviceToDevice)
        error("cudaMemcpyAsync: kind %d is not emulated", (int)kind);
    if (to)
        check_device(dst, bytes, device, "cudaMemcpyAsync to");
    else if (is_device(dst))
        error("cudaMemcpyAsync to the host: %p is device memory", dst);
    if (from)
        check_device(src, bytes, device, "cudaMemcpyAsync from");
    else if (is_device(src))
        error("cudaMemcpyAsync from the host: %p is device memory", src);
}

void copy_bytes(void *dst, const void *src, size_t bytes)
{
    if (bytes > 0)
        memmove(dst, src, bytes);
    announce_read(src, bytes);
    announce_write(dst, bytes);
}

/* A number for all that came to the host. A copy counts by its place among those that
   were asked for, so the number does not depend on when they ran. */
struct Digest {
    uint64_t asked, sum;
    ~Digest()
    {
        if (settings().digest)
            fprintf(stderr, "simt: digest of %llu copies to the host: %016llx\n",
                    (unsigned long long)asked, (unsigned long long)sum);
    }
} digest;

void digest_add(uint64_t place, const void *p, size_t bytes)
{
    Unseen unseen;
    const unsigned char *from = static_cast<const unsigned char *>(p);
    uint64_t x = place * 0x9E3779B97F4A7C15u;
    for (size_t i = 0; i < bytes; i++)
        x = (x ^ from[i]) * 0x100000001B3u; /* FNV-1a */
    digest.sum += x;
}

/* Whether a stream is still captured in the graph that the event was recorded in. */
bool is_open(const Record &record)
{
    for (cudaStream_t s : streams)
        if (s->capture && s->capture->number == record.capture)
            return true;
    return false;
}

} // namespace

Node copy_node(void *dst, const void *src, size_t bytes, cudaMemcpyKind kind,
               int device)
{
    check_copy(dst, src, bytes, kind, device);
    uint64_t place = digest.asked += kind == cudaMemcpyDeviceToHost;
    return {cudaGraphNodeTypeMemcpy,
            "cudaMemcpyAsync",
            [=] {
                check_copy(dst, src, bytes, kind, device);
                copy_bytes(dst, src, bytes);
                if (settings().digest && kind == cudaMemcpyDeviceToHost)
                    digest_add(place, dst, bytes);
                return true;
            },
            nullptr,
            kind,
            {},
            true};
}

Node set_node(void *dst, int value, size_t bytes, int device)
{
    check_device(dst, bytes, device, "cudaMemsetAsync");
    return {cudaGraphNodeTypeMemset,
            "cudaMemsetAsync",
            [=] {
                check_device(dst, bytes, device, "cudaMemsetAsync");
                memset(dst, value, bytes);
                announce_write(dst, bytes);
                return true;
            },
            nullptr,
            {},
            {},
            true};
}

} // namespace simt

using namespace simt;

extern "C" {

/* ---- streams */

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *s, unsigned flags)
{
    static int count;
    enter("cudaStreamCreateWithFlags");
    if (flags != cudaStreamNonBlocking)
        error("a stream that the default stream blocks: cudaStreamNonBlocking was "
              "expected");
    *s = new CUstream_st();
    (*s)->number = ++count;
    (*s)->device = current_device();
    (*s)->context =
        context_new(); /* now: it must not come after what the host sees later */
    (*s)->workers = std::make_shared<Workers>();
    streams.push_back(*s);
    return result(cudaSuccess);
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *s, unsigned flags, int)
{
    return cudaStreamCreateWithFlags(s, flags);
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
    *least = 0;
    *greatest = -5;
    return result(cudaSuccess);
}

/* Work that it still holds is done first, as CUDA does in its own time. */
cudaError_t cudaStreamDestroy(cudaStream_t s)
{
    enter("cudaStreamDestroy");
    check_stream(s, "cudaStreamDestroy");
    finish(s);
    streams.erase(std::find(streams.begin(), streams.end(), s));
    delete s;
    return result(cudaSuccess);
}

cudaError_t cudaStreamSynchronize(cudaStream_t s)
{
    enter("cudaStreamSynchronize");
    check_stream(s, "cudaStreamSynchronize");
    check_no_capture("cudaStreamSynchronize");
    finish(s);
    return result(cudaSuccess);
}

cudaError_t cudaDeviceSynchronize(void)
{
    enter("cudaDeviceSynchronize");
    check_no_capture("cudaDeviceSynchronize");
    finish_all(current_device());
    return result(cudaSuccess);
}

/* Who asks again and again gets on: each question runs an operation. */
cudaError_t cudaStreamQuery(cudaStream_t s)
{
    enter("cudaStreamQuery");
    check_stream(s, "cudaStreamQuery");
    check_no_capture("cudaStreamQuery");
    if (!s->queue.empty())
        run_one(s);
    if (!s->queue.empty())
        return result(cudaErrorNotReady);
    acquire(&s->token);
    return result(cudaSuccess);
}

/* ---- events */

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *e, unsigned flags)
{
    enter("cudaEventCreateWithFlags");
    *e = new CUevent_st();
    (*e)->timed = !(flags & cudaEventDisableTiming);
    events.insert(*e);
    return result(cudaSuccess);
}

cudaError_t cudaEventCreate(cudaEvent_t *e)
{
    return cudaEventCreateWithFlags(e, 0);
}

cudaError_t cudaEventDestroy(cudaEvent_t e)
{
    enter("cudaEventDestroy");
    check_event(e, "cudaEventDestroy");
    events.erase(e);
    delete e;
    return result(cudaSuccess);
}

cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t s)
{
    enter("cudaEventRecord");
    check_stream(s, "cudaEventRecord");
    check_event(e, "cudaEventRecord");
    auto record = std::make_shared<Record>();
    record->stream = s;
    e->record = record;
    if (s->capture) {
        record->capture = s->capture->number;
        record->after = s->tail;
        return result(cudaSuccess);
    }
    enqueue(s, "cudaEventRecord", [record] {
        record->done = true;
        record->when = now();
        release(&record->token);
        return true;
    });
    return result(cudaSuccess);
}

/* On an event that was not recorded yet it waits for nothing, as CUDA has it. */
cudaError_t cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t e, unsigned)
{
    enter("cudaStreamWaitEvent");
    check_stream(s, "cudaStreamWaitEvent");
    check_event(e, "cudaStreamWaitEvent");
    std::shared_ptr<Record> record = e->record;
    if (!record)
        return result(cudaSuccess);
    if (record->capture && !is_open(*record))
        error(
            "cudaStreamWaitEvent: the event was recorded in a capture that has ended");
    if (record->capture && (!s->capture || s->capture->number == record->capture)) {
        s->capture = record->stream->capture; /* joins the capture by such a wait */
        s->tail.insert(s->tail.end(), record->after.begin(), record->after.end());
    } else if (record->capture || s->capture) {
        error("stream %d: cudaStreamWaitEvent between a capture and what is outside of "
              "it",
              s->number);
    } else {
        push(s, "cudaStreamWaitEvent", nullptr, record);
    }
    return result(cudaSuccess);
}

cudaError_t cudaEventSynchronize(cudaEvent_t e)
{
    enter("cudaEventSynchronize");
    check_event(e, "cudaEventSynchronize");
    check_no_capture("cudaEventSynchronize");
    std::shared_ptr<Record> record = e->record;
    if (!record)
        return result(cudaSuccess);
    if (record->capture)
        error("cudaEventSynchronize on an event recorded in a capture");
    run_until(record->stream, [record] { return record->done; });
    acquire(&record->token);
    return result(cudaSuccess);
}

cudaError_t cudaEventQuery(cudaEvent_t e)
{
    enter("cudaEventQuery");
    check_event(e, "cudaEventQuery");
    check_no_capture("cudaEventQuery");
    std::shared_ptr<Record> record = e->record;
    if (record && record->capture)
        error("cudaEventQuery on an event recorded in a capture");
    if (record && !record->done)
        run_one(record->stream);
    if (record && !record->done)
        return result(cudaErrorNotReady);
    if (record)
        acquire(&record->token);
    return result(cudaSuccess);
}

cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t begin,
                                 cudaEvent_t end)
{
    enter("cudaEventElapsedTime");
    check_event(begin, "cudaEventElapsedTime");
    check_event(end, "cudaEventElapsedTime");
    if (!begin->record || !end->record || !begin->timed || !end->timed)
        return result(cudaErrorInvalidResourceHandle);
    if (!begin->record->done || !end->record->done)
        return result(cudaErrorNotReady);
    *milliseconds = (float)(1e3 * (end->record->when - begin->record->when));
    return result(cudaSuccess);
}

/* ---- copies */

/* Pageable memory is read before it returns, or written: CUDA stages it. Pinned memory
   and the device's are used when the work runs. */
cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t bytes,
                            cudaMemcpyKind kind, cudaStream_t s)
{
    enter("cudaMemcpyAsync");
    check_stream(s, "cudaMemcpyAsync");
    int device = s->device;
    Node node = copy_node(dst, src, bytes, kind, device);
    bool pageable = kind == cudaMemcpyHostToDevice   ? !is_pinned(src, bytes)
                    : kind == cudaMemcpyDeviceToHost ? !is_pinned(dst, bytes)
                                                     : false;
    if (pageable && s->capture)
        error("cudaMemcpyAsync captures pageable memory of the host");
    if (pageable && kind == cudaMemcpyHostToDevice) {
        auto staged = std::make_shared<std::vector<char>>(
            static_cast<const char *>(src), static_cast<const char *>(src) + bytes);
        enqueue(s, "cudaMemcpyAsync", [=] {
            check_copy(dst, staged->data(), bytes, kind, device);
            copy_bytes(dst, staged->data(), bytes);
            return true;
        });
        return result(cudaSuccess);
    }
    enqueue_node(s, std::move(node));
    if (pageable)
        finish(s);
    return result(cudaSuccess);
}

cudaError_t cudaMemsetAsync(void *dst, int value, size_t bytes, cudaStream_t s)
{
    enter("cudaMemsetAsync");
    check_stream(s, "cudaMemsetAsync");
    enqueue_node(s, set_node(dst, value, bytes, s->device));
    return result(cudaSuccess);
}

} // extern "C"
