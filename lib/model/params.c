/*
 * params.c - the parameter arenas and their initial values.
 */
#include "model/params.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "base/status.h"
#include "device/device.h"

enum { ALIGNMENT = 16 }; /* elements: 64 bytes */

int64_t rnnd__params_add(struct rnnd__params *params, const struct rnnd__param *proto,
                         int64_t tied)
{
    struct rnnd__param *p = &params->list[params->listed++];
    *p = *proto;
    p->offset = tied >= 0 ? tied : params->count;
    if (tied < 0) {
        int64_t end = params->count + rnnd__param_size(p);
        params->count = (end + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    }
    return p->offset;
}

int rnnd__params_alloc(struct rnnd__params *params, struct rnnd_backend *be)
{
    params->be = be;
    RNND_TRY(rnnd__device_alloc(be, &params->value, params->count));
    RNND_TRY(rnnd__device_alloc(be, &params->grad, params->count));
    rnnd__params_zero(params, params->value);
    rnnd__params_zero(params, params->grad);
    return 0;
}

static size_t arena_bytes(const struct rnnd__params *params)
{
    return (size_t)params->count * sizeof(float);
}

void rnnd__params_zero(const struct rnnd__params *params, struct rnnd__buf arena)
{
    params->be->ops->zero(params->be, arena, arena_bytes(params));
}

void rnnd__params_zero_gradient(struct rnnd__params *params)
{
    struct rnnd__touched *t = &params->touched;
    struct rnnd_backend *be = params->be;
    size_t row = (size_t)t->cols * sizeof(float);
    be->ops->zero(be, params->grad, (size_t)rnnd__params_dense(params) * sizeof(float));
    for (int64_t i = 0; i < t->count; i++)
        be->ops->zero(be, rnnd__at(params->grad, rnnd__touched_at(t, i)), row);
    rnnd__touched_forget(t);
}

int rnnd__params_download(const struct rnnd__params *params, struct rnnd__buf arena,
                          float *host)
{
    return rnnd__device_download(params->be, host, arena, arena_bytes(params));
}

int rnnd__params_upload(const struct rnnd__params *params, struct rnnd__buf arena,
                        const float *host)
{
    params->be->ops->upload(params->be, arena, host, arena_bytes(params));
    return rnnd__device_sync(params->be);
}

void rnnd__params_clear(struct rnnd__params *params)
{
    if (params->be) {
        rnnd__device_free(params->be, &params->value);
        rnnd__device_free(params->be, &params->grad);
    }
    rnnd__touched_clear(&params->touched);
    free(params->list);
    memset(params, 0, sizeof *params);
}

const struct rnnd__param *rnnd__params_find(const struct rnnd__params *params,
                                            const char *name)
{
    for (int i = 0; i < params->listed; i++)
        if (strcmp(params->list[i].name, name) == 0)
            return &params->list[i];
    return NULL;
}

/* A weighted sum of the bits, taken as integers: compilers make vectors of it. */
int rnnd__params_hash(const struct rnnd__params *params, struct rnnd__buf arena,
                      uint64_t *hash)
{
    float *host = NULL;
    uint64_t sum = 0;
    RNND_TRY(RNND_NEW(&host, params->count, "parameters"));
    int status = rnnd__params_download(params, arena, host);
    for (int64_t i = 0; status == 0 && i < params->count; i++) {
        uint32_t word;
        memcpy(&word, &host[i], sizeof word);
        sum += word * (2 * (uint64_t)i + 1);
    }
    free(host);
    RNND_TRY(status);
    *hash = sum;
    return 0;
}

/* Box-Muller on two words; adding 1 keeps the first away from zero. */
static double normal(uint32_t a, uint32_t b)
{
    double u = (a + 1.0) * 0x1p-32, v = b * 0x1p-32;
    return sqrt(-2 * log(u)) * cos(2 * M_PI * v);
}

static void fill(float *value, const struct rnnd__param *p, uint64_t key)
{
    int64_t size = rnnd__param_size(p);
    for (int64_t e = 0; e < size; e += 2) {
        struct rnnd__random r =
            rnnd__philox(key, (uint32_t)e, (uint32_t)(e >> 32), 0, 0);
        for (int64_t k = 0; k < 2 && e + k < size; k++) {
            uint32_t a = r.word[2 * k], b = r.word[2 * k + 1];
            value[e + k] = p->initial == RNND_NORMAL
                               ? (float)normal(a, b)
                               : (float)(p->bound * (2 * (double)rnnd__uniform(a) - 1));
        }
    }
}

/* FNV-1a hash of a name. */
static uint64_t name_key(const char *name)
{
    uint64_t key = UINT64_C(0xcbf29ce484222325);
    for (; *name; name++)
        key = (key ^ (unsigned char)*name) * UINT64_C(0x100000001b3);
    return key;
}

int rnnd__params_init(struct rnnd__params *params, uint64_t seed)
{
    float *host = NULL;
    int64_t filled = -1; /* offset of the last parameter that was filled */
    RNND_TRY(RNND_NEW(&host, params->count, "initial values"));
    for (int i = 0; i < params->listed; i++) {
        const struct rnnd__param *p = &params->list[i];
        if (p->offset > filled)
            fill(host + p->offset, p,
                 rnnd__random_key(seed, RNND_FOR_INIT, 0, name_key(p->name)));
        filled = p->offset > filled ? p->offset : filled;
    }
    int status = rnnd__params_upload(params, params->value, host);
    free(host);
    return status;
}
