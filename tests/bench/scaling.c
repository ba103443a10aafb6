/*
 * scaling.c - speed on more ranks than there are here: measured costs, the real plan
 * and the real sharing out, and arithmetic in between.
 *
 * Takes costs as key=value (scaling.sh measures them), draws lengths from a lognormal
 * distribution, lets plan and shard deal out an epoch to so many ranks, and
 * adds up what each rank would take. An update ends when the slowest rank and the sum
 * over all ranks are done; nothing hides the sum, as between CPUs. Prints a Markdown
 * table.
 *
 *   steps=N:S,N:S,...  seconds of a time step with N sequences alive, linear between
 *   sequence=S         seconds a sequence takes besides its steps
 *   update=S           seconds an update takes besides: the optimizer
 *   weights=N          recurrent weights of a layer
 *   bytes=N latency=S bandwidth=N    the sum: 2 log2(ranks) messages one after the
 *                      other, and 2 (ranks-1)/ranks of the gradients' bytes through
 *                      each link
 *   ranks=N,N,... sequences=N         ranks, and sequences a rank and update
 *   mean=X sigma=X     of the logarithms of the lengths
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "data/plan.h"
#include "data/shard.h"

enum { MOST_POINTS = 32 };
enum { LEAST_UPDATES = 8, MOST_UPDATES = 512, UPDATES_BY_RANKS = 2048 };

struct costs {
    double rows[MOST_POINTS], step[MOST_POINTS];
    int points;
    double sequence, update, bytes, latency, bandwidth;
    int64_t weights;
};

/* What one way of dealing out comes to, summed over updates. */
struct sums {
    double steps, seconds, work, longest, predicted;
    int64_t updates;
};

enum way { BY_COUNT, LONGEST_FIRST };

static void die(const char *what)
{
    fprintf(stderr, "scaling: %s\n", what);
    exit(2);
}

static void must(int status)
{
    if (status < 0)
        die(rnnd_status_detail());
}

static void *zeroed(int64_t count, size_t size)
{
    void *p = calloc((size_t)count + 1, size);
    if (!p)
        die("out of memory");
    return p;
}

/* ---- costs */

/* A step with n sequences alive; beyond the last point as between the last two. */
static double step_seconds(const struct costs *c, double n)
{
    int i = 1;
    while (i < c->points - 1 && c->rows[i] < n)
        i++;
    double slope = (c->step[i] - c->step[i - 1]) / (c->rows[i] - c->rows[i - 1]);
    return c->step[i] + slope * (n - c->rows[i]);
}

/* What a rank takes for sequences of falling length. */
static double rank_seconds(const struct costs *c, const int64_t *length, int64_t count)
{
    double seconds = c->update + c->sequence * (double)count;
    for (int64_t j = count; j > 0; j--) {
        int64_t next = j < count ? length[j] : 0;
        if (length[j - 1] > next)
            seconds += step_seconds(c, (double)j) * (double)(length[j - 1] - next);
    }
    return seconds;
}

static double sum_seconds(const struct costs *c, int ranks)
{
    if (ranks == 1)
        return 0;
    return 2 * ceil(log2(ranks)) * c->latency +
           2 * (ranks - 1) * c->bytes / (ranks * c->bandwidth);
}

/* ---- data */

static int64_t draw_length(int64_t i, double mean, double sigma)
{
    struct rnnd__random r = rnnd__philox(1, (uint32_t)i, (uint32_t)(i >> 32), 0, 0);
    double u = (r.word[0] + 1.0) / 4294967297.0, v = r.word[1] / 4294967296.0;
    double normal = sqrt(-2 * log(u)) * cos(2 * acos(-1) * v);
    double length = exp(mean + sigma * normal);
    return length < 1 ? 1 : (int64_t)length;
}

static int64_t *draw_offsets(int64_t sequences, double mean, double sigma)
{
    int64_t *offsets = zeroed(sequences + 1, sizeof *offsets);
    for (int64_t i = 0; i < sequences; i++)
        offsets[i + 1] = offsets[i] + draw_length(i, mean, sigma);
    return offsets;
}

static int falling(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x < y) - (x > y);
}

/* ---- dealing out */

/* Rank r's lengths, falling, into length; returns how many. */
static int64_t deal(struct rnnd__shard *s, enum way way, const int32_t *ids,
                    int64_t count, int64_t *length)
{
    int64_t n = 0, end = count * (s->part + 1) / s->parts;
    if (way == LONGEST_FIRST) {
        must(rnnd__shard_sequences(s, ids, count));
        for (; n < s->count; n++)
            length[n] = s->piece[n].length;
        return n;
    }
    for (int64_t i = count * s->part / s->parts; i < end; i++)
        length[n++] = s->offsets[ids[i] + 1] - s->offsets[ids[i]];
    qsort(length, (size_t)n, sizeof *length, falling);
    return n;
}

static void run_update(struct sums *sums, const struct costs *c, struct rnnd__shard *s,
                       enum way way, const int32_t *ids, int64_t count)
{
    int64_t *length = zeroed(count, sizeof *length);
    double longest = 0, work = 0;
    for (s->part = 0; s->part < s->parts; s->part++) {
        int64_t n = deal(s, way, ids, count, length);
        double seconds = rank_seconds(c, length, n);
        longest = seconds > longest ? seconds : longest;
        work += seconds;
        for (int64_t j = 0; j < n; j++)
            sums->steps += (double)length[j];
    }
    sums->seconds += longest + sum_seconds(c, s->parts);
    sums->longest += longest;
    sums->work += work / s->parts;
    sums->predicted += s->straggler;
    sums->updates++;
    free(length);
}

struct setting {
    int ranks;
    int64_t sequences, bucket;
    double mean, sigma;
    enum way way;
};

/* One epoch. */
static struct sums run(const struct costs *c, const struct setting *set)
{
    struct sums sums = {0};
    int64_t updates = UPDATES_BY_RANKS / set->ranks;
    updates = updates < LEAST_UPDATES  ? LEAST_UPDATES
              : updates > MOST_UPDATES ? MOST_UPDATES
                                       : updates;
    int64_t batch = set->sequences * set->ranks, total = batch * updates;
    int64_t *offsets = draw_offsets(total, set->mean, set->sigma);
    struct rnnd_plan_options o = {
        .seed = 1, .shuffle = true, .bucket = set->bucket, .batch = batch};
    struct rnnd_plan *plan;
    struct rnnd__shard *shard = zeroed(1, sizeof *shard);
    *shard = (struct rnnd__shard){.offsets = offsets,
                                  .tokens = offsets[total],
                                  .parts = set->ranks,
                                  .step_cost = rnnd__plan_step_cost(c->weights)};
    must(rnnd_plan_new(offsets, total, &o, &plan));
    rnnd_plan_epoch(plan, 0);
    for (int64_t e = 0; e < rnnd_plan_entries(plan); e++) {
        const int32_t *ids;
        int64_t count;
        rnnd_plan_entry(plan, e, &ids, &count);
        run_update(&sums, c, shard, set->way, ids, count);
    }
    rnnd__shard_free(shard);
    rnnd_plan_free(plan);
    free(offsets);
    return sums;
}

/* ---- the table */

static void print_row(const struct costs *c, int ranks, int64_t sequences, double mean,
                      double sigma)
{
    static const struct {
        int64_t bucket;
        enum way way;
    } column[] = {{1, BY_COUNT}, {1, LONGEST_FIRST}, {8, LONGEST_FIRST}};
    static double alone[3]; /* steps a second of the first row, by its ranks */
    printf("| %d |", ranks);
    for (int i = 0; i < 3; i++) {
        struct setting set = {ranks, sequences, column[i].bucket,
                              mean,  sigma,     column[i].way};
        struct sums s = run(c, &set);
        double speed = s.steps / s.seconds / ranks;
        alone[i] = alone[i] == 0 ? speed : alone[i];
        if (column[i].way == LONGEST_FIRST)
            printf(" %.3f |", s.predicted / (double)s.updates);
        printf(" %.3f | %.3f |", s.longest / s.work, speed / alone[i]);
    }
    printf(" %.1f |\n", 1e3 * sum_seconds(c, ranks));
    fflush(stdout);
}

static const char *argument(char **argv, const char *key, const char *otherwise)
{
    size_t n = strlen(key);
    for (; *argv; argv++)
        if (strncmp(*argv, key, n) == 0 && (*argv)[n] == '=')
            return *argv + n + 1;
    if (!otherwise)
        die("called wrongly: see the top of scaling.c");
    return otherwise;
}

static void read_steps(struct costs *c, const char *text)
{
    int used;
    double rows, step;
    for (; sscanf(text, "%lf:%lf%n", &rows, &step, &used) == 2;
         text += text[used] == ',' ? used + 1 : used) {
        if (c->points == MOST_POINTS)
            die("too many steps=");
        c->rows[c->points] = rows;
        c->step[c->points++] = step;
    }
    if (*text || c->points < 2)
        die("steps= is N:SECONDS,N:SECONDS,..., N rising");
}

int main(int argc, char **argv)
{
    struct costs c = {.sequence = atof(argument(argv, "sequence", "0")),
                      .update = atof(argument(argv, "update", "0")),
                      .weights = atoll(argument(argv, "weights", NULL)),
                      .bytes = atof(argument(argv, "bytes", NULL)),
                      .latency = atof(argument(argv, "latency", NULL)),
                      .bandwidth = atof(argument(argv, "bandwidth", NULL))};
    (void)argc;
    read_steps(&c, argument(argv, "steps", NULL));
    int64_t sequences = atoll(argument(argv, "sequences", "64"));
    double mean = atof(argument(argv, "mean", "4"));
    double sigma = atof(argument(argv, "sigma", "1"));
    puts("| ranks | by count: straggler | efficiency | longest first: predicted "
         "| straggler | efficiency | with `--bucket 8`: predicted | straggler "
         "| efficiency | sum, ms |");
    puts("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |");
    for (const char *text = argument(argv, "ranks", "1,2,8,64,512"); *text;) {
        char *end;
        long ranks = strtol(text, &end, 10);
        if (ranks < 1 || (*end && *end != ','))
            die("ranks= is a list of numbers");
        print_row(&c, (int)ranks, sequences, mean, sigma);
        text = *end ? end + 1 : end;
    }
    return 0;
}
