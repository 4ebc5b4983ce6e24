/* Sums of products as tensor cores make them: `arithmetic.tensor_sums.fused` without scale factors, to the bit. */

#include <math.h>
#include <stdlib.h>

#include "types.h"

/* Columns of D that are summed at a time. */
#define WIDTH 16
/* The exponent of a zero; the sum of two is below NEVER. It stands for the largest one where all products are zero. */
#define NO_EXPONENT (-2000)
#define NEVER (-1000)
#define LEAST (-600)
/* Sums are made in .f32 where the exponents of addends are within these, and those of factors within the last. */
#define LEAST_SINGLE (-101)
#define MOST_SINGLE 125
#define LARGEST 127

static inline s16 exponent_of(f32 value, int least)
{
    u32 bits;
    memcpy(&bits, &value, 4);
    int found = (int)(bits >> 23 & 255) - 127;
    return (s16)(value == 0 ? NO_EXPONENT : found > least ? found : least);
}
static inline f64 power_of_two(int exponent)
{
    u64 bits = (u64)(exponent + 1023) << 52;
    f64 value;
    memcpy(&value, &bits, 8);
    return value;
}

struct range {
    int least, most;
};
/* The exponents of factors [lines, k], and their range but for zeros. */
static struct range exponents_of(const f32 *values, s64 count, int least, s16 *found)
{
    s16 low = 1000, high = NO_EXPONENT;
    for (s64 at = 0; at < count; at++) {
        s16 here = exponent_of(values[at], least);
        found[at] = here;
        s16 counted = here == NO_EXPONENT ? 1000 : here;
        low = counted < low ? counted : low;
        high = here > high ? here : high;
    }
    return (struct range){low, high};
}

static int all_finite(const f32 *values, s64 count)
{
    u32 found = 0;
    for (s64 at = 0; at < count; at++) {
        u32 bits;
        memcpy(&bits, &values[at], 4);
        found |= (bits & 0x7f800000u) == 0x7f800000u;
    }
    return !found;
}

struct rule {
    s64 fraction, kept, floor, least; /* `least`: the exponent of C's subnormal numbers */
};

/* The largest exponent of WIDTH sums: of the products of a row by columns, k by k, and of what is added to them. */
static void largest_of(const s16 *x, const s16 *columns, s64 k, const f32 *c, const struct rule *rule, s16 *largest)
{
    for (int lane = 0; lane < WIDTH; lane++)
        largest[lane] = 2 * NO_EXPONENT;
    for (s64 at = 0; at < k; at++, columns += WIDTH)
        for (int lane = 0; lane < WIDTH; lane++) {
            s16 sum = (s16)(x[at] + columns[lane]);
            largest[lane] = sum > largest[lane] ? sum : largest[lane];
        }
    for (int lane = 0; lane < WIDTH; lane++) {
        s16 addend = exponent_of(c[lane], (int)rule->least), found = largest[lane] < NEVER ? LEAST : largest[lane];
        addend = addend == NO_EXPONENT ? LEAST : addend;
        found = addend > found ? addend : found;
        largest[lane] = (s16)(found < rule->floor ? rule->floor : found);
    }
}

/* The sums in units of 2 ** (largest - fraction): whole numbers, in .f64. */
static void in_doubles(const f32 *a, const f32 *columns, s64 k, const f64 *scale, f64 *total)
{
    for (s64 at = 0; at < k; at++, columns += WIDTH)
        for (int lane = 0; lane < WIDTH; lane++)
            total[lane] += trunc((f64)a[at] * (f64)columns[lane] * scale[lane]);
}
/* The same where products and their scales are numbers of .f32: terms are below 2 ** (fraction + 2). */
static void in_singles(const f32 *a, const f32 *columns, s64 k, const f64 *scale, s64 fraction, f64 *total)
{
    f32 factor[WIDTH];
    for (int lane = 0; lane < WIDTH; lane++)
        factor[lane] = (f32)scale[lane];
    s64 count = 1 << (28 - fraction);
    for (s64 first = 0; first < k; first += count) {
        s32 whole[WIDTH] = {0};
        s64 end = first + count < k ? first + count : k;
        for (s64 at = first; at < end; at++, columns += WIDTH)
            for (int lane = 0; lane < WIDTH; lane++)
                whole[lane] += (s32)(a[at] * columns[lane] * factor[lane]);
        for (int lane = 0; lane < WIDTH; lane++)
            total[lane] += whole[lane];
    }
}

/* A total as .f32: cut to so many bits of fraction, beyond the largest number infinity. */
static inline f32 as_single(f64 exact, s64 kept)
{
    if (fabs(exact) < 0x1p-126) {
        f64 step = power_of_two(-126 - (int)kept);
        exact = trunc(exact / step) * step;
    }
    exact += 0.0;
    u64 bits;
    memcpy(&bits, &exact, 8);
    bits &= ~((1ull << (52 - kept)) - 1);
    memcpy(&exact, &bits, 8);
    return (f32)exact;
}

/* C [products, m, n] and the sums of A [products, m, k] times B [products, n, k] transposed, exactly to `totals`, or as
   .f32 to `singles`; one of these is NULL. `least`: the exponents of subnormal numbers of A, B and C. Nonzero, and
   nothing is written that counts, where something is not finite, or without memory. */
EXPORT int ptxgen_sums(const f32 *a, const f32 *b, const f32 *c, f64 *totals, f32 *singles, const s64 *sizes,
                       const s64 *least, s64 fraction, s64 kept, s64 floor)
{
    s64 products = sizes[0], m = sizes[1], n = sizes[2], k = sizes[3];
    if (!all_finite(a, products * m * k) || !all_finite(b, products * n * k) || !all_finite(c, products * m * n))
        return 1;
    s64 groups = (n + WIDTH - 1) / WIDTH;
    s16 *x = malloc((size_t)(m * k) * sizeof *x), *y = malloc((size_t)(n * k) * sizeof *y);
    s16 *turned = malloc((size_t)(k * WIDTH) * sizeof *turned);
    f32 *columns = malloc((size_t)(k * WIDTH) * sizeof *columns);
    int failed = !x || !y || !turned || !columns;
    const struct rule rule = {fraction, kept, floor, least[2]};
    for (s64 product = 0; product < products && !failed; product++, a += m * k, b += n * k, c += m * n) {
        struct range of_a = exponents_of(a, m * k, (int)least[0], x), of_b = exponents_of(b, n * k, (int)least[1], y);
        int moderate = of_a.least + of_b.least >= LEAST_SINGLE && of_a.most + of_b.most <= MOST_SINGLE &&
                       of_a.most <= LARGEST && of_b.most <= LARGEST;
        for (s64 at = 0; moderate && at < m * n; at++)
            moderate = !(fabsf(c[at]) < 0x1p-101f && c[at] != 0);
        for (s64 group = 0; group < groups; group++) {
            s64 first = group * WIDTH, here = n - first < WIDTH ? n - first : WIDTH;
            for (s64 at = 0; at < k; at++)
                for (s64 lane = 0; lane < WIDTH; lane++) {
                    columns[at * WIDTH + lane] = lane < here ? b[(first + lane) * k + at] : 0;
                    turned[at * WIDTH + lane] = lane < here ? y[(first + lane) * k + at] : NO_EXPONENT;
                }
            for (s64 row = 0; row < m; row++) {
                f32 addends[WIDTH] = {0};
                memcpy(addends, &c[row * n + first], (size_t)here * sizeof *addends);
                s16 largest[WIDTH];
                f64 scale[WIDTH], total[WIDTH];
                largest_of(&x[row * k], turned, k, addends, &rule, largest);
                if (moderate) /* a sum without addends has any scale */
                    for (int lane = 0; lane < WIDTH; lane++)
                        largest[lane] = largest[lane] < LEAST_SINGLE ? LEAST_SINGLE : largest[lane];
                for (int lane = 0; lane < WIDTH; lane++) {
                    scale[lane] = power_of_two((int)fraction - largest[lane]);
                    total[lane] = trunc((f64)addends[lane] * scale[lane]);
                }
                if (moderate)
                    in_singles(&a[row * k], columns, k, scale, fraction, total);
                else
                    in_doubles(&a[row * k], columns, k, scale, total);
                s64 to = product * m * n + row * n + first;
                for (s64 lane = 0; lane < here; lane++) {
                    f64 exact = total[lane] * power_of_two(largest[lane] - (int)fraction);
                    if (singles)
                        singles[to + lane] = as_single(exact, kept);
                    else
                        totals[to + lane] = exact + 0.0;
                }
            }
        }
    }
    free(x), free(y), free(turned), free(columns);
    return failed;
}
