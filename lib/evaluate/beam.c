/*
 * beam.c - prefix beam search (Hannun et al. 2014).
 *
 * A prefix has two probabilities, of paths that end with its last label and of paths
 * that end with a blank, since only the latter can repeat that label. Scores need not
 * be normalized: that would change all prefixes of a step alike. Equally probable
 * prefixes are told apart by their order, so that the result is always the same.
 *
 * A prefix is a node of a tree, and there is one node for each: one that comes back
 * after it was dropped is the same as before, to the longer ones that outlived it.
 */
#include "evaluate/beam.h"

#include <math.h>
#include <stdlib.h>

#include "base/status.h"
#include "evaluate/decode.h"

/* A prefix that was once kept: another and a label. */
struct node {
    int64_t parent;
    /* the last of its longer ones; the one before it of the same parent; 0 = none */
    int64_t child, sibling;
    /* its place among the prefixes of the current step, -1 = dropped */
    int64_t place;
    int32_t output;
};

/* A prefix of the current step: its node, and the logarithms of its probabilities. */
struct prefix {
    int64_t node;
    double label, blank, both;
};

/* A prefix of the next step: prefix `from` as it is, or with one more output. */
struct candidate {
    int64_t from;
    int32_t output;
    double label, blank, both;
};

struct rnnd__beam {
    int64_t width, outputs;
    /* the prefixes that are kept, [width], and those of the next step */
    struct prefix *prefix, *next;
    int64_t prefixes;
    /* what makes the probabilities of the strings 1 in all, as a logarithm */
    double scale;
    /* [width] the best candidates so far: a heap, the worst on top */
    struct candidate *heap;
    int64_t heaped;
    /* all prefixes that were ever kept; 0 is the empty one */
    struct node *node;
    int64_t nodes, room;
    /* [outputs] the last prefix that is kept with this output added, plus 1 */
    int64_t *kept;
    /* [prefixes] the places of the best strings, once they are found */
    int64_t *rank;
};

int rnnd__beam_new(int64_t width, int64_t outputs, struct rnnd__beam **out)
{
    struct rnnd__beam *b = NULL;
    int status;
    RNND_TRY(RNND_NEW(&b, 1, "a beam"));
    b->width = width;
    b->outputs = outputs;
    RNND_TRY_GOTO(RNND_NEW(&b->prefix, width, "a beam"));
    RNND_TRY_GOTO(RNND_NEW(&b->next, width, "a beam"));
    RNND_TRY_GOTO(RNND_NEW(&b->heap, width, "a beam"));
    RNND_TRY_GOTO(RNND_NEW(&b->kept, outputs, "a beam"));
    RNND_TRY_GOTO(RNND_NEW(&b->rank, width, "a beam"));
    *out = b;
    return 0;
done:
    rnnd__beam_free(b);
    return status;
}

void rnnd__beam_free(struct rnnd__beam *b)
{
    if (!b)
        return;
    free(b->prefix);
    free(b->next);
    free(b->heap);
    free(b->node);
    free(b->kept);
    free(b->rank);
    free(b);
}

/* log(e^a + e^b) */
static double log_sum(double a, double b)
{
    double top = a > b ? a : b;
    return isinf(top) ? top : top + log1p(exp(-fabs(a - b)));
}

/* ---- the best candidates */

/* Whether a is worse than b; of equal ones the later. */
static bool worse(const struct candidate *a, const struct candidate *b)
{
    if (a->both != b->both)
        return a->both < b->both;
    return a->from != b->from ? a->from > b->from : a->output > b->output;
}

static void sink(struct rnnd__beam *b, int64_t i)
{
    struct candidate moved = b->heap[i];
    for (int64_t child; (child = 2 * i + 1) < b->heaped; i = child) {
        if (child + 1 < b->heaped && worse(&b->heap[child + 1], &b->heap[child]))
            child++;
        if (!worse(&b->heap[child], &moved))
            break;
        b->heap[i] = b->heap[child];
    }
    b->heap[i] = moved;
}

static void rise(struct rnnd__beam *b, int64_t i)
{
    struct candidate moved = b->heap[i];
    for (int64_t up; i > 0 && worse(&moved, &b->heap[up = (i - 1) / 2]); i = up)
        b->heap[i] = b->heap[up];
    b->heap[i] = moved;
}

/* Keeps a candidate if it is among the best. One without a probability is not. */
static void offer(struct rnnd__beam *b, const struct candidate *c)
{
    if (!(c->both > -INFINITY))
        return;
    if (b->heaped < b->width) {
        b->heap[b->heaped] = *c;
        rise(b, b->heaped++);
    } else if (worse(&b->heap[0], c)) {
        b->heap[0] = *c;
        sink(b, 0);
    }
}

/* ---- a step */

/* What prefix p gives its extension by an output. */
static double extended(const struct rnnd__beam *b, const struct prefix *p, int32_t k,
                       const float *x)
{
    return (b->node[p->node].output == k ? p->blank : p->both) + (double)x[k];
}

/* The prefix without its last label, if that is kept. */
static const struct prefix *shorter(const struct rnnd__beam *b, const struct prefix *p)
{
    int64_t place = p->node > 0 ? b->node[b->node[p->node].parent].place : -1;
    return place < 0 ? NULL : &b->prefix[place];
}

/* A prefix as it is: a blank follows, or its last label again; or it comes about from a
   shorter one. */
static void offer_same(struct rnnd__beam *b, int64_t i, const float *x)
{
    const struct prefix *p = &b->prefix[i], *from = shorter(b, p);
    struct candidate c = {i, 0, -INFINITY, p->both + (double)x[0], 0};
    int32_t last = b->node[p->node].output;
    if (p->node > 0)
        c.label = p->label + (double)x[last];
    if (from)
        c.label = log_sum(c.label, extended(b, from, last, x));
    c.both = log_sum(c.label, c.blank);
    offer(b, &c);
}

/* A prefix with one more label; where that is kept, it has been offered. */
static void offer_longer(struct rnnd__beam *b, int64_t i, const float *x)
{
    int64_t node = b->prefix[i].node;
    for (int64_t at = b->node[node].child; at > 0; at = b->node[at].sibling)
        if (b->node[at].place >= 0)
            b->kept[b->node[at].output] = i + 1;
    for (int32_t k = 1; k < b->outputs; k++) {
        double label = extended(b, &b->prefix[i], k, x);
        struct candidate c = {i, k, label, -INFINITY, label};
        if (b->kept[k] != i + 1)
            offer(b, &c);
    }
}

static int new_node(struct rnnd__beam *b, struct node node, int64_t *out)
{
    if (b->nodes == b->room) {
        int64_t room = 2 * b->room + 64;
        RNND_TRY(RNND_GROW(&b->node, room, "a beam"));
        b->room = room;
    }
    b->node[b->nodes] = node;
    *out = b->nodes++;
    return 0;
}

/* The node of a prefix with one more label. */
static int longer_node(struct rnnd__beam *b, int64_t parent, int32_t output,
                       int64_t *out)
{
    struct node node = {
        .parent = parent, .sibling = b->node[parent].child, .output = output};
    for (int64_t at = node.sibling; at > 0; at = b->node[at].sibling)
        if (b->node[at].output == output) {
            *out = at;
            return 0;
        }
    RNND_TRY(new_node(b, node, out));
    b->node[parent].child = *out;
    return 0;
}

/* Makes the candidates the prefixes. */
static int take_candidates(struct rnnd__beam *b)
{
    for (int64_t i = 0; i < b->heaped; i++) {
        const struct candidate *c = &b->heap[i];
        int64_t node = b->prefix[c->from].node;
        if (c->output > 0)
            RNND_TRY(longer_node(b, node, c->output, &node));
        b->next[i] = (struct prefix){node, c->label, c->blank, c->both};
    }
    for (int64_t i = 0; i < b->prefixes; i++)
        b->node[b->prefix[i].node].place = -1;
    for (int64_t i = 0; i < b->heaped; i++)
        b->node[b->next[i].node].place = i;
    struct prefix *swap = b->prefix;
    b->prefix = b->next;
    b->next = swap;
    b->prefixes = b->heaped;
    return 0;
}

static int take_step(struct rnnd__beam *b, const float *x)
{
    b->heaped = 0;
    for (int64_t k = 0; k < b->outputs; k++)
        b->kept[k] = 0;
    for (int64_t i = 0; i < b->prefixes; i++)
        offer_same(b, i, x);
    for (int64_t i = 0; i < b->prefixes; i++)
        offer_longer(b, i, x);
    b->scale -= rnnd__decode_total(x, b->outputs);
    return take_candidates(b);
}

/* ---- all steps */

/* Whether string i is worse than j; of equal ones the later. */
static bool ranks_below(const struct rnnd__beam *b, int64_t i, int64_t j)
{
    const struct prefix *p = &b->prefix[i], *q = &b->prefix[j];
    return p->both != q->both ? p->both < q->both : p->node > q->node;
}

/* Sorts the strings, the best first, by a heap with the worst on top. */
static void rank_strings(struct rnnd__beam *b)
{
    int64_t *rank = b->rank, n = b->prefixes;
    for (int64_t i = 0; i < n; i++)
        rank[i] = i;
    for (int64_t start = n / 2, end = n; end > 1;) {
        if (start > 0) {
            start--;
        } else {
            int64_t last = rank[--end];
            rank[end] = rank[0];
            rank[0] = last;
        }
        for (int64_t i = start, child; (child = 2 * i + 1) < end; i = child) {
            if (child + 1 < end && ranks_below(b, rank[child + 1], rank[child]))
                child++;
            if (!ranks_below(b, rank[child], rank[i]))
                break;
            int64_t swap = rank[i];
            rank[i] = rank[child];
            rank[child] = swap;
        }
    }
}

int rnnd__beam_search(struct rnnd__beam *b, const float *const *row, int64_t T,
                      int64_t *found)
{
    int64_t node;
    b->nodes = 0;
    b->scale = 0;
    RNND_TRY(new_node(b, (struct node){0}, &node));
    b->prefix[0] = (struct prefix){node, -INFINITY, 0, 0};
    b->prefixes = 1;
    for (int64_t t = 0; t < T && b->prefixes > 0; t++)
        RNND_TRY(take_step(b, row[t]));
    rank_strings(b);
    *found = b->prefixes;
    return 0;
}

void rnnd__beam_string(const struct rnnd__beam *b, int64_t rank, int32_t *label,
                       int64_t *count, double *log_p)
{
    const struct prefix *p = &b->prefix[b->rank[rank]];
    int64_t n = 0;
    for (int64_t at = p->node; at > 0; at = b->node[at].parent)
        n++;
    *count = n;
    for (int64_t at = p->node; at > 0; at = b->node[at].parent)
        label[--n] = b->node[at].output - 1;
    *log_p = p->both + b->scale;
}
