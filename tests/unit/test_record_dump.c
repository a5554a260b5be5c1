/* Dumps of a recording that other threads are writing: read by the tool's model, they make sense. */
#include "check.h"
#include "core/events.h"
#include "core/live_table.h"
#include "core/module_table.h"
#include "core/recording_begin.h"
#include "core/stack_table.h"
#include "core/thread_table.h"
#include "load_model.h"
#include "model/model.h"
#include "record/dump/dump.h"
#include "recording_fixture.h"

#include <elf.h>
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <sys/stat.h>

#define WRITERS 3
#define HELD    400 /* blocks that a thread holds at once */

static struct recording *recording;
static _Atomic uint64_t now = 1, dumps_wanted;
static _Atomic bool stop;

static void begin(uint64_t rate) {
    now = 1;
    recording = fixture_recording(UINT64_C(1) << 30);
    struct recording_setup setup = {
        .pid = getpid(), .machine = EM_X86_64, .filter = FILTER_MARK, .depth = 64, .rate = rate};
    CHECK(recording_begin(recording, &setup));
    recording_begin_publish(recording);
    struct maps_line line = {.start = 0x10000, .end = 0x20000, .path = "/no/such/program"};
    struct mapped_code code = {.line = &line, .permanent = true};
    module_table_note(recording, &code, 1);
}

/* What the recorder does, on blocks that nobody has. There are stacks enough for all tables to grow. */
static void *write_samples(void *argument) {
    uint64_t self = (uintptr_t)argument, random = self + 1;
    uint64_t countdown = 1000;
    struct thread_record *thread =
        thread_table_get(recording, thread_table_register(recording, (int32_t)self + 1, now));
    thread->moment = UINT64_MAX;
    thread->countdown_address = (uintptr_t)&countdown;
    thread->interval = 3000;
    struct sample held[HELD] = {0};
    for (uint64_t i = 0; !stop; i++) {
        random ^= random << 13, random ^= random >> 7, random ^= random << 17;
        struct sample *sample = &held[random % HELD];
        uint64_t time = atomic_fetch_add(&now, 1);
        if (sample->size) {
            live_table_withdraw(live_table_at(recording, sample->slot));
            events_free(recording, thread, sample, time);
            live_table_give(recording, thread, sample->slot);
            sample->size = 0;
            continue;
        }
        uint64_t frames[] = {0x10000 + random % 80, 0x10100 + i % 300, 0x10400};
        struct stack_key key = {.frames = frames, .frame_count = 3, .flags = STACK_COMPLETE};
        struct live_entry *entry;
        *sample = sample_of_malloc(random >> 48 | 1, time, stack_table_intern(recording, &key), 0);
        sample->slot = live_table_take(recording, thread, &entry);
        if (sample->slot == LIVE_NONE) abort();
        sample_store(sample, entry);
        live_table_publish(entry, 0x1000 + random % 0xfffffff);
        events_allocate(recording, thread, sample);
    }
    return NULL;
}

static const char *dump(const char *ending, int (*write)(struct dump_file *file)) {
    static char path[RECORDING_PATH_MAX + 64];
    snprintf(path, sizeof path, "%s.%d.%s", recording->path, (int)dumps_wanted++, ending);
    struct dump_file *file = dump_file_new();
    strcpy(file->path, path);
    CHECK_EQUAL(dump_file_start(file), 0);
    CHECK_EQUAL(dump_file_end(file, write(file)), 0);
    CHECK_EQUAL(dump_file_start(file), -EEXIST);
    dump_file_free(file);
    return path;
}

static int write_recording(struct dump_file *file) {
    return dump_recording_write(file, recording, now);
}
static int write_heap(struct dump_file *file) {
    return dump_heap_write(file, recording);
}

static double load_copy(const char *path, bool exact) {
    struct model *model = NULL;
    struct problem problem = {0};
    if (!CHECK(load_model(path, &model, &problem) == 0)) {
        fprintf(stderr, "%s\n", problem.what);
        return 0;
    }
    const struct figures *sum = &model->totals.sum;
    CHECK(!model->damaged && !model->warning);
    CHECK(model->processes[0].is_snapshot && model->processes[0].state == PROCESS_FINISHED);
    CHECK(sum->live_bytes.value >= 0 && sum->live_bytes.value <= sum->total_bytes.value);
    CHECK(fabs(sum->total_bytes.value - sum->freed_bytes - sum->live_bytes.value) < 1);
    CHECK(sum->live_samples > 0);
    for (size_t i = 0; i < model->thread_count && !exact; i++)
        CHECK_EQUAL(model->threads[i].exact_bytes, 2000); /* what its countdown has come down */
    double total = sum->total_bytes.value;
    model_free(model);
    return total;
}

static double read_text(const char *path) {
    FILE *file = fopen(path, "r");
    double sums[4] = {0}, figures[4], added[4] = {0};
    char line[4096];
    bool mapped = false;
    CHECK(file && fgets(line, sizeof line, file) &&
          sscanf(line, "heap profile: %lf: %lf [%lf: %lf] @ heapprofile", &sums[0], &sums[1], &sums[2],
              &sums[3]) == 4);
    while (fgets(line, sizeof line, file)) {
        mapped |= strcmp(line, "MAPPED_LIBRARIES:\n") == 0;
        if (mapped ||
            sscanf(line, "%lf: %lf [%lf: %lf] @ 0x", &figures[0], &figures[1], &figures[2], &figures[3]) != 4)
            continue;
        for (int i = 0; i < 4; i++) added[i] += figures[i];
    }
    CHECK(mapped && memcmp(sums, added, sizeof sums) == 0);
    fclose(file);
    return sums[3];
}

static void check_while_written(uint64_t rate) {
    begin(rate);
    stop = false;
    pthread_t writers[WRITERS];
    for (uintptr_t i = 0; i < WRITERS; i++) pthread_create(&writers[i], NULL, write_samples, (void *)i);
    while (now < 10000) usleep(1000);
    double former = 0;
    for (int i = 0; i < 12; i++) {
        const char *path = dump(i % 3 == 2 ? "heap" : "mscope", i % 3 == 2 ? write_heap : write_recording);
        double total = i % 3 == 2 ? read_text(path) : load_copy(path, rate == 1);
        CHECK(total > former);
        former = total;
        unlink(path);
        for (uint64_t seen = now; now < seen + 10000;) usleep(1000); /* also on a busy machine */
    }
    stop = true;
    for (int i = 0; i < WRITERS; i++) pthread_join(writers[i], NULL);
    CHECK(recording->header->arena_used > 4 << 20); /* it has grown over several pieces of the arena */
    fixture_free(recording);
}

/* The copy takes no more room on disk than the recording has in use, and nothing is left of one that fails.
 */
static int fail(struct dump_file *file) {
    CHECK_EQUAL(dump_file_put(file, 0, "x", 1), 0);
    return -ENOSPC;
}

static void check_failure(void) {
    begin(1);
    struct dump_file *file = dump_file_new();
    strcat(strcpy(file->path, recording->path), ".failed");
    CHECK_EQUAL(dump_file_start(file), 0);
    struct stat status;
    CHECK_EQUAL(stat(file->temporary, &status), 0);
    CHECK_EQUAL(status.st_mode & 0777, 0600);
    CHECK_EQUAL(dump_file_end(file, fail(file)), -ENOSPC);
    CHECK(stat(file->temporary, &status) < 0 && stat(file->path, &status) < 0);
    dump_file_free(file);
    fixture_free(recording);
}

int main(void) {
    check_while_written(1);
    check_while_written(4096);
    check_failure();
    return check_result();
}
