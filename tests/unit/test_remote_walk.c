/* Stacks of another process are those that it sees itself, by libgcc, in every situation; of a copy that is
 * too short what is there is right, and the end says so.
 *
 *     test_remote_walk [OPTION...] TARGET [LIBRARY...]
 *
 *     --delete              the program's file is gone when it is walked
 *     --replace             another file has its name
 *     --root                the program sees other files than we do
 *     --without-capability  to open what is mapped whatever has become of its name */
#include "check.h"
#include "test_remote.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "attach/remote/remote.h"
#include "core/recording.h"

#define CUT        ((uint64_t)FRAME_CUT << FRAME_KIND_SHIFT)
#define SKIPPED    77 /* for meson */
#define STACK_ROOM (1 << 20)

static struct target { int pid, memory, answers, moments; } target;

static bool option_delete, option_replace, option_root, option_without_capability;

/* ---- One moment ---- */

static uint8_t stack[STACK_ROOM + 1];

static uint32_t copy_stack(uint64_t sp) {
    /* At an odd address, as a ring buffer may give it. */
    ssize_t size = pread(target.memory, stack + 1, STACK_ROOM, (off_t)sp);
    return size < 0 ? 0 : (uint32_t)size;
}

static void explain(
    const struct moment *moment, const uint64_t *frames, uint32_t count, enum remote_end end) {
    fprintf(stderr, "%s, end %d:\n", moment->label, (int)end);
    print_frames("ours  ", frames, count);
    print_frames("libgcc", moment->frames, moment->count);
}

static bool same_as_libgcc_there(
    const struct moment *moment, const uint64_t *frames, uint32_t count, enum remote_end end) {
    uint32_t expected = moment->other_stack ? moment->other_stack : moment->count;
    if (end != (moment->other_stack ? REMOTE_SHORT : REMOTE_COMPLETE)) return false;
    if (moment->other_stack && (count == 0 || frames[--count] != CUT)) return false;
    if (frames[0] != moment->registers.pc) return false;
    if (moment->count == 0) return count >= 2;
    if (count != expected) return false;
    return memcmp(frames + 1, moment->frames + 1, (count - 1) * sizeof *frames) == 0;
}

/* Of a copy of any smaller size, the first frames are there and then it is said to be too short. */
static void check_short_copies(struct remote *remote, const struct moment *moment, const uint64_t *whole,
    uint32_t whole_count, uint32_t size) {
    uint64_t frames[TEST_FRAMES];
    enum remote_end end;
    uint32_t last = 0, limit = size < 8192 ? size : 8192;
    for (uint32_t part = 0; part < limit; part += part < 512 ? 1 : 61) {
        uint32_t count =
            remote_unwind(remote, &moment->registers, stack + 1, part, frames, TEST_FRAMES, &end);
        if (end != REMOTE_SHORT) { /* the rest is not needed */
            CHECK(count == whole_count && memcmp(frames, whole, count * 8) == 0);
            continue;
        }
        bool prefix = count >= 2 && frames[count - 1] == CUT && count - 1 <= whole_count &&
                      memcmp(frames, whole, (count - 1) * 8) == 0;
        if (!CHECK(prefix && count >= last)) explain(moment, frames, count, end);
        last = count;
    }
}

static void check_moment(struct remote *remote, const struct moment *moment) {
    uint64_t frames[TEST_FRAMES];
    enum remote_end end;
    uint32_t size = copy_stack(moment->registers.sp);
    uint32_t count = remote_unwind(remote, &moment->registers, stack + 1, size, frames, TEST_FRAMES, &end);
    if (!CHECK(same_as_libgcc_there(moment, frames, count, end)))
        explain(moment, frames, count, end);
    else
        check_short_copies(remote, moment, frames, count, size);
    compared_stacks++;
    compared_frames += count;
}

/* ---- The target ---- */

static void copy_file(const char *from, const char *to) {
    int source = open(from, O_RDONLY | O_CLOEXEC),
        copy = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
    ssize_t size;
    CHECK(source >= 0 && copy >= 0);
    while ((size = read(source, stack, STACK_ROOM)) > 0) CHECK(write(copy, stack, (size_t)size) == size);
    close(source);
    close(copy);
}

/* A file system of its own, that nobody else sees, with nothing in it but the program. */
static bool enter_root(const char *folder, const char *program) {
    char copy[64];
    snprintf(copy, sizeof copy, "%s/target", folder);
    if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_PRIVATE | MS_REC, NULL) != 0) return false;
    if (mount("tmpfs", folder, "tmpfs", 0, NULL) != 0) return false;
    copy_file(program, copy);
    return chroot(folder) == 0 && chdir("/") == 0;
}

static void run_target(char **command, int input, int output, const char *root) {
    dup2(input, STDIN_FILENO);
    dup2(output, STDOUT_FILENO);
    if (root) {
        if (!enter_root(root, command[0])) _exit(3);
        command[0] = "/target";
    }
    execv(command[0], command);
    fprintf(stderr, "%s: %s\n", command[0], strerror(errno));
    _exit(3);
}

static void start_target(char **command, const char *root) {
    int answers[2], moments[2];
    CHECK(pipe2(answers, O_CLOEXEC) == 0 && pipe2(moments, O_CLOEXEC) == 0);
    target.pid = fork();
    if (target.pid == 0) run_target(command, answers[0], moments[1], root);
    close(answers[0]);
    close(moments[1]);
    target.answers = answers[1];
    target.moments = moments[0];
}

/* To be called once the target runs: before its exec, /proc/PID/mem is this program's memory. */
static void open_memory(void) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/mem", target.pid);
    target.memory = open(path, O_RDONLY | O_CLOEXEC);
    CHECK(target.memory >= 0);
}

static bool next_moment(struct moment *ret_moment) {
    size_t filled = 0;
    while (filled < sizeof *ret_moment) {
        ssize_t size = read(target.moments, (char *)ret_moment + filled, sizeof *ret_moment - filled);
        if (size <= 0) return false;
        filled += (size_t)size;
    }
    return true;
}

static void drop_capability(void) {
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct sets[2];
    CHECK(syscall(SYS_capget, &header, sets) == 0);
    for (unsigned i = 0; i < 2; i++) {
        uint32_t dropped = CAP_TO_MASK(i ? CAP_CHECKPOINT_RESTORE : CAP_SYS_ADMIN);
        sets[i].effective &= ~dropped;
        sets[i].permitted &= ~dropped;
    }
    CHECK(syscall(SYS_capset, &header, sets) == 0);
}

static bool can_open_mapped_files(void) {
    char path[64];
    unsigned long start, end;
    FILE *maps = fopen("/proc/self/maps", "r");
    bool can = maps && fscanf(maps, "%lx-%lx", &start, &end) == 2;
    if (maps) fclose(maps);
    snprintf(path, sizeof path, "/proc/self/map_files/%lx-%lx", start, end);
    int file = can ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file >= 0) close(file);
    return file >= 0;
}

static char **read_options(char **arguments) {
    for (; *arguments && strncmp(*arguments, "--", 2) == 0; arguments++) {
        option_delete |= strcmp(*arguments, "--delete") == 0;
        option_replace |= strcmp(*arguments, "--replace") == 0;
        option_root |= strcmp(*arguments, "--root") == 0;
        option_without_capability |= strcmp(*arguments, "--without-capability") == 0;
    }
    return arguments;
}

/* ---- What is known of the modules ---- */

static const struct remote_module *module_of(const struct remote *remote, uint64_t address) {
    for (uint32_t i = 0; i < remote_module_count(remote); i++) {
        const struct remote_module *module = remote_module_at(remote, i);
        if (module->start <= address && address < module->end) return module;
    }
    return NULL;
}

static void check_modules(const struct remote *remote, uint64_t pc, const char *program) {
    const struct remote_module *module = module_of(remote, pc);
    if (!CHECK(module != NULL)) return;
    CHECK(module->mapped && module->inode != 0 && module->build_id_size == 20);
    CHECK(strstr(module->path, program) != NULL);
    CHECK((strstr(module->path, "(deleted)") != NULL) == (option_delete || option_replace));
    struct module_record record = remote_module_record(module);
    CHECK(record.start == module->start && record.end == module->end && record.inode == module->inode);
    CHECK(record.build_id_size == 20 && memcmp(record.build_id, module->build_id, 20) == 0);
    bool vdso = false;
    for (uint32_t i = 0; i < remote_module_count(remote); i++) {
        module = remote_module_at(remote, i);
        CHECK(module->number >= 1 && module->number <= remote_newest_module(remote));
        CHECK(i == 0 || remote_module_at(remote, i - 1)->end <= module->start);
        if (strcmp(module->path, "[vdso]") == 0) vdso = module->build_id_size == 20;
    }
    CHECK(vdso);
}

int main(int count, char **arguments) {
    static struct moment moment;
    struct remote *remote = NULL;
    char folder[] = "/tmp/test_remote.XXXXXX", copy[64], replacement[64];
    char **command = read_options(arguments + 1);
    if (count < 2 || !*command) return 2;
    if (option_root && getuid() != 0) return SKIPPED;
    CHECK(mkdtemp(folder) != NULL);
    snprintf(copy, sizeof copy, "%s/target", folder);
    snprintf(replacement, sizeof replacement, "%s/new", folder);
    if (option_delete || option_replace) {
        copy_file(command[0], copy);
        command[0] = copy;
    }
    start_target(command, option_root ? folder : NULL);
    bool begun = next_moment(&moment);
    CHECK(begun);
    if (option_without_capability) {
        drop_capability();
        CHECK(!can_open_mapped_files());
    }
    if (option_delete) CHECK(unlink(copy) == 0);
    if (option_replace) {
        copy_file("/bin/true", replacement);
        CHECK(rename(replacement, copy) == 0);
    }
    if (begun) {
        open_memory();
        int r = remote_open(target.pid, &remote);
        CHECK_EQUAL(r, 0);
        if (r == 0) check_modules(remote, moment.registers.pc, option_root ? "/target" : command[0]);
    }
    do {
        if (!remote) break;
        check_moment(remote, &moment);
        CHECK(write(target.answers, "", 1) == 1);
    } while (next_moment(&moment));

    int status;
    CHECK(waitpid(target.pid, &status, 0) == target.pid && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK(compared_stacks > 20);
    if (remote) {
        struct remote_figures figures = remote_figures(remote);
        fprintf(stderr, "%lu stacks, %lu frames compared, %lu rules, %lu refreshes\n",
            (unsigned long)compared_stacks, (unsigned long)compared_frames, (unsigned long)figures.rules,
            (unsigned long)figures.refreshes);
        CHECK(figures.refreshes_refused == 0);
    }
    remote_close(remote);
    unlink(copy);
    rmdir(folder);
    return check_result();
}
