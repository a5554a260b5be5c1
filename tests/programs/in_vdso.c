/* Allocates in a signal handler that interrupts the kernel's library, until that has happened 20 times. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/time.h>
#include <time.h>
#include <ucontext.h>

static uintptr_t vdso;
static volatile sig_atomic_t hits;
static void *volatile kept;

static void on_alarm(int signal, siginfo_t *information, void *context) {
    (void)signal, (void)information;
    uintptr_t pc = (uintptr_t)((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
    if (pc - vdso >= 8192) return;
    kept = malloc(100); /* @site handler */
    hits++;
}

int main(void) {
    vdso = getauxval(AT_SYSINFO_EHDR);
    struct sigaction action = {.sa_sigaction = on_alarm, .sa_flags = SA_SIGINFO | SA_RESTART};
    sigaction(SIGALRM, &action, NULL);
    struct itimerval often = {{0, 500}, {0, 500}};
    setitimer(ITIMER_REAL, &often, NULL);
    struct timespec now;
    while (hits < 20) clock_gettime(CLOCK_MONOTONIC, &now);
    return 0;
}
