/* What the model says about sound recordings, and how it refuses files that are no recordings. */
#include "check.h"
#include "core/sampler.h"
#include "load_model.h"
#include "model/model.h"
#include "test_model_recording.h"

#include <math.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

static const char *folder;

static struct model *load(const char *source) {
    struct model *model = NULL;
    struct problem problem = {0};
    if (!CHECK(load_model(source, &model, &problem) == 0)) {
        fprintf(stderr, "%s\n", problem.what);
        abort();
    }
    return model;
}

static struct model *load_made(struct made *made) {
    const char *path = in_folder(folder, "one.mscope");
    made_write(made, path);
    made_free(made);
    return load(path);
}

static void sampled_figures_have_plain_units_and_variances(void) {
    struct made made = made_new(512 * 1024, RECORDING_FINISHED);
    uint32_t number;
    struct stack_record *record = made_stack(&made, (uint64_t[]){0x1001, 0x2002}, 2, STACK_COMPLETE, &number);
    record->samples = 3;
    record->sampled_bytes = 300;
    record->alloc_bytes = 3 * 1000 * BYTE_ONE;
    record->alloc_objects = 3 * 10 * OBJECT_ONE;
    record->lasting_bytes = 500 * BYTE_ONE;
    record->freed_objects = 10 * OBJECT_ONE;
    record->temporary_bytes = 500 * BYTE_ONE;
    record->lifetime[TEMPORARY_BUCKETS - 1] = 5 * OBJECT_ONE;
    record->lifetime[TEMPORARY_BUCKETS] = 2 * OBJECT_ONE;
    record->bytes_variance = real_bits(2700000);
    record->objects_variance = real_bits(270);
    record->peak_bytes = 2500 * BYTE_ONE;
    record->peak_objects = 25 * OBJECT_ONE;
    record->lifetime[2] = 3 * OBJECT_ONE;
    made_live(&made, 0, 0x10000, 100, number)->birth = 77;
    made_live(&made, 8, 0x20000, 100, number)->birth = 99;
    made.header->peak_bytes = 2400 * BYTE_ONE;
    made.header->peak_epoch = 1;
    made.header->peak_time = 1500000000;
    made.header->drops[DROP_THREAD] = 2;
    made.header->drops[DROP_MODULE] = 1;
    made.header->unknown_frees = 4;

    struct model *model = load_made(&made);
    CHECK(model->warning == NULL);
    CHECK_EQUAL(model->stack_count, 1); /* "[dropped]" has no figures */
    const struct figures *figures = &model->stacks[0].figures;
    CHECK_EQUAL(model->stacks[0].frame_count, 2);
    CHECK_EQUAL(model->stacks[0].frames[1], 0x2002);
    CHECK_EQUAL(figures->total_bytes.value, 3000);
    CHECK_EQUAL(figures->total_bytes.variance, 2700000);
    CHECK_EQUAL(figures->total_objects.value, 30);
    CHECK_EQUAL(figures->total_objects.variance, 270);
    CHECK_EQUAL(figures->live_bytes.value, 2000);
    double weight = (double)sampler_weight(100, 512 * 1024) / BYTE_ONE;
    CHECK_EQUAL(figures->live_bytes.variance, 2 * weight * (weight - 100));
    CHECK_EQUAL(figures->live_objects.value, 20);
    CHECK_EQUAL(figures->live_objects.variance, 2 * (weight / 100) * (weight / 100 - 1));
    CHECK_EQUAL(figures->freed_bytes, 1000);
    CHECK_EQUAL(figures->freed_objects, 10);
    CHECK_EQUAL(figures->own_peak_bytes, 2500);
    CHECK_EQUAL(figures->own_peak_objects, 25);
    CHECK_EQUAL(figures->temporary_bytes, 500);
    CHECK_EQUAL(figures->temporary_objects, 8);
    CHECK_EQUAL(figures->samples, 3);
    CHECK_EQUAL(figures->live_samples, 2);
    CHECK_EQUAL(figures->sampled_bytes, 300);
    CHECK_EQUAL(figures->sampled_live_bytes, 200);
    CHECK_EQUAL(figures->lifetime[2], 3);
    CHECK_EQUAL(figures->oldest, 77);
    CHECK_EQUAL(model->live_count, 2);
    for (size_t i = 0; i < model->live_count; i++) {
        double bytes, objects;
        CHECK_EQUAL(model->live[i].stack, 0);
        CHECK_EQUAL(model->live[i].birth, (float)((i ? 99 : 77) / 1e9));
        model_live_weight(model, &model->live[i], &bytes, &objects);
        CHECK_EQUAL(bytes, weight);
        CHECK(fabs(objects - weight / 100) < 1.0 / OBJECT_ONE);
    }

    CHECK(!model->exact);
    CHECK_EQUAL(model->rate, 512 * 1024);
    CHECK_EQUAL(model->totals.peak.value, 2400);
    CHECK_EQUAL(model->totals.peak_objects, 20); /* nothing has changed since the peak */
    CHECK_EQUAL(model->totals.sum.live_bytes.value, 2000);
    CHECK_EQUAL(model->totals.drops_total, 3);
    CHECK_EQUAL(model->totals.drops[DROP_THREAD], 2);
    CHECK_EQUAL(model->totals.unknown_frees, 4);
    CHECK_EQUAL(model->processes[0].state, PROCESS_FINISHED);
    CHECK_EQUAL(model->processes[0].duration, 3);
    CHECK_EQUAL(model->processes[0].peak_seconds, 1.5);
    CHECK_EQUAL(model->processes[0].file_bytes, MADE_SIZE);
    CHECK_TEXT(model->processes[0].executable, "/usr/bin/example");
    CHECK_TEXT(model->processes[0].command_line, "example --name 'it'\\''s $HOME'");
    CHECK_TEXT(model->processes[0].allocator, "/lib/libc.so.6");
    model_free(model);
}

static void exact_figures_have_no_variance(void) {
    struct made made = made_new(1, RECORDING_FINISHED);
    uint32_t number;
    struct stack_record *record = made_stack(&made, (uint64_t[]){0x1001}, 1, STACK_COMPLETE, &number);
    record->alloc_bytes = 123 * BYTE_ONE;
    record->alloc_objects = 7 * OBJECT_ONE;
    made_live(&made, 0, 0x10000, 123, number);
    made_live(&made, 1, 0x20000, 0, number);
    made_thread(&made, 1, "main", 123);

    struct model *model = load_made(&made);
    const struct figures *figures = &model->stacks[0].figures;
    CHECK(model->exact);
    CHECK_EQUAL(figures->samples, 7);
    CHECK_EQUAL(figures->sampled_bytes, 123);
    CHECK_EQUAL(figures->live_samples, 2);
    CHECK_EQUAL(estimate_error(figures->live_bytes), 0);
    CHECK_EQUAL(estimate_error(figures->live_objects), 0);
    CHECK_EQUAL(estimate_error(figures->total_bytes), 0);
    CHECK_EQUAL(model->totals.exact_total_bytes, 123);
    CHECK(model->totals.exact_is_complete);
    model_free(model);
}

static void error_is_that_of_the_normal_interval_and_one_more_sample(void) {
    CHECK_EQUAL(estimate_error((struct estimate){5000, 0, 300}), 0);
    /* n samples of weight w and size near 0: value n·w, variance n·w². */
    CHECK(fabs(estimate_error((struct estimate){9 * 50, 9 * 50 * 50, 0}) - 1.96 * 50 * sqrt(10)) < 1e-9);
    CHECK(
        fabs(estimate_error((struct estimate){1e6 * 50, 1e6 * 50 * 50, 0}) / (1.96 * 50 * 1000) - 1) < 1e-6);
    /* The widening for few samples is at most √2 times. */
    CHECK(fabs(estimate_error((struct estimate){1, 1e6, 0}) - 1.96 * 1000 * sqrt(2)) < 1e-9);
    /* Nothing sampled does not mean that nothing is there. */
    CHECK_EQUAL(estimate_error((struct estimate){0, 0, 300}), 300);
}

static void equal_stacks_are_merged(void) {
    struct made made = made_new(4096, RECORDING_FINISHED);
    uint32_t numbers[3];
    for (int i = 0; i < 3; i++) {
        uint64_t frames[] = {0x1001, i == 1 ? 0x2002 : 0x3003};
        struct stack_record *record = made_stack(&made, frames, 2, i == 2 ? STACK_COMPLETE : 0, &numbers[i]);
        record->samples = 1 + (unsigned)i;
        record->alloc_bytes = 100 * (1 + (unsigned)i) * BYTE_ONE;
        record->alloc_objects = OBJECT_ONE;
        made_live(&made, (unsigned)i, 0x10000u * (1 + (unsigned)i), 10, numbers[i]);
    }
    struct stack_record *dropped = made_at(&made, made.header->stacks.segment[0]);
    dropped->samples = 4;
    dropped->alloc_objects = 4 * OBJECT_ONE;
    dropped->alloc_bytes = 5 * BYTE_ONE;

    struct model *model = load_made(&made);
    CHECK_EQUAL(model->stack_count, 3);
    CHECK_EQUAL(model->totals.sum.samples, 10);
    for (size_t i = 0; i < model->stack_count; i++) {
        const struct model_stack *stack = &model->stacks[i];
        if (stack->frame_count == 0) {
            CHECK_EQUAL(stack->figures.total_bytes.value, 5);
        } else if (stack->frames[1] == 0x2002) {
            CHECK_EQUAL(stack->figures.samples, 2);
            CHECK_EQUAL(stack->figures.live_samples, 1);
        } else {
            CHECK_EQUAL(stack->figures.samples, 4);
            CHECK_EQUAL(stack->figures.total_bytes.value, 400);
            CHECK_EQUAL(stack->figures.live_samples, 2);
            CHECK_EQUAL(stack->flags & STACK_COMPLETE, 0);
        }
    }
    /* Only the third record was complete: three of ten samples. */
    CHECK_EQUAL(model->health.truncated, 7);
    CHECK(fabs(model->health.complete - 0.3) < 1e-12);
    CHECK_EQUAL(model->health.mean_depth, 1.2);
    CHECK_TEXT(model->health.confidence, "low");
    model_free(model);
}

static void confidence_follows_the_share_of_truncated_stacks(void) {
    static const struct {
        uint64_t whole, truncated;
        const char *confidence;
    } cases[] = {{100, 0, "high"}, {96, 4, "high"}, {95, 5, "medium"}, {81, 19, "medium"}, {80, 20, "low"},
        {0, 0, "high"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct made made = made_new(4096, RECORDING_FINISHED);
        made_stack(&made, (uint64_t[]){1}, 1, STACK_COMPLETE, NULL)->samples = cases[i].whole;
        made_stack(&made, (uint64_t[]){2}, 1, 0, NULL)->samples = cases[i].truncated;
        struct model *model = load_made(&made);
        CHECK_TEXT(model->health.confidence, cases[i].confidence);
        model_free(model);
    }
}

static void figures_at_the_peak_follow_the_epoch(void) {
    struct made made = made_new(4096, RECORDING_FINISHED);
    made.header->peak_epoch = 5;
    made.header->peak_bytes = 3000 * BYTE_ONE;
    for (uint32_t i = 0; i < 2; i++) {
        struct stack_record *record = made_stack(&made, (uint64_t[]){0x10 + i}, 1, STACK_COMPLETE, NULL);
        record->samples = 4;
        record->alloc_bytes = 4000 * BYTE_ONE;
        record->alloc_objects = 4 * OBJECT_ONE;
        record->lasting_bytes = 3000 * BYTE_ONE;
        record->freed_objects = 3 * OBJECT_ONE;
        record->bytes_variance = real_bits(8000);
        record->peak_epoch = i ? 5 : 4;
        record->saved_bytes = 2000 * BYTE_ONE;
        record->saved_objects = 2 * OBJECT_ONE;
    }
    struct model *model = load_made(&made);
    for (size_t i = 0; i < model->stack_count; i++) {
        const struct figures *figures = &model->stacks[i].figures;
        bool saved = model->stacks[i].frames[0] == 0x11;
        CHECK_EQUAL(figures->at_peak_bytes.value, saved ? 2000 : 1000);
        CHECK_EQUAL(figures->at_peak_objects.value, saved ? 2 : 1);
        CHECK_EQUAL(figures->at_peak_bytes.variance, saved ? 4000 : 2000);
        /* There is no live sample in the table: the total's variance stands in. */
        CHECK_EQUAL(figures->live_bytes.variance, 2000);
    }
    model_free(model);
}

static void live_figures_are_never_negative(void) {
    struct made made = made_new(4096, RECORDING_FINISHED);
    struct stack_record *record = made_stack(&made, (uint64_t[]){0x10}, 1, STACK_COMPLETE, NULL);
    record->samples = 1;
    record->alloc_bytes = 10;
    record->lasting_bytes = 20;
    record->freed_objects = 1;
    struct model *model = load_made(&made);
    CHECK_EQUAL(model->stacks[0].figures.live_bytes.value, 0);
    CHECK_EQUAL(model->stacks[0].figures.live_objects.value, 0);
    model_free(model);
}

static void free_slots_do_not_count(void) {
    struct made made = made_new(4096, RECORDING_FINISHED);
    uint32_t number;
    made_stack(&made, (uint64_t[]){0x10}, 1, STACK_COMPLETE, &number)->samples = 1;
    made_live(&made, 0, 0, 17, number);
    made_live(&made, 1, 0, 10, number)->key = 0;
    made_live(&made, 2, 0x7000, 10, number);
    struct model *model = load_made(&made);
    CHECK_EQUAL(model->stacks[0].figures.live_samples, 1);
    CHECK(model->warning == NULL);
    model_free(model);
}

static void the_module_seen_last_covers_an_address(void) {
    struct made made = made_new(4096, RECORDING_FINISHED);
    made_module(&made, "/lib/old.so", 0x1000, 0x9000, 10);
    made_module(&made, "/lib/new.so (deleted)", 0x3000, 0x4000, 20);
    made_module(&made, "/lib/older.so", 0x3800, 0x3900, 5);
    made_module(&made, "/lib/unfinished.so", 0x1000, 0x9000, 30)->complete = 0;
    struct module_record *far = made_module(&made, "/lib/far.so", 0x20000, 0x30000, 1);
    far->build_id_size = 3;
    memcpy(far->build_id, "abc", 3);
    far->file_offset = 0x2000;
    made_module(&made, "", 0x50000, 0x60000, 1);

    struct model *model = load_made(&made);
    CHECK_EQUAL(model->module_count, 5);
    CHECK_TEXT(model_find_module(model, 0, 0x50000)->path, MODULE_ANONYMOUS);
    CHECK(model_find_module(model, 0, 0xfff) == NULL);
    CHECK_TEXT(model_find_module(model, 0, 0x1000)->path, "/lib/old.so");
    CHECK_TEXT(model_find_module(model, 0, 0x3000)->path, "/lib/new.so");
    CHECK(model_find_module(model, 0, 0x3000)->deleted);
    CHECK_TEXT(model_find_module(model, 0, 0x3850)->path, "/lib/new.so");
    CHECK_TEXT(model_find_module(model, 0, 0x4000)->path, "/lib/old.so");
    CHECK(!model_find_module(model, 0, 0x4000)->deleted);
    CHECK(model_find_module(model, 0, 0x9000) == NULL);
    CHECK_EQUAL(model_find_module(model, 0, 0x2ffff)->build_id_size, 3);
    CHECK_EQUAL(model_find_module(model, 0, 0x2ffff)->file_offset, 0x2000);
    CHECK(model_find_module(model, 0, 0x30000) == NULL);
    CHECK(model_find_module(model, 1, 0x1000) == NULL);
    model_free(model);
}

static uint64_t word_of(uint64_t number, uint64_t offset) {
    return (uint64_t)FRAME_MODULE << FRAME_KIND_SHIFT | number << FRAME_MODULE_SHIFT | offset;
}

static void a_frame_names_its_module_where_several_had_its_place(void) {
    struct made made = made_new(4096, RECORDING_FINISHED);
    made_module(&made, "/lib/stays.so", 0x1000, 0x9000, 10);
    for (int i = 0; i < 2; i++) {
        struct module_record *module = made_module(&made, i ? "/lib/b.so" : "/lib/a.so", 0x5000, 0x7000, 20);
        module->file_offset = i ? 0x300 : 0x200;
        module->by_number = 1;
    }
    made_module(&made, "/lib/unfinished.so", 0x5000, 0x7000, 30)->complete = 0;
    struct model *model = load_made(&made);
    struct model_place place = model_find_place(model, 0, word_of(1, 0x234));
    CHECK_TEXT(place.module->path, "/lib/a.so");
    CHECK_EQUAL(place.address, 0x5034);
    place = model_find_place(model, 0, word_of(2, 0x2300));
    CHECK_TEXT(place.module->path, "/lib/b.so");
    CHECK_EQUAL(place.address, 0x7000); /* of a call at the very end */
    /* Plain addresses are not in them. */
    place = model_find_place(model, 0, 0x5034);
    CHECK_TEXT(place.module->path, "/lib/stays.so");
    CHECK_EQUAL(place.address, 0x5034);
    /* What the recording lacks, and what lies outside of the file. */
    uint64_t nowhere[] = {word_of(3, 0x234), word_of(4, 0x234), word_of(2, 0x2ff), word_of(2, 0x2301),
        word_of(FRAME_MODULE_MASK, 0)};
    for (int i = 0; i < 5; i++) {
        place = model_find_place(model, 0, nowhere[i]);
        CHECK(!place.module && !place.address);
    }
    CHECK(!model_find_place(model, 1, word_of(1, 0x234)).module);
    CHECK(!model_find_place(model, 0, (uint64_t)FRAME_CUT << FRAME_KIND_SHIFT).address);
    model_free(model);
}

static void threads_of_a_killed_program_are_incomplete(void) {
    for (int finished = 0; finished < 2; finished++) {
        struct made made = made_new(4096, finished ? RECORDING_FINISHED : 0);
        struct thread_record *record = made_thread(&made, 11, "main\033[2J", 1000);
        record->interval = finished ? 0 : 4000;
        record->samples = 9;
        struct thread_record *ended = made_thread(&made, 12, "worker", 500);
        ended->state = THREAD_ENDED;
        ended->end_time = 55;
        made_thread(&made, 0, "", 0)->state = THREAD_FREE;
        made.header->orphan_bytes = 30;
        struct model *model = load_made(&made);
        CHECK_EQUAL(model->processes[0].state, finished ? PROCESS_FINISHED : PROCESS_KILLED);
        CHECK_EQUAL(model->thread_count, 2);
        CHECK_EQUAL(model->threads[0].exact_bytes, 1000);
        CHECK_EQUAL(model->threads[0].exact_is_complete, finished);
        CHECK_EQUAL(model->threads[0].samples, 9);
        CHECK(!model->threads[0].running);
        CHECK_TEXT(model->threads[0].name, "main?[2J"); /* nothing that a terminal would obey */
        CHECK(model->threads[1].exact_is_complete);
        CHECK_EQUAL(model->threads[1].end_time, 55);
        CHECK_EQUAL(model->totals.exact_total_bytes, 1530);
        CHECK_EQUAL(model->totals.exact_is_complete, finished);
        model_free(model);
    }
}

static void the_timeline_keeps_its_level_through_quiet_times(void) {
    struct made made = made_new(4096, RECORDING_FINISHED);
    struct timeline *timeline = made_at(&made, made.header->timeline);
    timeline->shift = 30;
    timeline->bucket[0] = (struct timeline_bucket){500 * BYTE_ONE, 300 * BYTE_ONE, 600 * BYTE_ONE, 3};
    made_thread(&made, 1, "one", 10)->slack = 70 * BYTE_ONE;
    made_thread(&made, 2, "two", 10)->slack = 30 * BYTE_ONE;
    made.header->live_bytes = 500 * BYTE_ONE; /* what it ended with, and the slack of its threads */
    made.header->last_event = UINT64_C(3) << 30;
    struct model *model = load_made(&made);
    CHECK_EQUAL(model->moment_count, 4);
    CHECK_EQUAL(model->timeline[0].live_max, 500);
    CHECK_EQUAL(model->timeline[0].live_last, 400);
    CHECK_EQUAL(model->timeline[0].allocated, 600);
    CHECK_EQUAL(model->timeline[3].live_max, 400);
    CHECK_EQUAL(model->timeline[3].allocated, 0);
    CHECK(fabs(model->timeline[1].seconds - 1.5 * 1.073741824) < 1e-9);
    model_free(model);
}

static void a_timeline_caught_in_the_middle_is_left_out(void) {
    struct made made = made_new(4096, 0);
    ((struct timeline *)made_at(&made, made.header->timeline))->sequence = 3;
    struct model *model = load_made(&made);
    CHECK_EQUAL(model->moment_count, 0);
    CHECK(model->warning && strstr(model->warning, "timeline"));
    model_free(model);
}

static void a_folder_is_merged_and_stacks_keep_their_process(void) {
    mkdir(in_folder(folder, "many"), 0700);
    for (int i = 0; i < 2; i++) {
        struct made made = made_new(i ? 4096 : 8192, RECORDING_FINISHED);
        struct stack_record *record = made_stack(&made, (uint64_t[]){0x10}, 1, STACK_COMPLETE, NULL);
        record->samples = 1;
        record->alloc_bytes = (i ? 10 : 100) * BYTE_ONE;
        made.header->peak_bytes = (i ? 20 : 200) * BYTE_ONE;
        made_module(&made, i ? "/b" : "/a", 0x1, 0x100, 1);
        made_thread(&made, i + 1, "main", 500);
        made_write(&made, in_folder(folder, i ? "many/2.mscope" : "many/1.mscope"));
        made_free(&made);
    }
    write_file(in_folder(folder, "many/notes.txt"), "x", 1);
    struct model *model = load(in_folder(folder, "many"));
    CHECK(model->warning == NULL);
    CHECK_EQUAL(model->process_count, 2);
    CHECK_EQUAL(model->stack_count, 2);
    CHECK_EQUAL(model->stacks[1].process, 1);
    CHECK_EQUAL(model->stacks[1].figures.total_bytes.value, 10);
    CHECK_EQUAL(model->totals.sum.total_bytes.value, 110);
    CHECK_EQUAL(model->totals.peak.value, 220);
    CHECK_EQUAL(model->totals.exact_total_bytes, 1000);
    CHECK_EQUAL(model->rate, 8192);
    CHECK_EQUAL(model->moment_count, 0);
    CHECK_TEXT(model_find_module(model, 0, 0x10)->path, "/a");
    CHECK_TEXT(model_find_module(model, 1, 0x10)->path, "/b");
    CHECK_EQUAL(model->threads[1].process, 1);
    model_free(model);

    write_file(in_folder(folder, "many/3.mscope"), "rubbish", 7);
    model = load(in_folder(folder, "many"));
    CHECK_EQUAL(model->process_count, 2);
    CHECK(model->warning && strstr(model->warning, "3.mscope"));
    model_free(model);
}

static void refuses(const char *source, enum problem_kind kind, const char *words) {
    struct problem problem = {0};
    struct model *model = NULL;
    CHECK_EQUAL(load_model(source, &model, &problem), -(int)kind);
    CHECK(model == NULL);
    CHECK_EQUAL(problem.kind, kind);
    if (!CHECK(strstr(problem.what, words) != NULL)) fprintf(stderr, "%s\n", problem.what);
    CHECK(problem.remedy[0] != '\0');
}

static void what_is_no_recording_is_refused_with_a_reason(void) {
    refuses(in_folder(folder, "absent.mscope"), PROBLEM_MISSING, "No such file");
    refuses(in_folder(folder, "one.mscope/x"), PROBLEM_MISSING, "Not a directory");
    refuses("999999999", PROBLEM_MISSING, "no process 999999999");
    char number[16];
    snprintf(number, sizeof number, "%d", getpid());
    refuses(number, PROBLEM_MISSING, "has no recording");
    mkdir(in_folder(folder, "empty"), 0700);
    refuses(in_folder(folder, "empty"), PROBLEM_MISSING, "no recordings in the folder");
    refuses("/dev/null", PROBLEM_DAMAGED, "not a regular file");
    const char *path = in_folder(folder, "bad.mscope");
    mkfifo(path, 0600);
    refuses(path, PROBLEM_DAMAGED, "not a regular file");
    unlink(path);
    write_file(path, "", 0);
    refuses(path, PROBLEM_DAMAGED, "is empty");
    write_file(path, "\177ELF and so on", 14);
    refuses(path, PROBLEM_DAMAGED, "is not a recording");
    write_file(path, RECORDING_MAGIC, 8);
    refuses(path, PROBLEM_DAMAGED, "within its header");
    write_file(path, (char[4096]){0}, 4096);
    refuses(path, PROBLEM_DAMAGED, "no header yet");

    struct made made = made_new(4096, 0);
    made.header->version = RECORDING_VERSION - 1;
    made_write(&made, path);
    refuses(path, PROBLEM_DAMAGED, "version 5");
    made.header->version = RECORDING_VERSION + 1;
    made_write(&made, path);
    refuses(path, PROBLEM_DAMAGED, "version 7");
    made.header->version = RECORDING_VERSION;
    made.header->header_size = 12;
    made_write(&made, path);
    refuses(path, PROBLEM_DAMAGED, "header");
    made.header->header_size = sizeof *made.header;
    made.header->stacks.entry_size = 8;
    made_write(&made, path);
    refuses(path, PROBLEM_DAMAGED, "table of stacks cannot be read");
    made.header->stacks.entry_size = sizeof(struct stack_record);
    made.header->stacks.segment[0] = UINT64_MAX - 7;
    made_write(&made, path);
    refuses(path, PROBLEM_DAMAGED, "table of stacks cannot be read");
    made_free(&made);

    if (geteuid() == 0) { /* root may read everything: ask as somebody else */
        pid_t child = fork();
        if (child == 0) {
            pause();
            _exit(0);
        }
        snprintf(number, sizeof number, "%d", child);
        CHECK(chmod(folder, 0755) == 0 && seteuid(65534) == 0);
        refuses(path, PROBLEM_PERMISSION, "Permission denied");
        refuses(number, PROBLEM_PERMISSION, "cannot look into process");
        CHECK(seteuid(0) == 0);
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
    }
}

static void a_number_may_also_name_a_file(void) {
    CHECK(chdir(folder) == 0);
    struct made made = made_new(4096, RECORDING_FINISHED);
    made_write(&made, "999999999");
    made_free(&made);
    model_free(load("999999999"));
    model_free(load("./999999999"));
    CHECK(chdir("/") == 0);
}

int main(void) {
    folder = make_folder();
    sampled_figures_have_plain_units_and_variances();
    exact_figures_have_no_variance();
    error_is_that_of_the_normal_interval_and_one_more_sample();
    equal_stacks_are_merged();
    confidence_follows_the_share_of_truncated_stacks();
    figures_at_the_peak_follow_the_epoch();
    live_figures_are_never_negative();
    free_slots_do_not_count();
    the_module_seen_last_covers_an_address();
    a_frame_names_its_module_where_several_had_its_place();
    threads_of_a_killed_program_are_incomplete();
    the_timeline_keeps_its_level_through_quiet_times();
    a_timeline_caught_in_the_middle_is_left_out();
    a_folder_is_merged_and_stacks_keep_their_process();
    what_is_no_recording_is_refused_with_a_reason();
    a_number_may_also_name_a_file();
    remove_folder(folder);
    return check_result();
}
