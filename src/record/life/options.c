#include "record/life/options.h"

#include "platform/calls.h"
#include "platform/clock.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

extern char **environ;
/* The stack pointer with which the process began, as glibc's dynamic linker has noted it. */
extern const uint64_t *__libc_stack_end __attribute__((weak));

/* The environment. libc's constructors set `environ`; functions in the executable's .preinit_array run before
 * them. For these there is what the kernel put on the stack: the number of arguments, the arguments, NULL, the
 * environment. */
char **options_environment(void) {
    if (environ || !&__libc_stack_end || !__libc_stack_end) return environ;
    char **arguments = (char **)(__libc_stack_end + 1), **end = arguments + *__libc_stack_end;
    return *end ? NULL : end + 1;
}

bool options_program_is_wrapper(void) {
    static const char *const wrappers[] = {"env", "sh", "bash", "dash", "ash", "ksh", "mksh", "zsh"};
    if (!&__libc_stack_end || !__libc_stack_end || !*__libc_stack_end) return false;
    const char *name = ((char **)(__libc_stack_end + 1))[0], *slash = strrchr(name, '/');
    for (size_t i = 0; i < sizeof wrappers / sizeof *wrappers; i++)
        if (strcmp(slash ? slash + 1 : name, wrappers[i]) == 0) return true;
    return false;
}

char *options_variable(const char *name) {
    size_t length = strlen(name);
    for (char **entry = options_environment(); entry && *entry; entry++)
        if (strncmp(*entry, name, length) == 0 && (*entry)[length] == '=') return *entry + length + 1;
    return NULL;
}

/* The variable's value; NULL also if it is empty. */
static const char *text_of(const char *name) {
    const char *text = options_variable(name);
    return text && *text ? text : NULL;
}

/* The variable's value as a number: "4096", "64K", "1M", "2G". `fallback` if it is not set, or no number. */
static uint64_t number(const char *name, uint64_t fallback) {
    const char *text = options_variable(name);
    if (!text || *text < '0' || *text > '9') return fallback;
    uint64_t value = 0;
    for (; *text >= '0' && *text <= '9'; text++) value = value * 10 + (uint64_t)(*text - '0');
    switch (*text) {
    case 'k':
    case 'K':
        return value << 10;
    case 'm':
    case 'M':
        return value << 20;
    case 'g':
    case 'G':
        return value << 30;
    default:
        return value;
    }
}

/* Whether the library is preloaded, or the environment has any of its variables. A program that is linked with
 * the library, and run without either, is recorded when it asks for it (mscope_init). */
static bool is_wanted(void) {
    static const char ours[] = "MALLOSCOPE_";
    for (char **entry = options_environment(); *entry; entry++)
        if (strncmp(*entry, ours, sizeof ours - 1) == 0) return true;
    const char *preloaded = options_variable("LD_PRELOAD");
    return preloaded && strstr(preloaded, "malloscope");
}

static enum stacks stacks_of(const char *text) {
    if (text && strcmp(text, "native") == 0) return STACKS_NATIVE;
    if (text && strcmp(text, "scopes") == 0) return STACKS_SCOPES;
    return STACKS_BOTH;
}

static char executable[256] = "program";

void options_find_program(void) {
    char path[PATH_MAX];
    long length = call_readlink("/proc/self/exe", path, sizeof path - 1);
    path[length > 0 ? length : 0] = '\0';
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    size_t end = strcspn(name, " ");
    if (end == 0 || end >= sizeof executable) return;
    memcpy(executable, name, end);
    executable[end] = '\0';
}

bool options_read(struct options *ret_options) {
    if (!options_environment()) return false;
    uint64_t self = (uint64_t)call_getpid();
    struct options options = {
        .output = options_variable("MALLOSCOPE_OUTPUT"),
        .rate = number("MALLOSCOPE_RATE", DEFAULT_RATE),
        .depth = number("MALLOSCOPE_DEPTH", DEFAULT_DEPTH),
        .size_max = number("MALLOSCOPE_MAX_SIZE", 0),
        .seed = number("MALLOSCOPE_SEED", 0),
        .follow = number("MALLOSCOPE_FOLLOW", 1) != 0,
        .is_root = number("MALLOSCOPE_ROOT", self) == self,
        .is_wanted = is_wanted(),
        .stacks = stacks_of(options_variable("MALLOSCOPE_STACKS")),
        .dump = text_of("MALLOSCOPE_DUMP"),
        .dump_format = text_of("MALLOSCOPE_DUMP_FORMAT"),
        .dump_at = text_of("MALLOSCOPE_DUMP_AT"),
        .dump_signal = text_of("MALLOSCOPE_SIGNAL"),
        .thread_frames = number("MALLOSCOPE_THREAD_FRAMES", 0) != 0,
        .python_objects = number("MALLOSCOPE_PYTHON_OBJECTS", 0) != 0,
    };
    if (!options.output || !*options.output) options.output = DEFAULT_RECORDING_PATTERN;
    if (options.rate == 0) options.rate = 1;
    if (options.depth < DEPTH_LEAST) options.depth = DEPTH_LEAST;
    if (options.depth > DEPTH_MOST) options.depth = DEPTH_MOST;

    /* Reset once it was read: the program that this process becomes by exec must not replace this recording. */
    char *force = options_variable("MALLOSCOPE_FORCE");
    options.replace = options.is_root && force && *force == '1';
    if (options.replace) *force = '0';
    *ret_options = options;
    return true;
}

bool options_can_wait(void) {
    return options_environment() && number("MALLOSCOPE_ROOT", (uint64_t)call_getpid()) != (uint64_t)call_getpid() &&
           !text_of("MALLOSCOPE_DUMP") && !text_of("MALLOSCOPE_DUMP_AT") && !text_of("MALLOSCOPE_SIGNAL");
}

uint64_t options_size_max(const struct options *options) {
    if (options->size_max) return options->size_max;
    uint64_t finer = options->rate < DEFAULT_RATE ? DEFAULT_RATE / options->rate : 1;
    return finer < DEFAULT_SIZE_MAX / DEFAULT_SIZE_SAMPLED ? finer * DEFAULT_SIZE_SAMPLED : DEFAULT_SIZE_MAX;
}

/* ---- the name of the recording ---- */

struct text {
    char *at, *end;
    bool overflow;
};

static void put(struct text *text, const char *from, size_t length) {
    if ((size_t)(text->end - text->at) <= length) {
        text->overflow = true;
        return;
    }
    memcpy(text->at, from, length);
    text->at += length;
    *text->at = '\0';
}

static void put_number(struct text *text, uint64_t value) {
    char digits[20];
    size_t length = 0;
    do digits[sizeof digits - ++length] = (char)('0' + value % 10);
    while ((value /= 10));
    put(text, digits + sizeof digits - length, length);
}

static void put_expanded(struct text *text, const char *pattern, size_t length, int pid) {
    struct utsname host;
    for (const char *at = pattern, *end = pattern + length; at < end; at++) {
        if (*at != '%' || at + 1 == end) {
            put(text, at, 1);
            continue;
        }
        switch (*++at) {
        case 'p':
            put_number(text, (uint64_t)pid);
            break;
        case 'e':
            put(text, executable, strlen(executable));
            break;
        case 'h':
            put(text, host.nodename, call_uname(&host) == 0 ? strlen(host.nodename) : 0);
            break;
        case 't':
            put_number(text, clock_kernel(CLOCK_REALTIME) / 1000000000u);
            break;
        case '%':
            put(text, "%", 1);
            break;
        default:
            put(text, at - 1, 2);
            break;
        }
    }
}

/* The length of the pattern without the ending that says what kind of file it is. */
static size_t length_of_stem(const char *pattern) {
    static const char *const endings[] = {".mscope", ".heap"};
    size_t length = strlen(pattern);
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        size_t ending = strlen(endings[i]);
        if (length > ending && strcmp(pattern + length - ending, endings[i]) == 0) return length - ending;
    }
    return length;
}

const char *options_counter(const char *pattern) {
    for (const char *at = strchr(pattern, '%'); at && at[1]; at = strchr(at + 2, '%'))
        if (at[1] == 'n') return at;
    return NULL;
}

bool options_path(const char *pattern, int pid, unsigned attempt, char *path, size_t size) {
    struct text text = {path, path + size, false};
    if (*pattern != '/') {
        if (call_getcwd(path, size) <= 0) return false;
        text.at += strlen(path);
        put(&text, "/", 1);
    }
    size_t length = strlen(pattern), stem = length_of_stem(pattern);

    /* Without %n, attempts differ by the process id and a number in front of the ending. */
    const char *counter = options_counter(pattern);
    if (counter) {
        put_expanded(&text, pattern, (size_t)(counter - pattern), pid);
        put_number(&text, attempt + 1);
        put_expanded(&text, counter + 2, length - (size_t)(counter + 2 - pattern), pid);
        return !text.overflow;
    }
    put_expanded(&text, pattern, stem, pid);
    if (attempt > 0) {
        put(&text, ".", 1);
        put_number(&text, (uint64_t)pid);
    }
    if (attempt > 1) {
        put(&text, ".", 1);
        put_number(&text, attempt);
    }
    put(&text, pattern + stem, length - stem);
    return !text.overflow;
}
