/* Processes that come and go, their modules, and processes that may not be opened. Arguments: libraries to open. */
#include "check.h"
#include "test_unwind.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "attach/remote/module_bytes.h"
#include "attach/remote/remote.h"
#include "core/recording.h"

#define CUT        ((uint64_t)FRAME_CUT << FRAME_KIND_SHIFT)
#define STACK_ROOM (1 << 20)

static struct copy {
    struct unwind_registers registers;
    _Alignas(8) uint8_t stack[STACK_ROOM];
    uint32_t size;
} copied;

static const struct remote_module *module_named(const struct remote *remote, const char *part) {
    for (uint32_t i = 0; i < remote_module_count(remote); i++)
        if (strstr(remote_module_at(remote, i)->path, part)) return remote_module_at(remote, i);
    return NULL;
}

static void wait_for(int pid) {
    CHECK(waitpid(pid, NULL, 0) == pid);
}

/* ---- Frames are those of unwind_capture, also where a stack is cut ---- */

/* Copies all bytes, also those that the address sanitizer puts between variables. */
static __attribute__((no_sanitize("address"), noinline)) void copy_own_stack(void) {
    for (uint32_t i = 0; i < copied.size / 8; i++)
        ((uint64_t *)copied.stack)[i] = ((const uint64_t *)copied.registers.sp)[i];
}

static __attribute__((noinline)) void at_depth(struct remote *remote, int depth) {
    static uint64_t here[4096], there[4096];
    char room[16];
    memset(room, depth, sizeof room);
    __asm__ volatile("" ::"r"(room) : "memory");
    if (depth > 0) {
        at_depth(remote, depth - 1);
        __asm__ volatile("" ::: "memory");
        return;
    }
    registers_take(&copied.registers);
    struct unwind_bounds bounds = unwind_stack_bounds(copied.registers.sp, &test_low, &test_high);
    copied.size = (uint32_t)(bounds.high - bounds.low);
    CHECK(copied.size <= STACK_ROOM);
    copy_own_stack();
    for (uint32_t max = 0; max <= 300; max++) {
        bool complete;
        enum remote_end end;
        memset(there, 0xff, sizeof there);
        uint32_t here_count = unwind_capture(&copied.registers, bounds, here, max, &complete);
        uint32_t there_count =
            remote_unwind(remote, &copied.registers, copied.stack, copied.size, there, max, &end);
        CHECK(here_count == there_count && memcmp(here, there, here_count * 8) == 0);
        CHECK(complete == (end == REMOTE_COMPLETE) && there[max] == UINT64_MAX);
        CHECK(complete == (max > 0));

        /* Of a copy that is too short, nothing is taken for the root. */
        uint32_t half =
            remote_unwind(remote, &copied.registers, copied.stack, copied.size / 2 & ~7u, there, max, &end);
        CHECK(max == 0 ? half == 0 : end == REMOTE_SHORT && half <= max && there[half - 1] == CUT);
        uint32_t leaf = half <= max / 2 ? half - 1 : max / 2;
        CHECK(max == 0 || memcmp(here, there, leaf * 8) == 0);
    }
}

/* ---- Processes that cannot be opened ---- */

static int open_and_close(int pid) {
    struct remote *remote = NULL;
    int r = remote_open(pid, &remote);
    remote_close(remote);
    return r;
}

/* The smallest 32-bit program: it waits for ever. */
static bool write_32_bit_program(const char *path) {
    static const uint8_t code[] = {0xb8, 29, 0, 0, 0, 0xcd, 0x80}; /* mov $29,%eax (pause); int $0x80 */
    struct {
        Elf32_Ehdr elf;
        Elf32_Phdr segment;
        uint8_t code[sizeof code];
    } program = {
        .elf = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS32, ELFDATA2LSB, EV_CURRENT},
            .e_type = ET_EXEC,
            .e_machine = EM_386,
            .e_version = EV_CURRENT,
            .e_entry = 0x10000 + sizeof(Elf32_Ehdr) + sizeof(Elf32_Phdr),
            .e_phoff = sizeof(Elf32_Ehdr),
            .e_ehsize = sizeof(Elf32_Ehdr),
            .e_phentsize = sizeof(Elf32_Phdr),
            .e_phnum = 1},
        .segment = {.p_type = PT_LOAD,
            .p_vaddr = 0x10000,
            .p_filesz = sizeof program,
            .p_memsz = sizeof program,
            .p_flags = PF_R | PF_X,
            .p_align = 4096},
    };
    memcpy(program.code, code, sizeof code);
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);
    CHECK(!module_bytes_machine_fits((const Elf64_Ehdr *)&program));
    bool written = write(file, &program, sizeof program) == sizeof program;
    close(file);
    return written;
}

/* Starts a program and returns when it runs: the pipe is closed by exec. -1 if it cannot be run. */
static int start_program(const char *path) {
    int running[2];
    char byte;
    CHECK(pipe2(running, O_CLOEXEC) == 0);
    int pid = fork();
    if (pid == 0) {
        execl(path, path, "1000", NULL);
        if (write(running[1], "x", 1) != 1) _exit(2);
        _exit(1);
    }
    close(running[1]);
    bool failed = read(running[0], &byte, 1) == 1;
    close(running[0]);
    if (!failed) return pid;
    wait_for(pid);
    return -1;
}

static void end_program(int pid) {
    kill(pid, SIGKILL);
    wait_for(pid);
}

static void refused(void) {
    char path[] = "/tmp/test_remote_process.XXXXXX", name[32] = "";
    CHECK_EQUAL(open_and_close(-1), -ESRCH);
    CHECK_EQUAL(open_and_close(0), -ESRCH);
    int pid = fork();
    if (pid == 0) _exit(0);
    siginfo_t information;
    CHECK(waitid(P_PID, (id_t)pid, &information, WEXITED | WNOWAIT) == 0);
    CHECK_EQUAL(open_and_close(pid), -ENODATA); /* it has ended */
    wait_for(pid);
    CHECK_EQUAL(open_and_close(pid), -ESRCH);

    int comm = open("/proc/2/comm", O_RDONLY | O_CLOEXEC);
    if (comm >= 0 && read(comm, name, sizeof name - 1) > 0 && strcmp(name, "kthreadd\n") == 0)
        CHECK_EQUAL(open_and_close(2), -ENODATA);
    if (comm >= 0) close(comm);

    close(mkstemp(path));
    CHECK(write_32_bit_program(path));
    pid = start_program(path);
    if (pid > 0) {
        CHECK_EQUAL(open_and_close(pid), -ENOEXEC);
        end_program(pid);
    } else {
        fprintf(stderr,
            "this kernel runs no 32-bit programs: that they are refused was tested by their header\n");
    }
    unlink(path);

    if (getuid() != 0) return;
    int status;
    pid = fork();
    if (pid == 0) _exit(setuid(65534) == 0 && open_and_close(getppid()) == -EACCES ? 0 : 1);
    CHECK(waitpid(pid, &status, 0) == pid && status == 0);
}

/* ---- Modules ---- */

static void libraries(struct remote *remote, char **paths) {
    uint64_t newest = remote_newest_module(remote);
    void *library = dlopen(paths[0], RTLD_NOW);
    CHECK(library != NULL);
    CHECK(module_named(remote, paths[0]) == NULL);
    CHECK_EQUAL(remote_refresh(remote), 0);
    const struct remote_module *module = module_named(remote, paths[0]);
    if (!CHECK(module != NULL)) return;
    uint64_t start = module->start, number = module->number;
    CHECK(module->mapped && number > newest && number == remote_newest_module(remote));
    CHECK(module->start <= (uint64_t)dlsym(library, "library_call") &&
          (uint64_t)dlsym(library, "library_call") < module->end);

    /* A library that is closed stays known... */
    dlclose(library);
    CHECK_EQUAL(remote_refresh(remote), 0);
    module = module_named(remote, paths[0]);
    CHECK(module && !module->mapped && module->number == number && module->start == start);
    CHECK_EQUAL(remote_newest_module(remote), number);

    /* ...until something takes its place. */
    void *place = mmap(
        (void *)start, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    CHECK(place == (void *)start);
    CHECK_EQUAL(remote_refresh(remote), 0);
    CHECK(module_named(remote, paths[0]) == NULL);
    CHECK_EQUAL(remote_newest_module(remote), number + 1);
    munmap(place, 4096);
    CHECK_EQUAL(remote_refresh(remote), 0);
}

static void no_more_than_so_many(struct remote *remote) {
    uint32_t before = remote_module_count(remote), most = 0;
    char *room = mmap(NULL, 4096 * 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < 3000; i++) {
        mprotect(room + 4096 * i, 4096, PROT_READ | PROT_EXEC);
        if (i > 0) mprotect(room + 4096 * (i - 1), 4096, PROT_NONE);
        CHECK_EQUAL(remote_refresh(remote), 0);
        if (remote_module_count(remote) > most) most = remote_module_count(remote);
    }
    CHECK(most > before + 1000 && most < before + 1100);
    munmap(room, 4096 * 4096);
}

/* Addresses in no module make the maps be read, but not each time. */
static void garbage_addresses(struct remote *remote) {
    struct remote_figures before = remote_figures(remote);
    for (uint64_t i = 0; i < 10000; i++) {
        struct unwind_registers registers = {.pc = 0x100000 + i * 4096, .sp = 0x1000000};
        uint64_t frames[4];
        enum remote_end end;
        CHECK(remote_unwind(remote, &registers, copied.stack, 64, frames, 4, &end) == 1);
        CHECK(end == REMOTE_LOST && frames[0] == registers.pc);
    }
    struct remote_figures after = remote_figures(remote);
    CHECK(after.refreshes > before.refreshes && after.refreshes - before.refreshes < 2000);
    CHECK(after.refreshes_refused > before.refreshes_refused);
}

/* ---- After the program has become another one, or has ended ---- */

static __attribute__((noinline)) int child_waits(int depth, int to_parent, int from_parent) {
    char byte;
    if (depth > 0) {
        int result = child_waits(depth - 1, to_parent, from_parent);
        __asm__ volatile("" ::: "memory"); /* no tail call */
        return result;
    }
    struct reference reference = {.count = 0};
    registers_take(&copied.registers);
    _Unwind_Backtrace(reference_add, &reference);
    if (write(to_parent, &copied.registers, sizeof copied.registers) != sizeof copied.registers) _exit(1);
    if (write(to_parent, &reference, sizeof reference) != sizeof reference) _exit(1);
    if (read(from_parent, &byte, 1) == 1) execl("/bin/sleep", "sleep", "1000", NULL);
    return 1;
}

static bool same_stack(struct remote *remote, const struct reference *reference) {
    uint64_t frames[TEST_FRAMES];
    enum remote_end end;
    uint32_t count =
        remote_unwind(remote, &copied.registers, copied.stack, copied.size, frames, TEST_FRAMES, &end);
    return end == REMOTE_COMPLETE && count == reference->count && count > 10 &&
           memcmp(frames + 1, reference->frames + 1, (count - 1) * 8) == 0;
}

static void wait_for_exec(int pid, const char *name) {
    char path[32], link[256] = "";
    snprintf(path, sizeof path, "/proc/%d/exe", pid);
    for (int i = 0; i < 5000 && !strstr(link, name); i++) {
        memset(link, 0, sizeof link);
        if (readlink(path, link, sizeof link - 1) < 0) break;
        usleep(1000);
    }
    CHECK(strstr(link, name) != NULL);
}

static void program_ends(void) {
    int to_parent[2], from_parent[2];
    char path[32];
    struct reference reference;
    struct remote *remote = NULL, *later = NULL;
    CHECK(pipe2(to_parent, O_CLOEXEC) == 0 && pipe2(from_parent, O_CLOEXEC) == 0);
    int pid = fork();
    if (pid == 0) _exit(child_waits(20, to_parent[1], from_parent[0]));
    CHECK(read(to_parent[0], &copied.registers, sizeof copied.registers) == sizeof copied.registers);
    CHECK(read(to_parent[0], &reference, sizeof reference) == sizeof reference);
    snprintf(path, sizeof path, "/proc/%d/mem", pid);
    int memory = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t size = pread(memory, copied.stack, STACK_ROOM, (off_t)copied.registers.sp);
    CHECK(size > 0);
    copied.size = (uint32_t)size;
    close(memory);
    CHECK_EQUAL(remote_open(pid, &remote), 0);
    CHECK_EQUAL(remote_open(pid, &later), 0);
    uint64_t newest = remote_newest_module(remote);

    CHECK(write(from_parent[1], "", 1) == 1);
    wait_for_exec(pid, "sleep");
    CHECK(same_stack(remote, &reference)); /* what was copied before is walked with what was known before */
    CHECK_EQUAL(remote_refresh(remote), 0);
    const struct remote_module *program = module_named(remote, "/sleep"),
                               *former = module_named(remote, "test_remote");
    CHECK(program && program->mapped && program->number > newest);
    CHECK(former == NULL || !former->mapped);
    same_stack(remote, &reference); /* may be lost now, no more */

    end_program(pid);
    CHECK(same_stack(later, &reference)); /* not one rule of it was known when the program ended */
    CHECK(remote_refresh(later) < 0);
    CHECK(same_stack(later, &reference));
    remote_close(remote);
    remote_close(later);
    for (int i = 0; i < 2; i++) {
        close(to_parent[i]);
        close(from_parent[i]);
    }
}

int main(int count, char **arguments) {
    struct remote *remote = NULL;
    if (count < 2) return 2;
    unwind_start(NULL, true);
    refused();
    CHECK_EQUAL(remote_open(getpid(), &remote), 0);
    if (!remote) return check_result();
    at_depth(remote, 200);
    libraries(remote, arguments + 1);
    no_more_than_so_many(remote);
    garbage_addresses(remote);
    remote_close(remote);
    program_ends();
    return check_result();
}
