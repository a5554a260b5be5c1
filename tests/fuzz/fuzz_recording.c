/* Recordings and archives: whatever they hold, the model takes what makes sense, and all that is shown of it
 * can be shown.
 *
 * An input is a recording (*.mscope), an archive (*.mscar), or an archive that is not packed: checksums would
 * keep changed bytes from getting anywhere.
 *
 *     "UNPACKED" │ part head │ bytes │ part head │ bytes │ …      packed here before they are read
 *
 * Files that a recording names are not looked for: symbol_file_search is replaced by the linker (--wrap). They are
 * fuzz_symbols' part, and would be this machine's here. */
#include "fuzz.h"

#include "base/packer.h"
#include "cli/command/command.h"
#include "core/recording.h"
#include "format/format.h"
#include "model/archive_format.h"
#include "model/model.h"
#include "symbol/symbol_file_search.h"
#include "view/leaks.h"
#include "view/view.h"

#include <sys/mman.h>

#define UNPACKED_MAGIC "UNPACKED"
#define MAGIC_SIZE     8

static int file;
static char file_path[64];
static FILE *nowhere;

int LLVMFuzzerInitialize(int *argc, char ***argv) {
    (void)argc, (void)argv;
    file = memfd_create("input", MFD_CLOEXEC);
    snprintf(file_path, sizeof file_path, "/proc/self/fd/%d", file);
    nowhere = fopen("/dev/null", "we");
    REQUIRE(file >= 0 && nowhere);
    setenv("MALLOSCOPE_NO_CACHE", "1", 1);
    return 0;
}

/* A recording that is said to be written now would have this machine searched for its process. */
static void put_recording(const uint8_t *bytes, size_t size) {
    struct recording_header *header = (struct recording_header *)input_text(bytes, size);
    if (size >= sizeof *header) {
        header->pid = 0x3fffffff; /* beyond any limit of process numbers */
        header->writer = 0;
    }
    file_put(file, header, size);
    free(header);
}

static void put_part(struct input *input) {
    struct part_head head;
    input_take(input, &head, sizeof head);
    size_t size = head.size < input->size ? (size_t)head.size : input->size;
    off_t start = lseek(file, 0, SEEK_CUR);
    REQUIRE(start >= 0 && write(file, &head, sizeof head) == (ssize_t)sizeof head);
    struct packer *packer = packer_new(file, PACKED_FAST);
    REQUIRE(packer && packer_write(packer, input->bytes, size) == 0);
    REQUIRE(packer_end(packer, &head.packed_size) == 0);
    head.size = size;
    REQUIRE(pwrite(file, &head, sizeof head, start) == (ssize_t)sizeof head);
    input->bytes += size;
    input->size -= size;
}

static void put_archive(struct input input) {
    struct archive_head head = {.magic = ARCHIVE_MAGIC, .version = ARCHIVE_VERSION};
    const struct part_head end = {.kind = PART_END};
    file_put(file, &head, sizeof head);
    while (input.size) put_part(&input);
    REQUIRE(write(file, &end, sizeof end) == (ssize_t)sizeof end);
}

/* The views and formats, one of each an input: which of them, its size decides. */
static void show(const struct model *model, size_t choice) {
    struct problem problem = {0};
    struct resolver *resolver = resolver_new(model);
    resolver_resolve_all(resolver, NULL, NULL);

    struct view_rows rows;
    struct view_query query = {.by = (enum view_by)(choice % (BY_STACK + 1)),
        .sort = (enum view_sort)(choice / 2 % (SORT_TEMPORARY + 1)),
        .raw_sites = choice / 4 % 2};
    REQUIRE(view_rows_query(model, resolver, &query, &rows, &problem) == 0);
    view_rows_free(&rows);
    struct leaks leaks;
    if (query.by == BY_THREAD) query.by = BY_STACK; /* what is live belongs to no thread */
    REQUIRE(leaks_find(model, resolver, &query, NULL, &leaks, &problem) == 0);
    leaks_free(&leaks);

    size_t count;
    const struct format *formats = format_list(&count), *format = &formats[choice % count];
    if (strcmp(format->name, "html") == 0 && choice / count % 8) format = &formats[0]; /* it is large */
    struct format_input input = {
        .model = model, .resolver = resolver, .value = (enum value_kind)(choice % 4)};
    int r = format_write(format, &input, nowhere, &problem);
    REQUIRE(r == 0 || problem.what[0]);
    resolver_free(resolver);
}

/* As a user would have it. Which command, the input's size decides. */
static void run_command(size_t choice) {
    static const char *const lines[][4] = {{"report", "-v"}, {"report", "--json", "-n0"},
        {"report", "--by", "thread"}, {"report", "--csv"}, {"tree"}, {"leaks", "-v"}, {"leaks", "--json"},
        {"info"}, {"stats"}, {"stats", "--json"}, {"timeline"}, {"timeline", "--json"}};
    const char *const *line = lines[choice % (sizeof lines / sizeof *lines)];
    char *arguments[6] = {0};
    int count = 0;
    for (; line[count]; count++) arguments[count] = (char *)(uintptr_t)line[count]; /* which are only read */
    arguments[count] = file_path;
    int code = command_find(line[0])->run(count + 1, arguments);
    /* Several recordings in one archive are not what timeline is for. */
    REQUIRE(code == 0 || code == PROBLEM_DAMAGED || code == PROBLEM_USAGE);
}

enum symbol_file_trouble __wrap_symbol_file_search(
    const struct model_module *module, const struct symbol_file_roots *search, struct found_file *ret_found);

enum symbol_file_trouble __wrap_symbol_file_search(
    const struct model_module *module, const struct symbol_file_roots *search, struct found_file *ret_found) {
    (void)module, (void)search, (void)ret_found;
    return SYMBOL_FILE_MISSING;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    if (size >= MAGIC_SIZE && memcmp(bytes, UNPACKED_MAGIC, MAGIC_SIZE) == 0)
        put_archive((struct input){bytes + MAGIC_SIZE, size - MAGIC_SIZE});
    else if (size >= MAGIC_SIZE && memcmp(bytes, ARCHIVE_MAGIC, MAGIC_SIZE) == 0)
        file_put(file, bytes, size);
    else
        put_recording(bytes, size);

    struct model *model = NULL;
    struct problem problem = {0};
    struct model_load_options options = {
        .sources = (const char *const[]){file_path}, .source_count = 1, .with_samples = size % 3 == 0};
    int r = model_load(&options, &model, &problem);
    if (r < 0) {
        REQUIRE(problem.what[0]);
        return 0;
    }
    if (size % 2) show(model, size / 2);
    model_free(model);
    if (size % 2 == 0) run_command(size / 2);
    return 0;
}
