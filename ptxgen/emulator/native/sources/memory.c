/* Accesses of lanes to memory and to its shadow, as the NumPy code in `emulator.memory` and `emulator.checks` makes
   them. Arrays of lanes are (warps, 32) in a row, `mask` has a byte for each, or is NULL: all take part. */

#include <stdint.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

/* Offsets in the heap of accesses of `size` bytes, a power of two; 0 of lanes that do not take part. Whether one is
   misaligned, or touches bytes that `kind` says belong to no array. */
EXPORT int ptxgen_offsets(const uint64_t *addresses, const uint8_t *mask, int64_t count, uint64_t base, int64_t length,
                          int64_t size, const uint8_t *kind, int64_t *offsets)
{
    int bad = 0;
    for (int64_t lane = 0; lane < count; lane++) {
        if (mask && !mask[lane]) {
            offsets[lane] = 0;
            continue;
        }
        int64_t offset = (int64_t)(addresses[lane] - base);
        offsets[lane] = offset;
        if (offset < 0 || offset > length - size || (offset & (size - 1)))
            return 1;
        bad |= !kind[offset] | !kind[offset + size - 1];
    }
    return bad;
}

#define GATHER(TYPE)                                                                                                   \
    for (int64_t part = 0; part < parts; part++) {                                                                     \
        TYPE *into = (TYPE *)values + part * count;                                                                    \
        for (int64_t lane = 0; lane < count; lane++)                                                                   \
            into[lane] = *(const TYPE *)(data + offsets[lane] + part * size);                                          \
    }                                                                                                                  \
    break;

/* `parts` neighboring words of `size` bytes of each lane: all first ones, then all second ones, and so on. */
EXPORT void ptxgen_gather(const char *data, const int64_t *offsets, int64_t count, int64_t size, int64_t parts,
                          void *values)
{
    switch (size) {
    case 1: GATHER(uint8_t)
    case 2: GATHER(uint16_t)
    case 4: GATHER(uint32_t)
    case 8: GATHER(uint64_t)
    }
}

/* Entries of shadow memory, two in each of `words`: `places` of these for an access, or one entry where that is 0. */
#define KEEP(OFFSET, ENTRY)                                                                                            \
    if (!places)                                                                                                       \
        ((uint32_t *)words)[(OFFSET) >> 1] = ENTRY;                                                                    \
    for (int64_t place = 0; place < places; place++)                                                                   \
        words[((OFFSET) >> 2) + place] = (uint64_t)(ENTRY) << 32 | (ENTRY);

/* The entries of accesses of 4 * `places` bytes, or less: 0 if there are none, 1 if each access has one, which `entries`
   then has, 2 if some have several. */
EXPORT int ptxgen_shadow_at(const uint64_t *words, const int64_t *offsets, int64_t count, int64_t places,
                            uint32_t *entries)
{
    uint64_t some = 0, other = 0;
    for (int64_t lane = 0; lane < count && !places; lane++)
        some |= entries[lane] = ((const uint32_t *)words)[offsets[lane] >> 1];
    for (int64_t lane = 0; lane < count && places; lane++) {
        const uint64_t *here = words + (offsets[lane] >> 2);
        uint64_t first = here[0];
        for (int64_t place = 1; place < places; place++)
            other |= here[place] ^ first;
        other |= (first >> 32) ^ (first & 0xffffffff);
        some |= first;
        entries[lane] = (uint32_t)first;
    }
    return other ? 2 : some != 0;
}

/* Put the entry of each access into shadow memory; of accesses to the same bytes the last stays. */
EXPORT void ptxgen_shadow_put(uint64_t *words, const int64_t *offsets, const uint32_t *entries, int64_t count,
                              int64_t places)
{
    for (int64_t access = 0; access < count; access++) {
        KEEP(offsets[access], entries[access])
    }
}

/* The same for lanes; of accesses to the same bytes the first stays.
   Whether each is at a higher offset than the one before it. */
EXPORT int ptxgen_shadow_keep(uint64_t *words, const int64_t *offsets, const uint8_t *mask, const uint32_t *entries,
                              int64_t count, int64_t places)
{
    int ascending = 1;
    int64_t next = INT64_MAX;
    for (int64_t lane = count - 1; lane >= 0; lane--) {
        if (mask && !mask[lane])
            continue;
        int64_t offset = offsets[lane];
        ascending &= offset < next;
        next = offset;
        KEEP(offset, entries[lane])
    }
    return ascending;
}

/* Of lanes whose entry is that of another event in `kept`, at the first of their bytes, put the entries into `words`; of
   accesses to the same bytes the last stays. How many there are. The low `shift` bits of an entry name the lane. */
EXPORT int64_t ptxgen_shadow_lost(const uint32_t *kept, uint64_t *words, const int64_t *offsets, const uint8_t *mask,
                                  const uint32_t *entries, int64_t count, int64_t places, int64_t shift)
{
    int64_t lost = 0;
    for (int64_t lane = 0; lane < count; lane++) {
        if ((mask && !mask[lane]) || !((kept[offsets[lane] >> 1] ^ entries[lane]) >> shift))
            continue;
        lost++;
        KEEP(offsets[lane], entries[lane])
    }
    return lost;
}

/* Offsets in a CTA's shared memory, at `start` to `end`, of accesses of `size` bytes, a power of two, and in the memories
   of all CTAs, where that of each warp begins at its one of `bases`; `masked` of lanes that do not take part. `addresses`
   count modulo `window`. Whether one is misaligned or outside. */
EXPORT int ptxgen_shared_offsets(const int64_t *addresses, const uint8_t *mask, int64_t count, int64_t window,
                                 int64_t start, int64_t end, int64_t size, const int64_t *bases, int64_t *inside,
                                 int64_t *offsets)
{
    int bad = 0;
    for (int64_t lane = 0; lane < count; lane++) {
        int64_t at = mask && !mask[lane] ? start : addresses[lane] & (window - 1);
        inside[lane] = at;
        offsets[lane] = at + bases[lane / 32];
        bad |= at < start || at > end - size || (at & (size - 1));
    }
    return bad;
}

/* Whether each lane that takes part accesses a higher offset than the one before it. */
EXPORT int ptxgen_ascending(const int64_t *offsets, const uint8_t *mask, int64_t count)
{
    int64_t before = -1;
    for (int64_t lane = 0; lane < count; lane++) {
        if (mask && !mask[lane])
            continue;
        if (offsets[lane] <= before)
            return 0;
        before = offsets[lane];
    }
    return 1;
}

#define CHANGING(TYPE)                                                                                                 \
    for (int64_t part = 0; part < parts; part++) {                                                                     \
        const TYPE *given = (const TYPE *)values[part];                                                                \
        for (int64_t lane = 0; lane < count; lane++)                                                                   \
            if (!mask || mask[lane])                                                                                   \
                changing[lane] |= *(const TYPE *)(data + offsets[lane] + part * size) != given[lane];                  \
    }                                                                                                                  \
    break;

/* Which lanes store something else than is in memory: `parts` neighboring words of `size` bytes, all first ones, then
   all second ones, and so on. 0, and nothing is found, unless offsets ascend. */
EXPORT int ptxgen_changing(const char *data, const int64_t *offsets, const uint8_t *mask, int64_t count, int64_t size,
                           int64_t parts, const char *const *values, uint8_t *changing)
{
    if (!ptxgen_ascending(offsets, mask, count))
        return 0;
    memset(changing, 0, (size_t)count);
    switch (size) {
    case 1: CHANGING(uint8_t)
    case 2: CHANGING(uint16_t)
    case 4: CHANGING(uint32_t)
    case 8: CHANGING(uint64_t)
    }
    return 1;
}
