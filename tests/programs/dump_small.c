/* dump_small [FORMAT PATH | limit BYTES]...: three stacks, five blocks, eleven bytes; then dumps as it is
 * told, and says what came of each: the result and errno, which was 99 before. `limit` lets files grow no
 * larger from there on. */
#include <malloscope.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

static void *volatile kept;

__attribute__((noinline)) void b(int n) {
    kept = malloc(n); /* @site b */
}

__attribute__((noinline)) void a(int n) {
    kept = malloc(n); /* @site a */
    b(n);             /* @site a_b */
    __asm__ volatile("");
}

static int do_it(const char *what, const char *argument) {
    if (strcmp(what, "limit") == 0)
        return setrlimit(RLIMIT_FSIZE, &(struct rlimit){(rlim_t)atol(argument), RLIM_INFINITY});
    mscope_format format = strcmp(what, "heap") == 0        ? MSCOPE_FORMAT_HEAP
                           : strcmp(what, "recording") == 0 ? MSCOPE_FORMAT_RECORDING
                                                            : (mscope_format)77;
    return mscope_dump(strcmp(argument, "NULL") == 0 ? NULL : argument, format);
}

int main(int count, char **arguments) {
    for (int i = 0; i < 2; i++) a(2);
    b(3);

    struct {
        int result, error;
    } outcomes[16];
    for (int i = 1; i + 1 < count && i < 32; i += 2) {
        errno = 99;
        outcomes[i / 2].result = do_it(arguments[i], arguments[i + 1]);
        outcomes[i / 2].error = errno;
    }
    for (int i = 1; i + 1 < count && i < 32; i += 2)
        printf("%d %d\n", outcomes[i / 2].result, outcomes[i / 2].error);
    return 0;
}
