/* Does what libraries that are preloaded like to wrap, while it allocates: asks for the time and for its process id,
 * opens files, makes a thread and a child, looks up functions. COUNT blocks stay live, so that an exact recording has
 * to grow. Prints what all of it adds up to, which does not depend on the time. */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static unsigned long sum;

static void **keep(int count) {
    void **kept = calloc((size_t)count, sizeof *kept);
    for (int i = 0; i < count; i++) {
        char *block = kept[i] = malloc(16 + (size_t)i % 48); /* @site kept */
        memset(block, i, 16);
    }
    for (int i = 0; i < count; i++) sum += *(unsigned char *)kept[i];
    return kept;
}

static void *work(void *count) {
    for (int i = 0; i < *(int *)count; i++) {
        char *text = malloc(100);
        snprintf(text, 100, "%d", i);
        text = realloc(text, 200);
        sum += (unsigned long)text[0];
        free(text);
    }
    return NULL;
}

static void ask(void) {
    struct timeval now;
    struct timespec more;
    struct stat status;
    char text[64] = "";
    int file = open("/proc/self/comm", O_RDONLY);
    sum += time(NULL) > 0 && gettimeofday(&now, NULL) == 0 && clock_gettime(CLOCK_REALTIME, &more) == 0;
    sum += getpid() > 0 && getuid() == getuid() && stat("/", &status) == 0;
    sum += file >= 0 && read(file, text, sizeof text) > 0 && close(file) == 0;
    FILE *stream = fopen("/dev/null", "w");
    sum += stream && fputs(text, stream) >= 0 && fclose(stream) == 0;
    sum += dlsym(RTLD_DEFAULT, "qsort") != NULL;
}

int main(int argc, char **argv) {
    int count = argc > 1 ? atoi(argv[1]) : 1000, few = count / 10 + 1;
    pthread_t thread;
    ask();
    void **kept = keep(count);
    pthread_create(&thread, NULL, work, &few);
    pthread_join(thread, NULL);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        ask();
        free(keep(few));
        work(&few);
        _exit(7);
    }
    int status = 0;
    sum += waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 7;
    ask();
    for (int i = 0; i < count; i += 2) free(kept[i]);
    printf("%lu\n", sum);
    return 0;
}
