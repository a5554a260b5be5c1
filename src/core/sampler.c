#include "core/sampler.h"

#include <string.h>

uint64_t sampler_random_next(uint64_t state[4]) {
    uint64_t result = state[0] + state[3], shifted = state[1] << 17;
    state[2] ^= state[0];
    state[3] ^= state[1];
    state[1] ^= state[2];
    state[0] ^= state[3];
    state[2] ^= shifted;
    state[3] = state[3] << 45 | state[3] >> 19;
    return result;
}

/* Spreads one word over the state, by splitmix64. */
void sampler_random_seed(uint64_t state[4], uint64_t seed) {
    for (int i = 0; i < 4; i++) {
        seed += UINT64_C(0x9e3779b97f4a7c15);
        uint64_t z = seed;
        z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
        state[i] = z ^ (z >> 31);
    }
}

#define LN2 0.693147180559945309417232121458

/* ln(x) for positive normal x: exponent and mantissa m in [√½, √2), then ln m = 2 artanh((m - 1) / (m + 1)).
 */
static double natural_log(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    int exponent = (int)(bits >> 52) - 1023;
    bits = (bits & ((UINT64_C(1) << 52) - 1)) | UINT64_C(1023) << 52;
    double m;
    memcpy(&m, &bits, sizeof m);
    if (m > 1.41421356237309504880) {
        m /= 2;
        exponent++;
    }
    double s = (m - 1) / (m + 1), q = s * s, sum = 0;
    for (int k = 17; k >= 1; k -= 2) sum = sum * q + 1.0 / k;
    return exponent * LN2 + 2 * s * sum;
}

/* 1 - exp(-x) for x >= 0, without losing digits where x is small. */
static double one_minus_exp(double x) {
    if (x > 45) return 1;
    int halvings = 0;
    while (x > 0.25) {
        x /= 2;
        halvings++;
    }
    double sum = 0; /* Taylor: x - x²/2! + x³/3! ... */
    for (int k = 12; k >= 1; k--) sum = (x / k) * (1 - sum);
    /* 1 - exp(-2x) = y (2 - y) where y = 1 - exp(-x). */
    while (halvings-- > 0) sum = sum * (2 - sum);
    return sum;
}

uint64_t sampler_draw(uint64_t state[4], uint64_t rate) {
    if (rate <= 1) return 1;
    /* u in (0, 1]: 53 random bits. */
    double u = (double)((sampler_random_next(state) >> 11) + 1) * 0x1p-53;
    double interval = -natural_log(u) * (double)rate;
    return interval < 0x1p63 ? (uint64_t)interval + 1 : UINT64_C(1) << 63;
}

uint64_t sampler_weight_sampled(uint64_t size, uint64_t rate) {
    double p = one_minus_exp((double)size / (double)rate);
    return sampler_whole_number((double)size / p * BYTE_ONE + 0.5);
}
