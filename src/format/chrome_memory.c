/* The recorder's own memory is reported as tracing/heap_profiler, as Chrome reports that of its profiler. The
 * viewer takes it for a part of malloc's memory and of the mapped memory, and subtracts it from both. That is right
 * for Chrome, but the recorder's memory is a mapped file. So the file is reported too: as an allocator `recording`,
 * which tracing is said to own, and as a mapping. The viewer then subtracts the memory from that, and leaves malloc
 * alone. */
#include "format/chrome_memory.h"

#include "base/memory.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define SLASH_ALIKE "\xe2\x88\x95" /* U+2215, which looks like a slash */

#define TRACING      "tracing"
#define RECORDING    "recording"
#define TAKEN_SUFFIX " (heap)"

enum { MAPPED_SHARED = 128, MAPPED_READ = 4, MAPPED_WRITE = 2, MAPPED_EXECUTE = 1 };

char *chrome_memory_allocator_name(const char *heap) {
    bool taken = strcmp(heap, TRACING) == 0 || strcmp(heap, RECORDING) == 0;
    char *name = memory_allocate(strlen(heap) * strlen(SLASH_ALIKE) + sizeof TAKEN_SUFFIX), *end = name;
    for (const char *c = heap; *c; c++) {
        if (*c == '/')
            end = stpcpy(end, SLASH_ALIKE);
        else
            *end++ = *c;
    }
    if (taken) stpcpy(end, TAKEN_SUFFIX);
    return name;
}

static void write_scalar(struct json *json, const char *key, const char *units, uint64_t value) {
    json_key(json, key);
    json_object(json);
    json_key_string(json, "type", "scalar");
    json_key_string(json, "units", units);
    json_key_hexadecimal(json, "value", value);
    json_object_end(json);
}

static void open_allocator(struct json *json, const char *name, uint64_t guid) {
    json_key(json, name);
    json_object(json);
    json_key_hexadecimal(json, "guid", guid);
    json_key(json, "attrs");
    json_object(json);
}

static void close_allocator(struct json *json) {
    json_object_end(json);
    json_object_end(json);
}

static void write_heap(struct json *json, const struct chrome_heap *heap, uint64_t *next_guid) {
    struct heap_amount all = heap->dump.cells[0].total;
    char *objects = memory_format_text("%s/allocated_objects", heap->name);

    open_allocator(json, heap->name, (*next_guid)++);
    write_scalar(json, "size", "bytes", all.bytes);
    close_allocator(json);
    open_allocator(json, objects, (*next_guid)++);
    write_scalar(json, "size", "bytes", all.bytes);
    write_scalar(json, "object_count", "objects", all.objects);
    close_allocator(json);
    free(objects);
}

static void write_overhead(struct json *json, const char *name, uint64_t bytes, uint64_t guid) {
    open_allocator(json, name, guid);
    write_scalar(json, "size", "bytes", bytes);
    write_scalar(json, "resident_size", "bytes", bytes);
    close_allocator(json);
}

/* The collector of an attached program is a process of its own, which is not in the trace. Its memory is reported
 * as global. */
static void write_collector(struct json *json, const struct model_process *process, uint64_t *next_guid) {
    char name[64];
    snprintf(name, sizeof name, "global/" TRACING "/heap_profiler/%d", process->pid);
    write_overhead(json, name, process->recorder_bytes, (*next_guid)++);
}

static void write_owner(struct json *json, uint64_t owner, uint64_t owned) {
    json_key(json, "allocators_graph");
    json_array(json);
    json_object(json);
    json_key_hexadecimal(json, "source", owner);
    json_key_hexadecimal(json, "target", owned);
    json_key_integer(json, "importance", 0);
    json_key_string(json, "type", "ownership");
    json_object_end(json);
    json_array_end(json);
}

static void write_region(struct json *json, const char *path, uint64_t start, uint64_t size, int protection,
    const char *build_id) {
    json_object(json);
    json_key_hexadecimal(json, "sa", start);
    json_key_hexadecimal(json, "sz", size);
    json_key_integer(json, "pf", protection);
    json_key_string(json, "mf", path);
    if (*build_id) json_key_string(json, "id", build_id);
    json_object_end(json);
}

/* A recording knows the code that was mapped, and that it was mapped itself, though not where. How much of these
 * mappings is resident is not known, so that the regions have no byte statistics. */
static void write_regions(struct json *json, const struct model *model, uint32_t process) {
    const struct model_process *mapped_by = &model->processes[process];

    json_key(json, "process_mmaps");
    json_object(json);
    json_key(json, "vm_regions");
    json_array(json);
    for (size_t i = 0; i < model->module_count; i++) {
        const struct model_module *module = &model->modules[i];
        char build_id[2 * sizeof module->build_id + 1] = "";
        if (module->process != process) continue;
        for (int k = 0; k < module->build_id_size; k++)
            sprintf(build_id + 2 * k, "%02X", module->build_id[k]);
        write_region(json, module->path, module->start, module->end - module->start,
            MAPPED_READ | MAPPED_EXECUTE, build_id);
    }
    if (!mapped_by->attached)
        write_region(json, mapped_by->source, 0, mapped_by->recorder_bytes,
            MAPPED_READ | MAPPED_WRITE | MAPPED_SHARED, "");
    json_array_end(json);
    json_object_end(json);
}

void chrome_memory_write(struct json *json, const struct model *model, uint32_t process,
    const struct chrome_heap *heaps, size_t count, uint64_t *next_guid) {
    const struct model_process *recorded = &model->processes[process];
    uint64_t tracing = 0, recording = 0;

    json_key(json, "allocators");
    json_object(json);
    for (size_t i = 0; i < count; i++) write_heap(json, &heaps[i], next_guid);
    if (recorded->attached) {
        write_collector(json, recorded, next_guid);
    } else {
        tracing = (*next_guid)++;
        write_overhead(json, TRACING, recorded->recorder_bytes, tracing);
        write_overhead(json, TRACING "/heap_profiler", recorded->recorder_bytes, (*next_guid)++);
        recording = (*next_guid)++;
        write_overhead(json, RECORDING, recorded->recorder_bytes, recording);
    }
    json_object_end(json);
    if (!recorded->attached) write_owner(json, tracing, recording);
    write_regions(json, model, process);
}
