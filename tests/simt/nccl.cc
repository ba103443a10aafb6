/*
 * nccl.cc - NCCL over MPI, for as many processes as MPI's world has.
 *
 * Takes collectives on streams. When one runs, the arguments of all ranks are compared
 * first; then each rank gathers the data of all and sums in rank order, so that all
 * have the same bits. Work that waits for a peer stays at the head of its stream, and
 * whoever waits for that stream waits for the peer. A peer whose program waits
 * elsewhere does not run its streams: ranks must wait for collectives in the same
 * places.
 *
 * Opening, the first collective (which connects the ranks) and the end need all ranks.
 * A communicator that blocks waits for them; one that does not says ncclInProgress, and
 * its work reaches the stream while the program asks ncclCommGetAsyncError.
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
    /* calls wait for their peers */
    bool blocking;
    /* multiprocessors that a collective may hold */
    int holds;
    /* what the last call still does: true once it is through; empty: nothing */
    std::function<bool()> pending;
    /* of it */
    const char *call;
    MPI_Request request;
    ncclResult_t failed;
    bool connected, finalized;
    /* of opening */
    Peer me;
    std::vector<Peer> peer;
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
/* MPI may still write to them */
std::vector<std::shared_ptr<Collective>> given_up;
std::vector<std::shared_ptr<State>> left_open;
std::vector<std::weak_ptr<State>> opened;
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

/* ---- what a call does after it has returned */

/* Where the last call is. */
ncclResult_t state_of(State *s)
{
    if (s->aborted)
        return ncclInternalError;
    if (s->pending && s->pending())
        s->pending = nullptr;
    return s->pending ? ncclInProgress : s->failed;
}

/* The rest of a call: now, where calls block. */
ncclResult_t do_rest(State *s, const char *call, std::function<bool()> rest)
{
    s->call = call;
    s->pending = std::move(rest);
    while (s->blocking && state_of(s) == ncclInProgress)
        usleep(50);
    return s->blocking ? s->failed : ncclInProgress;
}

bool answered(State *s)
{
    int done = 1;
    if (!s->alone)
        MPI_Test(&s->request, &done, MPI_STATUS_IGNORE);
    return done;
}

void check_idle(State *s, const char *what)
{
    if (state_of(s) == ncclInProgress)
        error("%s while %s is in progress: ncclCommGetAsyncError tells when it ends",
              what, s->call);
}

void begin_meeting(State *s)
{
    if (!s->alone)
        MPI_Ibarrier(s->comm, &s->request);
}

/* The work goes to its stream some questions later, and the first one once the ranks
   are connected. */
ncclResult_t give_later(State *s, const char *what, std::function<void()> give)
{
    size_t questions = below(4);
    if (!s->connected)
        begin_meeting(s);
    return do_rest(s, what, [=]() mutable {
        if (!s->connected && !answered(s))
            return false;
        s->connected = true;
        if (questions-- > 0)
            return false;
        give();
        return true;
    });
}

ncclResult_t ask(ncclComm_t comm, Arguments mine, const void *send, void *receive,
                 cudaStream_t stream, const char *what)
{
    enter(what);
    if (!comm)
        return ncclInvalidArgument;
    State *s = comm->state.get();
    check_stream(stream, what);
    if (is_capturing(stream))
        error("%s in a capture is not emulated", what);
    if (stream_device(stream) != s->device)
        error("%s: the stream is of device %d, the communicator of device %d", what,
              stream_device(stream), s->device);
    if (mine.op != ncclSum && mine.op != ncclMax && mine.op != ncclMin)
        return ncclInvalidArgument;
    check_idle(s, what);
    mine.number = ++s->asked;
    auto c = std::make_shared<Collective>();
    c->state = comm->state;
    c->mine = mine;
    c->send = send;
    c->receive = receive;
    auto give = [=] { enqueue(stream, what, [c] { return go_on(c); }); };
    if (group_depth == 0)
        return give_later(s, what, give);
    if (!s->blocking)
        error("%s in a group of a communicator that does not block is not emulated",
              what);
    grouped.push_back(give);
    return ncclSuccess;
}

/* ---- opening */

/* All ranks hold the same id, each its own rank and a device that nobody else has. */
ncclResult_t check_peers(const State &s)
{
    const std::vector<Peer> &peer = s.peer;
    for (int i = 0; i < s.size; i++) {
        if (memcmp(peer[(size_t)i].id, s.me.id, sizeof s.me.id) != 0 ||
            peer[(size_t)i].size != s.me.size)
            error("ncclCommInitRank: ranks %d and %d have different ids or sizes",
                  s.rank, i);
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

/* A context of its own, then what the ranks are. Nothing that waits. */
ncclResult_t join(State *s, const ncclUniqueId &id)
{
    int started, ended, world;
    MPI_Initialized(&started);
    MPI_Finalized(&ended);
    if (!started || ended)
        error("ncclCommInitRank: %d ranks need MPI, which is not running", s->size);
    MPI_Comm_size(MPI_COMM_WORLD, &world);
    if (world != s->size)
        error("ncclCommInitRank: %d ranks in a world of %d are not emulated", s->size,
              world);
    memcpy(s->me.id, id.internal, sizeof s->me.id);
    s->me.size = s->size;
    s->me.rank = s->rank;
    s->me.device = s->device;
    gethostname(s->me.host, sizeof s->me.host - 1);
    s->peer.resize((size_t)s->size);
    MPI_Comm_idup(MPI_COMM_WORLD, &s->comm, &s->request);
    return do_rest(s, "ncclCommInitRank", [s, met = false]() mutable {
        if (!answered(s))
            return false;
        if (!met) {
            MPI_Iallgather(&s->me, sizeof s->me, MPI_BYTE, s->peer.data(), sizeof s->me,
                           MPI_BYTE, s->comm, &s->request);
            met = true;
            return false;
        }
        s->failed = check_peers(*s);
        return true;
    });
}

/* ---- the end */

ncclResult_t finalize(State *s, const char *what)
{
    if (s->done < s->asked)
        error("%s while %d collectives have not run", what, s->asked - s->done);
    s->finalized = true;
    begin_meeting(s);
    return do_rest(s, what, [s] { return answered(s); });
}

void close_comm(ncclComm_t comm)
{
    int ended = 1;
    if (comm->state->aborted)
        left_open.push_back(comm->state);
    else if (!comm->state->alone && MPI_Finalized(&ended) == 0 && !ended)
        MPI_Comm_free(&comm->state->comm);
    delete comm;
}

/* What NCCL takes where it is not told: up to 32 blocks, in clusters of 4 from sm_90
   on. */
int blocks_of(const ncclConfig_t *config)
{
    bool counted = config && config->maxCTAs != NCCL_CONFIG_UNDEF_INT;
    bool shaped = config && config->cgaClusterSize != NCCL_CONFIG_UNDEF_INT;
    int cluster = shaped                  ? std::max(1, config->cgaClusterSize)
                  : settings().arch >= 90 ? 4
                                          : 1;
    return (counted ? config->maxCTAs : 32) * cluster;
}

} // namespace

int held_by_collectives(int device)
{
    int blocks = 0;
    for (const auto &weak : opened) {
        std::shared_ptr<State> s = weak.lock();
        if (s && s->device == device && !s->aborted && s->done < s->asked)
            blocks += s->holds;
    }
    return blocks;
}

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
    state->comm = MPI_COMM_NULL;
    state->alone = size == 1;
    state->rank = rank;
    state->size = size;
    state->device = current_device();
    state->blocking = !config || config->blocking != 0;
    state->failed = ncclSuccess;
    state->holds = blocks_of(config);
    opened.push_back(state);
    ncclResult_t status = state->alone ? ncclSuccess : join(state.get(), id);
    if (status == ncclSuccess || status == ncclInProgress)
        *comm = new ncclComm{state};
    return status;
}

ncclResult_t ncclCommInitRank(ncclComm_t *comm, int size, ncclUniqueId id, int rank)
{
    return ncclCommInitRankConfig(comm, size, id, rank, nullptr);
}

/* Of one that was not finalized it waits for the other ranks. */
ncclResult_t ncclCommDestroy(ncclComm_t comm)
{
    enter("ncclCommDestroy");
    State *s = comm->state.get();
    check_idle(s, "ncclCommDestroy");
    if (!s->finalized) {
        s->blocking = true;
        finalize(s, "ncclCommDestroy");
    }
    close_comm(comm);
    return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t comm)
{
    enter("ncclCommFinalize");
    check_idle(comm->state.get(), "ncclCommFinalize");
    return finalize(comm->state.get(), "ncclCommFinalize");
}

/* What is queued ends without a result. */
ncclResult_t ncclCommAbort(ncclComm_t comm)
{
    enter("ncclCommAbort");
    ncclResult_t status = comm->state->blocking ? ncclSuccess : ncclInProgress;
    comm->state->aborted = true;
    close_comm(comm);
    return status;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *status)
{
    enter("ncclCommGetAsyncError");
    *status = state_of(comm->state.get());
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

/* ---- as a library */

namespace simt
{

#define ENTRY(name)                             \
    {                                           \
#name, reinterpret_cast < void *>(name) \
    }
static const struct {
    const char *name;
    void *function;
} entries[] = {
    ENTRY(ncclGetVersion),        ENTRY(ncclGetUniqueId),
    ENTRY(ncclGetErrorString),    ENTRY(ncclGetLastError),
    ENTRY(ncclCommInitRank),      ENTRY(ncclCommInitRankConfig),
    ENTRY(ncclCommGetAsyncError), ENTRY(ncclCommFinalize),
    ENTRY(ncclCommDestroy),       ENTRY(ncclCommAbort),
    ENTRY(ncclCommCount),         ENTRY(ncclCommUserRank),
    ENTRY(ncclCommCuDevice),      ENTRY(ncclGroupStart),
    ENTRY(ncclGroupEnd),          ENTRY(ncclAllReduce),
    ENTRY(ncclBroadcast),
};
static const char library_name[] = "libnccl.so.2";

void *library_open(const char *name, int)
{
    if (strcmp(name, library_name) != 0)
        error("dlopen(\"%s\") is not emulated", name);
    return settings().nccl ? const_cast<char *>(library_name) : nullptr;
}

void *library_symbol(void *library, const char *name)
{
    if (library != library_name)
        error("dlsym(\"%s\") of a library that is not open", name);
    for (const auto &e : entries)
        if (strcmp(e.name, name) == 0)
            return e.function;
    return nullptr;
}

char *library_error()
{
    static char text[] = "libnccl.so.2: cannot open shared object file: No such file "
                         "or directory";
    return text;
}

} // namespace simt
