/* exec and posix_spawn: programs that the recorded one becomes or starts.
 *
 * They inherit LD_PRELOAD, and not each of them can bear that: a program for musl ends with an error of its loader, one
 * with AddressSanitizer refuses to start. So what is about to be executed is looked at (exec_look.h). A program that
 * cannot carry the recorder gets an environment without it. Each program that will not be recorded is counted in the
 * recording (core/unrecorded.h).
 *
 * What runs here may run in a vfork child, which shares all memory with its parent, and in a signal handler: no lock,
 * no allocation, nothing kept. The new environment is on the stack.
 *
 * system, popen and wordexp start /bin/sh from within libc, unseen. The shell carries the recorder, and its own execve
 * comes here. */
#include "record/life/exec.h"

#include "core/unrecorded.h"
#include "platform/calls.h"
#include "record/intercept/export.h"
#include "record/intercept/search_order.h"
#include "record/life/exec_environment.h"
#include "record/life/exec_look.h"
#include "record/life/exec_trim.h"
#include "record/life/options.h"
#include "record/life/syscall_result.h"
#include "record/sample/recorder_state.h"

#include <paths.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

extern char **environ;

/* Larger environments stay as they are. Linux passes on no more than a quarter of the stack's limit in all. */
#define POINTERS_MOST 4096
#define BYTES_MOST    8192
#define FOLDER_MAX    1024 /* bytes of a folder of PATH with the program */

EXPORT ANY_STACK int execve(const char *path, char *const arguments[], char *const environment[]);
EXPORT ANY_STACK int execv(const char *path, char *const arguments[]);
EXPORT ANY_STACK int execvp(const char *file, char *const arguments[]);
EXPORT ANY_STACK int execvpe(const char *file, char *const arguments[], char *const environment[]);
EXPORT ANY_STACK int execl(const char *path, const char *argument, ...);
EXPORT ANY_STACK int execlp(const char *file, const char *argument, ...);
EXPORT ANY_STACK int execle(const char *path, const char *argument, ...);
EXPORT ANY_STACK int fexecve(int file, char *const arguments[], char *const environment[]);
EXPORT ANY_STACK int execveat(
    int folder, const char *path, char *const arguments[], char *const environment[], int flags);
EXPORT ANY_STACK int posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
    const posix_spawnattr_t *attributes, char *const arguments[], char *const environment[]);
EXPORT ANY_STACK int posix_spawnp(pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions,
    const posix_spawnattr_t *attributes, char *const arguments[], char *const environment[]);
ANY_STACK long exec_system_call(long number, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e);

static struct {
    int (*execve)(const char *, char *const[], char *const[]);
    int (*execvpe)(const char *, char *const[], char *const[]);
    int (*fexecve)(int, char *const[], char *const[]);
    int (*execveat)(int, const char *, char *const[], char *const[], int);
    int (*spawn)(pid_t *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *,
        char *const[], char *const[]);
    int (*spawnp)(pid_t *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *,
        char *const[], char *const[]);
} next;

static struct {
    bool was_preloaded; /* the environment with which the process began names the recorder */
    bool follow;
    pid_t root; /* with --no-follow, the process that is recorded */
} began = {.follow = true};

/* At the start, while there is one thread (search_order.h). */
__attribute__((constructor)) static void find_next(void) {
    *(void **)&next.execve = search_order_next("execve");
    *(void **)&next.execvpe = search_order_next("execvpe");
    *(void **)&next.fexecve = search_order_next("fexecve");
    *(void **)&next.execveat = search_order_next("execveat");
    *(void **)&next.spawn = search_order_next("posix_spawn");
    *(void **)&next.spawnp = search_order_next("posix_spawnp");
}

/* ---- the request ---- */

enum way { BY_EXECVE, BY_EXECVPE, BY_FEXECVE, BY_EXECVEAT, BY_SPAWN, BY_SPAWNP, BY_SYSCALL, BY_SYSCALL_AT };

struct request {
    enum way way;
    int folder, flags; /* as in execveat; of BY_FEXECVE, `folder` is the file */
    const char *path;
    char *const *arguments, *const *environment;
    pid_t *pid; /* this and the next two as in posix_spawn */
    const posix_spawn_file_actions_t *actions;
    const posix_spawnattr_t *attributes;
};

static int go(const struct request *request, char *const *environment) {
    char *const *arguments = request->arguments;
    if (!next.execve) find_next();
    switch (request->way) {
    case BY_EXECVE:
        return next.execve(request->path, arguments, environment);
    case BY_EXECVPE:
        return next.execvpe(request->path, arguments, environment);
    case BY_FEXECVE:
        return next.fexecve(request->folder, arguments, environment);
    case BY_EXECVEAT:
        if (next.execveat)
            return next.execveat(request->folder, request->path, arguments, environment, request->flags);
        break;
    case BY_SPAWN:
        return next.spawn(
            request->pid, request->path, request->actions, request->attributes, arguments, environment);
    case BY_SPAWNP:
        return next.spawnp(
            request->pid, request->path, request->actions, request->attributes, arguments, environment);
    case BY_SYSCALL:
        return (int)syscall_result(system_call_always(
            SYS_execve, (uintptr_t)request->path, (uintptr_t)arguments, (uintptr_t)environment, 0, 0, 0));
    case BY_SYSCALL_AT:
        break;
    }
    return (int)syscall_result(
        system_call_always(SYS_execveat, (uint64_t)(int64_t)request->folder, (uintptr_t)request->path,
            (uintptr_t)arguments, (uintptr_t)environment, (uint64_t)(int64_t)request->flags, 0));
}

/* ---- the look ---- */

/* Looks at what execvp finds: the first file in the folders of PATH that may be executed. What the kernel does not know
 * how to execute is given to the shell. */
static void look_in_path(const char *file, struct exec_finding *ret_finding) {
    const char *at = options_variable("PATH");
    char path[FOLDER_MAX];
    size_t length = strlen(file);
    bool has_folder = strchr(file, '/') || !length, found = false;
    exec_look(AT_FDCWD, has_folder ? file : "", 0, ret_finding);
    if (!at) at = "/bin:/usr/bin";
    for (; !has_folder && !found; at++) {
        size_t folder = strcspn(at, ":");
        if (folder + length + 2 <= sizeof path) {
            memcpy(path, at, folder);
            path[folder] = '/';
            memcpy(path + folder + (folder > 0), file, length + 1);
            uint64_t here = (uint64_t)(int64_t)AT_FDCWD;
            if (system_call(SYS_faccessat, here, (uintptr_t)path, X_OK, 0, 0, 0) == 0)
                exec_look(AT_FDCWD, path, 0, ret_finding);
            found = ret_finding->is_program || ret_finding->is_unknown;
        }
        at += folder;
        if (!*at) break;
    }
    if (ret_finding->is_unknown) exec_look(AT_FDCWD, _PATH_BSHELL, 0, ret_finding);
}

static void look(const struct request *request, struct exec_finding *ret_finding) {
    if (request->way == BY_EXECVPE || request->way == BY_SPAWNP)
        look_in_path(request->path, ret_finding);
    else
        exec_look(request->folder, request->path, request->flags, ret_finding);
    if (ret_finding->reason == UNRECORDED_NONE && ret_finding->is_program &&
        !exec_environment_reaches_us(request->environment)) {
        ret_finding->reason = UNRECORDED_UNREACHABLE;
        ret_finding->bears = false;
    }
}

/* ---- programs that are not recorded ---- */

/* Whether there is a recording to count them in. A forked child that has none yet has its parent's mapped, and counts
 * there: the program is started by the parent, as people see it. */
static bool has_recording(void) {
    return atomic_load_explicit(&recorder.stage, memory_order_acquire) == RECORDING;
}

/* Why a program is not recorded whose environment does not name the recorder. A program that is linked with the
 * recorder, or that has opened it late, promises nothing for others. With --no-follow only the program that the
 * recorded process itself becomes is of interest: there its recording ends. */
static enum unrecorded_reason reason_without_us(const struct request *request) {
    if (!began.was_preloaded || !has_recording()) return UNRECORDED_NONE;
    if (began.follow) return UNRECORDED_ENVIRONMENT;
    bool is_spawn = request->way == BY_SPAWN || request->way == BY_SPAWNP;
    return is_spawn || recorder.recording.header->pid != call_getpid() ? UNRECORDED_NONE
                                                                       : UNRECORDED_NO_FOLLOW;
}

/* Looks at the program, and counts it if it will not be recorded. Returns the count or NULL. */
static _Atomic uint64_t *examine(const struct request *request, bool has_us, bool *ret_bears) {
    enum unrecorded_reason otherwise = has_us ? UNRECORDED_NONE : reason_without_us(request);
    if (!has_us && otherwise == UNRECORDED_NONE) return NULL;
    struct exec_finding finding;
    look(request, &finding);
    *ret_bears = finding.bears;
    if (finding.reason == UNRECORDED_NONE && finding.is_program) finding.reason = otherwise;
    if (finding.reason == UNRECORDED_NONE || !has_recording()) return NULL;
    return unrecorded_note(&recorder.recording, finding.path, finding.reason);
}

static int go_without_us(const struct request *request, struct exec_environment_size size) {
    char *copy[size.pointers], texts[size.bytes + 1];
    exec_environment_copy(request->environment, copy, texts);
    return go(request, copy);
}

/* Whether another process than the recorded one is about to get the recorder, against --no-follow. */
static bool goes_too_far(const struct request *request) {
    return !began.follow &&
           (request->way == BY_SPAWN || request->way == BY_SPAWNP || call_getpid() != began.root);
}

static int start(const struct request *request) {
    /* A vfork child that has put a filter on itself makes no call that the program does not make. */
    bool may_look = system_calls_allowed() && !recorder.is_childs_sandbox;
    if (may_look && !exec_environment_is_readable(request->environment))
        return go(request, request->environment);
    bool has_us = exec_environment_has_us(request->environment), bears = true;
    _Atomic uint64_t *count = NULL;
    if (may_look && has_us && goes_too_far(request))
        bears = false;
    else if (may_look && request->path)
        count = examine(request, has_us, &bears);
    struct exec_environment_size size = {0};
    if (has_us && !bears) size = exec_environment_size(request->environment);
    bool cleans = size.pointers > 0 && size.pointers <= POINTERS_MOST && size.bytes <= BYTES_MOST;
    bool is_spawn = request->way == BY_SPAWN || request->way == BY_SPAWNP;
    struct exec_trim trim = is_spawn ? (struct exec_trim){0} : exec_trim_before();
    int result = cleans ? go_without_us(request, size) : go(request, request->environment);
    exec_trim_undo(trim);
    /* exec returns if it fails. posix_spawn returns 0 if it does not. */
    if (result != 0 && count) atomic_fetch_sub_explicit(count, 1, memory_order_relaxed);
    return result;
}

/* ---- the functions ---- */

/* Under these names the functions below call one another: by the others they might reach another library's. */
static int start_by_path(const char *path, char *const arguments[], char *const environment[]) {
    return start(&(struct request){BY_EXECVE, AT_FDCWD, 0, path, arguments, environment, NULL, NULL, NULL});
}

static int start_by_search(const char *file, char *const arguments[], char *const environment[]) {
    return start(&(struct request){BY_EXECVPE, AT_FDCWD, 0, file, arguments, environment, NULL, NULL, NULL});
}

int execve(const char *path, char *const arguments[], char *const environment[]) {
    return start_by_path(path, arguments, environment);
}

int execv(const char *path, char *const arguments[]) {
    return start_by_path(path, arguments, environ);
}

int execvpe(const char *file, char *const arguments[], char *const environment[]) {
    return start_by_search(file, arguments, environment);
}

int execvp(const char *file, char *const arguments[]) {
    return start_by_search(file, arguments, environ);
}

int fexecve(int file, char *const arguments[], char *const environment[]) {
    return start(
        &(struct request){BY_FEXECVE, file, AT_EMPTY_PATH, "", arguments, environment, NULL, NULL, NULL});
}

int execveat(int folder, const char *path, char *const arguments[], char *const environment[], int flags) {
    return start(
        &(struct request){BY_EXECVEAT, folder, flags, path, arguments, environment, NULL, NULL, NULL});
}

int posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
    const posix_spawnattr_t *attributes, char *const arguments[], char *const environment[]) {
    return start(
        &(struct request){BY_SPAWN, AT_FDCWD, 0, path, arguments, environment, pid, actions, attributes});
}

int posix_spawnp(pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions,
    const posix_spawnattr_t *attributes, char *const arguments[], char *const environment[]) {
    return start(
        &(struct request){BY_SPAWNP, AT_FDCWD, 0, file, arguments, environment, pid, actions, attributes});
}

/* The functions whose arguments are a list that ends with NULL. execle has the environment behind it. */
static size_t count_list(va_list list) {
    size_t count = 1;
    while (va_arg(list, const char *)) count++;
    return count;
}

#define LIST_TO_ARRAY(first)                                                                                 \
    va_list list;                                                                                            \
    va_start(list, first);                                                                                   \
    size_t count = count_list(list);                                                                         \
    va_end(list);                                                                                            \
    char *arguments[count + 1];                                                                              \
    arguments[0] = (char *)first;                                                                            \
    va_start(list, first);                                                                                   \
    for (size_t i = 1; i <= count; i++) arguments[i] = va_arg(list, char *)

int execl(const char *path, const char *argument, ...) {
    LIST_TO_ARRAY(argument);
    va_end(list);
    return start_by_path(path, arguments, environ);
}

int execlp(const char *file, const char *argument, ...) {
    LIST_TO_ARRAY(argument);
    va_end(list);
    return start_by_search(file, arguments, environ);
}

int execle(const char *path, const char *argument, ...) {
    LIST_TO_ARRAY(argument);
    char *const *environment = va_arg(list, char *const *);
    va_end(list);
    return start_by_path(path, arguments, environment);
}

/* The entry code's syscall() jumps here for SYS_execve and SYS_execveat. */
long exec_system_call(long number, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e) {
    struct request request = {.way = BY_SYSCALL,
        .folder = AT_FDCWD,
        .path = (const char *)a,
        .arguments = (char *const *)b,
        .environment = (char *const *)c};
    if (number == SYS_execveat)
        request = (struct request){.way = BY_SYSCALL_AT,
            .folder = (int)a,
            .flags = (int)e,
            .path = (const char *)b,
            .arguments = (char *const *)c,
            .environment = (char *const *)d};
    return start(&request);
}

void exec_begin(const struct options *options) {
    char **environment = options_environment();
    began.was_preloaded = exec_environment_has_us(environment);
    began.follow = options->follow;
    began.root = options->is_root ? call_getpid() : 0;
    if (!options->follow && !options_program_is_wrapper()) exec_environment_leave(environment);
}
