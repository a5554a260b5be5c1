/* busy THREADS COUNTERS SECONDS [FORKS [CHANGES]]: allocates and frees at full speed on THREADS threads until it
 * is killed, gets SIGTERM or SECONDS have passed, and keeps what each thread did in the shared file COUNTERS,
 * which outlives it. With FORKS it makes a child each time as many seconds have passed, with CHANGES it is
 * recorded at another rate from then on.
 *
 * `begun` sizes are set before an allocator call and cleared after it was counted, so that whoever looks at the
 * counters of a killed program knows which call was under way. */
#include "../../include/malloscope.h"
#include "ledger.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SLOTS 512

/* Eight words, one cache line; read by the tests. */
struct counters {
    uint64_t objects, bytes;
    uint64_t frees, freed_bytes;
    uint64_t begun_malloc, begun_free; /* size + 1 of the call under way, 0 = none */
    uint64_t reserved[2];
};

static struct counters *shared;
static volatile sig_atomic_t stop;

static void on_signal(int signal_number) {
    (void)signal_number;
    stop = 1;
}

static void set(uint64_t *word, uint64_t value) {
    __atomic_store_n(word, value, __ATOMIC_RELEASE);
}

static void *work(void *argument) {
    long me = (long)argument;
    struct counters *mine = &shared[me];
    uint64_t random = 88172645463325252u + (uint64_t)me * 977;
    void *slots[SLOTS] = {0};
    size_t sizes[SLOTS] = {0};

    while (!stop) {
        random ^= random << 13, random ^= random >> 7, random ^= random << 17;
        unsigned i = random % SLOTS;
        if (slots[i]) {
            set(&mine->begun_free, sizes[i] + 1);
            free(slots[i]);
            set(&mine->freed_bytes, mine->freed_bytes + sizes[i]);
            set(&mine->frees, mine->frees + 1);
            set(&mine->begun_free, 0);
            slots[i] = NULL;
        } else {
            size_t size = 16 + (random >> 20) % ((random >> 50) % 16 == 0 ? 20000 : 500);
            set(&mine->begun_malloc, size + 1);
            slots[i] = malloc(size); /* @site busy */
            set(&mine->bytes, mine->bytes + size);
            set(&mine->objects, mine->objects + 1);
            set(&mine->begun_malloc, 0);
            sizes[i] = size;
            *(char *)slots[i] = 1;
        }
    }
    return NULL;
}

/* Makes a child that allocates a little, frees it, and ends. Reaps the children that have ended. */
static void make_child(void) {
    pid_t pid = fork();
    REQUIRE(pid >= 0);
    if (pid == 0) {
        for (int i = 0; i < 1000; i++) {
            void *block = malloc(1 + (size_t)i);
            ESCAPE(block);
            free(block);
        }
        exit(0);
    }
    int status;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) REQUIRE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void change_rate(void) {
    /* No interval is so large that a few samples stand for all live bytes: the estimates could not be judged. */
    static const uint64_t rates[] = {4 << 10, 64 << 10, 1 << 10, 32 << 10, 16 << 10};
    static unsigned turn;
    mscope_result result = mscope_set_rate(rates[turn++ % (sizeof rates / sizeof *rates)]);
    REQUIRE(result == MSCOPE_OK || result == MSCOPE_ABSENT);
}

/* True once in `every` seconds. `*next`: when that will be. */
static int is_time(double passed, double every, double *next) {
    if (!every || passed < *next) return 0;
    *next += every;
    return 1;
}

int main(int argc, char **argv) {
    REQUIRE(argc >= 4 && argc <= 6);
    long threads = atol(argv[1]);
    int file = open(argv[2], O_RDWR | O_CREAT, 0600);
    REQUIRE(file >= 0 && ftruncate(file, threads * (long)sizeof(struct counters)) == 0);
    shared =
        mmap(NULL, (size_t)threads * sizeof(struct counters), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    REQUIRE(shared != MAP_FAILED);
    signal(SIGTERM, on_signal);
    pthread_t *ids = calloc((size_t)threads, sizeof *ids);
    for (long i = 0; i < threads; i++) REQUIRE(pthread_create(&ids[i], NULL, work, (void *)i) == 0);
    double seconds = atof(argv[3]), forks = argc > 4 ? atof(argv[4]) : 0,
           changes = argc > 5 ? atof(argv[5]) : 0;
    double next_fork = forks, next_change = changes;
    struct timespec moment = {0, 10000000};
    for (double passed = 0; !stop && (seconds == 0 || passed < seconds); passed += 0.01) {
        nanosleep(&moment, NULL);
        if (is_time(passed, changes, &next_change)) change_rate();
        if (is_time(passed, forks, &next_fork)) make_child();
    }
    stop = 1;
    for (long i = 0; i < threads; i++) pthread_join(ids[i], NULL);
    puts("ended well");
    return 0;
}
