/*
 * test_index.cu - places beyond 2^31 and 2^32, without the memory: the arithmetic that
 * kernels turn into addresses.
 */
#include "testing.h"

#include "cuda/cuda_backend.cuh"

static void places()
{
    const int64_t rows = (int64_t)600000, cols = 4 * 1024; /* 2.4 G elements */
    const int64_t starts[] = {0,
                              cols - 1,
                              (int64_t)1 << 31,
                              ((int64_t)1 << 31) + 5,
                              ((int64_t)1 << 32) - 1,
                              (int64_t)1 << 32,
                              ((int64_t)1 << 32) + 12345,
                              rows * cols - 1,
                              rows * cols * 97};
    for (int64_t i : starts) {
        rnnd__place p = place_of(i, cols);
        EXPECT(p.row == i / cols && p.col == i % cols);
        p = place_of(i, 3);
        EXPECT(p.row == i / 3 && p.col == i % 3);
        p = place_of(i, ((int64_t)1 << 33) + 1);
        EXPECT(p.row == i / (((int64_t)1 << 33) + 1) &&
               p.col == i % (((int64_t)1 << 33) + 1));
    }
}

/* Steps of a packed batch whose rows pass 2^32. */
static void steps()
{
    const int64_t T = 70000, n = 100000;
    std::vector<int64_t> off(T + 1);
    for (int64_t t = 0; t <= T; t++)
        off[(size_t)t] = t * n;
    for (int64_t t = 0; t < T; t += 777) {
        EXPECT(step_of_row(off.data(), T, t * n) == t);
        EXPECT(step_of_row(off.data(), T, t * n + n - 1) == t);
    }
    EXPECT(step_of_row(off.data(), T, T * n - 1) == T - 1);
    EXPECT(step_of_row(off.data(), 1, 5) == 0);
}

/* No grid is longer than CUDA allows, for any size. */
static void grids()
{
    EXPECT(rnnd__blocks(1).x == 1 && rnnd__blocks(257).x == 2);
    EXPECT(rnnd__blocks((int64_t)1 << 40).x == 1u << 20);
}

int main(int argc, char **argv)
{
    static const Scenario list[] = {{"places", places, 0, nullptr, nullptr, 1},
                                    {"steps", steps, 0, nullptr, nullptr, 1},
                                    {"grids", grids, 0, nullptr, nullptr, 1}};
    return run_scenarios(argc, argv, list, sizeof list / sizeof *list);
}
