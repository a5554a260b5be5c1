/* The traces for Chrome on models made by hand, with names made by hand. What the viewer
 * makes of whole traces is tested in tests/e2e/test_chrome.py. */
#include "check.h"
#include "format/format.h"
#include "no_labels.h"

#include <stdlib.h>

enum { MAIN = 1, LOAD, PARSE, POOL };

static const struct symbol symbols[] = {
    [MAIN] = {.function = "main"},
    [LOAD] = {.function = "load"},
    [PARSE] = {.function = "parse"},
    [POOL] = {.function = "pool_get"},
};

struct symbol_list resolver_look_up(
    struct resolver *resolver, const struct model_stack *stack, uint32_t index) {
    (void)resolver;
    return (struct symbol_list){&symbols[stack->frames[index]], 1, NULL, 0};
}

static const uint64_t parse_frames[] = {PARSE, LOAD, MAIN}, load_frames[] = {LOAD, MAIN},
                      pool_frames[] = {POOL, MAIN};

enum { MALLOC_HEAP, POOL_HEAP };

static struct model_heap heaps[] = {
    [MALLOC_HEAP] = {.name = HEAP_MALLOC}, [POOL_HEAP] = {.number = 1, .name = "pool"}};

#define STACK(words, heap_, type_, live_objects_, live_bytes_, peak_objects_, peak_bytes_)                   \
    {                                                                                                        \
        .frames = words, .frame_count = sizeof words / sizeof words[0], .heap = heap_, .type = type_,        \
        .figures = {.live_objects = {live_objects_, 0},                                                      \
            .live_bytes = {live_bytes_, 0},                                                                  \
            .at_peak_objects = {peak_objects_, 0},                                                           \
            .at_peak_bytes = {peak_bytes_, 0}},                                                              \
    }

static struct model_stack stacks[] = {
    STACK(parse_frames, MALLOC_HEAP, NULL, 3, 3000.4, 5, 5000),
    STACK(load_frames, MALLOC_HEAP, NULL, 1, 16, 1, 16),
    STACK(pool_frames, POOL_HEAP, "Node", 64, 4096, 64, 4096),
};

static struct model_module modules[] = {
    {.start = 0x55000000,
        .end = 0x55010000,
        .path = "/bin/demo",
        .build_id = {0xab, 0x0c},
        .build_id_size = 2},
};

static struct model_process processes[] = {
    {.source = "demo.mscope",
        .pid = 42,
        .executable = "/bin/demo",
        .command_line = "demo 'a b'",
        .start_realtime = 1700000000000000000,
        .duration = 2.5,
        .peak_seconds = 1.25,
        .recorder_bytes = 0x8000},
};

static struct model_moment moments[] = {
    {.seconds = 0.5, .width = 1, .live_max = 4600.25, .live_last = 3000, .events = 20}};

static struct model model = {
    .processes = processes,
    .process_count = 1,
    .stacks = stacks,
    .stack_count = 3,
    .modules = modules,
    .module_count = 1,
    .timeline = moments,
    .moment_count = 1,
    .heaps = heaps,
    .heap_count = 2,
};

static char *text;
static size_t size;

static const char *export(const char *name, const struct format_input *input) {
    struct problem problem;
    free(text);
    text = NULL;
    FILE *out = open_memstream(&text, &size);
    CHECK_EQUAL(format_write(format_find(name), input, out, &problem), 0);
    fclose(out);
    return text;
}

static const char *export_one(const char *name, uint64_t threshold) {
    struct format_input input = {.model = &model, .threshold = threshold};
    return export(name, &input);
}

static size_t count_of(const char *part) {
    size_t count = 0;
    for (const char *at = text; (at = strstr(at, part)); at++) count++;
    return count;
}

#define CHECK_HAS(part)                                                                                      \
    do {                                                                                                     \
        if (!CHECK(strstr(text, part) != NULL)) fprintf(stderr, "  in %s\n", text);                          \
    } while (0)

static void events_have_time_process_and_id(void) {
    export_one("chrome", 0);
    CHECK_HAS("{\"ph\":\"M\",\"cat\":\"__metadata\",\"name\":\"process_name\",\"pid\":42,\"tid\":42,\"ts\":0,"
              "\"args\":{\"name\":\"demo\"}}");
    CHECK_HAS("{\"ph\":\"C\",\"cat\":\"malloscope\",\"name\":\"heap\",\"pid\":42,\"tid\":42,\"ts\":0,"
              "\"args\":{\"live bytes\":4600}}");
    CHECK_HAS("\"ts\":2500000,\"args\":{\"live bytes\":3000}}");
    CHECK_HAS("{\"ph\":\"v\",\"cat\":\"disabled-by-default-memory-infra\",\"name\":\"peak_memory_usage\","
              "\"pid\":42,\"tid\":42,\"ts\":1250000,\"id\":\"0x2\","
              "\"args\":{\"dumps\":{\"level_of_detail\":\"detailed\",");
    CHECK_HAS("\"name\":\"periodic_interval\",\"pid\":42,\"tid\":42,\"ts\":2500000,\"id\":\"0x1\"");
    CHECK(strstr(text, "peak_memory_usage") < strstr(text, "periodic_interval"));
}

static void each_heap_has_totals_and_a_dump(void) {
    export_one("chrome", 0);
    CHECK_HAS("\"malloc\":{\"guid\":\"8\",\"attrs\":{\"size\":{\"type\":\"scalar\",\"units\":\"bytes\","
              "\"value\":\"bc8\"}}}"); /* 3,016 */
    CHECK_HAS("\"pool/allocated_objects\":{\"guid\":\"b\",\"attrs\":{\"size\":{\"type\":\"scalar\","
              "\"units\":\"bytes\",\"value\":\"1000\"},\"object_count\":{\"type\":\"scalar\","
              "\"units\":\"objects\",\"value\":\"40\"}}}");
    CHECK_HAS("\"heaps_v2\":{\"version\":1,\"allocators\":{"
              "\"malloc\":{\"counts\":[3,1],\"sizes\":[3000,16],\"types\":[4,4],\"nodes\":[3,2]},"
              "\"pool\":{\"counts\":[64],\"sizes\":[4096],\"types\":[6],\"nodes\":[4]}},"
              "\"maps\":{\"nodes\":[{\"id\":1,\"name_sid\":1},{\"id\":2,\"name_sid\":2,\"parent\":1},"
              "{\"id\":3,\"name_sid\":3,\"parent\":2},{\"id\":4,\"name_sid\":5,\"parent\":1}],"
              "\"types\":[{\"id\":4,\"name_sid\":4},{\"id\":6,\"name_sid\":6}],"
              "\"strings\":[{\"id\":1,\"string\":\"main\"},{\"id\":2,\"string\":\"load\"},"
              "{\"id\":3,\"string\":\"parse\"},{\"id\":4,\"string\":\"[unknown]\"},"
              "{\"id\":5,\"string\":\"pool_get\"},{\"id\":6,\"string\":\"Node\"}]}}");
}

static void older_dumps_have_totals_by_path_and_type(void) {
    export_one("chrome-v1", 1024);
    CHECK_HAS(
        "\"heaps\":{\"malloc\":{\"entries\":[{\"bt\":\"\",\"size\":\"bc8\",\"count\":\"4\"},"
        "{\"bt\":\"3\",\"type\":\"4\",\"size\":\"bb8\",\"count\":\"3\"},"
        "{\"bt\":\"2\",\"type\":\"4\",\"size\":\"bc8\",\"count\":\"4\"},"
        "{\"bt\":\"1\",\"type\":\"4\",\"size\":\"bc8\",\"count\":\"4\"},"
        "{\"bt\":\"\",\"type\":\"4\",\"size\":\"bc8\",\"count\":\"4\"},"
        "{\"bt\":\"3\",\"size\":\"bb8\",\"count\":\"3\"},"
        "{\"bt\":\"2\",\"size\":\"bc8\",\"count\":\"4\"},{\"bt\":\"1\",\"size\":\"bc8\",\"count\":\"4\"}"
        "]}");
    CHECK_HAS("\"stackFrames\":{\"1\":{\"name\":\"main\"},\"2\":{\"name\":\"load\",\"parent\":\"1\"},"
              "\"3\":{\"name\":\"parse\",\"parent\":\"2\"},\"4\":{\"name\":\"pool_get\",\"parent\":\"1\"}}");
    CHECK_HAS("\"typeNames\":{\"4\":\"[unknown]\",\"6\":\"Node\"}");
    CHECK_EQUAL(count_of("\"name\":\"stackFrames\""), 1);
}

static void the_long_tail_is_left_out(void) {
    export_one("chrome", 4000);
    /* At the peak parse holds 5,000 bytes; at the end, 3,000. */
    CHECK_HAS("\"malloc\":{\"counts\":[5,1],\"sizes\":[5000,16]");
    CHECK_HAS("\"malloc\":{\"counts\":[4],\"sizes\":[3016]");
    CHECK_HAS("\"string\":\"[long tail]\"");

    export_one("chrome-v1", 4000);
    CHECK_HAS("\"malloc\":{\"entries\":[{\"bt\":\"\",\"size\":\"bc8\",\"count\":\"4\"}]}");
    CHECK_HAS("\"threshold_bytes\":4000");
}

static void the_recorder_is_part_of_every_dump(void) {
    static const char *const forms[] = {"chrome", "chrome-v1"};
    for (int i = 0; i < 2; i++) {
        export_one(forms[i], 0);
        CHECK_EQUAL(count_of("\"ph\":\"v\""), 2);
        CHECK_EQUAL(count_of("\"tracing/heap_profiler\":{\"guid\":"), 2);
        CHECK_HAS("\"allocators_graph\":[{\"source\":\"5\",\"target\":\"7\",\"importance\":0,"
                  "\"type\":\"ownership\"}]");
        CHECK_HAS("{\"sa\":\"55000000\",\"sz\":\"10000\",\"pf\":5,\"mf\":\"/bin/demo\",\"id\":\"AB0C\"}");
        CHECK_HAS("{\"sa\":\"0\",\"sz\":\"8000\",\"pf\":134,\"mf\":\"demo.mscope\"}");
    }
}

static void a_collector_outside_is_no_part_of_the_process(void) {
    processes[0].attached = true;
    export_one("chrome", 0);
    CHECK_HAS("\"global/tracing/heap_profiler/42\":{");
    CHECK(!strstr(text, "\"tracing\":"));
    CHECK(!strstr(text, "allocators_graph"));
    CHECK(!strstr(text, "demo.mscope"));
    processes[0].attached = false;
}

static void a_peak_that_is_the_end_is_no_dump_of_its_own(void) {
    struct model before = model;
    struct model_stack level[] = {STACK(load_frames, MALLOC_HEAP, NULL, 1, 16, 1, 16)};
    model.stacks = level;
    model.stack_count = 1;
    export_one("chrome", 0);
    CHECK_EQUAL(count_of("\"ph\":\"v\""), 1);
    CHECK(!strstr(text, "peak_memory_usage"));
    model = before;

    double peak = processes[0].peak_seconds;
    processes[0].peak_seconds = processes[0].duration;
    export_one("chrome", 0);
    CHECK_EQUAL(count_of("\"ph\":\"v\""), 1);
    processes[0].peak_seconds = peak;
}

/* Two recordings of one process, the second made two seconds later, and one of a process that happens to
 * have the same pid. */
static void recordings_are_moments_of_their_processes(void) {
    struct model_process later = processes[0], stranger = processes[0];
    later.duration = 4.5;
    stranger.start_realtime += 1000000000;
    stranger.executable = "/bin/stranger";
    struct model second = model, third = model;
    second.processes = &later;
    third.processes = &stranger;
    struct format_input last = {.model = &third}, middle = {.model = &second, .next = &last},
                        first = {.model = &model, .next = &middle};

    export("chrome", &first);
    /* The peak of the first two is the same. */
    CHECK_EQUAL(count_of("\"ph\":\"v\""), 5);
    CHECK_EQUAL(count_of("\"pid\":42,\"tid\":42,\"ts\":1250000,"), 1);
    CHECK_HAS("\"pid\":42,\"tid\":42,\"ts\":2500000,\"id\":\"0x1\"");
    CHECK_HAS("\"pid\":42,\"tid\":42,\"ts\":4500000,\"id\":\"0x3\"");
    CHECK_HAS("\"pid\":43,\"tid\":43,\"ts\":2250000,\"id\":\"0x6\"");
    CHECK_HAS("\"pid\":43,\"tid\":43,\"ts\":3500000,\"id\":\"0x5\"");
    CHECK_EQUAL(count_of("\"name\":\"process_name\""), 2);
    CHECK_EQUAL(count_of("\"ph\":\"C\""), 4);
    CHECK_EQUAL(count_of("\"guid\":\"1\""), 1);

    export("chrome-v1", &first);
    CHECK_EQUAL(count_of("\"name\":\"typeNames\""), 2);
}

static void processes_of_one_recording_share_the_id(void) {
    struct model_process two[] = {processes[0], processes[0]};
    struct model before = model;
    two[1].pid = 77;
    model.processes = two;
    model.process_count = 2;
    stacks[2].process = heaps[POOL_HEAP].process = 1;
    export_one("chrome", 0);
    CHECK_HAS("\"pid\":42,\"tid\":42,\"ts\":2500000,\"id\":\"0x1\"");
    CHECK_HAS("\"pid\":77,\"tid\":77,\"ts\":2500000,\"id\":\"0x1\"");
    CHECK_EQUAL(count_of("\"id\":\"0x1\""), 2);
    stacks[2].process = heaps[POOL_HEAP].process = 0;
    model = before;
}

/* The viewer would take a slash for a part of another allocator, and a heap for the recorder. */
static void names_of_heaps_are_no_paths_and_not_taken(void) {
    heaps[POOL_HEAP].name = "net/buffers";
    export_one("chrome", 0);
    CHECK_HAS("\"net\xe2\x88\x95"
              "buffers\":{\"guid\"");
    CHECK_HAS("\"net\xe2\x88\x95"
              "buffers\":{\"counts\"");
    heaps[POOL_HEAP].name = "tracing";
    export_one("chrome", 0);
    CHECK_HAS("\"tracing (heap)\":{\"counts\"");
    CHECK_EQUAL(count_of("\"tracing\":{"), 2);
    heaps[POOL_HEAP].name = "pool";
}

static void without_blocks_there_is_only_the_size(void) {
    struct model before = model;
    model.levels_only = true;
    model.stack_count = 0;
    export_one("chrome-v1", 0);
    CHECK_EQUAL(count_of("\"ph\":\"v\""), 0);
    CHECK_EQUAL(count_of("\"ph\":\"C\""), 2);
    model = (struct model){0};
    export_one("chrome", 0);
    CHECK_HAS("{\"traceEvents\":[],");
    model = before;
}

int main(void) {
    events_have_time_process_and_id();
    each_heap_has_totals_and_a_dump();
    older_dumps_have_totals_by_path_and_type();
    the_long_tail_is_left_out();
    the_recorder_is_part_of_every_dump();
    a_collector_outside_is_no_part_of_the_process();
    a_peak_that_is_the_end_is_no_dump_of_its_own();
    recordings_are_moments_of_their_processes();
    processes_of_one_recording_share_the_id();
    names_of_heaps_are_no_paths_and_not_taken();
    without_blocks_there_is_only_the_size();
    free(text);
    return check_result();
}
