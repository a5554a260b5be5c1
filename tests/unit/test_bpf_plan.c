/* The probe plan of running programs, starting with this one. */
#include "attach/bpf/cookie.h"
#include "attach/bpf/plan.h"
#include "attach/bpf/rust_arguments.h"
#include "check.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct plan_probe *find(const struct plan *plan, const char *function) {
    for (size_t i = 0; i < plan->probe_count; i++)
        if (strcmp(plan->probes[i].function, function) == 0) return &plan->probes[i];
    return NULL;
}

static void test_names(void) {
    CHECK(allocator_functions_find("malloc")->role == ROLE_ALLOCATE);
    CHECK(allocator_functions_find("malloc")->family == FAMILY_LIBC);
    CHECK(allocator_functions_find("_rjem_malloc")->family == FAMILY_JEMALLOC);
    CHECK(allocator_functions_find("_rjem_sdallocx")->role == ROLE_FREE);
    CHECK(allocator_functions_find("je_calloc")->factor == 1);
    CHECK(allocator_functions_find("mi_heap_realloc")->old == 1);
    CHECK(allocator_functions_find("_ZnwmSt11align_val_t")->throws);
    CHECK(!allocator_functions_find("_ZnwmRKSt9nothrow_t")->throws);
    CHECK(allocator_functions_find("_RNvCsfLfy6EI15iL_7___rustc12___rust_alloc")->role == ROLE_ALLOCATE);
    CHECK(allocator_functions_find("_RNvCs1234_7___rustc14___rust_realloc")->size == 3);
    CHECK_TEXT(allocator_functions_find("__rust_alloc_zeroed")->name, "__rust_alloc_zeroed");
    static const char *const methods[] = {
        "_ZN61_$LT$a..Shelf$u20$as$u20$core..alloc..global..GlobalAlloc$GT$7dealloc17h8ebe17ba5ff60160E",
        "_ZN61_$LT$a..Shelf$u20$as$u20$core..alloc..global..GlobalAlloc$GT$7dealloc17h8ebe17ba5ff60160E.llvm."
        "1",
        "_RNvXs_Cs6xxl1lAjzDf_1aNtB4_5ShelfNtNtNtCsgEmfK2I1SDS_4core5alloc6global11GlobalAlloc7dealloc",
        "_RNvYNtCs6xxl1lAjzDf_1a5ShelfNtNtNtCsgEmfK2I1SDS_4core5alloc6global11GlobalAlloc7deallocB4_"};
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        const struct function_kind *kind = allocator_functions_find(methods[i]);
        CHECK(kind && kind->is_method && kind->role == ROLE_FREE && kind->family == FAMILY_RUST);
    }
    CHECK(allocator_functions_find("_ZN4core5alloc6global11GlobalAlloc7realloc17h3ac0394447bc8dbdE")->role ==
          ROLE_RESIZE);
    static const char *const others[] = {"mallocs",
        "_ZN61_$LT$a..Shelf$u20$as$u20$core..alloc..global..GlobalAlloc$GT$5alloc28_$u7b$$u7b$closure$u7d$$"
        "u7d$17h8ebe17ba5ff60160E",
        "_ZN61_$LT$a..Shelf$u20$as$u20$core..alloc..global..GlobalAlloc$GT$5allot17h8ebe17ba5ff60160E",
        "_RNCNvXs_Cs6xxl1lAjzDf_1aNtB4_5ShelfNtNtNtCsgEmfK2I1SDS_4core5alloc6global11GlobalAlloc5alloc0B4_",
        "_RNvCs1234_7___rustc26___rust_alloc_error_handler", "_RNvCs1234_7___rustc12___rust_allocx",
        "_RNvCs1234_6___rust12___rust_alloc", "je_", "mi_stats_print", "", "_Z", "_R",
        "__rust_no_alloc_shim_is_unstable"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        CHECK(allocator_functions_find(others[i]) == NULL);
}

#ifndef __SANITIZE_ADDRESS__ /* which brings a malloc of its own */
static void test_this_program(void) {
    struct plan *plan;
    struct problem problem = {0};
    if (!CHECK(plan_make(getpid(), &plan, &problem) == 0)) {
        fprintf(stderr, "%s\n", problem.what);
        return;
    }
    CHECK_EQUAL(plan->layer_count, 1);
    CHECK(strncmp(plan->layers[0].name, "glibc", 5) == 0);
    static const char *const expected[] = {"malloc", "calloc", "realloc", "free", "posix_memalign"};
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        const struct plan_probe *probe = find(plan, expected[i]);
        if (!CHECK(probe != NULL)) continue;
        /* The offset leads to the bytes that were decided on, in the file and in memory. */
        FILE *file = fopen(probe->path, "r");
        uint8_t bytes[8] = {0};
        size_t length = probe->point.length < 8 ? probe->point.length : 8;
        CHECK(file && fseek(file, (long)probe->file_offset, SEEK_SET) == 0 && fread(bytes, 1, 8, file) == 8);
        CHECK(memcmp(bytes, probe->point.bytes, length) == 0);
        if (file) fclose(file);
        const uint8_t *code = dlsym(RTLD_DEFAULT, expected[i]);
        CHECK(memcmp(code + probe->distance, probe->point.bytes, length) == 0);
        CHECK(probe->point.cost != COST_STEPPED);
        CHECK(cookie_register(probe->cookie, COOKIE_SIZE) == COOKIE_NONE ? probe->role == ROLE_FREE : true);
    }
    /* rdi is the 15th word of the kernel's registers, rsi the 14th. */
    CHECK_EQUAL(cookie_register(find(plan, "malloc")->cookie, COOKIE_SIZE), 14);
    CHECK_EQUAL(cookie_register(find(plan, "realloc")->cookie, COOKIE_SIZE), 13);
    CHECK_EQUAL(cookie_register(find(plan, "realloc")->cookie, COOKIE_OLD), 14);
    CHECK_EQUAL(cookie_register(find(plan, "free")->cookie, COOKIE_OLD), 14);
    CHECK(find(plan, "realloc")->nests && !find(plan, "malloc")->nests && !find(plan, "calloc")->nests);
    CHECK(find(plan, "malloc")->catches_return && !find(plan, "free")->catches_return);
    CHECK(find(plan, "reallocarray") == NULL); /* calls realloc */
    CHECK(find(plan, "_dl_debug_state") != NULL && !plan_throws(plan));
    size_t before = plan->probe_count;
    CHECK_EQUAL(plan_extend(plan, &problem), 0);
    CHECK_EQUAL(plan->probe_count, before);
    plan_free(plan);
}
#endif

#if defined(__x86_64__)
/* As rustc makes them: one that hands on with its arguments exchanged, one that calls two methods, one whose
 * argument could be in two places. */
__asm__(".text\n"
        ".type hands_on, @function\nhands_on:\n"
        "mov %rdi, %rax\nmov %rsi, %rdi\nmov %rax, %rsi\njmp method\n.size hands_on, . - hands_on\n"
        ".type resizes, @function\nresizes:\n"
        "push %r14\npush %rbx\nmov %rcx, %rbx\nmov %rdi, %r14\nmov %rdx, %rdi\nmov %rcx, %rsi\ncall method\n"
        "test %rax, %rax\nje 1f\nmov %r14, %rdi\ncall other_method\n"
        "1: pop %rbx\npop %r14\nret\n.size resizes, . - resizes\n"
        ".type leaves_open, @function\nleaves_open:\n"
        "mov %rdi, %rsi\njmp method\n.size leaves_open, . - leaves_open\n"
        ".type method, @function\nmethod: ret\n.size method, . - method\n"
        ".type other_method, @function\nother_method: ret\n.size other_method, . - other_method\n");

static const struct elf_function *function_named(const struct elf_code *elf, const char *name) {
    size_t count;
    const struct elf_function *functions = elf_code_functions(elf, &count);
    for (size_t i = 0; i < count; i++)
        if (strcmp(functions[i].name, name) == 0) return &functions[i];
    return NULL;
}

/* The kind of `method` with what `caller`, which is Rust's `rust_name`, tells of its arguments. */
static bool learn(const struct elf_code *elf, const char *caller, const char *rust_name, const char *method,
    struct function_kind *kind) {
    struct rust_hints hints = rust_arguments_no_hints(kind);
    rust_arguments_add_hints(&hints, elf, function_named(elf, caller), allocator_functions_find(rust_name),
        function_named(elf, method)->address);
    return rust_arguments_by_hints(&hints, kind);
}

static void test_arguments_of_methods_follow_from_their_callers(void) {
    struct problem problem = {0};
    struct elf_code *elf;
    if (!CHECK(elf_code_open("/proc/self/exe", "", false, &elf, &problem) == 0)) return;
    const struct function_kind *alloc =
        allocator_functions_find("_ZN4core5alloc6global11GlobalAlloc5alloc17h3ac0394447bc8dbdE");
    const struct function_kind *dealloc =
        allocator_functions_find("_ZN4core5alloc6global11GlobalAlloc7dealloc17h3ac0394447bc8dbdE");
    struct function_kind kind = *alloc;
    CHECK(learn(elf, "hands_on", "__rust_alloc", "method", &kind) && kind.size == 1);
    kind = *alloc;
    CHECK(learn(elf, "resizes", "__rust_realloc", "method", &kind) && kind.size == 1);
    kind = *dealloc;
    CHECK(learn(elf, "resizes", "__rust_realloc", "other_method", &kind) && kind.old == 0);
    kind = *alloc;
    CHECK(!learn(elf, "leaves_open", "__rust_alloc", "method", &kind) && kind.size == alloc->size);
    CHECK(!learn(elf, "hands_on", "__rust_alloc", "other_method", &kind)); /* it does not call it */
    elf_code_close(elf);
}
#endif

static void check_refused(pid_t pid, enum problem_kind kind, const char *what) {
    struct plan *plan = NULL;
    struct problem problem = {0};
    CHECK_EQUAL(plan_make(pid, &plan, &problem), -(int)kind);
    CHECK(plan == NULL && strstr(problem.what, what) != NULL && problem.remedy[0]);
}

static void test_what_cannot_be_attached_to(void) {
    check_refused(0, PROBLEM_MISSING, "there is no process 0");
    check_refused(-5, PROBLEM_MISSING, "there is no process -5");
    check_refused((1 << 22) - 2, PROBLEM_MISSING, "there is no process");
    pid_t child = fork();
    if (child == 0) _exit(0);
    siginfo_t ended;
    waitid(P_PID, (id_t)child, &ended, WEXITED | WNOWAIT);
    check_refused(child, PROBLEM_MISSING, "zombie");
    waitpid(child, NULL, 0);
}

int main(void) {
    test_names();
#if defined(__x86_64__)
    test_arguments_of_methods_follow_from_their_callers();
#endif
#ifndef __SANITIZE_ADDRESS__
    test_this_program();
#endif
    test_what_cannot_be_attached_to();
    return check_result();
}
