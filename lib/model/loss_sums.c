/*
 * loss_sums.c - loss sums on the device, to which passes add.
 */
#include <stdlib.h>

#include "base/status.h"
#include "device/device.h"
#include "model/model.h"

static void zero(struct rnnd_loss_sums *s)
{
    s->be->ops->zero(s->be, s->sums, sizeof(struct rnnd__sums));
}

int rnnd_loss_sums_new(struct rnnd_backend *be, struct rnnd_loss_sums **out)
{
    struct rnnd_loss_sums *s;
    RNND_TRY(RNND_NEW(&s, 1, "loss sums"));
    s->be = be;
    int status =
        rnnd__device_alloc(be, &s->sums, sizeof(struct rnnd__sums) / sizeof(float));
    if (status < 0) {
        free(s);
        return status;
    }
    zero(s);
    *out = s;
    return 0;
}

void rnnd_loss_sums_free(struct rnnd_loss_sums *s)
{
    if (!s)
        return;
    rnnd__device_free(s->be, &s->sums);
    free(s);
}

int rnnd_loss_sums_take(struct rnnd_loss_sums *s, struct rnnd_loss *out)
{
    struct rnnd__sums sums;
    RNND_TRY(rnnd__device_download(s->be, &sums, s->sums, sizeof sums));
    zero(s);
    *out = (struct rnnd_loss){sums.loss, sums.targets, sums.correct, sums.weight};
    return 0;
}
