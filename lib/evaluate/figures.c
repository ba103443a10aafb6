/*
 * figures.c - figures of classes, yes/no answers, values and tokens.
 */
#include "evaluate/figures.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/status.h"
#include "base/task.h"
#include "evaluate/decode.h"
#include "evaluate/ranking.h"

int64_t rnnd__figures_most_ranked = (int64_t)1 << 27;

/* The errors of one output, and the spread of its targets; as doubles of a part, with
   the number of targets before those of all outputs. */
struct errors {
    double mean, square, squared_error, absolute_error;
};
enum { ERRORS = sizeof(struct errors) / sizeof(double) };

struct rnnd__figures {
    enum rnnd_task task;
    enum rnnd__target_kind kind;
    int64_t outputs;

    /* Classes and answers: whole numbers, in doubles because ranks sum those. [O] each:
       targets, predictions, right ones; then [O,O] confusion, where there is a
       table. */
    double *count;
    int64_t counts;
    /* strings: edits and labels */
    double string[2];
    bool has_table;

    /* targets of classes that the model does not know */
    int64_t unknown;

    /* columns of scores that are ranked: 0, 1 of two classes, or O answers */
    int64_t ranked;
    /* [pairs] scores and answers of this rank, row by row */
    float *score;
    unsigned char *answer;
    int64_t pairs, room;

    /* values: targets, and [O] errors of all parts so far */
    double targets;
    struct errors *errors;
};

/* ---- open */

static int64_t ranked_columns(const struct rnnd__figures *f, int64_t targets)
{
    int64_t columns = f->kind == RNND__TARGET_ANSWERS                    ? f->outputs
                      : f->kind == RNND__TARGET_CLASS && f->outputs == 2 ? 1
                                                                         : 0;
    if (columns == 0 || targets <= rnnd__figures_most_ranked / columns)
        return columns;
    rnnd__log_warn("no AUROC and no average precision: more than %lld scores",
                   (long long)rnnd__figures_most_ranked);
    return 0;
}

int rnnd__figures_new(enum rnnd_task task, int64_t outputs, int64_t targets,
                      struct rnnd__figures **out)
{
    struct rnnd__figures *f = NULL;
    int status = 0;
    RNND_TRY_GOTO(RNND_NEW(&f, 1, "figures"));
    f->task = task;
    f->kind = rnnd__task(task)->target;
    f->outputs = outputs;
    f->ranked = ranked_columns(f, targets);
    bool classes = f->kind == RNND__TARGET_CLASS;
    if (classes || f->kind == RNND__TARGET_ANSWERS) {
        f->has_table = outputs <= RNND_TABLE_CLASSES;
        f->counts = 3 * outputs + (classes && f->has_table ? outputs * outputs : 0);
        RNND_TRY_GOTO(RNND_NEW(&f->count, f->counts, "figures"));
    }
    if (f->kind == RNND__TARGET_VALUES)
        RNND_TRY_GOTO(RNND_NEW(&f->errors, outputs, "figures"));
    *out = f;
    return 0;
done:
    rnnd__figures_free(f);
    return status;
}

void rnnd__figures_free(struct rnnd__figures *f)
{
    if (!f)
        return;
    free(f->count);
    free(f->score);
    free(f->answer);
    free(f->errors);
    free(f);
}

bool rnnd__figures_need_scores(const struct rnnd__figures *f)
{
    return f->count || f->errors || f->kind == RNND__TARGET_STRING;
}

int64_t rnnd__figures_width(const struct rnnd__figures *f)
{
    return f->errors ? 1 + ERRORS * f->outputs : 0;
}

/* ---- classes and answers */

static int reserve_pairs(struct rnnd__figures *f, int64_t more)
{
    int64_t need = f->pairs + more, room = need + need / 2;
    if (need <= f->room)
        return 0;
    RNND_TRY(RNND_GROW(&f->score, room, "scores"));
    RNND_TRY(RNND_GROW(&f->answer, room, "answers"));
    f->room = room;
    return 0;
}

static void add_pair(struct rnnd__figures *f, float score, bool answer)
{
    f->score[f->pairs] = score;
    f->answer[f->pairs++] = answer;
}

static void add_class(struct rnnd__figures *f, const float *score, int32_t label)
{
    int64_t O = f->outputs, best = rnnd__decode_step(score, O);
    f->count[label]++;
    if (f->ranked)
        add_pair(f, score[1] - score[0], label == 1);
    if (best < 0)
        return;
    f->count[O + best]++;
    f->count[2 * O + best] += best == label;
    if (f->has_table)
        f->count[3 * O + label * O + best]++;
}

static void add_answers(struct rnnd__figures *f, const float *score,
                        const float *target)
{
    int64_t O = f->outputs;
    for (int64_t k = 0; k < O; k++) {
        bool is = target[k] != 0, said = score[k] > 0;
        f->count[k] += is;
        f->count[O + k] += said;
        f->count[2 * O + k] += is && said;
        if (f->ranked)
            add_pair(f, score[k], is);
    }
}

/* ---- values */

static struct errors *errors_in(double *part)
{
    return (struct errors *)(part + 1);
}

/* Joins two sets of targets: means and sums of squared deviations, as Chan, Golub and
   LeVeque do. */
static void join(struct errors *to, double n, const struct errors *from, double m)
{
    double delta = from->mean - to->mean, share = m / (n + m);
    to->mean += delta * share;
    to->square += from->square + delta * delta * n * share;
    to->squared_error += from->squared_error;
    to->absolute_error += from->absolute_error;
}

static void add_values(const struct rnnd__figures *f, const float *score,
                       const float *target, double *part)
{
    for (int64_t k = 0; k < f->outputs; k++) {
        double error = (double)score[k] - (double)target[k];
        struct errors one = {(double)target[k], 0, error * error, fabs(error)};
        join(errors_in(part) + k, part[0], &one, 1);
    }
    part[0]++;
}

void rnnd__figures_add_part(struct rnnd__figures *f, const double *part)
{
    if (!f->errors || part[0] == 0)
        return;
    const struct errors *from = (const struct errors *)(part + 1);
    for (int64_t k = 0; k < f->outputs; k++)
        join(&f->errors[k], f->targets, &from[k], part[0]);
    f->targets += part[0];
}

/* ---- rows */

static bool is_target(const struct rnnd__figures *f, const float *target)
{
    for (int64_t k = 0; k < f->outputs; k++)
        if (isnan(target[k]))
            return false;
    return true;
}

int rnnd__figures_add(struct rnnd__figures *f, int64_t rows, const float *score,
                      const void *target, double *part)
{
    const int32_t *label = target;
    const float *value = target;
    RNND_TRY(reserve_pairs(f, rows * f->ranked));
    for (int64_t r = 0; r < rows; r++, score += f->outputs) {
        if (f->kind == RNND__TARGET_CLASS) {
            if (label[r] >= 0)
                add_class(f, score, label[r]);
            continue;
        }
        if (is_target(f, value) && f->kind == RNND__TARGET_ANSWERS)
            add_answers(f, score, value);
        else if (is_target(f, value))
            add_values(f, score, value, part);
        value += f->outputs;
    }
    return 0;
}

/* ---- over ranks */

int rnnd__figures_sum(struct rnnd_comm *comm, double *value, int64_t count)
{
    enum { AT_ONCE = 1 << 20 };
    for (int64_t at = 0; at < count; at += AT_ONCE)
        RNND_TRY(rnnd_comm_sum(comm, value + at,
                               (int)(count - at < AT_ONCE ? count - at : AT_ONCE)));
    return 0;
}

/* Rank 0: the rankings of all ranks' pairs, column by column. */
static int rank_columns(const struct rnnd__figures *f, const float *score,
                        const unsigned char *answer, int64_t pairs,
                        struct rnnd__ranking *out)
{
    for (int64_t k = 0; k < f->ranked; k++)
        RNND_TRY(rnnd__ranking_of(score + k, answer + k, pairs / f->ranked, f->ranked,
                                  &out[k]));
    return 0;
}

/* out [ranked], the same on all ranks. */
static int rank_all(struct rnnd__figures *f, struct rnnd_comm *comm,
                    struct rnnd__ranking *out)
{
    int ranks = rnnd_comm_size(comm);
    void *score = NULL, *answer = NULL;
    size_t *size = NULL;
    int status = RNND_NEW(&size, ranks, "sizes");
    RNND_TRY_GOTO(rnnd_comm_agree(comm, status));
    RNND_TRY_GOTO(rnnd_comm_gather(comm, f->score, (size_t)f->pairs * sizeof *f->score,
                                   &score, size));
    RNND_TRY_GOTO(rnnd_comm_gather(comm, f->answer, (size_t)f->pairs, &answer, size));
    if (rnnd_comm_rank(comm) == 0) {
        int64_t pairs = 0;
        for (int r = 0; r < ranks; r++)
            pairs += (int64_t)size[r];
        status = rank_columns(f, score, answer, pairs, out);
    }
    RNND_TRY_GOTO(rnnd_comm_agree(comm, status));
    RNND_TRY_GOTO(rnnd_comm_broadcast(comm, out, (size_t)f->ranked * sizeof *out));
done:
    free(score);
    free(answer);
    free(size);
    return status;
}

/* ---- figures */

static void put(struct rnnd_metrics *out, const char *name, double value)
{
    out->figure[out->figures++] = (struct rnnd_figure){name, value};
}

static double over(double part, double whole)
{
    return whole > 0 ? part / whole : 0;
}

static struct rnnd_class_figures class_figures(const struct rnnd__figures *f, int64_t k,
                                               const struct rnnd__ranking *ranking)
{
    double support = f->count[k], predicted = f->count[f->outputs + k],
           correct = f->count[2 * f->outputs + k];
    bool answers = ranking && f->kind == RNND__TARGET_ANSWERS;
    return (struct rnnd_class_figures){
        .support = (int64_t)support,
        .predicted = (int64_t)predicted,
        .correct = (int64_t)correct,
        .precision = over(correct, predicted),
        .recall = over(correct, support),
        .f1 = over(2 * correct, support + predicted),
        .auroc = answers ? ranking[k].auroc : NAN,
        .average_precision = answers ? ranking[k].average_precision : NAN};
}

/* Means over classes: of the recall over those with targets, of F1 over those with
   targets or predictions, as in scikit-learn. */
static void put_means(const struct rnnd__figures *f, struct rnnd_metrics *out)
{
    bool answers = f->kind == RNND__TARGET_ANSWERS;
    double recall = 0, f1 = 0, recalls = 0, f1s = 0;
    for (int64_t k = 0; k < f->outputs; k++) {
        struct rnnd_class_figures c = class_figures(f, k, NULL);
        recall += c.recall;
        recalls += c.support > 0;
        f1 += c.f1;
        f1s += answers || c.support > 0 || c.predicted > 0;
    }
    if (!answers)
        put(out, "balanced_accuracy", recalls > 0 ? recall / recalls : NAN);
    put(out, "macro_f1", f1s > 0 ? f1 / f1s : NAN);
}

/* Means over the ranked columns, of those where the figure is defined. */
static void put_rankings(const struct rnnd__figures *f,
                         const struct rnnd__ranking *ranking, struct rnnd_metrics *out)
{
    double auroc = 0, precision = 0, aurocs = 0, precisions = 0;
    for (int64_t k = 0; k < f->ranked; k++) {
        bool both = !isnan(ranking[k].auroc),
             any = !isnan(ranking[k].average_precision);
        auroc += both ? ranking[k].auroc : 0;
        aurocs += both;
        precision += any ? ranking[k].average_precision : 0;
        precisions += any;
    }
    put(out, "auroc", aurocs > 0 ? auroc / aurocs : NAN);
    put(out, "average_precision", precisions > 0 ? precision / precisions : NAN);
}

void rnnd__figures_add_string(struct rnnd__figures *f, int64_t edits, int64_t labels)
{
    f->string[0] += (double)edits;
    f->string[1] += (double)labels;
}

static void put_values(const struct rnnd__figures *f, struct rnnd_metrics *out)
{
    double squared = 0, absolute = 0, explained = 0, O = (double)f->outputs;
    for (int64_t k = 0; k < f->outputs; k++) {
        const struct errors *e = &f->errors[k];
        squared += e->squared_error;
        absolute += e->absolute_error;
        explained += e->square > 0          ? 1 - e->squared_error / e->square
                     : e->squared_error > 0 ? 0
                                            : 1;
    }
    put(out, "rmse", sqrt(squared / (f->targets * O)));
    put(out, "mae", absolute / (f->targets * O));
    put(out, "r2", f->targets < 2 ? NAN : explained / O);
}

static int make_table(const struct rnnd__figures *f,
                      const struct rnnd__ranking *ranking, struct rnnd_metrics *out)
{
    int64_t O = f->outputs, cells = f->counts - 3 * O;
    struct rnnd_class_table *table;
    RNND_TRY(RNND_NEW(&table, 1, "a table of classes"));
    out->table = table;
    table->classes = O;
    RNND_TRY(RNND_NEW(&table->row, O, "a table of classes"));
    for (int64_t k = 0; k < O; k++)
        table->row[k] = class_figures(f, k, f->ranked ? ranking : NULL);
    if (cells == 0)
        return 0;
    RNND_TRY(RNND_NEW(&table->confusion, cells, "a confusion matrix"));
    for (int64_t i = 0; i < cells; i++)
        table->confusion[i] = (int64_t)f->count[3 * O + i];
    return 0;
}

void rnnd_metrics_clear(struct rnnd_metrics *m)
{
    if (!m->table)
        return;
    free(m->table->row);
    free(m->table->confusion);
    free(m->table);
    m->table = NULL;
}

/* All that needs no other rank. */
static int put_all(const struct rnnd__figures *f, const struct rnnd_loss *sum,
                   const struct rnnd__ranking *ranking, struct rnnd_metrics *out)
{
    double mean = sum->loss / sum->targets;
    *out = (struct rnnd_metrics){.loss = mean, .targets = (int64_t)sum->targets};
    if (f->kind == RNND__TARGET_CLASS)
        put(out, "accuracy", sum->correct / (sum->targets + (double)f->unknown));
    else if (f->kind == RNND__TARGET_ANSWERS)
        put(out, "nll", mean);
    else if (f->kind == RNND__TARGET_VALUES)
        put_values(f, out);
    else if (f->kind == RNND__TARGET_STRING)
        put(out, "label_error_rate",
            f->string[1] > 0 ? f->string[0] / f->string[1] : NAN);
    else if (f->kind == RNND__TARGET_TOKEN) {
        put(out, "perplexity", exp(mean));
        put(out, "nats", mean);
        put(out, "bits", mean / log(2));
    }
    if (f->count)
        put_means(f, out);
    if (f->ranked)
        put_rankings(f, ranking, out);
    if (out->figures > 0) {
        out->metric = out->figure[0].name;
        out->value = out->figure[0].value;
    }
    return f->has_table ? make_table(f, ranking, out) : 0;
}

int rnnd__figures_finish(struct rnnd__figures *f, struct rnnd_comm *comm,
                         const struct rnnd_loss *sum, int64_t unknown,
                         struct rnnd_metrics *out)
{
    struct rnnd_metrics metrics = {.loss = 0};
    struct rnnd__ranking *ranking = NULL;
    f->unknown = unknown;
    int status = RNND_NEW(&ranking, f->ranked, "rankings");
    RNND_TRY_GOTO(rnnd_comm_agree(comm, status));
    RNND_TRY_GOTO(rnnd__figures_sum(comm, f->count, f->counts));
    RNND_TRY_GOTO(rnnd__figures_sum(comm, f->string, 2));
    if (f->ranked)
        RNND_TRY_GOTO(rank_all(f, comm, ranking));
    RNND_TRY_GOTO(rnnd_comm_agree(comm, put_all(f, sum, ranking, &metrics)));
    *out = metrics;
    metrics.table = NULL;
done:
    rnnd_metrics_clear(&metrics);
    free(ranking);
    return status;
}
