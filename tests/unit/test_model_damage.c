/* Recordings that are cut, overwritten or made to do harm: the model takes what is left, and no harm. */
#include "check.h"
#include "load_model.h"
#include "model/model.h"
#include "model/snapshot.h"
#include "test_model_recording.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>

#define STACKS 9u

/* Stack i has i frames, all equal to its number, and i samples, and i hundred live bytes in one sample. */
static struct made make_example(void) {
    struct made made = made_new(4096, RECORDING_FINISHED);
    for (uint32_t i = 1; i <= STACKS; i++) {
        uint64_t frames[STACKS];
        uint32_t number;
        for (uint32_t f = 0; f < i; f++) frames[f] = i;
        struct stack_record *record = made_stack(&made, frames, i, STACK_COMPLETE, &number);
        record->samples = i;
        record->alloc_bytes = 100 * i * BYTE_ONE;
        record->alloc_objects = i * OBJECT_ONE;
        record->bytes_variance = real_bits(5.0 * i);
        made_live(&made, 5 * i, 0x1000u * i, i, number);
        made_thread(&made, (int32_t)i, "thread", 10 * i);
        made_module(&made, "/usr/lib/some/library.so.6", 0x10000 * i, 0x10000 * i + 0x8000, i);
    }
    ((struct timeline *)made_at(&made, made.header->timeline))->bucket[1].events = 4;
    return made;
}

/* A file in memory, and a path that leads to it. */
static int file;
static char file_path[64];

static void put(const void *bytes, size_t size) {
    if (ftruncate(file, 0) != 0 || pwrite(file, bytes, size, 0) != (ssize_t)size) abort();
}

static void what_is_there_is_right(const struct model *model) {
    for (size_t i = 0; i < model->stack_count; i++) {
        const struct model_stack *stack = &model->stacks[i];
        uint32_t number = stack->frame_count;
        CHECK(number >= 1 && number <= STACKS);
        for (uint32_t f = 0; f < number; f++) CHECK_EQUAL(stack->frames[f], number);
        CHECK_EQUAL(stack->figures.samples, number);
        CHECK_EQUAL(stack->figures.total_bytes.value, 100 * number);
        CHECK_EQUAL(stack->figures.total_bytes.variance, 5 * number);
        CHECK(stack->figures.live_samples <= 1);
    }
    for (size_t i = 0; i < model->module_count; i++)
        CHECK_TEXT(model->modules[i].path, "/usr/lib/some/library.so.6");
    for (size_t i = 0; i < model->thread_count; i++)
        CHECK_EQUAL(model->threads[i].exact_bytes, 10 * model->threads[i].tid);
}

static void a_cut_recording_gives_what_is_left(void) {
    struct made made = make_example();
    uint64_t used = made.header->arena_used;
    size_t stacks_before = 0, loads = 0;
    for (uint64_t size = 0; size < used + 64; size += 64) {
        if (size > used) size = used;
        put(made.header, size);
        struct model *model = NULL;
        struct problem problem = {0};
        int r = load_model(file_path, &model, &problem);
        if (r < 0) {
            CHECK_EQUAL(r, -PROBLEM_DAMAGED);
            CHECK(problem.what[0] && problem.remedy[0]);
            CHECK_EQUAL(stacks_before, 0); /* once something could be read, more file never gives less */
            continue;
        }
        loads++;
        CHECK((model->warning != NULL) == (size < used));
        CHECK(model->stack_count >= stacks_before);
        stacks_before = model->stack_count;
        what_is_there_is_right(model);
        model_free(model);
    }
    CHECK_EQUAL(stacks_before, STACKS);
    CHECK(loads > 10);
    made_free(&made);
}

static uint64_t random_state = 12345;
static uint64_t random_number(uint64_t below) {
    random_state = random_state * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (random_state >> 33) % below;
}

/* Reads all that the model offers: under a sanitizer, whatever is not there shows. */
static double read_everything(const struct model *model) {
    double sum = 0;
    for (size_t i = 0; i < model->stack_count; i++) {
        for (uint32_t f = 0; f < model->stacks[i].frame_count; f++)
            sum +=
                model_find_place(model, model->stacks[i].process, model->stacks[i].frames[f]).module ? 1 : 0;
        sum += estimate_error(model->stacks[i].figures.live_bytes);
    }
    for (size_t i = 0; i < model->module_count; i++) sum += (double)strlen(model->modules[i].path);
    for (size_t i = 0; i < model->thread_count; i++) sum += (double)strlen(model->threads[i].name);
    for (size_t i = 0; i < model->moment_count; i++) sum += model->timeline[i].live_max;
    sum += (double)strlen(model->processes[0].command_line);
    return sum;
}

static void flipped_bytes_do_no_harm(void) {
    struct made made = make_example();
    uint64_t used = made.header->arena_used;
    uint8_t *bytes = malloc(used);
    int loaded = 0, refused = 0;
    for (int round = 0; round < 20000; round++) {
        memcpy(bytes, made.header, used);
        uint64_t flips = 1 + random_number(8);
        /* Half of them hit the header, which says where everything is. */
        for (uint64_t i = 0; i < flips; i++) {
            uint64_t at = 8 + random_number((random_number(2) ? sizeof *made.header : used) - 8);
            bytes[at] =
                random_number(4) ? (uint8_t)random_number(256) : (uint8_t)(bytes[at] ^ 1 << random_number(8));
        }
        ((struct recording_header *)bytes)->flags |= RECORDING_FINISHED; /* no search for a running process */
        put(bytes, used);
        struct model *model = NULL;
        struct problem problem = {0};
        int r = load_model(file_path, &model, &problem);
        if (r == 0) {
            loaded++;
            double sum = read_everything(model);
            CHECK(sum >= 0);
            model_free(model);
        } else {
            refused++;
            CHECK_EQUAL(r, -PROBLEM_DAMAGED);
        }
    }
    CHECK(loaded > 10000 && refused > 100);
    free(bytes);
    made_free(&made);
}

static void a_bad_stack_is_left_out_and_counted(void) {
    static const struct {
        uint64_t frames;
        uint32_t count;
    } bad[] = {{UINT64_MAX - 7, 1}, {MADE_SIZE - 8, 2}, {8192, UINT32_MAX}, {8193, 1}, {0, 1}, {64, 1}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct made made = make_example();
        struct stack_record *record = made_stack(&made, (uint64_t[]){5}, 1, 0, NULL);
        record->samples = 1;
        record->frames = bad[i].frames;
        record->frame_count = bad[i].count;
        put(made.header, MADE_SIZE);
        struct model *model = NULL;
        CHECK_EQUAL(load_model(file_path, &model, NULL), 0);
        CHECK_EQUAL(model->stack_count, STACKS);
        CHECK(model->warning && strstr(model->warning, "1 stacks"));
        what_is_there_is_right(model);
        model_free(model);
        made_free(&made);
    }
}

static void other_tables_may_be_lost(void) {
    struct made made = make_example();
    made.header->modules.first = 3;
    made.header->threads.segment[1] = 12;
    made.header->live.segment[0] = MADE_SIZE;
    made.header->timeline = UINT64_MAX;
    made.header->executable = MADE_SIZE;
    put(made.header, MADE_SIZE);
    struct model *model = NULL;
    CHECK_EQUAL(load_model(file_path, &model, NULL), 0);
    CHECK_EQUAL(model->stack_count, STACKS);
    CHECK_EQUAL(model->module_count, 0);
    CHECK_EQUAL(model->thread_count, 4); /* the first segment, which holds four */
    CHECK_EQUAL(model->moment_count, 0);
    CHECK_TEXT(model->processes[0].executable, "[unknown]");
    CHECK(strstr(model->warning, "mapped files") && strstr(model->warning, "threads") &&
          strstr(model->warning, "live samples"));
    CHECK(model->totals.sum.live_bytes.variance > 0); /* from the totals, in place of the lost samples */
    model_free(model);
    made_free(&made);
}

static uint64_t memory_peak(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (uint64_t)usage.ru_maxrss * 1024;
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* Every table claims all there is, again and again, and all stacks share the same long run of frames. */
static void sharing_does_not_multiply(void) {
    const uint64_t size = UINT64_C(1) << 20;
    uint8_t *bytes = calloc(1, size);
    struct made made = make_example();
    memcpy(bytes, made.header, MADE_SIZE);
    made_free(&made);
    struct recording_header *header = (struct recording_header *)bytes;
    header->arena_used = size;
    struct table *tables[] = {&header->threads, &header->stacks, &header->modules, &header->live};
    for (int t = 0; t < 4; t++) {
        tables[t]->first = 1024;
        tables[t]->count = t == 3 ? SEGMENTS_MAX : UINT64_MAX;
        for (int k = 0; k < SEGMENTS_MAX; k++) tables[t]->segment[k] = 4096;
    }
    for (uint64_t at = 4096; at + sizeof(struct stack_record) <= size / 2;
         at += sizeof(struct stack_record)) {
        struct stack_record *record = (struct stack_record *)(bytes + at);
        memset(record, 1, sizeof *record);
        record->frames = size / 2;
        record->frame_count =
            (uint32_t)(16384 - at / sizeof *record % 1000); /* as many as a stack may have */
    }
    memset(bytes + size / 2, 'x', size / 2 - 1);
    put(bytes, size);
    free(bytes);

    uint64_t before = memory_peak();
    double start = now();
    struct model *model = NULL;
    int r = load_model(file_path, &model, NULL);
    if (CHECK(r == 0)) {
        uint64_t frames = 0;
        for (size_t i = 0; i < model->stack_count; i++) frames += model->stacks[i].frame_count;
        CHECK(frames > 0 && frames <= size / 8);
        CHECK(model->thread_count > 0 && model->thread_count <= size / sizeof(struct thread_record));
        CHECK(read_everything(model) >= 0);
        model_free(model);
    }
    CHECK(memory_peak() - before < 30 * size);
    CHECK(now() - start < 60);
}

/* A file of a terabyte that takes a few pages on disk, with tables all over it. */
static void a_huge_empty_file_is_read_quickly(void) {
    const char *folder = make_folder();
    const char *path = in_folder(folder, "huge.mscope");
    struct made made = make_example();
    made_write(&made, path);
    made_free(&made);
    const uint64_t size = UINT64_C(1) << 40;
    struct recording_header header;
    int huge = open(path, O_RDWR);
    if (huge < 0 || pread(huge, &header, sizeof header, 0) != sizeof header) abort();
    header.arena_used = size;
    header.live.count = UINT64_C(1) << 31;
    header.stacks.count = UINT64_C(1) << 31;
    for (int k = 10; k < SEGMENTS_MAX; k++)
        header.live.segment[k] = header.stacks.segment[k] = UINT64_C(1) << 30;
    if (pwrite(huge, &header, sizeof header, 0) != sizeof header) abort();
    if (ftruncate(huge, (off_t)size) == 0) { /* else the filesystem has no such files */
        uint64_t before = memory_peak();
        double start = now();
        struct model *model = NULL;
        int r = load_model(path, &model, NULL);
        CHECK(r == 0 || r == -PROBLEM_FAILURE); /* no address space for it is an answer too */
        if (r == 0) {
            CHECK_EQUAL(model->stack_count, STACKS);
            model_free(model);
        }
        CHECK(memory_peak() - before < (UINT64_C(256) << 20));
        CHECK(now() - start < 60);
    }
    close(huge);
    remove_folder(folder);
}

/* A table whose first segment is missing may claim that it held any number of entries. */
static void huge_numbers_take_no_memory(void) {
    struct made made = make_example();
    uint64_t place = made_space(&made, 4096, 64);
    memset(made_at(&made, place), 1, 4096);
    const struct table names = {.entry_size = sizeof(struct name_record),
                           .first = 1u << 24,
                           .count = 1u << 25},
                       codes = {
                           .entry_size = sizeof(struct code_record), .first = 1u << 24, .count = 1u << 25};
    made.header->names = names;
    made.header->code_objects = codes;
    made.header->names.segment[1] = made.header->code_objects.segment[1] = place;
    put(made.header, made.header->arena_used);
    struct model *model = NULL;
    struct problem problem = {0};
    CHECK_EQUAL(load_model(file_path, &model, &problem), 0);
    CHECK(model->text_count < 100000 && model->code_count < 100000);
    what_is_there_is_right(model);
    model_free(model);
    made_free(&made);
}

/* A recording of a program that has ended is read where it is. */
static void a_file_that_is_cut_under_the_reader_reads_as_zero(void) {
    struct made made = make_example();
    uint64_t used = made.header->arena_used;
    put(made.header, used);
    struct recording_file recording = {.descriptor = file, .path = file_path};
    struct snapshot snapshot;
    CHECK(snapshot_take(&recording, &snapshot, NULL) == 0);
    CHECK(snapshot.in_place.bytes != NULL && used > 3 * 4096);
    CHECK(memcmp(snapshot.bytes + 8192, (uint8_t *)made.header + 8192, 4096) == 0);
    CHECK(!snapshot_lost_pages(&snapshot));
    if (ftruncate(file, 4096) != 0) abort();
    for (uint64_t i = 4096; i < used; i++) CHECK(snapshot.bytes[i] == 0);
    CHECK(snapshot_lost_pages(&snapshot));
    snapshot_free(&snapshot);

    put(made.header, used);
    recording.will_be_written = true;
    CHECK(snapshot_take(&recording, &snapshot, NULL) == 0);
    CHECK(snapshot.in_place.bytes == NULL && !snapshot_lost_pages(&snapshot));
    snapshot_free(&snapshot);
    made_free(&made);
}

static atomic_bool scribbling;

/* Puts nonsense into every word behind the header and takes it back, over and over. */
static void *scribble(void *context) {
    const struct made *made = context;
    uint64_t words = made->header->arena_used / 8, random = 1;
    while (atomic_load(&scribbling)) {
        random = random * UINT64_C(6364136223846793005) + 1442695040888963407u;
        uint64_t word = HEADER_SPAN / 8 + (random >> 33) % (words - HEADER_SPAN / 8);
        uint64_t bad = random & 1 ? random : random >> 50, good = ((const uint64_t *)made->header)[word];
        if (pwrite(file, &bad, 8, (off_t)(8 * word)) != 8 || pwrite(file, &good, 8, (off_t)(8 * word)) != 8)
            abort();
    }
    return NULL;
}

static void a_file_that_others_write_to_does_no_harm(void) {
    struct made made = make_example();
    put(made.header, made.header->arena_used);
    pthread_t thread;
    atomic_store(&scribbling, true);
    if (pthread_create(&thread, NULL, scribble, &made) != 0) abort();
    for (int i = 0; i < 2000; i++) {
        struct model *model = NULL;
        if (load_model(file_path, &model, NULL) == 0) {
            CHECK(model->stack_count <= STACKS + 1);
            model_free(model);
        }
    }
    atomic_store(&scribbling, false);
    pthread_join(thread, NULL);
    made_free(&made);
}

int main(void) {
    file = memfd_create("recording", MFD_CLOEXEC);
    snprintf(file_path, sizeof file_path, "/proc/self/fd/%d", file);
    a_cut_recording_gives_what_is_left();
    a_bad_stack_is_left_out_and_counted();
    other_tables_may_be_lost();
    flipped_bytes_do_no_harm();
    sharing_does_not_multiply();
    huge_numbers_take_no_memory();
    a_file_that_is_cut_under_the_reader_reads_as_zero();
    a_file_that_others_write_to_does_no_harm();
    a_huge_empty_file_is_read_quickly();
    return check_result();
}
