/*
 * test_comm.c - communicator, gradient sums and the mark of a signal, on any number of
 * ranks.
 *
 * Started alone it tests the world of one; tests/mpi/comm.sh starts it on several
 * ranks. The back end and the model are stand-ins: host memory, once reachable and once
 * only by download and upload, and an arena whose ranges the test announces. Sums are
 * of small integers, so that every order gives the same floats, and are compared by ==.
 */
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../suite.h"
#include "base/random.h"
#include "base/signals.h"
#include "base/status.h"
#include "comm/comm.h"
#include "model/params.h"

static struct rnnd_comm *comm;
static int rank, size;

/* ---- stand-ins */

static int downloads, uploads;

static void *reachable(struct rnnd_backend *be, struct rnnd__buf buf)
{
    (void)be;
    return buf.dev;
}

static void *unreachable(struct rnnd_backend *be, struct rnnd__buf buf)
{
    (void)be, (void)buf;
    return NULL;
}

static int sync_status(struct rnnd_backend *be)
{
    return be->status;
}

static int download(struct rnnd_backend *be, void *dst, struct rnnd__buf src,
                    size_t bytes)
{
    downloads++;
    memcpy(dst, src.dev, bytes);
    return be->status;
}

static void upload(struct rnnd_backend *be, struct rnnd__buf dst, const void *src,
                   size_t bytes)
{
    (void)be;
    uploads++;
    memcpy(dst.dev, src, bytes);
}

static int allocate(struct rnnd_backend *be, struct rnnd__buf *out, size_t bytes)
{
    (void)be;
    out->dev = malloc(bytes);
    return out->dev ? 0 : RNND_EDEVICE;
}

static void release(struct rnnd_backend *be, struct rnnd__buf buf)
{
    (void)be;
    free(buf.dev);
}

static void copy(struct rnnd_backend *be, struct rnnd__buf dst, struct rnnd__buf src,
                 size_t bytes)
{
    (void)be;
    memcpy(dst.dev, src.dev, bytes);
}

static const struct rnnd__backend_ops host_ops = {.name = "host",
                                                  .host = reachable,
                                                  .alloc = allocate,
                                                  .free = release,
                                                  .copy = copy,
                                                  .sync = sync_status};
static const struct rnnd__backend_ops device_ops = {.name = "device",
                                                    .free = release,
                                                    .host = unreachable,
                                                    .sync = sync_status,
                                                    .download = download,
                                                    .upload = upload};

struct rnnd_model {
    struct rnnd_backend be;
    struct rnnd__params params;
    rnnd_bucket_ready ready;
    void *context;
    /* ends of the ranges it announces */
    const int64_t *cut;
    int cuts;
    int announced;
};

const struct rnnd__params *rnnd__model_params(const struct rnnd_model *model)
{
    return &model->params;
}

struct rnnd__touched *rnnd__model_touched(struct rnnd_model *model)
{
    return &model->params.touched;
}

void rnnd_model_on_ready(struct rnnd_model *model, rnnd_bucket_ready ready,
                         void *context)
{
    model->ready = ready;
    model->context = context;
}

static int announce(struct rnnd_model *model, int first, int end)
{
    for (int i = first; model->ready && i < end; i++) {
        int64_t from = i ? model->cut[i - 1] : 0;
        model->announced++;
        int status = model->ready(model->context, from, model->cut[i] - from);
        if (status < 0)
            return status;
    }
    return 0;
}

int rnnd_model_announce(struct rnnd_model *model)
{
    return announce(model, 0, model->cuts);
}

static void model_new(struct rnnd_model *m, const int64_t *cut, int cuts)
{
    memset(m, 0, sizeof *m);
    m->be.ops = &host_ops;
    m->cut = cut;
    m->cuts = cuts;
    m->params.be = &m->be;
    m->params.count = cut[cuts - 1];
    m->params.grad.dev = malloc((size_t)m->params.count * sizeof(float));
    ck_assert_ptr_nonnull(m->params.grad.dev);
}

/* ---- small integers */

static float part(int r, int64_t i)
{
    return (float)((i * 7 + i / 1000) % 97 + 3 * r);
}

static float whole(int64_t i)
{
    return (float)size * part(0, i) + 3.0f * (float)(size * (size - 1) / 2);
}

static void fill(float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        x[i] = part(rank, i);
}

static void check_whole(const float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (x[i] != whole(i))
            ck_abort_msg("element %lld of %lld is %g, not %g", (long long)i,
                         (long long)n, x[i], whole(i));
}

/* ---- communicator */

START_TEST(sums_of_doubles)
{
    double v[3] = {rank + 1, 0.5, -rank};
    ck_assert_int_eq(rnnd_comm_sum(comm, v, 3), 0);
    ck_assert(v[0] == size * (size + 1) / 2 && v[1] == 0.5 * size);
    ck_assert(v[2] == -(size * (size - 1) / 2));
}
END_TEST

START_TEST(largest_values)
{
    int64_t v[3] = {rank, -rank, INT64_MIN + rank};
    ck_assert_int_eq(rnnd_comm_max(comm, v, 3), 0);
    ck_assert(v[0] == size - 1 && v[1] == 0 && v[2] == INT64_MIN + size - 1);
}
END_TEST

/* More values than the first message of an operation has room for. */
START_TEST(many_values)
{
    double v[100];
    int64_t w[100];
    for (int i = 0; i < 100; i++) {
        v[i] = rank + i;
        w[i] = i % 2 ? rank : -rank;
    }
    for (int n = 13; n < 17; n++) {
        double sum[100];
        int64_t most[100];
        memcpy(sum, v, sizeof v);
        memcpy(most, w, sizeof w);
        ck_assert_int_eq(rnnd_comm_sum(comm, sum, n), 0);
        ck_assert_int_eq(rnnd_comm_max(comm, most, n), 0);
        for (int i = 0; i < 100; i++) {
            ck_assert(sum[i] == (i < n ? size * (size - 1) / 2 + size * i : v[i]));
            ck_assert(most[i] == (i < n ? (i % 2 ? size - 1 : 0) : w[i]));
        }
    }
}
END_TEST

START_TEST(broadcasts)
{
    char text[40] = "";
    if (rank == 0)
        strcpy(text, "from rank 0");
    ck_assert_int_eq(rnnd_comm_broadcast(comm, text, sizeof text), 0);
    ck_assert_str_eq(text, "from rank 0");
    ck_assert_int_eq(rnnd_comm_broadcast(comm, NULL, 0), 0);
}
END_TEST

/* Rank r sends r*r bytes; rank 0 none. */
START_TEST(gathers)
{
    unsigned char own[64 * 64];
    memset(own, rank, sizeof own);
    void *all = own;
    size_t bytes = (size_t)(rank * rank), each[64];
    ck_assert_int_le(size, 64);
    ck_assert_int_eq(rnnd_comm_gather(comm, own, bytes, &all, each), 0);
    if (rank > 0) {
        ck_assert_ptr_null(all);
        return;
    }
    const unsigned char *p = all;
    for (int r = 0; r < size; r++) {
        ck_assert_uint_eq(each[r], (size_t)(r * r));
        for (size_t i = 0; i < each[r]; i++)
            ck_assert_uint_eq(*p++, (unsigned)r);
    }
    free(all);
}
END_TEST

START_TEST(all_know_all_records)
{
    int record[2] = {rank, 10 * rank}, all[64][2];
    ck_assert_int_eq(rnnd__comm_allgather(comm, record, sizeof record, all), 0);
    for (int r = 0; r < size; r++)
        ck_assert(all[r][0] == r && all[r][1] == 10 * r);
}
END_TEST

/* mpirun of the test starts all ranks here, unbound. */
START_TEST(hosts_and_cores)
{
    for (int r = 0; r < size; r++)
        ck_assert_str_eq(rnnd__comm_host(comm, r), rnnd__comm_host(comm, 0));
    ck_assert_uint_gt(strlen(rnnd__comm_host(comm, 0)), 0);
    int sharers = 0;
    ck_assert_int_eq(rnnd_comm_sharers(comm, &sharers), 0);
    ck_assert_int_eq(sharers, size);
}
END_TEST

static int fail_as(int status)
{
    return rnnd_comm_agree(comm, status);
}

START_TEST(agrees_on_the_lowest_failing_rank)
{
    ck_assert_int_eq(fail_as(0), 0);
    ck_assert_int_eq(fail_as(rank == size - 1 ? RNND_EDATA : 0), RNND_EDATA);
    if (rank != size - 1) {
        char text[32];
        snprintf(text, sizeof text, "rank %d failed", size - 1);
        ck_assert_str_eq(rnnd_status_detail(), text);
    }
    ck_assert_int_eq(fail_as(rank == 0 ? RNND_STOPPED : RNND_EFILE), RNND_STOPPED);
    ck_assert_int_eq(fail_as(RNND_ENONFINITE), RNND_ENONFINITE);
    ck_assert_int_eq(fail_as(0), 0);
}
END_TEST

/* Agreed on once more, a failure is still that of the rank that knows its cause. */
START_TEST(agrees_again_on_the_cause)
{
    char text[32] = "the cause";
    int status = rank == size - 1 ? rnnd__fail(RNND_EDATA, "the cause") : 0;
    for (int i = 0; i < 3; i++)
        status = fail_as(status);
    ck_assert_int_eq(status, RNND_EDATA);
    if (rank != size - 1)
        snprintf(text, sizeof text, "rank %d failed", size - 1);
    ck_assert_str_eq(rnnd_status_detail(), text);
}
END_TEST

/* ---- sums of floats */

/* Around the lengths where the way of summing and the cut into pieces change. */
static const int64_t lengths[] = {
    0, 1, 2, 3, 5, 1000, 16384, 16385, 100003, 131072, 131073 * 2, 700001, 1500000};

START_TEST(sums_of_floats)
{
    int64_t n = lengths[_i];
    float *x = malloc((size_t)(n + 1) * sizeof *x);
    struct rnnd_backend be = {.ops = &host_ops};
    fill(x, n);
    x[n] = -1;
    ck_assert_int_eq(
        rnnd__comm_sum_begin(comm, &be, (struct rnnd__buf){(char *)x}, n, "test"), 0);
    ck_assert_int_eq(rnnd__comm_sum_wait(comm), 0);
    check_whole(x, n);
    ck_assert(x[n] == -1);
    free(x);
}
END_TEST

/* Several under way, from memory that only download and upload reach. */
START_TEST(sums_of_device_floats)
{
    enum { N = 40, EACH = 20011 };
    float *x = malloc(N * EACH * sizeof *x);
    struct rnnd_backend be = {.ops = &device_ops};
    for (int round = 0; round < 2; round++) {
        downloads = uploads = 0;
        fill(x, N * EACH);
        for (int i = N - 1; i >= 0; i--)
            ck_assert_int_eq(rnnd__comm_sum_begin(
                                 comm, &be, (struct rnnd__buf){(char *)(x + i * EACH)},
                                 i == 3 ? 77 : EACH, "test"),
                             0);
        ck_assert_int_eq(rnnd__comm_sum_wait(comm), 0);
        ck_assert_int_eq(downloads, size > 1 ? N : 0);
        ck_assert_int_eq(uploads, size > 1 ? N : 0);
        check_whole(x, 3 * EACH + 77);
        for (int64_t i = 3 * EACH + 77; i < 4 * EACH; i++)
            ck_assert(x[i] == part(rank, i));
        for (int64_t i = 4 * EACH; i < N * EACH; i++)
            if (x[i] != whole(i))
                ck_abort_msg("element %lld is %g", (long long)i, x[i]);
    }
    free(x);
}
END_TEST

/* Numbers that do not add up exactly: in any order, all ranks have the same bits,
   and the same again in a second run. */
START_TEST(all_ranks_get_the_same_bits)
{
    int64_t n = lengths[_i];
    float *x = malloc((size_t)(n + 1) * sizeof *x);
    struct rnnd_backend be = {.ops = &host_ops};
    uint64_t hash[2] = {1, 1};
    for (int round = 0; round < 2; round++) {
        for (int64_t i = 0; i < n; i++)
            x[i] = (rnnd__uniform(
                        rnnd__philox(5, (uint32_t)i, (uint32_t)rank, 0, 0).word[0]) -
                    0.5f) *
                   powf(10, (float)(i % 13 - 6));
        ck_assert_int_eq(
            rnnd__comm_sum_begin(comm, &be, (struct rnnd__buf){(char *)x}, n, "test"),
            0);
        ck_assert_int_eq(rnnd__comm_sum_wait(comm), 0);
        for (int64_t i = 0; i < n; i++) {
            uint32_t word;
            memcpy(&word, &x[i], 4);
            hash[round] = hash[round] * 6364136223846793005u + word;
        }
    }
    ck_assert(hash[0] == hash[1]);
    uint64_t all[64];
    ck_assert_int_eq(rnnd__comm_allgather(comm, hash, sizeof *hash, all), 0);
    for (int r = 0; r < size; r++)
        ck_assert(all[r] == all[0]);
    free(x);
}
END_TEST

/* ---- reducer */

static const int64_t cuts[] = {10, 5000, 5001, 40000, 150000, 300007};
enum { CUTS = sizeof cuts / sizeof *cuts };

static struct rnnd_loss own_loss(void)
{
    return (struct rnnd_loss){
        .loss = 0.5 * rank, .targets = rank + 1, .correct = 1, .weight = 0.25 * rank};
}

/* The real communicator once as it is, once posing as one whose sums progress by
   themselves, so that buckets begin with the announcements. */
static struct rnnd_reducer *reducer_new(struct rnnd_model *m, bool early)
{
    static struct rnnd__comm_ops ops;
    const struct rnnd__comm_ops *real = comm->ops;
    ops = *real;
    ops.overlaps = early;
    comm->ops = &ops;
    struct rnnd_reducer *r;
    ck_assert_int_eq(rnnd_reducer_new(m, comm, 0.1, &r), 0);
    comm->ops = real;
    return r;
}

static int finish(struct rnnd_reducer *r, int status, struct rnnd_loss *loss)
{
    return rnnd_reducer_finish(r, status, NULL, loss);
}

static void check_loss(const struct rnnd_loss *loss)
{
    ck_assert(loss->loss == 0.5 * (size * (size - 1) / 2));
    ck_assert(loss->targets == size * (size + 1) / 2 && loss->correct == size);
    ck_assert(loss->weight == 0.25 * size * (size - 1) / 2);
}

/* Odd ranks have no batch every other update. */
START_TEST(reduces_gradients)
{
    bool early = _i & 1, device = _i & 2;
    struct rnnd_model m;
    model_new(&m, cuts, CUTS);
    m.be.ops = device ? &device_ops : &host_ops;
    float *grad = (float *)m.params.grad.dev;
    struct rnnd_reducer *r = reducer_new(&m, early);
    ck_assert(!!m.ready == (early && size > 1));
    for (int update = 0; update < 3; update++) {
        fill(grad, m.params.count);
        ck_assert_int_eq(update % 2 && rank % 2 ? rnnd_model_announce(&m)
                                                : announce(&m, 0, CUTS),
                         0);
        struct rnnd_loss loss = own_loss();
        unsigned flags = 4u + (rank == size - 1 ? 129u : 0);
        ck_assert_int_eq(rnnd_reducer_finish(r, 0, update ? &flags : NULL, &loss), 0);
        ck_assert_uint_eq(flags, update || rank == size - 1 ? 133u : 4u);
        check_whole(grad, m.params.count);
        check_loss(&loss);
    }
    ck_assert(rnnd_reducer_take_wait(r) >= 0 && rnnd_reducer_take_wait(r) == 0);
    rnnd_reducer_free(r);
    ck_assert(!m.ready);
    free(grad);
}
END_TEST

static int64_t begun;

static int count_begun(struct rnnd_comm *c, struct rnnd_backend *be,
                       struct rnnd__buf buf, int64_t count, const char *label)
{
    (void)c, (void)be, (void)buf, (void)label;
    begun += count;
    return 0;
}

/* Where sums run in the background all have begun with the last announcement, however
   small the model: they run while the rank does what is left. And what is large enough
   has begun before it. */
START_TEST(sums_begin_with_the_announcements)
{
    static const int64_t small[] = {7, 20}, large[] = {10, 5000, 24000, 48000};
    if (size == 1)
        return;
    for (int i = 0; i < 2; i++) {
        struct rnnd_model m;
        int n = i ? 4 : 2;
        model_new(&m, i ? large : small, n);
        struct rnnd_reducer *r = reducer_new(&m, true);
        struct rnnd__comm_ops ops = *comm->ops;
        const struct rnnd__comm_ops *real = comm->ops;
        ops.sum_begin = count_begun;
        comm->ops = &ops;
        begun = 0;
        ck_assert_int_eq(announce(&m, 0, n - 1), 0);
        ck_assert_int_eq(begun, i ? 24000 : 0);
        ck_assert_int_eq(announce(&m, n - 1, n), 0);
        ck_assert_int_eq(begun, m.params.count);
        comm->ops = real;
        rnnd_reducer_free(r);
        free(m.params.grad.dev);
    }
}
END_TEST

/* The last rank fails after some of its announcements, or before any; all learn of it
   in the same update, and the next update is whole again. */
START_TEST(a_failing_rank_joins)
{
    bool early = _i & 1;
    int failing = size - 1;
    struct rnnd_model m;
    model_new(&m, cuts, CUTS);
    float *grad = (float *)m.params.grad.dev;
    struct rnnd_reducer *r = reducer_new(&m, early);
    for (int done = 0; done < CUTS; done++) {
        fill(grad, m.params.count);
        bool fails = rank == failing;
        ck_assert_int_eq(announce(&m, 0, fails ? done : CUTS), 0);
        struct rnnd_loss loss = own_loss(), before = loss;
        ck_assert_int_eq(finish(r, fails ? RNND_ENONFINITE : 0, &loss),
                         RNND_ENONFINITE);
        ck_assert(memcmp(&loss, &before, sizeof loss) == 0);
    }
    fill(grad, m.params.count);
    ck_assert_int_eq(announce(&m, 0, CUTS), 0);
    struct rnnd_loss loss = own_loss();
    ck_assert_int_eq(finish(r, 0, &loss), 0);
    check_whole(grad, m.params.count);
    check_loss(&loss);
    rnnd_reducer_free(r);
    free(grad);
}
END_TEST

enum { TABLE = 20000, WIDTH = 4, DENSE = 32 };

/* Whether rank r uses a row; in the second update only the last rank uses any. */
static bool uses(int r, int64_t row, int update)
{
    return row % (r + 3) == 0 && (update != 1 || r == size - 1);
}

/* Rows that this rank uses get its part, and are listed, falling and twice. */
static void touch(struct rnnd_model *m, int update)
{
    float *grad = (float *)m->params.grad.dev;
    memset(grad, 0, (size_t)m->params.count * sizeof *grad);
    fill(grad, DENSE);
    rnnd__touched_forget(&m->params.touched);
    for (int32_t row = TABLE - 1; row >= 0; row--) {
        if (!uses(rank, row, update))
            continue;
        for (int64_t i = DENSE + row * WIDTH; i < DENSE + (row + 1) * WIDTH; i++)
            grad[i] = part(rank, i);
        int32_t twice[] = {row, row};
        ck_assert_int_eq(rnnd__touched_add(&m->params.touched, twice, 2), 0);
    }
}

static float touched_sum(int64_t i, int update)
{
    float sum = 0;
    for (int r = 0; r < size; r++)
        sum += uses(r, (i - DENSE) / WIDTH, update) ? part(r, i) : 0;
    return sum;
}

static void check_touched(const struct rnnd_model *m, int update)
{
    const struct rnnd__touched *t = &m->params.touched;
    const float *grad = (float *)m->params.grad.dev;
    int64_t listed = 0;
    check_whole(grad, DENSE);
    for (int64_t i = DENSE; i < m->params.count; i++)
        ck_assert(grad[i] == touched_sum(i, update));
    for (int32_t row = 0; row < TABLE; row++) {
        bool used = false;
        for (int r = 0; r < size; r++)
            used = used || uses(r, row, update);
        if (used)
            ck_assert(listed < t->count && t->row[listed++] == row);
    }
    ck_assert_int_eq(listed, t->count);
}

static int64_t floats_begun;
static const struct rnnd__comm_ops *counted;

static int count_and_sum(struct rnnd_comm *c, struct rnnd_backend *be,
                         struct rnnd__buf buf, int64_t count, const char *label)
{
    floats_begun += count;
    return counted->sum_begin(c, be, buf, count, label);
}

/* Touched rows of a large table, in several buckets: every rank ends up with the union
   of the rows and their sums, and nothing else was summed. */
START_TEST(sums_touched_rows_only)
{
    static const int64_t table[] = {DENSE, DENSE + TABLE * WIDTH};
    struct rnnd__comm_ops ops;
    struct rnnd_model m;
    if (size == 1)
        return;
    model_new(&m, table, 2);
    m.params.touched =
        (struct rnnd__touched){.on = true, .begin = DENSE, .cols = WIDTH};
    struct rnnd_reducer *r = reducer_new(&m, false);
    counted = comm->ops;
    ops = *counted;
    ops.sum_begin = count_and_sum;
    comm->ops = &ops;
    for (int update = 0; update < 3; update++) {
        struct rnnd_loss loss = own_loss();
        touch(&m, update);
        floats_begun = 0;
        ck_assert_int_eq(finish(r, 0, &loss), 0);
        check_touched(&m, update);
        ck_assert_int_eq(floats_begun, DENSE + m.params.touched.count * WIDTH);
    }
    comm->ops = counted;
    rnnd_reducer_free(r);
    rnnd__touched_clear(&m.params.touched);
    free(m.params.grad.dev);
}
END_TEST

/* A device that failed in this update is a failure of its rank. */
START_TEST(a_failed_device_is_told)
{
    if (size == 1)
        return;
    struct rnnd_model m;
    model_new(&m, cuts, CUTS);
    struct rnnd_reducer *r = reducer_new(&m, false);
    if (rank == 0) {
        m.be.status = RNND_EDEVICE;
        strcpy(m.be.error, "the device is on fire");
    }
    struct rnnd_loss loss = own_loss();
    ck_assert_int_eq(finish(r, 0, &loss), RNND_EDEVICE);
    ck_assert_str_eq(rnnd_status_detail(),
                     rank == 0 ? "the device is on fire" : "rank 0 failed");
    struct rnnd__failure failure;
    rnnd__failure_save(&failure, RNND_EDEVICE);
    ck_assert_int_eq(failure.elsewhere, rank != 0);
    rnnd_reducer_free(r);
    free(m.params.grad.dev);
}
END_TEST

/* ---- signals */

/* A thread from before, as MPI has them: it may take what is sent to the process. */
static void *bystander(void *end)
{
    while (!atomic_load((atomic_bool *)end))
        usleep(1000);
    return NULL;
}

static int wait_for_mark(int signal)
{
    for (int i = 0; i < 1000 && rnnd__signals_received() != signal; i++)
        usleep(1000);
    return rnnd__signals_received();
}

START_TEST(signals_leave_a_mark)
{
    static const int signals[] = {SIGUSR1, SIGUSR2, SIGTERM, SIGINT, SIGINT};
    pthread_t thread;
    atomic_bool end = false;
    ck_assert_int_eq(pthread_create(&thread, NULL, bystander, &end), 0);
    rnnd__signals_install();
    rnnd__signals_install();
    ck_assert_int_eq(rnnd__signals_received(), 0);
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        raise(signals[i]); /* to this thread */
        ck_assert_int_eq(rnnd__signals_received(), signals[i]);
    }
    kill(getpid(), SIGUSR1);
    ck_assert_int_eq(wait_for_mark(SIGUSR1), SIGUSR1);
    end = true;
    pthread_join(thread, NULL);
    kill(getpid(), SIGTERM);
    ck_assert_int_eq(wait_for_mark(SIGTERM), SIGTERM);
}
END_TEST

/* What the computing thread was asked did not run on its stack. */
static bool ran_here;

static void note(int signal)
{
    (void)signal;
    ran_here = true;
}

START_TEST(no_handler_runs_on_a_computing_thread)
{
    rnnd__signals_install();
    struct sigaction action = {.sa_handler = note}, before;
    sigaction(SIGUSR2, &action, &before);
    raise(SIGUSR2);
    usleep(1000);
    ck_assert(!ran_here && rnnd__signals_received() == SIGUSR2 && !ran_here);
    sigaction(SIGUSR2, &before, NULL);
}
END_TEST

static Suite *comm_suite(void)
{
    enum { LENGTHS = sizeof lengths / sizeof *lengths };
    Suite *s = suite_create("comm");
    TCase *t = tcase_create("comm");
    tcase_set_timeout(t, 120);
    tcase_add_test(t, sums_of_doubles);
    tcase_add_test(t, largest_values);
    tcase_add_test(t, many_values);
    tcase_add_test(t, broadcasts);
    tcase_add_test(t, gathers);
    tcase_add_test(t, all_know_all_records);
    tcase_add_test(t, hosts_and_cores);
    tcase_add_test(t, agrees_on_the_lowest_failing_rank);
    tcase_add_test(t, agrees_again_on_the_cause);
    tcase_add_loop_test(t, sums_of_floats, 0, LENGTHS);
    tcase_add_test(t, sums_of_device_floats);
    tcase_add_loop_test(t, all_ranks_get_the_same_bits, 0, LENGTHS);
    tcase_add_loop_test(t, reduces_gradients, 0, 4);
    tcase_add_test(t, sums_begin_with_the_announcements);
    tcase_add_loop_test(t, a_failing_rank_joins, 0, 2);
    tcase_add_test(t, sums_touched_rows_only);
    tcase_add_test(t, a_failed_device_is_told);
    tcase_add_test(t, signals_leave_a_mark);
    tcase_add_test(t, no_handler_runs_on_a_computing_thread);
    suite_add_tcase(s, t);
    return s;
}

int main(int argc, char **argv)
{
    if (rnnd_comm_open(20, &comm) < 0) {
        fprintf(stderr, "%s\n", rnnd_status_detail());
        return 1;
    }
    rank = rnnd_comm_rank(comm);
    size = rnnd_comm_size(comm);
    /* The script says how many ranks it meant to start. */
    if (argc > 1 && atoi(argv[1]) != size) {
        fprintf(stderr, "%d ranks instead of %s\n", size, argv[1]);
        return 1;
    }
    int status = run_suite(comm_suite());
    rnnd_comm_close(comm);
    return status;
}
