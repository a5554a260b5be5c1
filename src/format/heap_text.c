/* pprof's text formats for heaps: `heap` (the estimates as they are) and `heap_v2` (readers rescale).
 *
 *     heap profile: LIVE OBJECTS: LIVE BYTES [OBJECTS: BYTES] @ heapprofile
 *     1: 2 [3: 4] @ 0xleaf 0xcaller …
 *
 *     MAPPED_LIBRARIES:
 *     start-end r-xp offset device inode path
 *
 * Readers look callers up one byte before the address, the leaf at the address or one byte before it: callers
 * are written as they are (return addresses), the leaf one less. */
#include "format/rescale.h"
#include "format/writers.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

/* Stacks must have an address, and names come from mappings: what is not native gets a page of its own, where
 * no program is, neither in memory nor as linked (google-pprof looks unknown addresses up in the program's
 * file). */
static const uint64_t cut_page = 0x800000001000, dropped_page = 0x800000002000, page_size = 0x1000;

/* Processes may have different files at one address: each is moved into a range of its own. */
#define PROCESS_SHIFT 48
#define PROCESSES_MAX (1u << (64 - PROCESS_SHIFT))

struct line {
    struct raw_value live, total;
};

static uint64_t move(uint32_t process, uint64_t address) {
    return (uint64_t)process << PROCESS_SHIFT | address;
}

/* Where a library was closed, another may have been mapped at its place. Readers look names up by address:
 * all but the first are moved to where no program is. The result says where each module begins; the caller
 * frees it. */
static uint64_t *part_modules(const struct model *model) {
    const uint64_t free_start = 0x810000000000, free_end = UINT64_C(1) << PROCESS_SHIFT;
    uint64_t *starts = calloc(model->module_count + 1, sizeof *starts), end = 0, next = free_start;
    for (size_t i = 0; starts && i < model->module_count; i++) {
        const struct model_module *module = &model->modules[i];
        if (i && module[-1].process != module->process) {
            end = 0;
            next = free_start;
        }
        starts[i] = module->start;
        uint64_t pages = (module->end - module->start + page_size - 1) / page_size + 1;
        if (module->start < end && pages <= (free_end - next) / page_size) {
            starts[i] = next;
            next += pages * page_size;
        } else if (module->end > end) {
            end = module->end;
        }
    }
    return starts;
}

static struct raw_value rounded(double objects, double bytes) {
    struct raw_value raw = {(uint64_t)llround(fmax(objects, 0)), (uint64_t)llround(fmax(bytes, 0))};
    if (raw.bytes > 0 && raw.objects == 0) raw.objects = 1; /* pprof refuses bytes without objects */
    return raw;
}

/* The lines of one stack. */
static size_t make_lines(
    const struct figures *figures, enum value_kind value, uint64_t rate, struct line lines[RESCALE_LINES]) {
    bool at_peak = value == VALUE_PEAK;
    double live_objects = at_peak ? figures->at_peak_objects.value : figures->live_objects.value;
    double live_bytes = at_peak ? figures->at_peak_bytes.value : figures->live_bytes.value;
    double total_objects = figures->total_objects.value, total_bytes = figures->total_bytes.value;

    if (rate == 0) { /* not rescaled */
        lines[0].live = rounded(live_objects, live_bytes);
        lines[0].total = rounded(total_objects, total_bytes);
        return lines[0].live.objects > 0 || lines[0].total.objects > 0;
    }

    struct raw_value live[RESCALE_LINES] = {0}, total[RESCALE_LINES] = {0};
    size_t live_count = rescale_lines(live_objects, live_bytes, (double)rate, live);
    size_t total_count = rescale_lines(total_objects, total_bytes, (double)rate, total);
    for (size_t i = 0; i < RESCALE_LINES; i++) lines[i] = (struct line){live[i], total[i]};
    return live_count > total_count ? live_count : total_count;
}

static void write_numbers(FILE *out, const struct line *line) {
    fprintf(out, "%" PRIu64 ": %" PRIu64 " [%" PRIu64 ": %" PRIu64 "] @", line->live.objects,
        line->live.bytes, line->total.objects, line->total.bytes);
}

static void write_addresses(
    FILE *out, const struct model *model, const uint64_t *starts, const struct model_stack *stack) {
    if (stack->frame_count == 0) fprintf(out, " 0x%" PRIx64, dropped_page + page_size / 2);
    for (uint32_t i = 0; i < stack->frame_count; i++) {
        struct model_place place = model_find_place(model, stack->process, stack->frames[i]);
        uint64_t address = place.address;
        if (place.module) address += starts[place.module - model->modules] - place.module->start;
        address = address ? move(stack->process, address) : cut_page + page_size / 2;
        fprintf(out, " 0x%" PRIx64, i == 0 ? address - 1 : address);
    }
    fputc('\n', out);
}

static void write_mapping(FILE *out, const struct model_module *module, uint64_t start) {
    fprintf(out, "%08" PRIx64 "-%08" PRIx64 " r-xp %08" PRIx64 " %02x:%02x %" PRIu64 " %s\n",
        move(module->process, start), move(module->process, start + (module->end - module->start)),
        module->file_offset, module->device_major, module->device_minor, module->inode, module->path);
}

static void write_page(FILE *out, uint64_t page, const char *name) {
    fprintf(out, "%08" PRIx64 "-%08" PRIx64 " r-xp 00000000 00:00 0 %s\n", page, page + page_size, name);
}

/* `rate` is what readers are to rescale with, or 0. */
static int write_heap(const struct format_input *input, uint64_t rate, FILE *out, struct problem *problem) {
    const struct model *model = input->model;
    struct line lines[RESCALE_LINES], sum = {0};

    if (model->process_count > PROCESSES_MAX)
        return problem_set(problem, PROBLEM_FAILURE, "export fewer recordings at once, or use --format pprof",
            "pprof's text formats hold at most %u processes, these are %zu", PROCESSES_MAX,
            model->process_count);
    uint64_t *starts = part_modules(model);
    if (!starts) return out_of_memory(problem);

    for (size_t i = 0; i < model->stack_count; i++) {
        size_t count = make_lines(&model->stacks[i].figures, input->value, rate, lines);
        for (size_t k = 0; k < count; k++) {
            sum.live.objects += lines[k].live.objects;
            sum.live.bytes += lines[k].live.bytes;
            sum.total.objects += lines[k].total.objects;
            sum.total.bytes += lines[k].total.bytes;
        }
    }
    fputs("heap profile: ", out);
    write_numbers(out, &sum);
    if (rate) {
        fprintf(out, " heap_v2/%" PRIu64 "\n", rate);
    } else {
        fputs(" heapprofile\n", out);
    }

    for (size_t i = 0; i < model->stack_count; i++) {
        size_t count = make_lines(&model->stacks[i].figures, input->value, rate, lines);
        for (size_t k = 0; k < count; k++) {
            write_numbers(out, &lines[k]);
            write_addresses(out, model, starts, &model->stacks[i]);
        }
    }

    fputs("\nMAPPED_LIBRARIES:\n", out);
    for (size_t i = 0; i < model->module_count; i++) write_mapping(out, &model->modules[i], starts[i]);
    free(starts);
    write_page(out, cut_page, "[cut]");
    write_page(out, dropped_page, "[dropped]");
    return 0;
}

int heap_write(const struct format_input *input, FILE *out, struct problem *problem) {
    return write_heap(input, 0, out, problem);
}

int heap_v2_write(const struct format_input *input, FILE *out, struct problem *problem) {
    /* No process's estimates are smaller than its own rate, so the smallest can be written for all. */
    uint64_t rate = input->model->rate;
    for (size_t i = 0; i < input->model->process_count; i++)
        if (input->model->processes[i].rate < rate) rate = input->model->processes[i].rate;
    return write_heap(input, rate > 0 ? rate : 1, out, problem);
}
