/* Reading a recording while it is written, and copying it. The program that writes is this test itself. */
#include "check.h"
#include "core/live_table.h"
#include "load_model.h"
#include "model/model.h"
#include "model/snapshot.h"
#include "test_model_recording.h"

#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

static const char *folder;
static _Atomic bool stop;

/* Writes the example to a file and maps it as the recorder does. */
static struct made map_made(struct made *made, const char *path) {
    made->header->pid = getpid();
    made_write(made, path);
    made_free(made);
    int file = open(path, O_RDWR);
    struct made mapped = {mmap(NULL, MADE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0)};
    close(file);
    if (mapped.header == MAP_FAILED) abort();
    return mapped;
}

static void unmap(struct made *made) {
    munmap(made->header, MADE_SIZE);
}

static struct model *load(const char *source) {
    struct model *model = NULL;
    struct problem problem = {0};
    if (!CHECK(load_model(source, &model, &problem) == 0)) {
        fprintf(stderr, "%s\n", problem.what);
        abort();
    }
    return model;
}

static const char *own_number(void) {
    static char number[16];
    snprintf(number, sizeof number, "%d", getpid());
    return number;
}

static volatile int64_t countdown = 2000;

static void a_running_process_is_read_by_number_and_by_path(void) {
    struct made made = made_new(4096, 0);
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    made.header->start_monotonic = (uint64_t)(now.tv_sec - 5) * 1000000000u;
    struct thread_record *record = made_thread(&made, 1, "main", 1000);
    record->interval = 5000;
    record->countdown_address = (uintptr_t)&countdown;
    struct thread_record *unreadable = made_thread(&made, 2, "lost", 70);
    unreadable->interval = 5000;
    unreadable->countdown_address = 8;
    const char *path = in_folder(folder, "running.mscope");
    struct made mapped = map_made(&made, path);

    char *found = NULL;
    CHECK_EQUAL(model_find_recording_of(getpid(), &found, NULL), 0);
    CHECK_TEXT(found, path);
    free(found);
    for (int by_path = 0; by_path < 2; by_path++) {
        struct model *model = load(by_path ? path : own_number());
        CHECK(model->warning == NULL);
        CHECK_EQUAL(model->processes[0].state, PROCESS_RUNNING);
        CHECK_EQUAL(model->processes[0].running_pid, getpid());
        CHECK(model->processes[0].duration >= 4 && model->processes[0].duration < 600);
        CHECK(model->processes[0].recorder_bytes >= 4096 && model->processes[0].recorder_bytes <= MADE_SIZE);
        CHECK_EQUAL(model->threads[0].exact_bytes, 1000 + 5000 - 2000);
        CHECK(model->threads[0].exact_is_complete);
        CHECK(model->threads[0].running);
        CHECK_EQUAL(model->threads[1].exact_bytes, 70);
        CHECK(!model->threads[1].exact_is_complete);
        CHECK(!model->totals.exact_is_complete);
        model_free(model);
    }
    unmap(&mapped);
    struct model *model = load(path);
    CHECK_EQUAL(model->processes[0].state, PROCESS_KILLED); /* the number lives on, the mapping does not */
    CHECK_EQUAL(model->processes[0].running_pid, 0);
    CHECK_EQUAL(model->threads[0].exact_bytes, 1000);
    model_free(model);
}

static void a_deleted_recording_is_read_while_it_is_mapped(void) {
    struct made made = made_new(4096, 0);
    made_stack(&made, (uint64_t[]){3}, 1, 0, NULL)->samples = 5;
    const char *path = in_folder(folder, "deleted.mscope");
    struct made mapped = map_made(&made, path);
    unlink(path);
    struct problem problem = {0};
    struct model *model = NULL;
    int r = load_model(own_number(), &model, &problem);
    if (r == -PROBLEM_PERMISSION) { /* the kernel's link to a mapped file wants privilege */
        CHECK(geteuid() != 0 && strstr(problem.what, "deleted.mscope"));
    } else if (CHECK(r == 0)) {
        CHECK_EQUAL(model->totals.sum.samples, 5);
        CHECK_EQUAL(model->processes[0].state, PROCESS_RUNNING);
        model_free(model);
    }
    unmap(&mapped);
}

static void a_recording_need_not_be_called_mscope(void) {
    struct made made = made_new(4096, 0);
    struct made mapped = map_made(&made, in_folder(folder, "plain-name"));
    struct model *model = load(own_number());
    CHECK_EQUAL(model->processes[0].pid, getpid());
    model_free(model);
    unmap(&mapped);
}

/* The recorder's protocol: claim, fill, publish. All of an entry, and its address, follows from its size. */
static uint64_t address_of(uint64_t size) {
    return 0x10000 + size % 0x10000 * 16;
}

static void *rewrite_entries(void *argument) {
    struct made *made = argument;
    struct live_entry *entries = made_at(made, made->header->live.segment[0]);
    for (uint64_t size = 1; !stop; size++) {
        struct live_entry *entry = &entries[size % 12];
        live_table_withdraw(entry);
        struct live_entry filled = {0, size, ~size, (uint32_t)(size % 100), (uint32_t)size};
        uint64_t words[4];
        memcpy(words, &filled, sizeof words);
        for (int i = 1; i < 4; i++) __atomic_store_n((uint64_t *)entry + i, words[i], __ATOMIC_RELAXED);
        live_table_publish(entry, address_of(size));
    }
    return NULL;
}

static void every_entry_read_from_a_busy_table_is_whole(void) {
    struct made made = made_new(1, 0);
    for (int i = 0; i < 99; i++)
        made_stack(&made, (uint64_t[]){(uint64_t)i}, 1, 0, NULL)->alloc_objects = OBJECT_ONE;
    const char *path = in_folder(folder, "busy.mscope");
    struct made mapped = map_made(&made, path);
    pthread_t writer;
    stop = false;
    pthread_create(&writer, NULL, rewrite_entries, &mapped);
    uint64_t entries = 0, torn = 0;
    for (int round = 0; round < 1000; round++) {
        struct recording_file file;
        struct snapshot snapshot;
        if (!CHECK(recording_file_open(path, getpid(), &file, NULL) == 0 &&
                   snapshot_take(&file, &snapshot, NULL) == 0))
            abort();
        struct table_cursor cursor = {0};
        for (const struct live_entry *entry; (entry = snapshot_next(&snapshot, &snapshot.live, &cursor));) {
            if (entry->key == 0) continue;
            entries++;
            torn += live_table_address(entry) != address_of(entry->size) || entry->birth != ~entry->size ||
                    entry->stack != entry->size % 100 || entry->count != (uint32_t)entry->size;
        }
        snapshot_free(&snapshot);
        recording_file_close(&file);
    }
    for (int round = 0; round < 50; round++) {
        struct model *model = load(path);
        CHECK(model->warning == NULL);
        model_free(model);
    }
    stop = true;
    pthread_join(writer, NULL);
    CHECK_EQUAL(torn, 0);
    CHECK(entries > 1000); /* the table was not simply skipped */
    unmap(&mapped);
}

/* Adds a stack as the recorder does: frames, the record, at last the count that admits it. */
static void append_stack(struct made *made) {
    struct table *table = &made->header->stacks;
    uint64_t number = table->count, position = number + table->first, frames[] = {0x777, number};
    uint64_t offset = made_space(made, sizeof frames, 8);
    memcpy(made_at(made, offset), frames, sizeof frames);
    int segment = __builtin_clzll(table->first) - __builtin_clzll(position);
    uint64_t size = (uint64_t)table->first << segment;
    if (!table->segment[segment]) table->segment[segment] = made_space(made, size * table->entry_size, 64);
    struct stack_record *record =
        made_at(made, table->segment[segment] + (position - size) * table->entry_size);
    record->frames = offset;
    record->frame_count = 2;
    record->alloc_objects = OBJECT_ONE;
    atomic_store_explicit(&table->count, number + 1, memory_order_release);
}

#define HOT 8 /* stacks that are in use all the time */

/* A block of 100 bytes comes and goes on each of them; now and then a new stack appears. */
static void *allocate_and_free(void *argument) {
    struct made *made = argument;
    struct stack_record *records = made_at(made, made->header->stacks.segment[3]);
    for (uint64_t round = 0; !stop; round++) {
        struct stack_record *record = &records[round % HOT];
        atomic_fetch_add(&record->alloc_objects, OBJECT_ONE);
        atomic_fetch_add(&record->alloc_bytes, 100 * BYTE_ONE);
        atomic_fetch_add(&record->freed_objects, OBJECT_ONE);
        atomic_fetch_add(&record->lasting_bytes, 100 * BYTE_ONE);
        if (round % 100 == 0 && made->header->stacks.count < 300) append_stack(made);
    }
    return NULL;
}

static void counters_read_from_a_busy_stack_make_sense(void) {
    struct made made = made_new(1, 0);
    for (int i = 0; i < 14 + HOT; i++)
        made_stack(&made, (uint64_t[]){(uint64_t)i}, 1, 0, NULL)->alloc_objects = OBJECT_ONE;
    const char *path = in_folder(folder, "counters.mscope");
    struct made mapped = map_made(&made, path);
    pthread_t writer;
    stop = false;
    pthread_create(&writer, NULL, allocate_and_free, &mapped);
    size_t stacks = 0;
    double total = 0;
    for (int round = 0; round < 1000 || (stacks < 299 && round < 100000); round++) {
        struct model *model = load(path);
        CHECK(model->warning == NULL); /* nothing that looks like damage */
        CHECK(model->stack_count >= stacks);
        stacks = model->stack_count;
        for (size_t i = 0; i < stacks; i++) {
            const struct figures *figures = &model->stacks[i].figures;
            CHECK(figures->freed_bytes <= figures->total_bytes.value);
            CHECK(figures->freed_objects <= figures->total_objects.value);
        }
        CHECK(model->totals.sum.total_bytes.value >= total);
        total = model->totals.sum.total_bytes.value;
        model_free(model);
    }
    stop = true;
    pthread_join(writer, NULL);
    CHECK_EQUAL(stacks, 299); /* all but "[dropped]" */
    unmap(&mapped);
}

/* A thread that allocates a thousand bytes at a time and draws often. Its intervals are no whole thousands,
 * so a count pieced together from before and after a draw is none either. While it draws, its countdown is
 * out of range. */
#define STEP 1000
static _Atomic uint64_t busy_countdown;

static void *allocate_and_draw(void *argument) {
    struct thread_record *record = argument;
    for (uint64_t draws = 1; !stop;) {
        uint64_t left = busy_countdown;
        if (left > STEP) {
            atomic_store_explicit(&busy_countdown, left - STEP, memory_order_relaxed);
        } else {
            busy_countdown = UINT64_MAX;
            record->bytes += record->interval - left + STEP;
            record->interval = 1000 * STEP + draws++ % STEP;
            busy_countdown = record->interval;
            if (draws % 4 == 0) usleep(20); /* a reader needs some microseconds between two draws */
        }
    }
    return NULL;
}

static void the_exact_bytes_of_a_busy_thread_are_right(void) {
    struct made made = made_new(4096, 0);
    struct thread_record *record = made_thread(&made, 1, "busy", 0);
    record->interval = busy_countdown = 5 * STEP;
    record->countdown_address = (uintptr_t)&busy_countdown;
    uint64_t offset = (uint64_t)((char *)record - (char *)made.header);
    const char *path = in_folder(folder, "drawing.mscope");
    struct made mapped = map_made(&made, path);
    pthread_t writer;
    stop = false;
    pthread_create(&writer, NULL, allocate_and_draw, made_at(&mapped, offset));
    int complete = 0, wrong = 0;
    for (int round = 0; round < 1000; round++) {
        struct model *model = load(path);
        if (model->threads[0].exact_is_complete) {
            complete++;
            wrong += fmod(model->threads[0].exact_bytes, STEP) != 0;
        }
        model_free(model);
    }
    stop = true;
    pthread_join(writer, NULL);
    CHECK(complete > 500);
    CHECK_EQUAL(wrong, 0);
    unmap(&mapped);
}

/* Cuts the file and restores it, over and over. */
static void *cut_and_restore(void *argument) {
    struct made *made = argument;
    int file = open(in_folder(folder, "cut.mscope"), O_RDWR);
    while (!stop) {
        if (ftruncate(file, 8192) != 0 || pwrite(file, made->header, MADE_SIZE, 0) != MADE_SIZE) abort();
        usleep(200); /* whole for a while */
    }
    close(file);
    return NULL;
}

static void a_file_cut_under_the_reader_does_not_kill_it(void) {
    struct made made = made_new(4096, RECORDING_FINISHED);
    for (int i = 0; i < 500; i++) made_stack(&made, (uint64_t[]){(uint64_t)i}, 1, 0, NULL)->samples = 1;
    const char *path = in_folder(folder, "cut.mscope");
    made_write(&made, path);
    struct sigaction before;
    sigaction(SIGBUS, NULL, &before);
    pthread_t writer;
    stop = false;
    pthread_create(&writer, NULL, cut_and_restore, &made);
    int whole = 0, partial = 0;
    for (int round = 0; round < 1000; round++) {
        struct model *model = NULL;
        struct problem problem = {0};
        int r = load_model(path, &model, &problem);
        CHECK(r == 0 || r == -PROBLEM_DAMAGED);
        if (r == 0 && model->stack_count == 500) whole++;
        if (r == 0 && model->stack_count < 500) {
            partial++;
            CHECK(model->warning != NULL);
        }
        if (r == 0) model_free(model);
    }
    stop = true;
    pthread_join(writer, NULL);
    CHECK(whole > 0);
    struct sigaction after;
    sigaction(SIGBUS, NULL, &after);
    CHECK(after.sa_handler == before.sa_handler);
    made_free(&made);
}

static size_t files_in_folder(void) {
    char command[128];
    snprintf(command, sizeof command, "ls -A '%s' | wc -l", folder);
    FILE *pipe = popen(command, "r");
    size_t count = 0;
    if (!pipe || fscanf(pipe, "%zu", &count) != 1) abort();
    pclose(pipe);
    return count;
}

static void a_copy_stands_on_its_own(void) {
    struct made made = made_new(4096, 0);
    struct thread_record *record = made_thread(&made, 1, "main", 1000);
    record->interval = 5000;
    record->countdown_address = (uintptr_t)&countdown;
    uint32_t number;
    made_stack(&made, (uint64_t[]){0xabc, 0xdef}, 2, STACK_COMPLETE, &number)->samples = 2;
    made_live(&made, 0, 0x5000, 10, number);
    made_live(&made, 1, 0, 10, number);
    made.header->active = 1;
    uint64_t used = made.header->arena_used;
    struct made mapped = map_made(&made, in_folder(folder, "source.mscope"));

    const char *path = in_folder(folder, "copy.mscope");
    size_t files = files_in_folder();
    struct problem problem = {0};
    CHECK_EQUAL(model_copy(own_number(), path, false, &problem), 0);
    CHECK_EQUAL(files_in_folder(), files + 1);
    struct stat status;
    CHECK(stat(path, &status) == 0);
    CHECK_EQUAL(status.st_size, used);
    CHECK_EQUAL(status.st_mode & 0777, 0600);

    struct model *model = load(path);
    CHECK(model->warning == NULL);
    CHECK_EQUAL(model->processes[0].state, PROCESS_FINISHED);
    CHECK_EQUAL(model->processes[0].pid, getpid());
    CHECK_EQUAL(model->totals.exact_total_bytes, 4000);
    CHECK(model->totals.exact_is_complete);
    CHECK_EQUAL(model->stacks[0].frames[1], 0xdef);
    CHECK_EQUAL(model->totals.sum.live_samples, 1);
    model_free(model);

    CHECK_EQUAL(model_copy(own_number(), path, false, &problem), -PROBLEM_FAILURE);
    CHECK(strstr(problem.what, "exists already") && strstr(problem.remedy, "-f"));
    CHECK_EQUAL(model_copy(own_number(), path, true, &problem), 0);
    CHECK_EQUAL(files_in_folder(), files + 1);
    CHECK_EQUAL(model_copy(path, path, true, &problem), 0); /* onto itself */
    CHECK_EQUAL(
        model_copy(own_number(), in_folder(folder, "absent/copy.mscope"), false, &problem), -PROBLEM_MISSING);
    CHECK_EQUAL(model_copy(folder, in_folder(folder, "x.mscope"), false, &problem), -PROBLEM_USAGE);
    CHECK_EQUAL(model_copy(in_folder(folder, "absent"), in_folder(folder, "x.mscope"), false, &problem),
        -PROBLEM_MISSING);
    CHECK_EQUAL(files_in_folder(), files + 1);
    model = load(path);
    CHECK_EQUAL(model->totals.exact_total_bytes, 4000);
    model_free(model);
    unmap(&mapped);
}

/* The header is copied first: a stack copied after it may hold more than the peak that the header knows. */
static void a_peak_is_never_below_what_is_live(void) {
    struct made made = made_new(4096, 0);
    struct stack_record *record = made_stack(&made, (uint64_t[]){0xabc}, 1, STACK_COMPLETE, NULL);
    record->alloc_objects = 3 * OBJECT_ONE;
    record->alloc_bytes = record->peak_bytes = 3000 * BYTE_ONE;
    made.header->peak_bytes = 2400 * BYTE_ONE;
    const char *path = in_folder(folder, "late.mscope");
    made_write(&made, path);
    made_free(&made);
    struct model *model = load(path);
    CHECK_EQUAL(model->totals.sum.live_bytes.value, 3000);
    CHECK_EQUAL(model->totals.peak.value, 3000);
    model_free(model);
}

int main(void) {
    folder = make_folder();
    a_running_process_is_read_by_number_and_by_path();
    a_deleted_recording_is_read_while_it_is_mapped();
    a_recording_need_not_be_called_mscope();
    every_entry_read_from_a_busy_table_is_whole();
    counters_read_from_a_busy_stack_make_sense();
    the_exact_bytes_of_a_busy_thread_are_right();
    a_peak_is_never_below_what_is_live();
    a_file_cut_under_the_reader_does_not_kill_it();
    a_copy_stands_on_its_own();
    remove_folder(folder);
    return check_result();
}
