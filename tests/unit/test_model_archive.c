/* Recordings come out of an archive as they went in; archives that are cut, damaged or made to do harm give
 * what is left, or nothing. */
#include "base/packer.h"
#include "check.h"
#include "load_model.h"
#include "model/archive.h"
#include "model/archive_format.h"
#include "model/model.h"
#include "test_model_recording.h"

#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

static const char *folder;
static const char NAMES[] = "what frames stand for";

#define STACKS 5u

/* Stack i has i frames, all equal to its number, and i hundred live bytes. */
static void write_recording(const char *path, int32_t pid, uint32_t flags) {
    struct made made = made_new(4096, flags);
    made.header->pid = pid;
    for (uint32_t i = 1; i <= STACKS; i++) {
        uint64_t frames[STACKS];
        uint32_t number;
        for (uint32_t f = 0; f < i; f++) frames[f] = i;
        struct stack_record *record = made_stack(&made, frames, i, STACK_COMPLETE, &number);
        record->hash = UINT64_C(0x123456789abcdef) * i;
        record->samples = i;
        record->alloc_bytes = 100 * i * BYTE_ONE;
        record->alloc_objects = i * OBJECT_ONE;
        made_thread(&made, (int32_t)i, "thread", 10 * i);
        made_module(&made, "/usr/lib/some/library.so.6", 0x10000 * i, 0x10000 * i + 0x8000, i);
    }
    made_live(&made, 3, 0x1000, 100, 1);
    made.header->stack_index = made_space(&made, 4096, 64) << 8 | 9;
    memset(made_at(&made, made.header->stack_index >> 8), 0x5a, 4096);
    made_write(&made, path);
    made_free(&made);
}

/* Packs the recordings, with the names or without. */
static void pack(const char *path, const char *const *recordings, size_t count, bool with_names) {
    struct archive_writer writer;
    struct model *model;
    struct problem problem;
    if (!CHECK(archive_writer_start(path, true, &writer) == 0)) abort();
    if (!CHECK(model_load(
                   &(struct model_load_options){
                       .sources = recordings, .source_count = count, .archive = &writer},
                   &model, &problem) == 0))
        abort();
    model_free(model);
    if (with_names) archive_writer_add_names(&writer, NAMES, sizeof NAMES);
    CHECK_EQUAL(archive_writer_end(&writer, false), 0);
}

static const char *make_example(bool with_names) {
    const char *recording = in_folder(folder, "one.mscope"), *archive = in_folder(folder, "one.mscar");
    write_recording(recording, 0x3fffffff, RECORDING_FINISHED);
    pack(archive, &recording, 1, with_names);
    return archive;
}

static void check_stacks(const struct model *model, uint32_t process) {
    size_t found = 0;
    for (size_t i = 0; i < model->stack_count; i++) {
        const struct model_stack *stack = &model->stacks[i];
        if (stack->process != process) continue;
        uint32_t number = stack->frame_count;
        CHECK(number >= 1 && number <= STACKS);
        for (uint32_t f = 0; f < number; f++) CHECK_EQUAL(stack->frames[f], number);
        CHECK_EQUAL(stack->figures.total_bytes.value, 100 * number);
        found++;
    }
    CHECK_EQUAL(found, STACKS);
}

static void a_recording_comes_out_as_it_went_in(void) {
    const char *archive = make_example(true);
    struct model *packed, *plain;
    if (!CHECK(load_model(archive, &packed, NULL) == 0)) return;
    if (!CHECK(load_model(in_folder(folder, "one.mscope"), &plain, NULL) == 0)) return;
    CHECK(!packed->warning && !packed->damaged);
    check_stacks(packed, 0);
    CHECK_EQUAL(packed->process_count, 1);
    const struct model_process *a = &packed->processes[0], *b = &plain->processes[0];
    CHECK_TEXT(a->source, archive);
    CHECK_TEXT(a->executable, b->executable);
    CHECK_TEXT(a->command_line, b->command_line);
    CHECK_TEXT(a->allocator, b->allocator);
    CHECK(a->state == b->state && a->pid == b->pid && a->duration == b->duration);
    CHECK_EQUAL(a->file_bytes, b->file_bytes);
    CHECK_EQUAL(a->recorder_bytes, b->recorder_bytes);
    CHECK_EQUAL(packed->module_count, plain->module_count);
    CHECK_EQUAL(packed->thread_count, plain->thread_count);
    CHECK_EQUAL(packed->moment_count, plain->moment_count);
    CHECK_EQUAL(packed->totals.sum.live_bytes.value, plain->totals.sum.live_bytes.value);
    CHECK_EQUAL(packed->totals.sum.live_samples, 1);
    CHECK(a->has_names && !b->has_names);
    CHECK(packed->names_count == 1 && packed->names[0].size == sizeof NAMES &&
          memcmp(packed->names[0].bytes, NAMES, sizeof NAMES) == 0);
    model_free(packed);
    model_free(plain);

    struct stat status;
    CHECK(stat(archive, &status) == 0 && status.st_size < 3000 && (status.st_mode & 0777) == 0600);
}

static void a_copy_out_of_an_archive_is_a_recording(void) {
    const char *archive = make_example(true), *copy = in_folder(folder, "copy.mscope");
    struct model *model;
    CHECK_EQUAL(model_copy(archive, copy, true, NULL), 0);
    if (!CHECK(load_model(copy, &model, NULL) == 0)) return;
    check_stacks(model, 0);
    CHECK(!model->processes[0].has_names);
    model_free(model);
}

static void a_program_that_was_killed_stays_killed(void) {
    const char *recording = in_folder(folder, "killed.mscope"), *archive = in_folder(folder, "killed.mscar");
    write_recording(recording, (int32_t)getppid(), 0); /* a process of that number exists, and is another */
    pack(archive, &recording, 1, false);
    struct model *model;
    if (!CHECK(load_model(archive, &model, NULL) == 0)) return;
    CHECK(model->processes[0].state == PROCESS_KILLED && !model->warning);
    model_free(model);
}

static void several_recordings_fit_into_one_archive(void) {
    const char *recordings[] = {in_folder(folder, "a.mscope"), in_folder(folder, "b.mscope")};
    const char *archive = in_folder(folder, "both.mscar");
    write_recording(recordings[0], 0x3ffffffe, RECORDING_FINISHED);
    write_recording(recordings[1], 0x3fffffff, RECORDING_FINISHED);
    pack(archive, recordings, 2, true);
    struct model *model;
    if (!CHECK(load_model(archive, &model, NULL) == 0)) return;
    CHECK_EQUAL(model->process_count, 2);
    for (uint32_t i = 0; i < 2; i++) {
        check_stacks(model, i);
        CHECK_EQUAL(model->processes[i].pid, 0x3ffffffe + i);
        CHECK(model->processes[i].has_names && model->processes[i].names == 0);
        CHECK_EQUAL(model->processes[i].names_space, i);
    }
    model_free(model);
    /* Together with another archive its names are told apart. */
    const char *sources[] = {make_example(true), archive};
    if (!CHECK(model_load(
                   &(struct model_load_options){.sources = sources, .source_count = 2}, &model, NULL) == 0))
        return;
    CHECK(model->process_count == 3 && model->names_count == 2);
    CHECK_EQUAL(model->processes[2].names, 1);
    CHECK_EQUAL(model->processes[2].names_space, 1);
    model_free(model);
    struct problem problem;
    CHECK_EQUAL(model_copy(archive, in_folder(folder, "copy.mscope"), true, &problem), -PROBLEM_USAGE);
}

static char *read_whole(const char *path, size_t *ret_size) {
    int file = open(path, O_RDONLY);
    struct stat status;
    if (file < 0 || fstat(file, &status) != 0) abort();
    char *bytes = malloc((size_t)status.st_size);
    if (read(file, bytes, (size_t)status.st_size) != status.st_size) abort();
    close(file);
    *ret_size = (size_t)status.st_size;
    return bytes;
}

static void a_cut_archive_gives_what_is_left(void) {
    const char *archive = make_example(true), *cut = in_folder(folder, "cut.mscar");
    size_t size, whole = 0;
    char *bytes = read_whole(archive, &size);
    for (size_t length = 0; length < size; length++) {
        write_file(cut, bytes, length);
        struct model *model;
        struct problem problem = {0};
        int r = load_model(cut, &model, &problem);
        if (r < 0) {
            CHECK(r == -PROBLEM_DAMAGED && problem.what[0] && problem.remedy[0]);
            CHECK(whole == 0);
            continue;
        }
        check_stacks(model, 0); /* the recording comes first */
        CHECK(model->damaged && model->warning);
        model_free(model);
        whole++;
    }
    CHECK(whole > sizeof(struct part_head));
    free(bytes);
}

/* Each byte of an archive, damaged in turn: no bit of a recording is wrong without a message. */
static void damage_is_noticed(void) {
    const char *archive = make_example(true), *bad = in_folder(folder, "bad.mscar");
    size_t size, refused = 0, left = 0;
    char *bytes = read_whole(archive, &size);
    for (size_t place = 0; place < size; place++) {
        bytes[place] = (char)(bytes[place] ^ 1 << place % 8);
        write_file(bad, bytes, size);
        bytes[place] = (char)(bytes[place] ^ 1 << place % 8);
        struct model *model;
        struct problem problem = {0};
        if (load_model(bad, &model, &problem) < 0) {
            CHECK(problem.kind == PROBLEM_DAMAGED && problem.remedy[0]);
            refused++;
            continue;
        }
        check_stacks(model, 0);
        model_free(model);
        left++;
    }
    CHECK(refused > left);
    free(bytes);
}

/* A part made by hand. */
static void write_part(int file, uint32_t kind, const void *bytes, size_t size, uint64_t claimed_size) {
    struct part_head head = {.kind = kind, .size = claimed_size};
    off_t start = lseek(file, sizeof head, SEEK_CUR);
    struct packer *packer = packer_new(file, PACKED_SMALL);
    if (packer_write(packer, bytes, size) < 0 || packer_end(packer, &head.packed_size) < 0) abort();
    if (pwrite(file, &head, sizeof head, start - (off_t)sizeof head) != (ssize_t)sizeof head) abort();
}

static int load_made(uint32_t kind, const void *bytes, size_t size, uint64_t claimed_size, uint32_t version,
    struct problem *problem) {
    const char *path = in_folder(folder, "made.mscar");
    int file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    struct archive_head head = {.magic = ARCHIVE_MAGIC, .version = version};
    if (write(file, &head, sizeof head) != (ssize_t)sizeof head) abort();
    write_part(file, kind, bytes, size, claimed_size);
    struct part_head end = {.kind = PART_END};
    if (write(file, &end, sizeof end) != (ssize_t)sizeof end) abort();
    close(file);
    struct model *model;
    int r = load_model(path, &model, problem);
    if (r == 0) model_free(model);
    return r;
}

struct made_part {
    struct recording_head head;
    struct recording_stretch stretches[2];
    char bytes[8192];
};

static void hostile_archives_are_refused(void) {
    struct problem problem;
    struct made_part part = {{.size = 8192, .stretch_count = 2}, {{0, 4096}, {4096, 4096}}, "no recording"};
    CHECK_EQUAL(load_made(PART_RECORDING, &part, sizeof part, sizeof part, ARCHIVE_VERSION, &problem),
        -PROBLEM_DAMAGED);
    CHECK(strstr(problem.what, "is not a recording") != NULL); /* it was unpacked as it should */
    static const struct {
        struct recording_head head;
        struct recording_stretch stretches[2];
    } wrong[] = {
        {{.size = 8191, .stretch_count = 2}, {{0, 4096}, {4096, 4096}}},       /* beyond the end */
        {{.size = 8192, .stretch_count = 2}, {{4096, 4096}, {0, 4096}}},       /* not in order */
        {{.size = 9000, .stretch_count = 2}, {{0, 4096}, {4000, 4096}}},       /* overlapping */
        {{.size = UINT64_MAX, .stretch_count = 2}, {{0, 4096}, {4096, 4096}}}, /* no file is so large */
        {{.size = 8192, .stretch_count = UINT64_MAX / 16}, {{0, 4096}, {4096, 4096}}},
        {{.size = 8192, .stretch_count = 1}, {{0, 4096}, {4096, 4096}}}, /* more bytes than that */
        {{.size = 8192, .stretch_count = 2}, {{0, 0}, {4096, 4096}}},    /* an empty stretch */
        {{.size = UINT64_MAX / 4, .stretch_count = 2}, {{0, 4096}, {UINT64_MAX / 2, 4096}}},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        part.head = wrong[i].head;
        memcpy(part.stretches, wrong[i].stretches, sizeof part.stretches);
        CHECK_EQUAL(load_made(PART_RECORDING, &part, sizeof part, sizeof part, ARCHIVE_VERSION, &problem),
            -PROBLEM_DAMAGED);
        CHECK(strstr(problem.what, "cannot be read") != NULL);
    }
    part = (struct made_part){{.size = 8192, .stretch_count = 2}, {{0, 4096}, {4096, 4096}}, ""};
    CHECK_EQUAL(load_made(PART_RECORDING, &part, sizeof part, UINT64_MAX, ARCHIVE_VERSION, &problem),
        -PROBLEM_DAMAGED);
    CHECK(strstr(problem.what, "far too large") != NULL);
    CHECK_EQUAL(load_made(PART_RECORDING, &part, sizeof part, sizeof part + 1, ARCHIVE_VERSION, &problem),
        -PROBLEM_DAMAGED);
    CHECK_EQUAL(load_made(PART_RECORDING, &part, sizeof part, sizeof part - 1, ARCHIVE_VERSION, &problem),
        -PROBLEM_DAMAGED);
    CHECK_EQUAL(load_made(PART_RECORDING, &part, 10, 10, ARCHIVE_VERSION, &problem), -PROBLEM_DAMAGED);
    CHECK_EQUAL(load_made(77, &part, 10, 10, ARCHIVE_VERSION, &problem), -PROBLEM_DAMAGED);
    CHECK(strstr(problem.what, "no recording in it") != NULL);
    CHECK_EQUAL(load_made(PART_RECORDING, &part, sizeof part, sizeof part, ARCHIVE_VERSION + 1, &problem),
        -PROBLEM_DAMAGED);
    CHECK(strstr(problem.remedy, "update") != NULL);
}

/* Zeros pack to next to nothing, so little can claim to be much: it takes no more memory than it may. */
static void little_cannot_become_too_much(void) {
    enum { SIZE = 256 << 20 };
    char *zeros = calloc(1, SIZE);
    struct recording_head *head = (void *)zeros;
    struct recording_stretch *stretch = (void *)(head + 1);
    *head = (struct recording_head){.size = SIZE, .stretch_count = 1};
    *stretch = (struct recording_stretch){0, SIZE - sizeof *head - sizeof *stretch};
    struct problem problem;
    CHECK_EQUAL(load_made(PART_RECORDING, zeros, SIZE, SIZE, ARCHIVE_VERSION, &problem), -PROBLEM_DAMAGED);
    CHECK(strstr(problem.what, "far too large") != NULL);
    free(zeros);
}

static void names_without_end_do_not_hide_the_recording(void) {
    const char *recording = in_folder(folder, "one.mscope"), *archive = in_folder(folder, "odd.mscar");
    write_recording(recording, 0x3fffffff, RECORDING_FINISHED);
    pack(archive, &recording, 1, true);
    size_t size;
    char *bytes = read_whole(archive, &size);
    bytes[size - sizeof(struct part_head) - 3] ^= 1; /* in the checksum of the names */
    write_file(archive, bytes, size);
    struct model *model;
    if (CHECK(load_model(archive, &model, NULL) == 0)) {
        check_stacks(model, 0);
        CHECK(model->damaged && strstr(model->warning, "names") && !model->processes[0].has_names);
        model_free(model);
    }
    free(bytes);
}

static void an_archive_appears_whole_or_not_at_all(void) {
    struct archive_writer writer;
    const char *path = in_folder(folder, "fresh.mscar");
    CHECK_EQUAL(archive_writer_start(in_folder(folder, "no/where.mscar"), false, &writer), -ENOENT);
    CHECK_EQUAL(archive_writer_start(path, false, &writer), 0);
    CHECK(access(path, F_OK) != 0);
    CHECK_EQUAL(archive_writer_end(&writer, true), -ECANCELED);
    CHECK(access(path, F_OK) != 0);
    make_example(false);
    CHECK_EQUAL(archive_writer_start(in_folder(folder, "one.mscar"), false, &writer), -EEXIST);
    /* A full disk. */
    struct rlimit limit = {300, RLIM_INFINITY};
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &limit);
    struct model *model;
    const char *recording = in_folder(folder, "one.mscope");
    CHECK_EQUAL(archive_writer_start(path, false, &writer), 0);
    if (CHECK(model_load(
                  &(struct model_load_options){.sources = &recording, .source_count = 1, .archive = &writer},
                  &model, NULL) == 0))
        model_free(model);
    CHECK_EQUAL(archive_writer_end(&writer, false), -EFBIG);
    limit.rlim_cur = RLIM_INFINITY;
    setrlimit(RLIMIT_FSIZE, &limit);
    CHECK(access(path, F_OK) != 0);
    char command[256];
    snprintf(command, sizeof command, "test -z \"$(ls %s | grep fresh)\"", folder);
    CHECK(system(command) == 0);
}

int main(void) {
    folder = make_folder();
    a_recording_comes_out_as_it_went_in();
    a_copy_out_of_an_archive_is_a_recording();
    a_program_that_was_killed_stays_killed();
    several_recordings_fit_into_one_archive();
    a_cut_archive_gives_what_is_left();
    damage_is_noticed();
    hostile_archives_are_refused();
    little_cannot_become_too_much();
    names_without_end_do_not_hide_the_recording();
    an_archive_appears_whole_or_not_at_all();
    remove_folder(folder);
    return check_result();
}
