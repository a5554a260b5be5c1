/* Recordings and archives: whatever they hold, the model takes what makes sense, and all that is shown of it
 * can be shown.
 *
 * An input is a recording (*.mscope), an archive (*.mscar), or an archive that is not packed: checksums would
 * keep changed bytes from getting anywhere.
 *
 *     "UNPACKED" │ part head │ bytes │ part head │ bytes │ …      packed here before they are read
 */
#include "fuzz.h"

#include "core/recording.h"
#include "format/format.h"
#include "model/archive_format.h"
#include "model/model.h"
#include "model/packed.h"
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
    struct resolver *resolver;
    struct problem problem = {0};
    REQUIRE(resolver_new(model, &resolver, &problem) == 0);
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

/* Files that a recording names are fuzz_symbols' part, and would be read from this machine here. */
static void forget_files(struct model *model) {
    for (size_t i = 0; i < model->module_count; i++) model->modules[i].path[0] = '\0';
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
    int r = size % 3 ? model_load(file_path, &model, &problem)
                     : model_load_with_samples((const char *const[]){file_path}, 1, &model, &problem);
    if (r < 0) {
        REQUIRE(problem.what[0]);
        return 0;
    }
    forget_files(model);
    show(model, size);
    model_free(model);
    return 0;
}
