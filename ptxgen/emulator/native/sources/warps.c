/* Where warps are and which run next, as the NumPy code in `emulator.state.warps` finds it. */

#include "types.h"

#define LANES 32

/* The pc of warps, whether they are ready, and whether all their lanes are there and not held: `pc` and `held` have the
   lanes of all warps, the other tables their rows. */
EXPORT void ptxgen_refresh(const s64 *pc, const u8 *held, const s64 *warps, s64 count, s64 exited, s64 *current,
                           u8 *ready, u8 *uniform)
{
    for (s64 position = 0; position < count; position++) {
        s64 warp = warps[position], least = pc[warp * LANES];
        const s64 *lanes = pc + warp * LANES;
        const u8 *waits = held + warp * LANES;
        for (int lane = 1; lane < LANES; lane++)
            least = lanes[lane] < least ? lanes[lane] : least;
        u8 some = 0, all = 1;
        for (int lane = 0; lane < LANES; lane++) {
            u8 candidate = lanes[lane] == least && !waits[lane];
            some |= candidate;
            all &= candidate;
        }
        current[warp] = least;
        ready[warp] = some && least != exited;
        uniform[warp] = all;
    }
}

/* The ready warps with the lowest pc, to `chosen`: how many, with the opposite sign unless all of them are uniform. */
EXPORT s64 ptxgen_lowest(const s64 *current, const u8 *ready, const u8 *uniform, s64 warps, s64 *chosen)
{
    s64 least = INT64_MAX, count = 0;
    u8 all = 1;
    for (s64 warp = 0; warp < warps; warp++) {
        if (!ready[warp] || current[warp] > least)
            continue;
        if (current[warp] < least)
            least = current[warp], count = 0, all = 1;
        chosen[count++] = warp;
        all &= uniform[warp];
    }
    return all ? count : -count;
}
