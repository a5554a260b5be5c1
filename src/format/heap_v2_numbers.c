#include "format/heap_v2_numbers.h"
#include "core/sampler.h"

#include <math.h>

/* One line is enough if the number of objects that it reads as is wrong by at most this share. */
static const double objects_tolerance = 0.01;

/* The fewest bytes that the second of two lines reads as, in units of the rate. Near 1, one sample would read as a
 * great many tiny objects. */
static const double second_share = 1.1;

void heap_v2_numbers_read(struct heap_v2_value raw, double rate, double *ret_objects, double *ret_bytes) {
    double scale = 0;
    if (raw.objects > 0 && raw.bytes > 0)
        scale = rate <= 1 ? 1 : -1 / expm1(-((double)raw.bytes / (double)raw.objects) / rate);
    *ret_objects = (double)raw.objects * scale;
    *ret_bytes = (double)raw.bytes * scale;
}

/* Solves x / (1 - exp(-x)) = y for x > 0; 0 if y ≤ 1. The left side grows with x and lies in [x, x + 1], so that x
 * lies in [y - 1, y]. */
static double solve(double y) {
    double low = y > 1 ? y - 1 : 0, high = y;
    if (y <= 1) return 0;
    for (int i = 0; i < 100 && low < high; i++) {
        double middle = low + (high - low) / 2;
        if (middle == low || middle == high) break;
        if (middle / -expm1(-middle) < y) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return high;
}

/* The line of `objects` samples that reads as `bytes`. */
static struct heap_v2_value with_bytes(double objects, double bytes, double rate) {
    double raw_bytes = round(solve(bytes / (objects * rate)) * objects * rate);
    return (struct heap_v2_value){
        sampler_whole_number(objects), raw_bytes < 1 ? 1 : sampler_whole_number(raw_bytes)};
}

static struct heap_v2_value one_line(double objects, double bytes, double rate) {
    double samples = round(objects * -expm1(-bytes / objects / rate));
    if (samples * rate >= bytes)
        samples = ceil(bytes / rate) - 1; /* each sample reads as more than `rate` bytes */
    return with_bytes(samples < 1 ? 1 : samples, bytes, rate);
}

/* Two lines: `samples` small objects on the first, and one sample that reads as the rest of the bytes on the
 * second. Returns the relative error of the objects, or INFINITY if the first line alone reads as too many bytes. */
static double split_at(double samples, double objects, double bytes, double rate,
    struct heap_v2_value lines[HEAP_V2_LINES_MAX]) {
    double second_objects = 1, second_bytes, first_objects = 0, first_bytes;

    for (int i = 0; i < 4;
         i++) { /* how many objects the second line reads as depends on its bytes: a fixed point */
        double share = samples / (objects - second_objects);
        if (!(share > 0 && share < 1)) return INFINITY;
        double raw_bytes = round(samples * -rate * log1p(-share));
        lines[0] = (struct heap_v2_value){
            sampler_whole_number(samples), raw_bytes < 1 ? 1 : sampler_whole_number(raw_bytes)};
        heap_v2_numbers_read(lines[0], rate, &first_objects, &first_bytes);
        if (bytes - first_bytes < second_share * rate) return INFINITY;
        lines[1] = with_bytes(1, bytes - first_bytes, rate);
        heap_v2_numbers_read(lines[1], rate, &second_objects, &second_bytes);
    }
    return fabs(first_objects + second_objects - objects) / objects;
}

/* The best of a few splits. The more samples are on the first line, the finer its mean size can be chosen. */
static double two_lines(
    double objects, double bytes, double rate, struct heap_v2_value lines[HEAP_V2_LINES_MAX]) {
    double best = INFINITY;
    double samples = floor(bytes / rate - second_share);
    while (samples >= 1 && best > objects_tolerance) {
        struct heap_v2_value split[HEAP_V2_LINES_MAX];
        double error = split_at(samples, objects, bytes, rate, split);
        if (error < best) {
            best = error;
            lines[0] = split[0];
            lines[1] = split[1];
        }
        samples = floor(samples * 0.9);
    }
    return best;
}

size_t heap_v2_numbers_lines(
    double objects, double bytes, double rate, struct heap_v2_value lines[HEAP_V2_LINES_MAX]) {
    if (!(bytes >= 0.5)) return 0;
    if (objects < 1) objects = 1;
    if (rate <= 1) {
        lines[0] = (struct heap_v2_value){(uint64_t)llround(objects), (uint64_t)llround(bytes)};
        return 1;
    }

    struct heap_v2_value one = one_line(objects, bytes, rate), two[HEAP_V2_LINES_MAX];
    double one_objects, one_bytes;
    heap_v2_numbers_read(one, rate, &one_objects, &one_bytes);
    double error = fabs(one_objects - objects) / objects;
    if (error > objects_tolerance && two_lines(objects, bytes, rate, two) < error) {
        lines[0] = two[0];
        lines[1] = two[1];
        return 2;
    }
    lines[0] = one;
    return 1;
}
