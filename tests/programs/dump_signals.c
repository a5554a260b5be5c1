/* dump_signals WHAT: what a program may do with USR2, the signal by which dumps are asked for.
 *
 *     own     installs a handler of its own, sends itself the signal and says how often it came
 *     plain   allocates 1000 bytes, sends itself the signal, within malloc's locks or not, and ends by _exit
 *     fork    forks a child, which sends itself the signal; then the parent sends it to itself
 *     small   gets the signal on a signal stack that is as small as the system permits
 */
#include "ledger.h"

#include <signal.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile sig_atomic_t came;
static void *volatile kept;

static void count_it(int number) {
    (void)number;
    came++;
}

int main(int count, char **arguments) {
    REQUIRE(count == 2);
    const char *what = arguments[1];
    kept = malloc(1000); /* @site kept */
    if (strcmp(what, "own") == 0) {
        signal(SIGUSR2, count_it);
        raise(SIGUSR2);
        printf("%d\n", (int)came);
    } else if (strcmp(what, "plain") == 0) {
        raise(SIGUSR2);
        _exit(7);
    } else if (strcmp(what, "fork") == 0) {
        pid_t child = fork();
        kept = malloc(child ? 2000 : 3000);
        if (child) REQUIRE(waitpid(child, NULL, 0) == child);
        raise(SIGUSR2);
    } else if (strcmp(what, "small") == 0) {
        size_t size = getauxval(51) + 4096; /* AT_MINSIGSTKSZ: what the kernel itself needs, and a page */
        size = (size + 4095) & ~(size_t)4095;
        char *memory = mmap(NULL, size + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        REQUIRE(memory != MAP_FAILED && mprotect(memory, 4096, PROT_NONE) == 0);
        stack_t stack = {.ss_sp = memory + 4096, .ss_size = size};
        REQUIRE(sigaltstack(&stack, NULL) == 0);
        raise(SIGUSR2);
        puts("alive");
    }
    return 0;
}
