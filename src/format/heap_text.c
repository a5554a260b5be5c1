/* pprof's text formats for heaps: `heap`, whose values are the estimates, and `heap_v2`, whose values readers
 * rescale (heap_v2_numbers.h). base/heap_text_format.h shows the format.
 *
 * The format can name only addresses. Scopes, threads, heaps and types are left out, and stacks that differ only in
 * these become one line. */
#include "base/heap_text_format.h"
#include "base/memory.h"
#include "format/heap_v2_numbers.h"
#include "format/intern_table.h"
#include "format/utf8.h"
#include "format/writers.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

/* Processes may have different files at one address, so the addresses of each process are moved into a range of
 * their own: its number is in the upper 16 bits. */
#define PROCESS_SHIFT 48
#define PROCESSES_MAX (1u << (64 - PROCESS_SHIFT))

/* The numbers of a line. */
struct line {
    struct heap_v2_value live, total;
};

/* What was allocated at one list of addresses. */
struct amounts {
    double live_objects, live_bytes, total_objects, total_bytes;
};

/* The distinct lists of addresses, and what was allocated at each. */
struct places {
    struct intern_table addresses;
    struct amounts *amounts; /* by the number of the list */
};

static uint64_t move(uint32_t process, uint64_t address) {
    return (uint64_t)process << PROCESS_SHIFT | address;
}

/* Chooses where each module begins in the output. After a library was closed, another may have been mapped at its
 * addresses. Readers look names up by address, so all but the first module of an address are moved to addresses
 * that no program has. The caller frees the result. */
static uint64_t *part_modules(const struct model *model) {
    const uint64_t free_start = HEAP_TEXT_MOVED, free_end = UINT64_C(1) << PROCESS_SHIFT;
    uint64_t *starts = memory_allocate_array(model->module_count + 1, sizeof *starts), end = 0,
             next = free_start;
    for (size_t i = 0; i < model->module_count; i++) {
        const struct model_module *module = &model->modules[i];
        if (i && module[-1].process != module->process) {
            end = 0;
            next = free_start;
        }
        starts[i] = module->start;
        uint64_t pages = (module->end - module->start + HEAP_TEXT_PAGE - 1) / HEAP_TEXT_PAGE + 1;
        if (module->start < end && pages <= (free_end - next) / HEAP_TEXT_PAGE) {
            starts[i] = next;
            next += pages * HEAP_TEXT_PAGE;
        } else if (module->end > end) {
            end = module->end;
        }
    }
    return starts;
}

static struct heap_v2_value rounded(double objects, double bytes) {
    struct heap_v2_value raw = {(uint64_t)llround(fmax(objects, 0)), (uint64_t)llround(fmax(bytes, 0))};
    if (raw.bytes > 0 && raw.objects == 0) raw.objects = 1; /* pprof refuses bytes without objects */
    return raw;
}

static size_t make_lines(const struct amounts *amounts, uint64_t rate, struct line lines[HEAP_V2_LINES_MAX]) {
    if (rate == 0) { /* readers do not rescale */
        lines[0].live = rounded(amounts->live_objects, amounts->live_bytes);
        lines[0].total = rounded(amounts->total_objects, amounts->total_bytes);
        return lines[0].live.objects > 0 || lines[0].total.objects > 0;
    }

    struct heap_v2_value live[HEAP_V2_LINES_MAX] = {0}, total[HEAP_V2_LINES_MAX] = {0};
    size_t live_count = heap_v2_numbers_lines(amounts->live_objects, amounts->live_bytes, (double)rate, live);
    size_t total_count =
        heap_v2_numbers_lines(amounts->total_objects, amounts->total_bytes, (double)rate, total);
    for (size_t i = 0; i < HEAP_V2_LINES_MAX; i++) lines[i] = (struct line){live[i], total[i]};
    return live_count > total_count ? live_count : total_count;
}

static void write_numbers(FILE *out, const struct line *line) {
    fprintf(out, "%" PRIu64 ": %" PRIu64 " [%" PRIu64 ": %" PRIu64 "] @", line->live.objects,
        line->live.bytes, line->total.objects, line->total.bytes);
}

static bool has_address(uint64_t word) {
    uint64_t kind = word >> FRAME_KIND_SHIFT;
    return kind != FRAME_SCOPE && kind != FRAME_THREAD;
}

/* Lists the addresses of a stack in `addresses`, which has room for its frames and one more. Returns how many there
 * are. */
static size_t list_addresses(
    const struct model *model, const uint64_t *starts, const struct model_stack *stack, uint64_t *addresses) {
    size_t count = 0;
    for (uint32_t i = 0; i < stack->frame_count; i++) {
        if (!has_address(stack->frames[i])) continue;
        struct model_place place = model_find_place(model, stack->process, stack->frames[i]);
        uint64_t address = place.address;
        if (place.module) address += starts[place.module - model->modules] - place.module->start;
        address = address ? move(stack->process, address) : heap_text_format_address(HEAP_TEXT_CUT);
        addresses[count] = count == 0 ? address - 1 : address;
        count++;
    }
    if (count == 0)
        addresses[count++] =
            heap_text_format_address(stack->frame_count ? HEAP_TEXT_SCOPES : HEAP_TEXT_DROPPED);
    return count;
}

static void add_amounts(struct amounts *amounts, const struct figures *figures, bool at_peak) {
    amounts->live_objects += at_peak ? figures->at_peak_objects.value : figures->live_objects.value;
    amounts->live_bytes += at_peak ? figures->at_peak_bytes.value : figures->live_bytes.value;
    amounts->total_objects += figures->total_objects.value;
    amounts->total_bytes += figures->total_bytes.value;
}

static void gather(const struct format_input *input, const uint64_t *starts, struct places *places) {
    const struct model *model = input->model;
    uint32_t longest = 0;
    for (size_t i = 0; i < model->stack_count; i++)
        if (model->stacks[i].frame_count > longest) longest = model->stacks[i].frame_count;
    uint64_t *addresses = memory_allocate_array((size_t)longest + 1, sizeof *addresses);
    places->amounts = memory_allocate_array(model->stack_count + 1, sizeof *places->amounts);
    for (size_t i = 0; i < model->stack_count; i++) {
        size_t count = list_addresses(model, starts, &model->stacks[i], addresses);
        uint32_t place = intern_table_add(&places->addresses, addresses, count * sizeof *addresses);
        add_amounts(&places->amounts[place], &model->stacks[i].figures, input->value == VALUE_PEAK);
    }
    free(addresses);
}

static void write_addresses(FILE *out, const struct intern_table_entry *entry) {
    const uint64_t *addresses = (const uint64_t *)entry->key;
    for (size_t i = 0; i < entry->size / sizeof *addresses; i++) fprintf(out, " 0x%" PRIx64, addresses[i]);
    fputc('\n', out);
}

static void write_lines(FILE *out, const struct places *places, uint64_t rate) {
    struct line lines[HEAP_V2_LINES_MAX], sum = {0};
    for (uint32_t i = 0; i < places->addresses.count; i++) {
        size_t count = make_lines(&places->amounts[i], rate, lines);
        for (size_t k = 0; k < count; k++) {
            sum.live.objects += lines[k].live.objects;
            sum.live.bytes += lines[k].live.bytes;
            sum.total.objects += lines[k].total.objects;
            sum.total.bytes += lines[k].total.bytes;
        }
    }
    fputs(HEAP_TEXT_START, out);
    write_numbers(out, &sum);
    if (rate) {
        fprintf(out, " heap_v2/%" PRIu64 "\n", rate);
    } else {
        fputs(HEAP_TEXT_KIND, out);
    }
    for (uint32_t i = 0; i < places->addresses.count; i++) {
        size_t count = make_lines(&places->amounts[i], rate, lines);
        for (size_t k = 0; k < count; k++) {
            write_numbers(out, &lines[k]);
            write_addresses(out, &places->addresses.entries[i]);
        }
    }
}

/* Writes control characters as \ooo, as the kernel writes line breaks in /proc/PID/maps. */
static void write_path(FILE *out, const char *path) {
    for (size_t length; *path; path += length) {
        size_t control = utf8_control_length(path);
        length = control ? control : 1;
        if (!control) fputc(*path, out);
        for (size_t i = 0; i < control; i++) fprintf(out, "\\%03o", (unsigned char)path[i]);
    }
    fputc('\n', out);
}

static void write_mapping(FILE *out, const struct model_module *module, uint64_t start) {
    fprintf(out, "%08" PRIx64 "-%08" PRIx64 " r-xp %08" PRIx64 " %02x:%02x %" PRIu64 " ",
        move(module->process, start), move(module->process, start + (module->end - module->start)),
        module->file_offset, module->device_major, module->device_minor, module->inode);
    write_path(out, module->path);
}

static void write_page(FILE *out, uint64_t page, const char *name) {
    fprintf(out, "%08" PRIx64 "-%08" PRIx64 " r-xp 00000000 00:00 0 %s\n", page, page + HEAP_TEXT_PAGE, name);
}

/* `rate` is the sampling interval that readers rescale with; 0: they do not rescale. */
static int write_heap(const struct format_input *input, uint64_t rate, FILE *out, struct problem *problem) {
    const struct model *model = input->model;

    if (model->process_count > PROCESSES_MAX)
        return problem_set(problem, PROBLEM_FAILURE, "export fewer recordings at once, or use --format pprof",
            "pprof's text formats hold at most %u processes, these are %zu", PROCESSES_MAX,
            model->process_count);
    struct places places = {0};
    uint64_t *starts = part_modules(model);
    gather(input, starts, &places);
    write_lines(out, &places, rate);
    fprintf(out, "\n" HEAP_TEXT_RECORDER "%" PRIu64 HEAP_TEXT_MODULES, model->totals.recorder_bytes);
    for (size_t i = 0; i < model->module_count; i++) write_mapping(out, &model->modules[i], starts[i]);
    write_page(out, HEAP_TEXT_CUT, HEAP_TEXT_CUT_NAME);
    write_page(out, HEAP_TEXT_DROPPED, HEAP_TEXT_DROPPED_NAME);
    write_page(out, HEAP_TEXT_SCOPES, HEAP_TEXT_SCOPES_NAME);
    free(starts);
    free(places.amounts);
    intern_table_free(&places.addresses);
    return 0;
}

int heap_text_write(const struct format_input *input, FILE *out, struct problem *problem) {
    return write_heap(input, 0, out, problem);
}

int heap_text_write_v2(const struct format_input *input, FILE *out, struct problem *problem) {
    /* The format has one rate for all. An estimate can be written if it is at least the rate (heap_v2_numbers.h),
     * and no estimate of a heap is smaller than the heap's own rate: the smallest rate of any heap serves all of
     * them. */
    uint64_t rate = input->model->rate;
    for (size_t i = 0; i < input->model->heap_count; i++)
        if (input->model->heaps[i].rate < rate) rate = input->model->heaps[i].rate;
    return write_heap(input, rate > 0 ? rate : 1, out, problem);
}
