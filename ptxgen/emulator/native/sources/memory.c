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

/* The entries of shadow memory, two in each of `words`, of accesses of 4 * `places` bytes: 0 if there are none, 1 if
   each access has one, which `entries` then has, 2 if some have several. */
EXPORT int ptxgen_shadow_at(const uint64_t *words, const int64_t *offsets, int64_t count, int64_t places,
                            uint32_t *entries)
{
    uint64_t some = 0, other = 0;
    for (int64_t lane = 0; lane < count; lane++) {
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

/* Put the entry of each access of 4 * `places` bytes into shadow memory; of accesses to the same bytes the last stays. */
EXPORT void ptxgen_shadow_put(uint64_t *words, const int64_t *offsets, const uint32_t *entries, int64_t count,
                              int64_t places)
{
    for (int64_t access = 0; access < count; access++) {
        uint64_t both = (uint64_t)entries[access] << 32 | entries[access];
        for (int64_t place = 0; place < places; place++)
            words[(offsets[access] >> 2) + place] = both;
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
        uint64_t both = (uint64_t)entries[lane] << 32 | entries[lane];
        for (int64_t place = 0; place < places; place++)
            words[(offset >> 2) + place] = both;
    }
    return ascending;
}
