/* sandbox kill|libc-kill|much|errno|few|strict|vfork: allocates, forbids itself most system calls by seccomp, and
 * goes on allocating, also in threads that were there before. */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define ALLOW(number)                                                                                        \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

static __attribute__((noinline)) void *kept(size_t size) {
    void *block = malloc(size);
    memset(block, 1, size);
    return block;
}

static __attribute__((noinline)) void churn(int times) {
    for (int i = 0; i < times; i++) {
        char *block = malloc((size_t)(i % 500) + 1);
        __asm__ volatile("" : : "r"(block) : "memory");
        free(block);
    }
}

/* Permits what a program needs that only computes and prints its result. */
static int forbid(const char *how) {
    unsigned other = strcmp(how, "errno") == 0 ? SECCOMP_RET_ERRNO | EPERM : SECCOMP_RET_KILL_PROCESS;
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        ALLOW(SYS_write),
        ALLOW(SYS_exit),
        ALLOW(SYS_exit_group),
        ALLOW(SYS_brk),
        ALLOW(SYS_mmap),
        ALLOW(SYS_munmap),
        ALLOW(SYS_mprotect),
        ALLOW(SYS_madvise),
        ALLOW(SYS_futex),
        ALLOW(strcmp(how, "few") == 0 ? SYS_write : SYS_rt_sigprocmask),
        ALLOW(SYS_rt_sigreturn),
        ALLOW(SYS_clone),
        ALLOW(SYS_clone3),
        ALLOW(SYS_set_robust_list),
        ALLOW(SYS_rseq),
        ALLOW(SYS_wait4),
        BPF_STMT(BPF_RET | BPF_K, other),
    };
    struct sock_fprog program = {sizeof code / sizeof *code, code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return -1;
    if (strcmp(how, "libc-kill") == 0) return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0);
    return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program);
}

static pthread_barrier_t before, after;

static void *early_thread(void *unused) {
    churn(1000);
    pthread_barrier_wait(&before);
    pthread_barrier_wait(&after);
    churn(100000);
    return unused;
}

static void *late_thread(void *unused) {
    churn(100000);
    return unused;
}

static void say(const char *text) {
    if (write(STDOUT_FILENO, text, strlen(text)) < 0) abort();
}

int main(int count, char **arguments) {
    const char *how = count > 1 ? arguments[1] : "kill";
    for (int i = 0; i < 100; i++) kept(1000);
    if (strcmp(how, "strict") == 0) {
        kept(1 << 20);
        if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) != 0) return 2;
        churn(100000); /* from memory that the heap has already: no system call is needed */
        say("strict\n");
        syscall(SYS_exit, 3);
    }
    if (strcmp(how, "vfork") == 0) {
        int vforked = vfork();
        if (vforked == 0) _exit(forbid("kill"));
        int status = -1;
        if (waitpid(vforked, &status, 0) != vforked || status != 0) return 2;
        for (int i = 0; i < 5000; i++) kept(2000);
        say("vfork\n");
        return 3;
    }
    if (strcmp(how, "few") == 0) {
        if (forbid(how) != 0) return 2;
        churn(100000);
        for (int i = 0; i < 5000; i++) kept(20);
        say("few\n");
        _exit(3);
    }
    pthread_t early, late;
    pthread_barrier_init(&before, NULL, 2);
    pthread_barrier_init(&after, NULL, 2);
    pthread_create(&early, NULL, early_thread, NULL);
    pthread_barrier_wait(&before);
    if (forbid(how) != 0) return 2;
    pthread_barrier_wait(&after);
    churn(100000);
    for (int i = 0; i < 5000; i++) kept(2000);
    if (strcmp(how, "much") == 0)
        for (int i = 0; i < 3000000; i++) kept(16); /* more than what was reserved has room for */
    if (pthread_create(&late, NULL, late_thread, NULL) != 0) return 4;
    pthread_join(early, NULL);
    pthread_join(late, NULL);
    int child = fork();
    if (child == 0) {
        churn(1000);
        kept(100);
        _exit(5);
    }
    say(child > 0 ? "done\n" : "no child\n");
    return 3;
}
