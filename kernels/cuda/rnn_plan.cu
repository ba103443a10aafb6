/*
 * rnn_plan.cu - which path the time loop of a layer takes, and why, in words.
 *
 * Small where one multiprocessor holds the recurrent weights; persistent where a group
 * of them does, in bf16 and tf32; stepwise otherwise.
 */
#include "rnn.cuh"

#include <stdio.h>
#include <string.h>

/* Beyond so many rows a product of cuBLAS is worth its launch: planned, not measured
   yet. */
static int64_t most_rows(const struct rnnd__cuda *cuda)
{
    return cuda->precision == RNND_BF16 ? 256 : 128;
}

static rnnd__loop_plan small_plan(enum rnnd_cell cell, int64_t H)
{
    rnnd__loop_plan p = {RNND_PATH_SMALL, {}, {}, ""};
    snprintf(p.why, sizeof p.why,
             "small: one multiprocessor holds the weights of %lld units (of up to "
             "%lld)",
             (long long)H, (long long)rnnd__small_units(cell));
    return p;
}

static rnnd__loop_plan stepwise_plan(const char *why)
{
    rnnd__loop_plan p = {RNND_PATH_STEPWISE, {}, {}, ""};
    snprintf(p.why, sizeof p.why, "stepwise: %s", why);
    return p;
}

static rnnd__loop_plan persistent_plan(const rnnd__persistent_plan &forward,
                                       const rnnd__persistent_plan &backward, int64_t H)
{
    rnnd__loop_plan p = {RNND_PATH_PERSISTENT, forward, backward, ""};
    char other[24] = "";
    if (forward.groups != backward.groups)
        snprintf(other, sizeof other, " (%d forward)", forward.groups);
    snprintf(p.why, sizeof p.why,
             "persistent: %d blocks hold the weights of %lld units, %d "
             "group%s of rows%s%s",
             forward.members, (long long)H, backward.groups,
             backward.groups == 1 ? "" : "s", other,
             backward.apart ? ", gates apart" : "");
    return p;
}

rnnd__loop_plan rnnd__loop_plan_for(const struct rnnd__cuda *cuda, enum rnnd_cell cell,
                                    int64_t H, int64_t N, int directions)
{
    bool small = H <= rnnd__small_units(cell), any = cuda->path == RNND_PATH_AUTO;
    char why[96];
    if (cuda->path == RNND_PATH_STEPWISE)
        return stepwise_plan("as asked for");
    if (small && cuda->path != RNND_PATH_PERSISTENT)
        return small_plan(cell, H);
    snprintf(why, sizeof why,
             "%lld units, of which one multiprocessor holds the weights of "
             "%lld",
             (long long)H, (long long)rnnd__small_units(cell));
    if (cuda->path == RNND_PATH_SMALL)
        return stepwise_plan(why);
    if (cuda->refused)
        return stepwise_plan("blocks that wait for each other cannot be launched");
    rnnd__persistent_plan forward, backward;
    forward = rnnd__persistent_plan_for(cuda, cell, H, N, directions, false);
    backward = rnnd__persistent_plan_for(cuda, cell, H, N, directions, true);
    if (forward.groups == 0 || backward.groups == 0)
        return stepwise_plan(backward.groups == 0 ? backward.why : forward.why);
    if (any && N > most_rows(cuda))
        return stepwise_plan("many rows make a product of cuBLAS worth its launch");
    return persistent_plan(forward, backward, H);
}

void rnnd__cuda_rnn_explain(struct rnnd_backend *be, enum rnnd_cell cell, int64_t H,
                            int64_t N, char *text)
{
    rnnd__loop_plan p = rnnd__loop_plan_for(rnnd__cuda_of(be), cell, H, N, 1);
    memcpy(text, p.why, sizeof p.why);
    if (p.path != RNND_PATH_PERSISTENT)
        return;
    int groups = p.backward.groups;
    p = rnnd__loop_plan_for(rnnd__cuda_of(be), cell, H, N, 2);
    size_t end = strlen(text);
    if (p.backward.directions == 1)
        snprintf(text + end, sizeof p.why - end,
                 "; of two directions one after the other, as "
                 "both do not fit");
    else if (p.backward.groups < groups)
        snprintf(text + end, sizeof p.why - end,
                 "; of two directions at once %d group%s each", p.backward.groups,
                 p.backward.groups == 1 ? "" : "s");
}
