// guarded [inside]: protects the recorder's code by aarch64's branch target identification: a jump through a
// pointer may only arrive at instructions that permit it. Then it calls all of the recorder's functions through
// pointers. With an argument it jumps into the middle of one, which the processor must not let pass.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <link.h>
#include <new>
#include <pthread.h>
#include <string>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static const int guarded_protection = 0x10;        // PROT_BTI
static const unsigned long guard_exists = 1 << 17; // HWCAP2_BTI

static int guard_code(struct dl_phdr_info *object, size_t, void *guarded) {
    if (!std::strstr(object->dlpi_name, "libmalloscope.so")) return 0;
    uintptr_t page = getauxval(AT_PAGESZ);
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) &segment = object->dlpi_phdr[i];
        if (segment.p_type != PT_LOAD || !(segment.p_flags & PF_X)) continue;
        uintptr_t start = object->dlpi_addr + segment.p_vaddr, end = start + segment.p_memsz;
        start &= -page;
        if (mprotect(reinterpret_cast<void *>(start), end - start,
                PROT_READ | PROT_EXEC | guarded_protection) == 0)
            *static_cast<bool *>(guarded) = true;
    }
    return 0;
}

// On this processor a function does not notice arguments that it does not have.
typedef uintptr_t (*any_function)(uintptr_t, uintptr_t, uintptr_t);

static uintptr_t call(const std::string &name, uintptr_t first, uintptr_t second = 0, uintptr_t third = 0) {
    volatile any_function function = reinterpret_cast<any_function>(dlsym(RTLD_DEFAULT, name.c_str()));
    if (!function) std::abort();
    return function(first, second, third);
}

static void call_all() {
    static const std::string forms[] = {
        "", "RKSt9nothrow_t", "St11align_val_t", "St11align_val_tRKSt9nothrow_t"};
    for (int round = 0; round < 20; round++) {
        for (const char *name : {"malloc", "valloc", "pvalloc", "__libc_malloc"})
            call("free", call(name, 700));
        call("free", call("aligned_alloc", 64, 640));
        call("free", call("memalign", 8192, 640));
        call("free", call("calloc", 30, 30));
        uintptr_t block = call("realloc", 0, 100), aligned = 0;
        block = call("realloc", block, 5000);
        block = call("reallocarray", block, 300, 30);
        if (call("malloc_usable_size", block) < 9000) std::abort();
        call("free", block);
        call("posix_memalign", reinterpret_cast<uintptr_t>(&aligned), 4096, 100);
        call("free", aligned);
        for (const char *kind : {"w", "a"})
            for (const std::string &form : forms) {
                std::string prefix = std::string(kind) == "w" ? "_Zdl" : "_Zda";
                call(prefix + "Pv" + form, call(std::string("_Zn") + kind + "m" + form, 500, 64, 64), 64);
                if (form.find("nothrow") == std::string::npos)
                    call(prefix + "Pvm" + form, call(std::string("_Zn") + kind + "m" + form, 500, 64), 500,
                        64);
            }
    }
}

static void *in_thread(void *) {
    call_all();
    return nullptr;
}

int main(int count, char **) {
    bool guarded = false;
    if (getauxval(AT_HWCAP2) & guard_exists) dl_iterate_phdr(guard_code, &guarded);
    std::printf(guarded ? "guarded\n" : "there is no guard\n");
    std::fflush(stdout);
    if (count > 1) { // a jump may arrive at a function's first instruction, not at its third
        uintptr_t inside = reinterpret_cast<uintptr_t>(dlsym(RTLD_DEFAULT, "malloc")) + 8;
        volatile any_function function = reinterpret_cast<any_function>(inside);
        function(100, 0, 0);
        std::printf("and passed\n");
    }
    call_all();
    pthread_t thread;
    pthread_create(&thread, nullptr, in_thread, nullptr);
    pthread_join(thread, nullptr);
    int status = 1;
    pid_t child = fork();
    if (child == 0) {
        call_all();
        _exit(0);
    }
    waitpid(child, &status, 0);
    uintptr_t libm = reinterpret_cast<uintptr_t>("libm.so.6");
    if (status != 0 || !call("dlopen", libm, RTLD_NOW) || !call("dlopen", libm, RTLD_NOW | RTLD_DEEPBIND))
        std::abort();
    call_all();
    std::printf("all functions\n");
    std::fflush(stdout);
    _exit(0); // the start files that are linked into the library have code for exit without landing pads
}
