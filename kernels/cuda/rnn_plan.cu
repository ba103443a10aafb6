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
    rnnd__loop_plan p = {RNND_PATH_SMALL, {}, ""};
    snprintf(p.why, sizeof p.why,
             "small: one multiprocessor holds the weights of %lld units (of up to "
             "%lld)",
             (long long)H, (long long)rnnd__small_units(cell));
    return p;
}

static rnnd__loop_plan stepwise_plan(const char *why)
{
    rnnd__loop_plan p = {RNND_PATH_STEPWISE, {}, ""};
    snprintf(p.why, sizeof p.why, "stepwise: %s", why);
    return p;
}

static rnnd__loop_plan persistent_plan(const rnnd__persistent_plan &persistent,
                                       int64_t H)
{
    rnnd__loop_plan p = {RNND_PATH_PERSISTENT, persistent, ""};
    snprintf(p.why, sizeof p.why,
             "persistent: %d blocks hold the weights of %lld units, %d "
             "group%s of rows%s",
             persistent.members, (long long)H, persistent.groups,
             persistent.groups == 1 ? "" : "s",
             persistent.apart ? ", gates apart" : "");
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
    rnnd__persistent_plan persistent =
        rnnd__persistent_plan_for(cuda, cell, H, N, directions);
    if (persistent.groups == 0)
        return stepwise_plan(persistent.why);
    if (any && N > most_rows(cuda))
        return stepwise_plan("many rows make a product of cuBLAS worth its launch");
    return persistent_plan(persistent, H);
}

void rnnd__cuda_rnn_explain(struct rnnd_backend *be, enum rnnd_cell cell, int64_t H,
                            int64_t N, char *text)
{
    rnnd__loop_plan p = rnnd__loop_plan_for(rnnd__cuda_of(be), cell, H, N, 1);
    memcpy(text, p.why, sizeof p.why);
    if (p.path != RNND_PATH_PERSISTENT)
        return;
    int groups = p.persistent.groups;
    p = rnnd__loop_plan_for(rnnd__cuda_of(be), cell, H, N, 2);
    size_t end = strlen(text);
    if (p.persistent.directions == 1)
        snprintf(text + end, sizeof p.why - end,
                 "; of two directions one after the other, as "
                 "both do not fit");
    else if (p.persistent.groups < groups)
        snprintf(text + end, sizeof p.why - end,
                 "; of two directions at once %d group%s each", p.persistent.groups,
                 p.persistent.groups == 1 ? "" : "s");
}
