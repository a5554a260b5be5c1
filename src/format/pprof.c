/* The format `pprof`: a gzipped profile.proto, which protobuf-c makes in memory (profile.proto here describes it).
 *
 * Values are the unbiased estimates, rounded. The address of a location is the recorded return address less one,
 * which lies within the call: pprof looks it up as it is. All frames are symbolized, with inlined calls. The has_…
 * flags of a mapping say what was found for all of its locations, so that pprof knows where looking again, with
 * better debug info, is worth the time.
 *
 * Scopes and threads are locations without an address. A scope that is inside of the innermost call is moved
 * outside of it, so that code allocates and not a scope. Scopes, threads, heaps and types are labels as well:
 * `pprof -tags` sums them up, and -tagfocus and -tagroot select by them. */
#include "base/memory.h"
#include "base/path.h"
#include "format/gzip.h"
#include "format/intern_table.h"
#include "format/profile.pb-c.h"
#include "format/utf8.h"
#include "format/writers.h"
#include "model/stack_labels.h"
#include "view/source_frames.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A profile under construction. The tables number its messages: message i of a kind has the id i + 1. */
struct pprof_builder {
    const struct format_input *input;
    Pprof__Profile *profile;
    struct intern_table strings, functions, locations;
    uint64_t *mapping_ids; /* by module */
    bool *mapping_used;    /* by mapping id: a location lies in it */
};

struct function_key {
    uint32_t name, system_name, file, line;
};

struct location_key {
    uint64_t word;    /* the frame word */
    uint64_t process; /* UINT64_MAX: the word means the same in all processes */
};

/* Stands for samples without a stack. No frame word has all bits set. */
static const uint64_t dropped_word = UINT64_MAX;

static int64_t string(struct pprof_builder *builder, const char *text) {
    char *clean = utf8_clean_copy(text ? text : "");
    int64_t number = intern_table_add_text(&builder->strings, clean);
    free(clean);
    return number;
}

/* Appends to a repeated field. The array doubles whenever its length is a power of two. */
static void append(void ***list, size_t *count, void *message) {
    if ((*count & (*count - 1)) == 0)
        *list = memory_reallocate_array(*list, *count ? *count * 2 : 1, sizeof **list);
    (*list)[(*count)++] = message;
}

/* Makes a message of `type`, appends it to the repeated field `field` of `owner` and assigns it to `variable`. */
#define APPEND(owner, field, type, initial, variable)                                                        \
    do {                                                                                                     \
        (variable) = memory_allocate(sizeof *(variable));                                                    \
        *(variable) = (type)initial;                                                                         \
        append((void ***)&(owner)->field, &(owner)->n_##field, variable);                                    \
    } while (0)

static void add_sample_type(struct pprof_builder *builder, const char *type, const char *unit) {
    Pprof__ValueType *value_type;
    APPEND(builder->profile, sample_type, Pprof__ValueType, PPROF__VALUE_TYPE__INIT, value_type);
    value_type->type = string(builder, type);
    value_type->unit = string(builder, unit);
}

static Pprof__Mapping *add_mapping(struct pprof_builder *builder, const char *path) {
    Pprof__Mapping *mapping;
    APPEND(builder->profile, mapping, Pprof__Mapping, PPROF__MAPPING__INIT, mapping);
    mapping->id = builder->profile->n_mapping;
    mapping->filename = string(builder, path);
    return mapping;
}

static void add_module(struct pprof_builder *builder, size_t index) {
    const struct model_module *module = &builder->input->model->modules[index];
    char build_id[2 * sizeof module->build_id + 1] = "";

    for (int i = 0; i < module->build_id_size; i++) sprintf(build_id + 2 * i, "%02x", module->build_id[i]);
    Pprof__Mapping *mapping = add_mapping(builder, module->path);
    mapping->memory_start = module->start;
    mapping->memory_limit = module->end;
    mapping->file_offset = module->file_offset;
    mapping->build_id = string(builder, build_id);
    builder->mapping_ids[index] = mapping->id;
}

/* Adds all modules as mappings. The executable comes first, since pprof takes the first mapping for the program. */
static void add_mappings(struct pprof_builder *builder) {
    const struct model *model = builder->input->model;
    const char *executable = model->process_count ? model->processes[0].executable : NULL;
    size_t main_module = model->module_count;

    for (size_t i = 0; i < model->module_count && executable && main_module == model->module_count; i++)
        if (model->modules[i].process == 0 && strcmp(model->modules[i].path, executable) == 0)
            main_module = i;

    if (main_module < model->module_count) {
        add_module(builder, main_module);
    } else if (executable) {
        add_mapping(builder, executable);
    }
    for (size_t i = 0; i < model->module_count; i++)
        if (i != main_module) add_module(builder, i);
}

static uint64_t function_id(struct pprof_builder *builder, const struct symbol *symbol) {
    struct function_key key = {
        .name = string(builder, symbol->function),
        /* If name and system_name are equal, pprof tries to demangle the name, and mistakes Python's <module> for a
         * mangled one. */
        .system_name = string(builder, symbol->linkage       ? symbol->linkage
                                       : symbol->interpreted ? ""
                                                             : symbol->function),
        .file = string(builder, symbol->file),
        .line = symbol->function_line,
    };
    size_t before = builder->functions.count;
    uint64_t id = (uint64_t)intern_table_add(&builder->functions, &key, sizeof key) + 1;
    if (builder->functions.count == before) return id;

    Pprof__Function *function;
    APPEND(builder->profile, function, Pprof__Function, PPROF__FUNCTION__INIT, function);
    function->id = id;
    function->name = key.name;
    function->system_name = key.system_name;
    function->filename = key.file;
    function->start_line = key.line;
    return id;
}

static void add_line(struct pprof_builder *builder, Pprof__Location *location, const struct symbol *symbol) {
    uint64_t function = function_id(builder, symbol);
    Pprof__Line *line;
    APPEND(location, line, Pprof__Line, PPROF__LINE__INIT, line);
    line->function_id = function;
    line->line = symbol->line;
}

/* A symbol whose function is not known is called by its place: "[libx.so+0x123]". */
static bool is_named(const struct symbol *symbol) {
    return symbol->function[0] != '[';
}

static void note_what_is_known(
    struct pprof_builder *builder, Pprof__Mapping *mapping, const struct symbol_list *symbols) {
    if (!builder->mapping_used
             [mapping->id]) { /* the first location in it: the flags hold until a location says otherwise */
        builder->mapping_used[mapping->id] = true;
        mapping->has_functions = mapping->has_filenames = mapping->has_line_numbers = true;
    }
    for (size_t i = 0; i < symbols->count; i++) {
        mapping->has_functions &= is_named(&symbols->frames[i]);
        mapping->has_filenames &= symbols->frames[i].file != NULL;
        mapping->has_line_numbers &= symbols->frames[i].line > 0;
    }
    /* Debug info that has lines has inlined calls too, and these are always expanded. */
    mapping->has_inline_frames = mapping->has_line_numbers;
}

static uint64_t location_id(struct pprof_builder *builder, const struct model_stack *stack, uint32_t index) {
    bool dropped = stack->frame_count == 0;
    uint64_t word = dropped ? dropped_word : stack->frames[index];
    uint64_t address = dropped ? 0 : model_find_place(builder->input->model, stack->process, word).address;
    bool is_common = dropped || word >> FRAME_KIND_SHIFT == FRAME_CUT;
    struct location_key key = {word, is_common ? UINT64_MAX : stack->process};
    size_t before = builder->locations.count;
    uint64_t id = (uint64_t)intern_table_add(&builder->locations, &key, sizeof key) + 1;
    if (builder->locations.count == before) return id;

    Pprof__Location *location;
    APPEND(builder->profile, location, Pprof__Location, PPROF__LOCATION__INIT, location);
    location->id = id;
    location->address = address ? address - 1 : 0;
    if (dropped) {
        add_line(builder, location, &source_frames_dropped);
        return id;
    }

    struct symbol_list symbols = resolver_look_up(builder->input->resolver, stack, index);
    for (size_t i = 0; i < symbols.count; i++) add_line(builder, location, &symbols.frames[i]);
    if (symbols.module) {
        location->mapping_id = builder->mapping_ids[symbols.module - builder->input->model->modules];
        note_what_is_known(builder, builder->profile->mapping[location->mapping_id - 1], &symbols);
    }
    return id;
}

static void add_label(
    struct pprof_builder *builder, Pprof__Sample *sample, const char *key, const char *value) {
    Pprof__Label *label;
    APPEND(sample, label, Pprof__Label, PPROF__LABEL__INIT, label);
    label->key = string(builder, key);
    label->str = string(builder, value);
}

static void add_process_label(
    struct pprof_builder *builder, Pprof__Sample *sample, const struct model_process *process) {
    char *name = memory_format_text(
        "%s (%d)", process->executable ? path_last_part(process->executable) : "process", process->pid);
    add_label(builder, sample, "process", name);
    free(name);
}

/* pprof merges samples only if their stacks and labels are equal, so that samples with different labels stay apart. */
static void add_labels(
    struct pprof_builder *builder, Pprof__Sample *sample, const struct model_stack *stack) {
    const struct model *model = builder->input->model;
    struct stack_labels labels = stack_labels_of(model, stack);
    if (model->process_count > 1) add_process_label(builder, sample, &model->processes[stack->process]);
    if (model_has_heaps(model)) add_label(builder, sample, "heap", labels.heap);
    if (labels.type) add_label(builder, sample, "type", labels.type);
    if (labels.scope) add_label(builder, sample, "scope", labels.scope);
    if (labels.thread) add_label(builder, sample, "thread", labels.thread);
}

/* Index of the innermost call among the frames; 0 if there is none. */
static size_t innermost_call(const struct model_stack *stack) {
    for (uint32_t i = 0; i < stack->frame_count; i++) {
        uint64_t kind = stack->frames[i] >> FRAME_KIND_SHIFT;
        if (kind != FRAME_SCOPE && kind != FRAME_THREAD) return i;
    }
    return 0;
}

static void put_first(uint64_t *list, size_t index) {
    uint64_t first = list[index];
    memmove(list + 1, list, index * sizeof *list);
    list[0] = first;
}

static void add_sample(struct pprof_builder *builder, const struct model_stack *stack) {
    const struct figures *figures = &stack->figures;
    bool at_peak = builder->input->value == VALUE_PEAK;
    const int64_t values[] = {
        llround(figures->total_objects.value),
        llround(figures->total_bytes.value),
        llround(at_peak ? figures->at_peak_objects.value : figures->live_objects.value),
        llround(at_peak ? figures->at_peak_bytes.value : figures->live_bytes.value),
    };
    if (!values[0] && !values[1] && !values[2] && !values[3]) return;

    Pprof__Sample *sample;
    APPEND(builder->profile, sample, Pprof__Sample, PPROF__SAMPLE__INIT, sample);
    size_t depth = stack->frame_count ? stack->frame_count : 1;
    sample->location_id = memory_allocate_array(depth, sizeof *sample->location_id);
    sample->n_location_id = depth;
    sample->value = memory_copy(values, sizeof values);
    sample->n_value = sizeof values / sizeof values[0];
    for (size_t i = 0; i < depth; i++) sample->location_id[i] = location_id(builder, stack, (uint32_t)i);
    put_first(sample->location_id, innermost_call(stack));
    add_labels(builder, sample, stack);
}

static void add_comment(struct pprof_builder *builder, const char *text) {
    Pprof__Profile *profile = builder->profile;
    profile->comment =
        memory_reallocate_array(profile->comment, profile->n_comment + 1, sizeof *profile->comment);
    profile->comment[profile->n_comment++] = string(builder, text);
}

__attribute__((format(printf, 2, 0))) static void add_number(
    struct pprof_builder *builder, const char *format, double number) {
    cleanup_text char *text = memory_format_text(format, number);
    add_comment(builder, text);
}

static void describe(struct pprof_builder *builder) {
    static const char *const defaults[] = {
        [VALUE_LIVE] = "inuse_space",
        [VALUE_PEAK] = "inuse_space",
        [VALUE_TOTAL] = "alloc_space",
        [VALUE_OBJECTS] = "inuse_objects",
    };
    const struct model *model = builder->input->model;
    Pprof__Profile *profile = builder->profile;

    add_sample_type(builder, "alloc_objects", "count");
    add_sample_type(builder, "alloc_space", "bytes");
    add_sample_type(builder, "inuse_objects", "count");
    add_sample_type(builder, "inuse_space", "bytes");
    profile->default_sample_type = string(builder, defaults[builder->input->value]);

    profile->period = (int64_t)model->rate;
    profile->period_type = memory_allocate(sizeof *profile->period_type);
    *profile->period_type = (Pprof__ValueType)PPROF__VALUE_TYPE__INIT;
    profile->period_type->type = string(builder, "space");
    profile->period_type->unit = string(builder, "bytes");

    add_comment(builder, "malloscope " MALLOSCOPE_VERSION);
    if (builder->input->value == VALUE_PEAK) add_comment(builder, "in use: at the peak of the heap");
    add_number(builder, "bytes that the recorder takes itself: %.0f", (double)model->totals.recorder_bytes);
    add_number(builder, "bytes at the peak of the heap: %.0f", model->totals.peak.value);
    if (!model->exact)
        add_number(
            builder, "half the width of the peak's 95 %% interval: %.0f", estimate_error(model->totals.peak));
    for (size_t i = 0; i < model->process_count; i++) {
        const struct model_process *process = &model->processes[i];
        int64_t duration = (int64_t)(process->duration * 1e9);
        if (i == 0 || (int64_t)process->start_realtime < profile->time_nanos)
            profile->time_nanos = (int64_t)process->start_realtime;
        if (duration > profile->duration_nanos) profile->duration_nanos = duration;
        if (process->command_line && builder->input->full) add_comment(builder, process->command_line);
    }
}

/* Hands the strings to the profile, which frees them. */
static void move_strings(struct pprof_builder *builder) {
    Pprof__Profile *profile = builder->profile;
    profile->string_table = memory_allocate_array(builder->strings.count, sizeof *profile->string_table);
    for (uint32_t i = 0; i < builder->strings.count; i++) {
        profile->string_table[i] = builder->strings.entries[i].key;
        builder->strings.entries[i].key = NULL;
    }
    profile->n_string_table = builder->strings.count;
}

static void build(struct pprof_builder *builder) {
    const struct model *model = builder->input->model;

    builder->profile = memory_allocate(sizeof *builder->profile);
    builder->mapping_ids = memory_allocate_array(model->module_count + 1, sizeof *builder->mapping_ids);
    /* Ids begin at 1, and the executable may be a mapping besides the modules. */
    builder->mapping_used = memory_allocate_array(model->module_count + 2, sizeof *builder->mapping_used);
    *builder->profile = (Pprof__Profile)PPROF__PROFILE__INIT;

    string(builder, "");
    describe(builder);
    add_mappings(builder);
    for (size_t i = 0; i < model->stack_count; i++) add_sample(builder, &model->stacks[i]);
    move_strings(builder);
}

int pprof_write(const struct format_input *input, FILE *out, struct problem *problem) {
    (void)problem;
    struct pprof_builder builder = {.input = input};
    build(&builder);
    uint8_t *bytes = memory_allocate(pprof__profile__get_packed_size(builder.profile));
    gzip_write(out, bytes, pprof__profile__pack(builder.profile, bytes));

    free(bytes);
    pprof__profile__free_unpacked(builder.profile, NULL);
    free(builder.mapping_ids);
    free(builder.mapping_used);
    intern_table_free(&builder.strings);
    intern_table_free(&builder.functions);
    intern_table_free(&builder.locations);
    return 0;
}
