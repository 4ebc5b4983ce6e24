/* Accesses of lanes to shared memory, for the checks in `emulator.checks.shared`, as the NumPy code there makes them.
   Arrays of lanes are (warps, 32) in a row, `mask` has a byte for each, or is NULL: all take part. Nothing is written
   where a function finds something: the NumPy code, which can report it, begins again. */

#include <stdint.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

/* PENDING: as in `checks.order.vector_clock`. */
enum { LANES = 32, SEVERAL = 32, EVENT = 64, GRANULE = 16, PENDING = INT32_MAX };

/* The granules of 16 bytes that each warp touches by accesses of `size` bytes at `offsets`, ascending: the position of
   the warp, the granule, its bytes, and those of lanes in `fresh`, if it is given. Gives their number. */
EXPORT int64_t ptxgen_granules(const int64_t *offsets, const uint8_t *mask, const uint8_t *fresh, int64_t warps,
                               int64_t size, int64_t *at, int64_t *granules, uint16_t *bytes, uint16_t *changed)
{
    int64_t total = 0;
    uint32_t touched = (1u << size) - 1;
    for (int64_t warp = 0; warp < warps; warp++) {
        int64_t first = total;
        for (int64_t lane = warp * LANES; lane < (warp + 1) * LANES; lane++) {
            if (mask && !mask[lane])
                continue;
            int64_t granule = offsets[lane] / GRANULE, place = total;
            uint16_t bits = (uint16_t)(touched << (offsets[lane] & (GRANULE - 1)));
            while (place > first && granules[place - 1] > granule)
                place--;
            if (place > first && granules[place - 1] == granule) {
                place--;
                bytes[place] |= bits;
            } else {
                int64_t later = total - place;
                memmove(granules + place + 1, granules + place, later * sizeof *granules);
                memmove(bytes + place + 1, bytes + place, later * sizeof *bytes);
                if (fresh)
                    memmove(changed + place + 1, changed + place, later * sizeof *changed);
                granules[place] = granule;
                bytes[place] = bits;
                at[total++] = warp;
                if (fresh)
                    changed[place] = 0;
            }
            if (fresh && fresh[lane])
                changed[place] |= bits;
        }
    }
    return total;
}

/* Words of shared memories that lanes access: `parts` of each, from `bases[warp] + (offset >> shift)` on. The event of
   a lane is the number of its warp's interval and the lane, those of the words the last ones. */
struct words {
    const int64_t *bases, *intervals, *offsets;
    const uint8_t *mask;
    int64_t warps, shift, parts;
};

#define FOR_EACH_WORD(OF)                                                                                              \
    for (int64_t number = 0; number < (OF)->warps * LANES; number++)                                                   \
        if (!(OF)->mask || (OF)->mask[number])                                                                         \
            for (int64_t word = (OF)->bases[number / LANES] + ((OF)->offsets[number] >> (OF)->shift),                  \
                         end = word + (OF)->parts;                                                                     \
                 word < end; word++)

#define EVENT_OF(OF) ((OF)->intervals[number / LANES] * EVENT | (number % LANES))

/* Whether an event is of the same interval, but of another lane. */
static inline int by_other(int64_t before, int64_t event)
{
    uint64_t difference = (uint64_t)(before ^ event);
    return difference && difference < EVENT;
}

/* Loads of lanes; 1 if one of them conflicts with the last store, which only counts with `stored`. They are kept with a
   `reader`; `given` has a place for each word of each lane then. */
EXPORT int ptxgen_lane_loads(const struct words *words, const int64_t *writer, int64_t *reader, int64_t stored,
                             int64_t *given)
{
    if (stored)
        FOR_EACH_WORD(words)
            if (by_other(writer[word], EVENT_OF(words)))
                return 1;
    if (!reader)
        return 0;
    int64_t turn = 0;
    FOR_EACH_WORD(words)
    {
        int64_t event = EVENT_OF(words);
        given[turn++] = by_other(reader[word], event) ? (event & -SEVERAL) | SEVERAL : event;
    }
    turn = 0;
    FOR_EACH_WORD(words)
        reader[word] = given[turn++];
    turn = 0;
    FOR_EACH_WORD(words)
    {
        int64_t event = given[turn++];
        if (by_other(reader[word], event)) /* lanes of a warp that load the same word at once */
            reader[word] = (event & -SEVERAL) | SEVERAL;
    }
    return 0;
}

/* Stores of lanes, some of which are `changing` the word; 1 if one of these conflicts. `given` has a place for each word
   of each lane. */
EXPORT int ptxgen_lane_stores(const struct words *words, int64_t *writer, const int64_t *reader,
                              const uint8_t *changing, int64_t stored, int64_t loaded, int64_t *given)
{
    int64_t turn = 0;
    FOR_EACH_WORD(words)
    {
        int64_t event = EVENT_OF(words);
        int again = by_other(writer[word], event);
        if (changing[number] && ((stored && again) || (loaded && by_other(reader[word], event))))
            return 1;
        given[turn++] = again ? 0 : event;
    }
    turn = 0;
    FOR_EACH_WORD(words)
        writer[word] = given[turn++];
    turn = 0;
    FOR_EACH_WORD(words)
        if (writer[word] != given[turn++]) /* several lanes store to the word at once: no lane counts */
            writer[word] = 0;
    return 0;
}

/* The last weak accesses of one kind, as `ThreadAccesses` keeps them. */
struct accesses {
    int32_t *clock;
    uint16_t *mask;
    int32_t *line;
    int64_t *latest;
};

/* Granules that warps access in the memories of their own CTAs: `warps[at]` accesses `bytes` of each of `granules`. */
struct touched {
    const int64_t *warps, *slots, *at, *granules;
    const uint16_t *bytes;
    int64_t warp_count, count;
    /* Warps of a CTA, CTAs of a cluster, and granules of a memory. */
    int64_t per_cta, per_cluster, pitch;
    /* The clocks of each warp, of the warps of its cluster. */
    const int64_t *clocks;
};

/* Whether bytes are among the last accesses by other warps that a warp has not observed, (warps of the CTA). */
static int unordered(const struct touched *of, const struct accesses *last, const uint16_t *bytes)
{
    int64_t members = of->per_cta * of->per_cluster, row = 0;
    for (int64_t position = 0; position < of->warp_count; position++) {
        int64_t warp = of->warps[position], slot = of->slots[position], first = slot % of->per_cluster * of->per_cta;
        const int64_t *observed = of->clocks + warp * members + first;
        const int64_t *latest = last->latest + slot * members + first;
        int64_t end = row;
        while (end < of->count && of->at[end] == position)
            end++;
        for (int64_t other = 0; other < of->per_cta; other++) {
            if (latest[other] <= observed[other] || other == warp - slot * of->per_cta)
                continue;
            int64_t begin = (slot * of->per_cta + other) * of->pitch;
            for (int64_t each = row; each < end; each++) {
                int64_t place = begin + of->granules[each];
                if ((last->mask[place] & bytes[each]) && last->clock[place] > observed[other])
                    return 1;
            }
        }
        row = end;
    }
    return 0;
}

/* Whether warps may make accesses that are ordered after all `stores` of others to these bytes, and after all `loads`,
   if they are given, of those that are `changed`; `pending` is the clock of copies for which their warp has not
   waited. */
EXPORT int ptxgen_shared_ordered(const struct touched *of, const struct accesses *stores, const uint16_t *compared,
                                 const struct accesses *loads, const uint16_t *changed, int32_t pending)
{
    for (int64_t row = 0; row < of->count; row++) {
        int64_t place = of->warps[of->at[row]] * of->pitch + of->granules[row];
        if (stores->clock[place] == pending && (stores->mask[place] & of->bytes[row]))
            return 0;
    }
    return !unordered(of, stores, compared) && !(loads && unordered(of, loads, changed));
}

/* Keep accesses of warps, in their intervals of `now`, in a line. */
EXPORT void ptxgen_shared_keep(const struct touched *of, const struct accesses *last, const int64_t *now, int32_t line)
{
    int64_t members = of->per_cta * of->per_cluster;
    for (int64_t row = 0; row < of->count; row++) {
        int64_t clock = now[of->at[row]], place = of->warps[of->at[row]] * of->pitch + of->granules[row];
        last->mask[place] = of->bytes[row] | (last->clock[place] == clock ? last->mask[place] : 0);
        last->clock[place] = (int32_t)clock;
        last->line[place] = line;
    }
    for (int64_t position = 0; position < of->warp_count; position++) {
        int64_t *latest = last->latest + of->slots[position] * members + of->warps[position] % members;
        if (*latest < now[position])
            *latest = now[position];
    }
}

/* What `SharedInstructions` keeps of a launch for `ptxgen_weak`. Tables of granules are by slot, `pitch` for each. */
struct memories {
    struct accesses stores, loads;
    uint16_t *written;
    uint16_t *overlaps; /* zeros */
    const uint16_t *barriers; /* NULL: there are none, as for the next three */
    const int64_t *async_writer, *core_reader, *copy_reader;
    uint8_t *used_stores, *used_loads; /* by slot */
    const int64_t *clocks;
    int64_t per_cta, per_cluster, pitch;
    /* Of lanes: the last events of words, of which a memory has so many, and by warp intervals and lanes. */
    int64_t *writer, *reader;
    int64_t words, shift;
    const int64_t *interval;
    int64_t *stored, *loaded, *loading;
    uint32_t *storers, *loaders;
};

/* Lanes of a warp access memory in its present interval. */
static void accessed(const struct memories *all, int64_t warp, uint32_t lanes, int64_t *last, uint32_t *accessors)
{
    int64_t now = all->interval[warp];
    accessors[warp] = lanes | (last[warp] == now ? accessors[warp] : 0);
    last[warp] = now;
}

/* Weak accesses of lanes of some warps to the memories of their own CTAs: stores of which some lanes are `changing`
   memory, or loads where it is NULL, which end `together` for a warp. 0 if they are ordered after all that they must be;
   they are kept then. 1, and nothing is kept, where something may be to report. `equal`: of stores that change nothing
   it is known that others store the same. */
EXPORT int ptxgen_weak(const struct memories *all, const int64_t *warps, int64_t warp_count, const int64_t *offsets,
                       const uint8_t *mask, const uint8_t *changing, int64_t size, int32_t line, int64_t together,
                       int64_t equal, char *room)
{
    int64_t lanes = warp_count * LANES, parts = size >> all->shift;
    int64_t *at = (int64_t *)room, *granules = at + lanes, *slots = granules + lanes, *bases = slots + warp_count;
    int64_t *intervals = bases + warp_count, *now = intervals + warp_count, *given = now + warp_count;
    uint16_t *bytes = (uint16_t *)(given + lanes * parts), *changed = bytes + lanes;
    int64_t members = all->per_cta * all->per_cluster, stored = 0, loaded = 0;
    for (int64_t position = 0; position < warp_count; position++) {
        int64_t warp = warps[position];
        slots[position] = warp / all->per_cta;
        bases[position] = slots[position] * all->words;
        intervals[position] = all->interval[warp];
        now[position] = all->clocks[warp * members + warp % members];
        stored |= all->stored[warp] == intervals[position];
        loaded |= all->loaded[warp] == intervals[position];
    }
    int64_t count = ptxgen_granules(offsets, mask, changing, warp_count, size, at, granules, bytes, changed);
    for (int64_t row = 0; row < count; row++) {
        int64_t place = slots[at[row]] * all->pitch + granules[row];
        if (!changing && (bytes[row] & ~all->written[place]))
            return 1;
        if (all->async_writer && all->async_writer[place])
            return 1;
        if (changing && all->async_writer && (all->core_reader[place] || all->copy_reader[place]))
            return 1;
        if (changing && all->barriers && (all->barriers[place] & bytes[row]))
            return 1;
    }
    if (changing && warp_count > 1) { /* stores of several warps to the same bytes */
        int overlap = 0;
        for (int64_t row = 0; row < count; row++) {
            uint16_t *before = all->overlaps + slots[at[row]] * all->pitch + granules[row];
            overlap |= *before & bytes[row];
            *before |= bytes[row];
        }
        for (int64_t row = 0; row < count; row++)
            all->overlaps[slots[at[row]] * all->pitch + granules[row]] = 0;
        if (overlap)
            return 1;
    }
    struct touched touched = {warps, slots, at, granules, bytes, warp_count, count,
                              all->per_cta, all->per_cluster, all->pitch, all->clocks};
    if (!ptxgen_shared_ordered(&touched, &all->stores, changing && equal ? changed : bytes,
                               changing ? &all->loads : NULL, changed, PENDING))
        return 1;
    struct words words = {bases, intervals, offsets, mask, warp_count, all->shift, parts};
    if (changing ? ptxgen_lane_stores(&words, all->writer, all->reader, changing, stored, loaded, given)
                 : ptxgen_lane_loads(&words, all->writer, together ? NULL : all->reader, stored, given))
        return 1;
    for (int64_t position = 0; position < warp_count; position++) {
        uint32_t bits = mask ? 0 : 0xffffffff;
        for (int lane = 0; mask && lane < LANES; lane++)
            bits |= (uint32_t)(mask[position * LANES + lane] != 0) << lane;
        (changing ? all->used_stores : all->used_loads)[slots[position]] = 1;
        if (changing) {
            accessed(all, warps[position], bits, all->stored, all->storers);
        } else if (!together) {
            all->loaded[warps[position]] = intervals[position];
            accessed(all, warps[position], bits, all->loading, all->loaders);
        }
    }
    ptxgen_shared_keep(&touched, changing ? &all->stores : &all->loads, now, line);
    for (int64_t row = 0; changing && row < count; row++)
        all->written[slots[at[row]] * all->pitch + granules[row]] |= bytes[row];
    return 0;
}
