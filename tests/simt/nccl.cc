/*
 * nccl.cc - NCCL over MPI, for as many processes as MPI's world has.
 *
 * Takes collectives on streams. When one runs, the arguments of all ranks are compared
 * first; then each rank gathers the data of all and sums in rank order, so that all
 * have the same bits. Nothing blocks: work that waits for a peer stays at the head of
 * its stream. A peer whose program waits elsewhere does not run its streams: ranks must
 * wait for collectives in the same places.
 */
#include <cstdio>
#define OMPI_SKIP_MPICXX  1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>
#include <nccl.h>
#include <unistd.h>

#include "core.h"

namespace simt
{

namespace
{

struct Peer {
    char id[NCCL_UNIQUE_ID_BYTES];
    int size, rank, device;
    char host[64];
};

/* What all ranks must agree on. */
struct Arguments {
    /* of collectives on this communicator so far */
    int number;
    int is_broadcast, type, op, root;
    /* no padding: they are compared as bytes */
    int unused;
    uint64_t count;
};

struct State {
    MPI_Comm comm;
    /* a world of one needs no MPI */
    bool alone;
    int rank, size, device;
    int asked, done;
    bool aborted;
};

struct Collective {
    std::shared_ptr<State> state;
    Arguments mine;
    const void *send;
    void *receive;
    /* 0: not begun, 1: comparing, 2: moving */
    int stage;
    MPI_Request request;
    std::vector<Arguments> all;
    std::vector<char> data, everyone;
};

} // namespace
} // namespace simt

struct ncclComm {
    std::shared_ptr<simt::State> state;
};

namespace simt
{

namespace
{

int group_depth;
std::vector<std::shared_ptr<Collective>> given_up; /* MPI may still write to them */
std::vector<std::function<void()>> grouped;

size_t size_of(int type)
{
    switch (type) {
    case ncclFloat32:
    case ncclInt32:
        return 4;
    case ncclFloat64:
    case ncclInt64:
        return 8;
    case ncclBfloat16:
        return 2;
    case ncclInt8:
    case ncclUint8:
        return 1;
    default:
        error("NCCL's type %d is not emulated", type);
    }
}

/* ---- sums in rank order */

template <class T, class Sum> void reduce_as(const Collective &c, int op)
{
    const T *in = reinterpret_cast<const T *>(c.everyone.data());
    T *out = static_cast<T *>(c.receive);
    size_t n = c.mine.count;
    for (size_t i = 0; i < n; i++) {
        Sum sum = (Sum)in[i];
        for (int r = 1; r < c.state->size; r++) {
            Sum x = (Sum)in[(size_t)r * n + i];
            sum = op == ncclSum   ? sum + x
                  : op == ncclMax ? std::max(sum, x)
                                  : std::min(sum, x);
        }
        out[i] = (T)sum;
    }
}

void reduce(const Collective &c)
{
    switch (c.mine.type) {
    case ncclFloat32:
        return reduce_as<float, float>(c, c.mine.op);
    case ncclFloat64:
        return reduce_as<double, double>(c, c.mine.op);
    case ncclBfloat16:
        return reduce_as<__nv_bfloat16, float>(c, c.mine.op);
    case ncclInt32:
        return reduce_as<int32_t, int32_t>(c, c.mine.op);
    case ncclInt64:
        return reduce_as<int64_t, int64_t>(c, c.mine.op);
    default:
        return reduce_as<uint8_t, uint8_t>(c, c.mine.op);
    }
}

/* ---- one collective, step by step */

void compare(const Collective &c)
{
    for (int r = 0; r < c.state->size; r++) {
        const Arguments &o = c.all[(size_t)r];
        if (memcmp(&o, &c.mine, sizeof o) != 0)
            error("NCCL: rank %d is in its %s %d of %llu elements (type %d, op %d, "
                  "root %d), "
                  "rank %d in its %s %d of %llu (type %d, op %d, root %d)",
                  c.state->rank, c.mine.is_broadcast ? "broadcast" : "all-reduce",
                  c.mine.number, (unsigned long long)c.mine.count, c.mine.type,
                  c.mine.op, c.mine.root, r,
                  o.is_broadcast ? "broadcast" : "all-reduce", o.number,
                  (unsigned long long)o.count, o.type, o.op, o.root);
    }
}

void begin_comparing(Collective *c)
{
    size_t bytes = c->mine.count * size_of(c->mine.type);
    check_device(c->send, bytes, c->state->device, "NCCL's send buffer");
    check_device(c->receive, bytes, c->state->device, "NCCL's receive buffer");
    c->all.resize((size_t)c->state->size);
    c->stage = 1;
    if (c->state->alone)
        c->all[0] = c->mine;
    else
        MPI_Iallgather(&c->mine, sizeof c->mine, MPI_BYTE, c->all.data(),
                       sizeof c->mine, MPI_BYTE, c->state->comm, &c->request);
}

/* MPI sees copies: device memory is closed to it while others work. */
void begin_moving(Collective *c)
{
    int bytes = (int)(c->mine.count * size_of(c->mine.type));
    const char *send = static_cast<const char *>(c->send);
    announce_read(send, (size_t)bytes);
    c->data.assign(send, send + bytes);
    c->stage = 2;
    if (c->state->alone)
        c->everyone = c->data;
    else if (c->mine.is_broadcast)
        MPI_Ibcast(c->data.data(), bytes, MPI_BYTE, c->mine.root, c->state->comm,
                   &c->request);
    else {
        c->everyone.resize((size_t)bytes * (size_t)c->state->size);
        MPI_Iallgather(c->data.data(), bytes, MPI_BYTE, c->everyone.data(), bytes,
                       MPI_BYTE, c->state->comm, &c->request);
    }
}

bool arrived(Collective *c)
{
    int done = 1;
    if (!c->state->alone)
        MPI_Test(&c->request, &done, MPI_STATUS_IGNORE);
    return done;
}

void deliver(Collective *c)
{
    announce_write(c->receive, c->data.size());
    if (c->mine.is_broadcast)
        memcpy(c->receive, c->data.data(), c->data.size());
    else
        reduce(*c);
}

/* True once it is done, or given up. */
bool go_on(const std::shared_ptr<Collective> &shared)
{
    Unseen unseen;
    Collective *c = shared.get();
    if (c->state->aborted) {
        given_up.push_back(shared);
        return true;
    }
    if (c->stage == 0)
        begin_comparing(c);
    if (c->stage == 1 && arrived(c)) {
        compare(*c);
        begin_moving(c);
    }
    if (c->stage != 2 || !arrived(c))
        return false;
    deliver(c);
    c->state->done++;
    return true;
}

ncclResult_t ask(ncclComm_t comm, Arguments mine, const void *send, void *receive,
                 cudaStream_t stream, const char *what)
{
    enter(what);
    if (!comm)
        return ncclInvalidArgument;
    check_stream(stream, what);
    if (is_capturing(stream))
        error("%s in a capture is not emulated", what);
    if (stream_device(stream) != comm->state->device)
        error("%s: the stream is of device %d, the communicator of device %d", what,
              stream_device(stream), comm->state->device);
    if (mine.op != ncclSum && mine.op != ncclMax && mine.op != ncclMin)
        return ncclInvalidArgument;
    mine.number = ++comm->state->asked;
    auto c = std::make_shared<Collective>();
    c->state = comm->state;
    c->mine = mine;
    c->send = send;
    c->receive = receive;
    auto give = [=] { enqueue(stream, what, [c] { return go_on(c); }); };
    if (group_depth > 0)
        grouped.push_back(give);
    else
        give();
    return ncclSuccess;
}

/* ---- opening */

/* All ranks hold the same id, each its own rank and a device that nobody else has. */
ncclResult_t check_peers(const State &s, const Peer &me)
{
    std::vector<Peer> peer((size_t)s.size);
    MPI_Allgather(&me, sizeof me, MPI_BYTE, peer.data(), sizeof me, MPI_BYTE, s.comm);
    for (int i = 0; i < s.size; i++) {
        if (memcmp(peer[(size_t)i].id, me.id, sizeof me.id) != 0 ||
            peer[(size_t)i].size != me.size)
            error("ncclCommInitRank: ranks %d and %d have different ids or sizes",
                  me.rank, i);
        if (peer[(size_t)i].rank != i)
            error("ncclCommInitRank: two ranks call themselves %d",
                  peer[(size_t)i].rank);
        for (int j = 0; j < i; j++)
            if (peer[(size_t)i].device == peer[(size_t)j].device &&
                strcmp(peer[(size_t)i].host, peer[(size_t)j].host) == 0) {
                fprintf(stderr,
                        "simt: NCCL: ranks %d and %d both use device %d of %s\n", j, i,
                        peer[(size_t)i].device, peer[(size_t)i].host);
                return ncclInvalidUsage;
            }
    }
    return ncclSuccess;
}

ncclResult_t join(State *s, const ncclUniqueId &id)
{
    int started, ended, world;
    Peer me = {};
    MPI_Initialized(&started);
    MPI_Finalized(&ended);
    if (!started || ended)
        error("ncclCommInitRank: %d ranks need MPI, which is not running", s->size);
    MPI_Comm_size(MPI_COMM_WORLD, &world);
    if (world != s->size)
        error("ncclCommInitRank: %d ranks in a world of %d are not emulated", s->size,
              world);
    MPI_Comm_split(MPI_COMM_WORLD, 0, s->rank, &s->comm);
    memcpy(me.id, id.internal, sizeof me.id);
    me.size = s->size;
    me.rank = s->rank;
    me.device = s->device;
    gethostname(me.host, sizeof me.host - 1);
    return check_peers(*s, me);
}

void close_comm(ncclComm_t comm)
{
    int ended = 1;
    if (!comm->state->alone && !comm->state->aborted && MPI_Finalized(&ended) == 0 &&
        !ended)
        MPI_Comm_free(&comm->state->comm);
    delete comm;
}

} // namespace
} // namespace simt

using namespace simt;

/* ---- entry points: nccl.h */

extern "C" {

ncclResult_t ncclGetVersion(int *version)
{
    *version = NCCL_VERSION_CODE;
    return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId *id)
{
    FILE *f = fopen("/dev/urandom", "rb");
    size_t n = f ? fread(id->internal, 1, sizeof id->internal, f) : 0;
    if (f)
        fclose(f);
    return n == sizeof id->internal ? ncclSuccess : ncclSystemError;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int size, ncclUniqueId id,
                                    int rank, ncclConfig_t *config)
{
    const ncclConfig_t expected = NCCL_CONFIG_INITIALIZER;
    enter("ncclCommInitRankConfig");
    *comm = nullptr;
    if (size < 1 || rank < 0 || rank >= size)
        return ncclInvalidArgument;
    if (config && config->magic != expected.magic)
        error("ncclCommInitRankConfig: config was not made by NCCL_CONFIG_INITIALIZER");
    auto state = std::make_shared<State>();
    *state = {MPI_COMM_NULL, size == 1, rank, size, current_device(), 0, 0, false};
    ncclResult_t status = state->alone ? ncclSuccess : join(state.get(), id);
    if (status == ncclSuccess)
        *comm = new ncclComm{state};
    return status;
}

ncclResult_t ncclCommInitRank(ncclComm_t *comm, int size, ncclUniqueId id, int rank)
{
    return ncclCommInitRankConfig(comm, size, id, rank, nullptr);
}

ncclResult_t ncclCommDestroy(ncclComm_t comm)
{
    enter("ncclCommDestroy");
    if (comm->state->done < comm->state->asked)
        error("ncclCommDestroy while %d collectives have not run",
              comm->state->asked - comm->state->done);
    close_comm(comm);
    return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t)
{
    return ncclSuccess;
}

/* What is queued ends without a result. */
ncclResult_t ncclCommAbort(ncclComm_t comm)
{
    enter("ncclCommAbort");
    comm->state->aborted = true;
    close_comm(comm);
    return ncclSuccess;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *status)
{
    *status = comm->state->aborted ? ncclInternalError : ncclSuccess;
    return ncclSuccess;
}

ncclResult_t ncclCommCount(const ncclComm_t comm, int *count)
{
    *count = comm->state->size;
    return ncclSuccess;
}

ncclResult_t ncclCommUserRank(const ncclComm_t comm, int *rank)
{
    *rank = comm->state->rank;
    return ncclSuccess;
}

ncclResult_t ncclCommCuDevice(const ncclComm_t comm, int *device)
{
    *device = comm->state->device;
    return ncclSuccess;
}

const char *ncclGetErrorString(ncclResult_t status)
{
    switch (status) {
    case ncclSuccess:
        return "no error";
    case ncclInvalidArgument:
        return "invalid argument";
    case ncclInvalidUsage:
        return "invalid usage";
    case ncclSystemError:
        return "unhandled system error";
    default:
        return "unknown result code";
    }
}

const char *ncclGetLastError(ncclComm_t)
{
    return "";
}

ncclResult_t ncclGroupStart(void)
{
    group_depth++;
    return ncclSuccess;
}

ncclResult_t ncclGroupEnd(void)
{
    if (group_depth == 0)
        error("ncclGroupEnd without ncclGroupStart");
    if (--group_depth > 0)
        return ncclSuccess;
    for (const auto &give : grouped)
        give();
    grouped.clear();
    return ncclSuccess;
}

ncclResult_t ncclAllReduce(const void *send, void *receive, size_t count,
                           ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
                           cudaStream_t stream)
{
    return ask(comm, {0, 0, type, op, 0, 0, count}, send, receive, stream,
               "ncclAllReduce");
}

ncclResult_t ncclBroadcast(const void *send, void *receive, size_t count,
                           ncclDataType_t type, int root, ncclComm_t comm,
                           cudaStream_t stream)
{
    if (!comm || root < 0 || root >= comm->state->size)
        return ncclInvalidArgument;
    const void *from = comm->state->rank == root ? send : receive;
    return ask(comm, {0, 1, type, ncclSum, root, 0, count}, from, receive, stream,
               "ncclBroadcast");
}

} // extern "C"
