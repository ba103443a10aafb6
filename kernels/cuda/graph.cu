/*
 * graph.cu - series of launches that come again, replayed as CUDA graphs.
 *
 * Takes a key, which holds all that the launches depend on, and the function that
 * launches; gives the same work to the stream by one call where the key was seen
 * before: the first time it is launched as it is, the second time it is captured. Where
 * a capture fails there are no more graphs, and everything is launched as it is. Knows
 * nothing of what it replays.
 */
#include "cuda_backend.cuh"

#include <stdlib.h>
#include <string.h>

/* A training takes a few for each layer: passes, and buffers that change places. */
enum { MOST_GRAPHS = 64 };

struct rnnd__graph {
    int64_t key[RNND__GRAPH_KEY];
    /* NULL: seen once */
    cudaGraphExec_t exec;
    /* when, 0 = free */
    uint64_t used;
};

struct rnnd__graphs {
    struct rnnd__graph list[MOST_GRAPHS];
    uint64_t uses;
};

bool rnnd__graphs_open(struct rnnd__cuda *cuda)
{
    const char *wish = getenv("RNND_CUDA_GRAPHS");
    if (wish && strcmp(wish, "no") == 0)
        return true;
    cuda->graphs = (struct rnnd__graphs *)calloc(1, sizeof *cuda->graphs);
    return cuda->graphs || rnnd__cuda_ok(cuda, cudaErrorMemoryAllocation, "graphs");
}

/* What the device still runs is freed when it ends. */
static void forget(struct rnnd__graph *g)
{
    if (g->exec)
        cudaGraphExecDestroy(g->exec);
    memset(g, 0, sizeof *g);
}

void rnnd__graphs_close(struct rnnd__cuda *cuda)
{
    for (int i = 0; cuda->graphs && i < MOST_GRAPHS; i++)
        forget(&cuda->graphs->list[i]);
    free(cuda->graphs);
    cuda->graphs = NULL;
}

static bool is_key_of(const struct rnnd__graph *g, const int64_t *key)
{
    size_t bytes = sizeof g->key;
    if (PLANTED(17, "a graph is replayed for other buffers than its own"))
        bytes = 8 * sizeof *key;
    return g->used > 0 && memcmp(g->key, key, bytes) == 0;
}

/* The graph of a key, which may be new: then it takes the place that was not used for
   the longest time. */
static struct rnnd__graph *graph_of(struct rnnd__graphs *all, const int64_t *key,
                                    bool *known)
{
    struct rnnd__graph *oldest = all->list, *found = NULL;
    for (int i = 0; i < MOST_GRAPHS && !found; i++) {
        struct rnnd__graph *g = &all->list[i];
        if (is_key_of(g, key))
            found = g;
        if (g->used < oldest->used)
            oldest = g;
    }
    *known = found != NULL;
    if (!found) {
        found = oldest;
        forget(found);
        memcpy(found->key, key, sizeof found->key);
    }
    found->used = ++all->uses;
    return found;
}

/* Nothing runs in a capture, and what fails in it is not the program's fault. */
static bool capture(struct rnnd__cuda *cuda, struct rnnd__graph *g,
                    void (*work)(struct rnnd_backend *, const void *), const void *arg)
{
    cudaGraph_t graph = NULL;
    if (cudaStreamBeginCapture(cuda->stream, cudaStreamCaptureModeThreadLocal) !=
        cudaSuccess)
        return false;
    work(&cuda->base, arg);
    bool good = cudaStreamEndCapture(cuda->stream, &graph) == cudaSuccess &&
                rnnd__cuda_sound(cuda) &&
                cudaGraphInstantiate(&g->exec, graph, 0) == cudaSuccess;
    if (!good)
        g->exec = NULL;
    if (graph)
        cudaGraphDestroy(graph);
    cuda->base.status = 0;
    return good;
}

void rnnd__graph_run(struct rnnd__cuda *cuda, const int64_t (&key)[RNND__GRAPH_KEY],
                     void (*work)(struct rnnd_backend *, const void *), const void *arg)
{
    bool known = false;
    if (!rnnd__cuda_sound(cuda))
        return;
    struct rnnd__graph *g = cuda->graphs ? graph_of(cuda->graphs, key, &known) : NULL;
    if (known && !g->exec && !capture(cuda, g, work, arg)) {
        (void)cudaGetLastError();
        rnnd__graphs_close(cuda);
        known = false;
    }
    if (known)
        rnnd__cuda_ok(cuda, cudaGraphLaunch(g->exec, cuda->stream), "a graph");
    else
        work(&cuda->base, arg);
}
