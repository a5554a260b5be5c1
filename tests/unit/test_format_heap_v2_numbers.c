/* What heap_v2 writes must read as the estimate, by the formula that its readers use. */
#include "check.h"
#include "format/heap_v2_numbers.h"

#include <math.h>
#include <stdlib.h>

static void read_all(
    const struct heap_v2_value *lines, size_t count, double rate, double *objects, double *bytes) {
    *objects = *bytes = 0;
    for (size_t i = 0; i < count; i++) {
        double line_objects, line_bytes;
        heap_v2_numbers_read(lines[i], rate, &line_objects, &line_bytes);
        *objects += line_objects;
        *bytes += line_bytes;
    }
}

/* The estimate that `samples` samples of `size` give. */
static void add_samples(double samples, double size, double rate, double *objects, double *bytes) {
    double p = -expm1(-size / rate);
    *objects += samples / p;
    *bytes += samples * size / p;
}

static void check_reading(double objects, double bytes, double rate, double objects_tolerance) {
    struct heap_v2_value lines[HEAP_V2_LINES_MAX];
    double read_objects, read_bytes;
    size_t count = heap_v2_numbers_lines(objects, bytes, rate, lines);

    read_all(lines, count, rate, &read_objects, &read_bytes);
    CHECK(count >= 1);
    for (size_t i = 0; i < count; i++) CHECK(lines[i].objects >= 1 && lines[i].bytes >= 1);
    if (!CHECK(fabs(read_bytes - bytes) <= 2)) /* whole numbers are written, one or two of them */
        fprintf(stderr, "  %.17g bytes read as %.17g\n", bytes, read_bytes);
    if (!CHECK(fabs(read_objects - objects) <= objects_tolerance * objects))
        fprintf(stderr, "  %.17g objects of %.17g bytes read as %.17g\n", objects, bytes, read_objects);
}

static void samples_of_one_size_read_as_they_were(void) {
    static const double sizes[] = {16, 100, 4096, 500000, 600000, 100e6};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        for (double samples = 1; samples <= 1e4; samples *= 10) {
            double objects = 0, bytes = 0;
            struct heap_v2_value lines[HEAP_V2_LINES_MAX];
            add_samples(samples, sizes[i], 524288, &objects, &bytes);
            CHECK_EQUAL(heap_v2_numbers_lines(objects, bytes, 524288, lines), 1);
            CHECK_EQUAL(lines[0].objects, samples);
            CHECK_EQUAL(lines[0].bytes, samples * sizes[i]);
        }
}

static void samples_of_mixed_sizes_read_as_the_estimate(void) {
    double objects = 0, bytes = 0;
    add_samples(30, 16, 524288, &objects, &bytes);
    add_samples(1, 1 << 20, 524288, &objects, &bytes);
    check_reading(objects, bytes, 524288, 0.05);

    srand48(1);
    for (int i = 0; i < 2000; i++) {
        double rate = exp2(4 + floor(drand48() * 20));
        objects = bytes = 0;
        for (int k = 0; k < 3; k++)
            add_samples(ceil(drand48() * 40), ceil(exp(drand48() * 17)), rate, &objects, &bytes);
        check_reading(objects, bytes, rate, 0.05);
    }
}

static void nothing_is_rescaled_at_rate_one(void) {
    struct heap_v2_value lines[HEAP_V2_LINES_MAX];
    CHECK_EQUAL(heap_v2_numbers_lines(3, 7, 1, lines), 1);
    CHECK_EQUAL(lines[0].objects, 3);
    CHECK_EQUAL(lines[0].bytes, 7);
}

/* google-pprof divides by zero at objects without bytes. */
static void objects_without_bytes_are_not_written(void) {
    struct heap_v2_value lines[HEAP_V2_LINES_MAX];
    CHECK_EQUAL(heap_v2_numbers_lines(3, 0, 1, lines), 0);
    CHECK_EQUAL(heap_v2_numbers_lines(0, 0, 524288, lines), 0);
}

int main(void) {
    samples_of_one_size_read_as_they_were();
    samples_of_mixed_sizes_read_as_the_estimate();
    nothing_is_rescaled_at_rate_one();
    objects_without_bytes_are_not_written();
    return check_result();
}
