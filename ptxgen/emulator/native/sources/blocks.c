/* Steps of the scheduler whose blocks are machine code as a whole: as `schedule.scheduler` and `state.warps` take them,
   up to the first one that is not theirs. */

#include "lanes.h"
#include "types.h"

#define LANES 32
/* As in `state.warps`: every LOOK steps a ready warp that has not run for more than PATIENCE goes first. */
#define LOOK 64
#define PATIENCE 256

extern void ptxgen_run(const struct operation *, int64_t, char *const *, const int64_t *, int64_t, const uint8_t *);
extern void ptxgen_refresh(const s64 *, const u8 *, const s64 *, s64, s64, s64 *, u8 *, u8 *);

/* `native.steps` packs the same structures. */
struct block {
    const struct operation *code;
    s64 length;       /* operations of `code` */
    s64 instructions; /* with the branch */
    s64 target;       /* of the branch, -1 without one */
    s64 following;
    s64 guard;        /* of the branch, as in `struct operation` */
    s64 whole;        /* whether all of the block is here */
};

struct launch {
    char *const *registers;
    s64 *pc;
    u8 *held;
    s64 *current;
    u8 *ready;
    u8 *uniform;
    s64 *last_run;
    const struct block *blocks;
    const u8 *aligned; /* by block */
    s64 *chosen;       /* room for a group: its warps and lanes */
    u8 *mask;
    s64 count;         /* warps */
    s64 exited;        /* the pc of lanes that have left */
};

/* The pc that comes next; -1 where nothing is ready. */
static s64 next_pc(const struct launch *launch, s64 steps)
{
    s64 least = INT64_MAX, oldest = -1;
    for (s64 warp = 0; warp < launch->count; warp++) {
        if (!launch->ready[warp])
            continue;
        if (launch->current[warp] < least)
            least = launch->current[warp];
        if (oldest < 0 || launch->last_run[warp] < launch->last_run[oldest])
            oldest = warp;
    }
    if (oldest < 0)
        return -1;
    return steps % LOOK == 0 && steps - launch->last_run[oldest] > PATIENCE ? launch->current[oldest] : least;
}

/* The pc after `before` at which lanes may run, else the first one. -1 where none is, or where lanes would run ahead of
   others of their warp. */
static s64 next_fair_pc(const struct launch *launch, s64 before)
{
    s64 first = INT64_MAX, later = INT64_MAX;
    s64 first_ahead = INT64_MAX, later_ahead = INT64_MAX;
    for (s64 warp = 0; warp < launch->count; warp++) {
        s64 here = launch->current[warp];
        if (launch->uniform[warp]) {
            if (here == launch->exited)
                continue;
            first = here < first ? here : first;
            later = here > before && here < later ? here : later;
            continue;
        }
        for (int lane = 0; lane < LANES; lane++) {
            s64 pc = launch->pc[warp * LANES + lane];
            if (pc == launch->exited || launch->held[warp * LANES + lane])
                continue;
            if (pc == here) {
                first = pc < first ? pc : first;
                later = pc > before && pc < later ? pc : later;
            } else if (!launch->aligned[pc]) {
                first_ahead = pc < first_ahead ? pc : first_ahead;
                later_ahead = pc > before && pc < later_ahead ? pc : later_ahead;
            }
        }
    }
    if (later < INT64_MAX || later_ahead < INT64_MAX)
        return later < later_ahead ? later : -1;
    return first < first_ahead && first < INT64_MAX ? first : -1;
}

/* The ready warps at a pc, and their lanes there unless all are: how many. */
static s64 gather_group(struct launch *launch, s64 pc, int *masked)
{
    s64 found = 0;
    u8 all = 1;
    for (s64 warp = 0; warp < launch->count; warp++)
        if (launch->ready[warp] && launch->current[warp] == pc) {
            launch->chosen[found++] = warp;
            all &= launch->uniform[warp];
        }
    *masked = !all;
    for (s64 position = 0; !all && position < found; position++) {
        s64 first = launch->chosen[position] * LANES;
        for (int lane = 0; lane < LANES; lane++)
            launch->mask[position * LANES + lane] = launch->pc[first + lane] == pc && !launch->held[first + lane];
    }
    return found;
}

/* Lanes of a warp, NULL for all, go on after a block. */
static void leave_block(struct launch *launch, const struct block *block, s64 warp, const u8 *lanes)
{
    s64 *pc = launch->pc + warp * LANES;
    const u8 *guard = NULL;
    u8 invert = block->guard < 0;
    if (block->target >= 0 && block->guard)
        guard = (const u8 *)launch->registers[invert ? -block->guard - 1 : block->guard - 1] + warp * LANES;
    u8 some = 0, all = 1;
    for (int lane = 0; lane < LANES; lane++) {
        u8 takes = guard ? guard[lane] ^ invert : block->target >= 0;
        some |= takes;
        all &= takes;
    }
    if (!lanes && some == all) {
        s64 to = all ? block->target : block->following;
        for (int lane = 0; lane < LANES; lane++)
            pc[lane] = to;
        launch->current[warp] = to;
        return;
    }
    for (int lane = 0; lane < LANES; lane++)
        if (!lanes || lanes[lane]) {
            u8 takes = guard ? guard[lane] ^ invert : block->target >= 0;
            pc[lane] = takes ? block->target : block->following;
        }
    ptxgen_refresh(launch->pc, launch->held, &warp, 1, launch->exited, launch->current, launch->ready, launch->uniform);
}

/* Take steps from number `steps` on while there are less than `limit`: how many there are now. `fair_pc` is NULL, or
   where the last fair step was. Counts the instructions of warps. */
EXPORT s64 ptxgen_steps(struct launch *launch, s64 steps, s64 limit, s64 *fair_pc, s64 *instructions)
{
    while (steps < limit) {
        s64 pc = fair_pc ? next_fair_pc(launch, *fair_pc) : next_pc(launch, steps);
        if (pc < 0 || !launch->blocks[pc].whole)
            break;
        const struct block *block = &launch->blocks[pc];
        int masked;
        s64 size = gather_group(launch, pc, &masked);
        if (block->length)
            ptxgen_run(block->code, block->length, launch->registers, size == launch->count ? NULL : launch->chosen, size,
                       masked ? launch->mask : NULL);
        steps++;
        *instructions += size * block->instructions;
        for (s64 position = 0; position < size; position++) {
            s64 warp = launch->chosen[position];
            launch->last_run[warp] = steps;
            leave_block(launch, block, warp, masked ? launch->mask + position * LANES : NULL);
        }
        if (fair_pc)
            *fair_pc = pc;
    }
    return steps;
}
