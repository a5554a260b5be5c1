/* Calls with a stack that is off by 8 bytes, as code in assembly may leave it: nothing that such a call needs in the C
 * library or the C++ library minds. x86-64 alone. */
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

void *_Znwm(size_t), *_Znam(size_t), _ZdlPv(void *), _ZdaPv(void *);
void *_ZnwmRKSt9nothrow_t(size_t, const void *), *_ZnwmSt11align_val_t(size_t, size_t);
void _ZdlPvm(void *, size_t), _ZdlPvSt11align_val_t(void *, size_t);

long call_off(void *function, uint64_t a, uint64_t b, uint64_t c);
__asm__(".globl call_off\n"
        ".type call_off, @function\n"
        "call_off:\n"
        "	.cfi_startproc\n"
        "	push %rbp\n"
        "	.cfi_adjust_cfa_offset 8\n"
        "	.cfi_rel_offset %rbp, 0\n"
        "	mov %rsp, %rbp\n"
        "	.cfi_def_cfa_register %rbp\n"
        "	and $-16, %rsp\n"
        "	sub $8, %rsp\n"
        "	mov %rdi, %r11\n"
        "	mov %rsi, %rdi\n"
        "	mov %rdx, %rsi\n"
        "	mov %rcx, %rdx\n"
        "	xor %eax, %eax\n"
        "	call *%r11\n"
        "	mov %rbp, %rsp\n"
        "	.cfi_def_cfa_register %rsp\n"
        "	pop %rbp\n"
        "	.cfi_adjust_cfa_offset -8\n"
        "	ret\n"
        "	.cfi_endproc\n"
        "	.size call_off, . - call_off\n");

#define OFF(function, ...)           OFF_(function, ##__VA_ARGS__, 0, 0, 0)
#define OFF_(function, a, b, c, ...) call_off((void *)function, (uint64_t)(a), (uint64_t)(b), (uint64_t)(c))

static unsigned long sum;

static void fill(long block, size_t size) {
    memset((void *)block, 1, size);
    sum += OFF(malloc_usable_size, block) >= (long)size;
}

static void round_of(size_t size) {
    long a = OFF(malloc, size), b = OFF(calloc, 3, size), c = OFF(realloc, 0, size),
         d = OFF(memalign, 64, size);
    long e = OFF(aligned_alloc, 32, size), f = 0, g = OFF(reallocarray, 0, 2, size), h = OFF(valloc, size);
    sum += OFF(posix_memalign, &f, 128, size) == 0;
    long all[] = {a, b, c, d, e, f, g, h};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        fill(all[i], size);
        if (i != 7) all[i] = OFF(realloc, all[i], 2 * size);
        OFF(free, all[i]);
    }
    long object = OFF(_Znwm, size), array = OFF(_Znam, size), sized = OFF(_Znwm, size);
    long quiet = OFF(_ZnwmRKSt9nothrow_t, size, &sum), aligned = OFF(_ZnwmSt11align_val_t, size, 64);
    fill(object, size), fill(array, size), fill(sized, size), fill(quiet, size), fill(aligned, size);
    OFF(_ZdlPv, object), OFF(_ZdaPv, array), OFF(_ZdlPvm, sized, size), OFF(_ZdlPv, quiet);
    OFF(_ZdlPvSt11align_val_t, aligned, 64);
}

int main(void) {
    for (int i = 0; i < 3000; i++) round_of(16 + 8 * (size_t)(i % 200));
    sum += OFF(prctl, PR_GET_DUMPABLE) >= 0;
    sum += OFF(syscall, SYS_prctl, PR_GET_DUMPABLE) >= 0;
    long child = OFF(fork);
    if (child == 0) {
        round_of(100);
        OFF(_exit, 5);
    }
    int status = 0;
    sum += waitpid((pid_t)child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 5;
    printf("%lu\n", sum);
    fflush(stdout);
    OFF(_exit, 3);
}
