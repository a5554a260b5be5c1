#include "base/dump_schedule.h"

#include <signal.h>
#include <string.h>
#include <strings.h>

static const struct unit {
    const char *name;
    uint64_t factor;
    bool is_time;
} units[] = {
    {"", 1, false},
    {"b", 1, false},
    {"k", UINT64_C(1) << 10, false},
    {"m", UINT64_C(1) << 20, false},
    {"g", UINT64_C(1) << 30, false},
    {"t", UINT64_C(1) << 40, false},
    {"kb", UINT64_C(1) << 10, false},
    {"mb", UINT64_C(1) << 20, false},
    {"gb", UINT64_C(1) << 30, false},
    {"tb", UINT64_C(1) << 40, false},
    {"kib", UINT64_C(1) << 10, false},
    {"mib", UINT64_C(1) << 20, false},
    {"gib", UINT64_C(1) << 30, false},
    {"tib", UINT64_C(1) << 40, false},
    {"ms", UINT64_C(1000000), true},
    {"s", UINT64_C(1000000000), true},
    {"min", UINT64_C(60000000000), true},
    {"h", UINT64_C(3600000000000), true},
};

static const struct unit *find_unit(const char *text, size_t length) {
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (strlen(units[i].name) == length && strncasecmp(text, units[i].name, length) == 0)
            return &units[i];
    return NULL;
}

/* How many digits there are; 0 if none, or too large a number. */
static size_t read_digits(const char *text, size_t length, uint64_t *ret_value) {
    size_t at = 0;
    *ret_value = 0;
    for (; at < length && text[at] >= '0' && text[at] <= '9'; at++)
        if (__builtin_mul_overflow(*ret_value, 10, ret_value) ||
            __builtin_add_overflow(*ret_value, (uint64_t)(text[at] - '0'), ret_value))
            return 0;
    return at;
}

static bool read_word(const char *text, size_t length, struct dump_schedule *when) {
    if (length == 4 && strncasecmp(text, "exit", 4) == 0) return when->at_exit = true;
    uint64_t value;
    size_t digits = read_digits(text, length, &value);
    const struct unit *unit = digits ? find_unit(text + digits, length - digits) : NULL;
    /* "10m" would be minutes to some and megabytes to others. */
    if (!unit || !value || (length - digits == 1 && text[digits] == 'm')) return false;
    if (__builtin_mul_overflow(value, unit->factor, &value)) return false;
    *(unit->is_time ? &when->every_nanoseconds : &when->every_bytes) = value;
    return true;
}

bool dump_schedule_read(
    const char *text, struct dump_schedule *ret_when, const char **ret_bad, size_t *ret_bad_length) {
    struct dump_schedule when = {0};
    for (bool more = true; more;) {
        size_t length = strcspn(text, ",");
        if (!read_word(text, length, &when)) {
            *ret_bad = text;
            *ret_bad_length = length;
            return false;
        }
        more = text[length] == ',';
        text += length + 1;
    }
    *ret_when = when;
    return true;
}

int dump_schedule_read_signal(const char *text) {
    uint64_t number;
    size_t length = strlen(text), digits = read_digits(text, length, &number);
    if (digits != length || !length) number = 0;
    if (strncasecmp(text, "SIG", 3) == 0) text += 3;
    for (int signal = 1; signal < NSIG && !number; signal++) {
        const char *name = sigabbrev_np(signal);
        if (name && strcasecmp(name, text) == 0) number = (uint64_t)signal;
    }
    if (!number || number >= NSIG) return 0;
    switch (number) {
    case SIGKILL:
    case SIGSTOP:
    case SIGSEGV:
    case SIGBUS:
    case SIGILL:
    case SIGFPE:
    case SIGTRAP:
    case SIGABRT:
        return -1;
    }
    return (int)number;
}
