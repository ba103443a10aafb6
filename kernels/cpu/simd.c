/*
 * simd.c - the inner loops for one instruction set, and their table.
 *
 * Compiled once for each set with -DRNND_ISA=name and that set's flags, so nothing here
 * may have external linkage but the table. The loops are in headers, one per subject.
 */
#include "simd.h"

#include <math.h>
#include <string.h>

#include "vec.h"

#include "bf16.h"

#include "simd_product.h"

#include "simd_cell.h"
#include "simd_gemm.h"
#include "simd_loss.h"

#include "simd_ctc.h"
#include "simd_outer.h"
#include "simd_vector.h"

#define TABLE_OF(isa)  TABLE_OF_(isa)
#define TABLE_OF_(isa) rnnd__simd_##isa
#define NAME_OF(isa)   NAME_OF_(isa)
#define NAME_OF_(isa)  #isa

extern const struct rnnd__simd TABLE_OF(RNND_ISA);

const struct rnnd__simd TABLE_OF(RNND_ISA) = {
    .name = NAME_OF(RNND_ISA),
    .bf16 = BF16_SUPPORT,
    .panels_forward = panels_forward,
    .panels_backward = panels_backward,
    .pack_forward = pack_forward,
    .pack_backward = pack_backward,
    .step_forward = step_forward,
    .step_backward = step_backward,
    .step_state = step_state,
    .outer = outer_products,
    .gemm_bf16 = gemm_bf16,
    .sum_rows = sum_rows,
    .add = add,
    .sum_sq = sum_sq,
    .softmax_ce = softmax_ce,
    .mse = mse,
    .bce = bce,
    .weighted_ce = weighted_ce,
    .weighted_bce = weighted_bce,
    .ctc = ctc,
    .dropout = dropout,
    .sgd = sgd,
    .adam = adam,
};
