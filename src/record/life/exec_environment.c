#include "record/life/exec_environment.h"

#include "base/limits.h"
#include "platform/safe_read.h"
#include "platform/system.h"
#include "record/intercept/real_allocator.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static const char PRELOAD[] = "LD_PRELOAD=";
#define PRELOAD_LENGTH (sizeof PRELOAD - 1)
#define SEPARATORS     " :" /* of the names in LD_PRELOAD */

static bool is_preload(const char *entry) {
    return strncmp(entry, PRELOAD, PRELOAD_LENGTH) == 0;
}

/* A name is ours if its file is called libmalloscope..., or if it is the path of this library. */
static bool is_us(const char *name, size_t length) {
    static const char file[] = "libmalloscope";
    const char *own = real_allocator_own_path(), *base = name;
    for (size_t i = 0; i < length; i++)
        if (name[i] == '/') base = name + i + 1;
    size_t base_length = length - (size_t)(base - name);
    return (base_length >= sizeof file - 1 && memcmp(base, file, sizeof file - 1) == 0) ||
           (strlen(own) == length && memcmp(own, name, length) == 0);
}

/* The next name of LD_PRELOAD's value at or behind `at`; its length is 0 at the end. */
static const char *next_name(const char *at, size_t *ret_length) {
    at += strspn(at, SEPARATORS);
    *ret_length = strcspn(at, SEPARATORS);
    return at;
}

static bool names_us(const char *value) {
    size_t length;
    for (const char *name = next_name(value, &length); length; name = next_name(name + length, &length))
        if (is_us(name, length)) return true;
    return false;
}

/* Copies the value without us, and returns its length. `to` may be `value`: no byte is written before it is read. */
static size_t without_us(const char *value, char *to) {
    size_t length, written = 0;
    for (const char *name = next_name(value, &length); length; name = next_name(name + length, &length)) {
        if (is_us(name, length)) continue;
        if (written) to[written++] = ':';
        memmove(to + written, name, length);
        written += length;
    }
    to[written] = '\0';
    return written;
}

/* Whether the page of an address can be read. `proven` is an address whose page can, and becomes this one. */
static bool page_is_readable(const void *address, uintptr_t *proven) {
    uintptr_t at = (uintptr_t)address;
    if (at / PAGE_SIZE_MIN == *proven / PAGE_SIZE_MIN) return true;
    if (!safe_read_possible(at & ~(uintptr_t)7)) return false;
    *proven = at;
    return true;
}

bool exec_environment_is_readable(char *const *environment) {
    uintptr_t array = UINTPTR_MAX, texts = UINTPTR_MAX; /* no page that a program has */
    for (; environment; environment++) {
        if (!page_is_readable(environment, &array)) return false;
        if (!*environment) return true;
        if (!page_is_readable(*environment, &texts)) return false;
    }
    return true;
}

bool exec_environment_has_us(char *const *environment) {
    for (; environment && *environment; environment++)
        if (is_preload(*environment) && names_us(*environment + PRELOAD_LENGTH)) return true;
    return false;
}

static bool is_readable(const char *name, size_t length) {
    char path[512];
    if (*name != '/' || length >= sizeof path) return true; /* the loader searches for it: not known */
    memcpy(path, name, length);
    path[length] = '\0';
    long r = system_call(SYS_faccessat, (uint64_t)(int64_t)AT_FDCWD, (uintptr_t)path, R_OK, 0, 0, 0);
    return r == 0 || r == -EFAULT;
}

bool exec_environment_reaches_us(char *const *environment) {
    size_t length;
    for (; environment && *environment; environment++) {
        if (!is_preload(*environment)) continue;
        const char *value = *environment + PRELOAD_LENGTH;
        for (const char *name = next_name(value, &length); length; name = next_name(name + length, &length))
            if (is_us(name, length) && !is_readable(name, length)) return false;
    }
    return true;
}

struct exec_environment_size exec_environment_size(char *const *environment) {
    struct exec_environment_size size = {.pointers = 1};
    for (; environment && *environment; environment++) {
        size.pointers++;
        if (is_preload(*environment)) size.bytes += strlen(*environment) + 1;
    }
    return size;
}

void exec_environment_copy(char *const *environment, char **copy, char *texts) {
    for (; environment && *environment; environment++) {
        if (!is_preload(*environment) || !names_us(*environment + PRELOAD_LENGTH)) {
            *copy++ = *environment;
            continue;
        }
        memcpy(texts, PRELOAD, PRELOAD_LENGTH);
        size_t length = without_us(*environment + PRELOAD_LENGTH, texts + PRELOAD_LENGTH);
        if (!length) continue;
        *copy++ = texts;
        texts += PRELOAD_LENGTH + length + 1;
    }
    *copy = NULL;
}

void exec_environment_leave(char **environment) {
    static const char instead[] = "MALLOSCOPE_PRELOADED=1";
    for (; environment && *environment; environment++) {
        if (!is_preload(*environment) || !names_us(*environment + PRELOAD_LENGTH)) continue;
        size_t room = strlen(*environment);
        if (without_us(*environment + PRELOAD_LENGTH, *environment + PRELOAD_LENGTH) == 0 &&
            room >= sizeof instead - 1)
            memcpy(*environment, instead, sizeof instead);
    }
}
