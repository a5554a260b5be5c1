#include "cli/terminal/units.h"
#include "cli/terminal/terminal.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How many digits to print after the point, so that three significant digits are shown. */
static int digits_after_point(double value) {
    if (value < 9.995) return 2;
    return value < 99.95 ? 1 : 0;
}

static struct unit_text scaled_bytes(double bytes, const char *separator, const char *const *units) {
    struct unit_text result;
    if (!isfinite(bytes)) {
        snprintf(result.text, sizeof result.text, "?");
        return result;
    }
    const char *sign = bytes <= -0.5 ? "-" : "";
    double value = fabs(bytes);
    int unit = 0;
    while (value >= 1023.5 && unit < 6) {
        value /= 1024;
        unit++;
    }
    int digits = unit == 0 ? 0 : digits_after_point(value);
    snprintf(result.text, sizeof result.text, "%s%.*f%s%s", sign, digits, value, separator, units[unit]);
    return result;
}

struct unit_text units_bytes(double bytes) {
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    return scaled_bytes(bytes, " ", units);
}

struct unit_text units_bytes_short(double bytes) {
    static const char *const units[] = {"", "K", "M", "G", "T", "P", "E"};
    return scaled_bytes(bytes, "", units);
}

struct unit_text units_count(double count) {
    struct unit_text result;
    if (!isfinite(count)) {
        snprintf(result.text, sizeof result.text, "?");
    } else if (fabs(count) < 999999.5) {
        long whole = lround(count);
        if (labs(whole) < 1000)
            snprintf(result.text, sizeof result.text, "%ld", whole);
        else
            snprintf(result.text, sizeof result.text, "%ld,%03ld", whole / 1000, labs(whole) % 1000);
    } else {
        static const char *const units[] = {"M", "G", "T", "P", "E"};
        double value = count / 1e6;
        int unit = 0;
        while (fabs(value) >= 999.5 && unit < 4) {
            value /= 1000;
            unit++;
        }
        snprintf(
            result.text, sizeof result.text, "%.*f %s", digits_after_point(fabs(value)), value, units[unit]);
    }
    return result;
}

struct unit_text units_counted(double count, const char *noun) {
    struct unit_text result, number = units_count(count);
    snprintf(result.text, sizeof result.text, "%.12s %s%s", number.text, noun,
        strcmp(number.text, "1") == 0 ? "" : "s");
    return result;
}

struct unit_text units_percent(double share) {
    struct unit_text result;
    if (!isfinite(share))
        snprintf(result.text, sizeof result.text, "?");
    else if (share > 9.995)
        snprintf(result.text, sizeof result.text, ">999%%");
    else if (share > 0 && share < 0.01)
        snprintf(result.text, sizeof result.text, "<1%%");
    else if (share < 1 && share > 0.99)
        snprintf(result.text, sizeof result.text, ">99%%");
    else
        snprintf(result.text, sizeof result.text, "%.0f%%", 100 * share);
    return result;
}

struct unit_text units_seconds(double seconds) {
    struct unit_text result;
    if (!isfinite(seconds) || seconds < 0) {
        snprintf(result.text, sizeof result.text, "?");
    } else if (seconds < 0.0009995) {
        double value = seconds * 1e6;
        snprintf(result.text, sizeof result.text, "%.0f %s", value, terminal_glyphs()->micro);
    } else if (seconds < 0.9995) {
        double value = seconds * 1e3;
        snprintf(result.text, sizeof result.text, "%.*f ms", digits_after_point(value), value);
    } else if (seconds < 59.95) {
        snprintf(result.text, sizeof result.text, "%.*f s", digits_after_point(seconds), seconds);
    } else {
        unsigned long long whole = (unsigned long long)(seconds + 0.5);
        if (whole < 3600)
            snprintf(result.text, sizeof result.text, "%llu min %02llu s", whole / 60, whole % 60);
        else if (whole < 48 * 3600)
            snprintf(result.text, sizeof result.text, "%llu h %02llu min", whole / 3600, whole / 60 % 60);
        else
            snprintf(result.text, sizeof result.text, "%llu d %02llu h", whole / 86400, whole / 3600 % 24);
    }
    return result;
}

/* A whole number without sign or blanks, which strtoull would accept. */
static bool parse_digits(const char *text, char **ret_end, uint64_t *ret_value) {
    if (!isdigit((unsigned char)*text)) return false;
    errno = 0;
    unsigned long long value = strtoull(text, ret_end, 10);
    if (errno) return false;
    *ret_value = value;
    return true;
}

bool units_parse_count(const char *text, uint64_t *ret_count) {
    char *end;
    uint64_t value;
    if (!parse_digits(text, &end, &value) || *end) return false;
    *ret_count = value;
    return true;
}

bool units_parse_size(const char *text, uint64_t *ret_bytes) {
    char *end;
    uint64_t value;
    if (!parse_digits(text, &end, &value)) return false;
    static const char units[] = "KMGT";
    const char *unit = *end ? strchr(units, toupper((unsigned char)*end)) : NULL;
    if (unit) {
        int shift = 10 * (int)(unit - units + 1);
        if (value > UINT64_MAX >> shift) return false;
        value <<= shift;
        end++;
        if (*end == 'i' && (end[1] == 'B' || end[1] == 'b')) end++;
    }
    if (*end == 'B' || *end == 'b') end++;
    if (*end) return false;
    *ret_bytes = value;
    return true;
}

bool units_parse_seconds(const char *text, double *ret_seconds) {
    static const struct {
        const char *name;
        double seconds;
    } units[] = {{"", 1}, {"s", 1}, {"ms", 1e-3}, {"m", 60}, {"min", 60}, {"h", 3600}};
    char *end;
    double number = strtod(text, &end);
    if (end == text || !isdigit((unsigned char)text[0])) return false;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (strcmp(end, units[i].name) != 0) continue;
        double seconds = number * units[i].seconds;
        if (!(seconds > 0 && seconds <= 366 * 86400.0)) return false;
        *ret_seconds = seconds;
        return true;
    }
    return false;
}
