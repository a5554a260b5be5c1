/* The export formats on a model made by hand, with names made by hand: the resolver is this file's own. */
#include "check.h"
#include "format/format.h"
#include "format/machine_output.h"
#include "format/profile.pb-c.h"
#include "model/module_map.h"
#include "no_labels.h"

#include <stdlib.h>
#include <zlib.h>

#define CUT ((uint64_t)FRAME_CUT << FRAME_KIND_SHIFT)

enum { DEMO, LIBX };

static struct model_module modules[] = {
    [DEMO] = {.start = 0x55000000,
        .end = 0x55010000,
        .file_offset = 0x1000,
        .path = "/bin/demo",
        .build_id = {0xab, 0x0c},
        .build_id_size = 2},
    [LIBX] = {.start = 0x7f0000000000,
        .end = 0x7f0000010000,
        .path = "/lib/libx.so.1",
        .inode = 7,
        .device_major = 8},
};

static const struct symbol main_symbol[] = {{"main", "main", "/src/demo.c", 30, 28, false, false, NULL}};
static const struct symbol grow_symbols[] = {
    {"reserve(int)", "_Z7reservei", "/src/demo.h", 5, 4, true, false, NULL},
    {"grow", "grow", "/src/demo.c", 12, 10, false, false, NULL},
};
static const struct symbol odd_symbol[] = {{"odd;\n\xff\"name", NULL, NULL, 0, 0, false, false, NULL}};
static const struct symbol bare_symbol[] = {{"[libx.so.1+0x300]", NULL, NULL, 0, 0, false, false, NULL}};
static const struct symbol cut_symbol[] = {{"[cut]", NULL, NULL, 0, 0, false, false, NULL}};

struct symbol_list resolver_look_up(
    struct resolver *resolver, const struct model_stack *stack, uint32_t index) {
    (void)resolver;
    switch (stack->frames[index]) {
    case 0x55000200:
    case 0x55000280:
        return (struct symbol_list){main_symbol, 1, &modules[DEMO], 0x1200};
    case 0x55000100:
        return (struct symbol_list){grow_symbols, 2, &modules[DEMO], 0x1100};
    case 0x7f0000000200:
        return (struct symbol_list){odd_symbol, 1, &modules[LIBX], 0x200};
    case 0x7f0000000300:
        return (struct symbol_list){bare_symbol, 1, &modules[LIBX], 0x300};
    default:
        return (struct symbol_list){cut_symbol, 1, NULL, 0};
    }
}

static const uint64_t grow_frames[] = {0x55000100, 0x55000200}, again_frames[] = {0x55000100, 0x55000280};
static const uint64_t odd_frames[] = {0x7f0000000200, 0x55000200, CUT}, bare_frames[] = {0x7f0000000300};

#define STACK(words, live_objects_, live_bytes_, total_objects_, total_bytes_, at_peak_bytes_)               \
    {                                                                                                        \
        .frames = words, .frame_count = sizeof words / sizeof words[0], .flags = STACK_COMPLETE,             \
        .figures = {.live_objects = {live_objects_, 0},                                                      \
            .live_bytes = {live_bytes_, 0},                                                                  \
            .total_objects = {total_objects_, 0},                                                            \
            .total_bytes = {total_bytes_, 0},                                                                \
            .freed_objects = (total_objects_) - (live_objects_),                                             \
            .at_peak_objects = {2, 0},                                                                       \
            .at_peak_bytes = {at_peak_bytes_, 0},                                                            \
            .own_peak_bytes = at_peak_bytes_,                                                                \
            .samples = total_objects_},                                                                      \
    }

static struct model_stack stacks[] = {
    STACK(grow_frames, 3, 3000, 5, 5000, 4000),
    STACK(again_frames, 1, 500, 1, 500, 500),
    STACK(odd_frames, 1.5, 1000.25, 2.5, 2000.75, 0),
    STACK(bare_frames, 0, 0, 10, 640, 64),
    {.frames = NULL,
        .figures = {.live_objects = {1, 0},
            .live_bytes = {100, 400},
            .total_objects = {1, 0},
            .total_bytes = {100, 400},
            .samples = 1}},
};

static struct model_process processes[] = {
    {.source = "demo.mscope",
        .pid = 42,
        .state = PROCESS_FINISHED,
        .flags = RECORDING_EXACT,
        .rate = 1,
        .executable = "/bin/demo",
        .command_line = "demo 'a b'",
        .start_realtime = 1700000000000000000,
        .duration = 2.5},
};

static struct model_thread threads[] = {{.tid = 42, .name = "demo", .exact_bytes = 8240.75, .samples = 20}};
static struct model_moment moments[] = {{.seconds = 0.5, .width = 1, .live_max = 4600.25, .events = 20}};

static struct model_heap heaps[] = {{.name = HEAP_MALLOC}};

static struct model model = {
    .processes = processes,
    .process_count = 1,
    .stacks = stacks,
    .stack_count = 5,
    .modules = modules,
    .module_count = 2,
    .threads = threads,
    .thread_count = 1,
    .timeline = moments,
    .moment_count = 1,
    .heaps = heaps,
    .heap_count = 1,
    .malloc_heap_count = 1,
    .health = {.complete = 0.5, .truncated = 10, .folded = 3, .mean_depth = 1.75, .confidence = "low"},
    .totals = {.recorder_bytes = 81920, .peak = {4564, 0, 0}, .peak_at_most = 4564},
    .exact = true,
    .rate = 1,
};

static char *text;
static size_t size;

static const char *export(const char *name, enum value_kind value) {
    const struct format *format = format_find(name);
    struct format_input input = {.model = &model, .value = value};
    struct problem problem;

    free(text);
    text = NULL;
    if (!CHECK(format != NULL)) exit(1);
    FILE *out = open_memstream(&text, &size);
    CHECK_EQUAL(format_write(format, &input, out, &problem), 0);
    fclose(out);
    return text;
}

/* The line of `all` that starts with `start`, without its end; in a buffer that the next call reuses. */
static const char *line_that_starts(const char *all, const char *start) {
    static char line[4096];
    for (const char *next = all; next && *next; next = strchr(next, '\n') ? strchr(next, '\n') + 1 : NULL)
        if (strncmp(next, start, strlen(start)) == 0) {
            snprintf(line, sizeof line, "%.*s", (int)strcspn(next, "\n"), next);
            return line;
        }
    return NULL;
}

static void formats_are_found_by_name(void) {
    size_t count;
    const struct format *formats = format_list(&count);
    CHECK(count > 0);
    for (size_t i = 0; i < count; i++) CHECK(format_find(formats[i].name) == &formats[i]);
    CHECK(format_find("none") == NULL);
    CHECK_TEXT(format_value_names[VALUE_PEAK], "peak");
}

#define RECORDER_TOOK "# bytes that the recorder takes itself: 81920, in none of the stacks\n"

static void collapsed_merges_equal_lines_and_leaves_zeros_out(void) {
    CHECK_TEXT(export("collapsed", VALUE_LIVE), "main;grow;reserve(int) 3500\n[cut];main;odd: "
                                                "\xef\xbf\xbd\"name 1000\n[dropped] 100\n" RECORDER_TOOK);
    CHECK_TEXT(
        export("collapsed", VALUE_PEAK), "main;grow;reserve(int) 4500\n[libx.so.1+0x300] 64\n" RECORDER_TOOK);
    CHECK_TEXT(export("collapsed", VALUE_OBJECTS),
        "main;grow;reserve(int) 4\n[cut];main;odd: \xef\xbf\xbd\"name 2\n[dropped] 1\n" RECORDER_TOOK);
}

static void heap_writes_estimates_and_addresses_for_its_readers(void) {
    export("heap", VALUE_LIVE);
    CHECK_TEXT(line_that_starts(text, "heap profile"), "heap profile: 7: 4600 [20: 8241] @ heapprofile");
    CHECK_TEXT(line_that_starts(text, "3: 3000"), "3: 3000 [5: 5000] @ 0x550000ff 0x55000200");
    CHECK_TEXT(
        line_that_starts(text, "2: 1000"), "2: 1000 [3: 2001] @ 0x7f00000001ff 0x55000200 0x800000001800");
    CHECK_TEXT(line_that_starts(text, "0: 0"), "0: 0 [10: 640] @ 0x7f00000002ff");
    CHECK_TEXT(line_that_starts(text, "1: 100 "), "1: 100 [1: 100] @ 0x800000002800");
    CHECK_TEXT(line_that_starts(text, "55000000"), "55000000-55010000 r-xp 00001000 00:00 0 /bin/demo");
    CHECK_TEXT(
        line_that_starts(text, "7f00"), "7f0000000000-7f0000010000 r-xp 00000000 08:00 7 /lib/libx.so.1");
    CHECK(strstr(text, "\nMAPPED_LIBRARIES:\n"));
}

static void heap_at_peak_has_peak_figures_in_use(void) {
    export("heap", VALUE_PEAK);
    CHECK_TEXT(line_that_starts(text, "2: 4000"), "2: 4000 [5: 5000] @ 0x550000ff 0x55000200");
}

static void heap_v2_names_the_rate_and_skips_what_has_no_bytes(void) {
    export("heap_v2", VALUE_LIVE);
    CHECK_TEXT(line_that_starts(text, "heap profile"), "heap profile: 7: 4600 [20: 8241] @ heap_v2/1");
    CHECK_TEXT(line_that_starts(text, "3: 3000"), "3: 3000 [5: 5000] @ 0x550000ff 0x55000200");
}

static void processes_do_not_share_addresses_in_text(void) {
    struct model_process two[] = {processes[0], processes[0]};
    struct model before = model;
    model.processes = two;
    model.process_count = 2;
    stacks[0].process = modules[DEMO].process = 1;
    export("heap", VALUE_LIVE);
    CHECK_TEXT(line_that_starts(text, "3: 3000"), "3: 3000 [5: 5000] @ 0x10000550000ff 0x1000055000200");
    CHECK(line_that_starts(text, "1000055000000-1000055010000 "));
    stacks[0].process = modules[DEMO].process = 0;
    model = before;
}

static uint64_t word_of(uint64_t number, uint64_t offset) {
    return (uint64_t)FRAME_MODULE << FRAME_KIND_SHIFT | number << FRAME_MODULE_SHIFT | offset;
}

static void modules_that_had_one_place_are_moved_apart_in_text(void) {
    struct model_module four[] = {modules[DEMO],
        {.start = 0x60000000, .end = 0x60003000, .path = "/lib/a.so", .number = 1, .by_number = true},
        {.start = 0x60000000, .end = 0x60003000, .path = "/lib/b.so", .number = 2, .by_number = true},
        {.start = 0x60002000, .end = 0x60004000, .path = "/lib/c.so", .number = 3, .by_number = true}};
    const struct model_module *numbered[] = {&four[0], &four[1], &four[2], &four[3]};
    const uint64_t frames[] = {word_of(1, 0x10), word_of(2, 0x10), word_of(3, 0x10), 0x55000200};
    struct model_stack stack = stacks[0];
    stack.frames = frames;
    stack.frame_count = 4;
    struct model before = model;
    model.modules = four;
    model.numbered = numbered;
    model.module_count = 4;
    module_map_make(&model);
    model.stacks = &stack;
    model.stack_count = 1;
    export("heap", VALUE_LIVE);
    CHECK_TEXT(line_that_starts(text, "3: 3000 [5: 5000] @"),
        "3: 3000 [5: 5000] @ 0x6000000f 0x810000000010 0x810000004010 0x55000200");
    CHECK(line_that_starts(text, "60000000-60003000 r-xp 00000000 00:00 0 /lib/a.so"));
    CHECK(line_that_starts(text, "810000000000-810000003000 r-xp 00000000 00:00 0 /lib/b.so"));
    CHECK(line_that_starts(text, "810000004000-810000006000 r-xp 00000000 00:00 0 /lib/c.so"));
    free(model.module_ranges);
    model = before;
}

static Pprof__Profile *read_pprof(enum value_kind value) {
    static unsigned char plain[65536];
    export("pprof", value);
    z_stream stream = {
        .next_in = (unsigned char *)text, .avail_in = size, .next_out = plain, .avail_out = sizeof plain};
    CHECK_EQUAL(inflateInit2(&stream, 15 + 16), Z_OK);
    CHECK_EQUAL(inflate(&stream, Z_FINISH), Z_STREAM_END);
    inflateEnd(&stream);
    return pprof__profile__unpack(NULL, stream.total_out, plain);
}

static void pprof_has_types_mappings_and_values(void) {
    Pprof__Profile *profile = read_pprof(VALUE_LIVE);
    char **strings = profile->string_table;

    CHECK_TEXT(strings[0], "");
    CHECK_EQUAL(profile->n_sample_type, 4);
    CHECK_TEXT(strings[profile->sample_type[0]->type], "alloc_objects");
    CHECK_TEXT(strings[profile->sample_type[3]->type], "inuse_space");
    CHECK_TEXT(strings[profile->sample_type[3]->unit], "bytes");
    CHECK_TEXT(strings[profile->default_sample_type], "inuse_space");
    CHECK_EQUAL(profile->time_nanos, 1700000000000000000);
    CHECK_EQUAL(profile->duration_nanos, 2500000000);
    CHECK_EQUAL(profile->period, 1);

    CHECK_EQUAL(profile->n_mapping, 2);
    CHECK_TEXT(strings[profile->mapping[0]->filename], "/bin/demo");
    CHECK_TEXT(strings[profile->mapping[0]->build_id], "ab0c");
    CHECK_EQUAL(profile->mapping[0]->file_offset, 0x1000);
    CHECK(profile->mapping[0]->has_functions && profile->mapping[0]->has_line_numbers);
    CHECK(profile->mapping[0]->has_filenames && profile->mapping[0]->has_inline_frames);
    CHECK(!profile->mapping[1]->has_functions && !profile->mapping[1]->has_line_numbers);

    CHECK_EQUAL(profile->n_sample, 5);
    CHECK_EQUAL(profile->sample[0]->n_value, 4);
    CHECK_EQUAL(profile->sample[0]->value[0], 5);
    CHECK_EQUAL(profile->sample[0]->value[1], 5000);
    CHECK_EQUAL(profile->sample[0]->value[2], 3);
    CHECK_EQUAL(profile->sample[0]->value[3], 3000);
    CHECK_EQUAL(profile->sample[2]->value[1], 2001);
    CHECK_EQUAL(profile->sample[0]->n_label, 0);
    pprof__profile__free_unpacked(profile, NULL);
}

static void pprof_locations_have_inlined_lines_innermost_first(void) {
    Pprof__Profile *profile = read_pprof(VALUE_LIVE);
    char **strings = profile->string_table;
    const Pprof__Location *leaf = profile->location[profile->sample[0]->location_id[0] - 1];

    CHECK_EQUAL(leaf->address, 0x550000ff);
    CHECK_EQUAL(leaf->mapping_id, 1);
    CHECK_EQUAL(leaf->n_line, 2);
    const Pprof__Function *inner = profile->function[leaf->line[0]->function_id - 1];
    CHECK_TEXT(strings[inner->name], "reserve(int)");
    CHECK_TEXT(strings[inner->system_name], "_Z7reservei");
    CHECK_TEXT(strings[inner->filename], "/src/demo.h");
    CHECK_EQUAL(inner->start_line, 4);
    CHECK_EQUAL(leaf->line[0]->line, 5);
    CHECK_TEXT(strings[profile->function[leaf->line[1]->function_id - 1]->name], "grow");

    /* Two call sites of one function are two locations and one function. */
    CHECK(profile->sample[0]->location_id[1] != profile->sample[1]->location_id[1]);
    const Pprof__Location *first = profile->location[profile->sample[0]->location_id[1] - 1];
    const Pprof__Location *second = profile->location[profile->sample[1]->location_id[1] - 1];
    CHECK_EQUAL(first->line[0]->function_id, second->line[0]->function_id);

    const Pprof__Location *cut = profile->location[profile->sample[2]->location_id[2] - 1];
    CHECK_TEXT(strings[profile->function[cut->line[0]->function_id - 1]->name], "[cut]");
    CHECK_EQUAL(cut->address, 0);
    CHECK_EQUAL(cut->mapping_id, 0);
    const Pprof__Location *dropped = profile->location[profile->sample[4]->location_id[0] - 1];
    CHECK_TEXT(strings[profile->function[dropped->line[0]->function_id - 1]->name], "[dropped]");
    pprof__profile__free_unpacked(profile, NULL);
}

static void pprof_begins_with_the_value_asked_for(void) {
    Pprof__Profile *profile = read_pprof(VALUE_PEAK);
    CHECK_EQUAL(profile->sample[0]->value[3], 4000);
    CHECK_TEXT(profile->string_table[profile->default_sample_type], "inuse_space");
    pprof__profile__free_unpacked(profile, NULL);

    profile = read_pprof(VALUE_TOTAL);
    CHECK_TEXT(profile->string_table[profile->default_sample_type], "alloc_space");
    pprof__profile__free_unpacked(profile, NULL);
}

static void pprof_labels_processes_when_there_are_several(void) {
    struct model_process two[] = {processes[0], processes[0]};
    struct model before = model;
    two[1].pid = 43;
    model.processes = two;
    model.process_count = 2;
    stacks[1].process = 1;
    Pprof__Profile *profile = read_pprof(VALUE_LIVE);
    CHECK_EQUAL(profile->sample[1]->n_label, 1);
    CHECK_TEXT(profile->string_table[profile->sample[1]->label[0]->key], "process");
    CHECK_TEXT(profile->string_table[profile->sample[1]->label[0]->str], "demo (43)");
    /* The same address in another process is another location. */
    CHECK(profile->sample[0]->location_id[0] != profile->sample[1]->location_id[0]);
    pprof__profile__free_unpacked(profile, NULL);
    stacks[1].process = 0;
    model = before;
}

static void speedscope_shares_frames_between_its_profiles(void) {
    export("speedscope", VALUE_TOTAL);
    CHECK(strstr(text, "\"activeProfileIndex\":2"));
    CHECK(strstr(text, "{\"name\":\"reserve(int)\",\"file\":\"/src/demo.h\",\"line\":5},"
                       "{\"name\":\"grow\",\"file\":\"/src/demo.c\",\"line\":12}"));
    CHECK(strstr(text, "{\"name\":\"[dropped]\"}"));
    CHECK(strstr(text, "\"name\":\"live bytes\",\"unit\":\"bytes\","
                       "\"samples\":[[2,1,0],[2,1,0],[4,2,3],[6]],\"weights\":[3000,500,1000,100],"
                       "\"startValue\":0,\"endValue\":4600}"));
    CHECK(strstr(text, "\"name\":\"live objects\",\"unit\":\"none\""));
}

static void json_has_frames_and_figures(void) {
    export("json", VALUE_LIVE);
    CHECK(strstr(text, "\"health\":{\"complete\":0.5,\"truncated\":10,\"folded\":3,\"mean_depth\":1.75,"
                       "\"confidence\":\"low\"}"));
    CHECK(strstr(text,
        "{\"function\":\"reserve(int)\",\"linkage\":\"_Z7reservei\",\"file\":\"/src/demo.h\",\"line\":5,"
        "\"module\":\"/bin/demo\",\"address\":\"0x55000100\",\"inlined\":true}"));
    CHECK(strstr(text, "\"frames\":[{\"function\":\"[dropped]\""));
    /* 1 and 2 are the inlined call and its caller at one address, 3 and 4 two call sites in main. */
    CHECK(strstr(text, "\"frames\":[1,2,3]}"));
    CHECK(strstr(text, "\"frames\":[1,2,4]}"));
    CHECK(strstr(text, "\"frames\":[0]}"));
    CHECK(strstr(text, "\"build_id\":\"ab0c\""));
    CHECK(strstr(text, "\"live_bytes\":1000.25"));
    /* variance 400 of 100 bytes: 1.96 * sqrt(400 + 16), see estimate_error */
    CHECK(strstr(text, "\"live_bytes\":100,\"live_error\":39.97"));
}

static void rows_are_written_as_the_contract_says(void) {
    struct view_row row = {.function = "say \"a, b\"",
        .file = NULL,
        .module = "/bin/demo",
        .line = 3,
        .figures = stacks[0].figures};
    char *line;
    size_t length;

    FILE *out = open_memstream(&line, &length);
    machine_output_write_csv_header(out, false);
    machine_output_write_csv_row(out, &row, false, &model);
    fclose(out);
    CHECK(strncmp(line,
              "function,file,line,module,live_bytes,live_error,live_objects,peak_bytes,at_peak_bytes,"
              "total_bytes,total_objects,frees,temporary_objects,samples,",
              140) == 0);
    CHECK(strstr(line, "\n\"say \"\"a, b\"\"\",,3,/bin/demo,3000,0,3,4000,4000,5000,5,2,0,5,"));
    free(line);

    out = open_memstream(&line, &length);
    machine_output_write_csv_header(out, true);
    machine_output_write_csv_row(out, &row, true, &model);
    fclose(out);
    CHECK(strncmp(line, "thread,function,file,line,module,live_bytes,", 44) == 0);
    CHECK(strstr(line, "\n\"say \"\"a, b\"\"\",,,,,,,,,,5000,,,,5,,"));
    free(line);

    struct json json;
    out = open_memstream(&line, &length);
    json_start(&json, out, false);
    machine_output_write_row(&json, &row);
    fclose(out);
    CHECK(strstr(line, "{\"function\":\"say \\\"a, b\\\"\",\"file\":null,\"line\":3,\"module\":\"/bin/demo\","
                       "\"live_bytes\":3000,\"live_error\":0,\"live_objects\":3,\"peak_bytes\":4000,"
                       "\"at_peak_bytes\":4000,\"total_bytes\":5000,\"total_objects\":5,\"frees\":2,"
                       "\"temporary_objects\":0,\"samples\":5,"));
    free(line);
}

static void a_full_disk_is_a_problem(void) {
    struct format_input input = {.model = &model};
    size_t count;
    const struct format *formats = format_list(&count);
    for (size_t i = 0; i < count; i++) {
        struct problem problem = {0};
        FILE *full = fopen("/dev/full", "w");
        CHECK_EQUAL(format_write(&formats[i], &input, full, &problem), -PROBLEM_FAILURE);
        CHECK(strstr(problem.what, "No space left on device"));
        fclose(full);
    }
}

static void an_empty_model_gives_an_empty_export(void) {
    struct model before = model;
    model = (struct model){.health.confidence = "high", .rate = 524288};
    CHECK_TEXT(export("collapsed", VALUE_LIVE),
        "# bytes that the recorder takes itself: 0, in none of the stacks\n");
    CHECK_TEXT(line_that_starts(export("heap_v2", VALUE_LIVE), "heap"),
        "heap profile: 0: 0 [0: 0] @ heap_v2/524288");
    Pprof__Profile *profile = read_pprof(VALUE_LIVE);
    CHECK_EQUAL(profile->n_sample, 0);
    CHECK_EQUAL(profile->n_sample_type, 4);
    pprof__profile__free_unpacked(profile, NULL);
    CHECK(strstr(export("speedscope", VALUE_LIVE), "\"profiles\":["));
    CHECK(strstr(export("json", VALUE_LIVE), "\"stacks\":[]"));
    model = before;
}

int main(void) {
    module_map_make(&model);
    formats_are_found_by_name();
    collapsed_merges_equal_lines_and_leaves_zeros_out();
    heap_writes_estimates_and_addresses_for_its_readers();
    heap_at_peak_has_peak_figures_in_use();
    heap_v2_names_the_rate_and_skips_what_has_no_bytes();
    modules_that_had_one_place_are_moved_apart_in_text();
    processes_do_not_share_addresses_in_text();
    pprof_has_types_mappings_and_values();
    pprof_locations_have_inlined_lines_innermost_first();
    pprof_begins_with_the_value_asked_for();
    pprof_labels_processes_when_there_are_several();
    speedscope_shares_frames_between_its_profiles();
    json_has_frames_and_figures();
    rows_are_written_as_the_contract_says();
    a_full_disk_is_a_problem();
    an_empty_model_gives_an_empty_export();
    free(model.module_ranges);
    free(text);
    return check_result();
}
