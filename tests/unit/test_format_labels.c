/* Heaps, types, scopes and threads in the export formats. */
#include "check.h"
#include "format/format.h"
#include "format/profile.pb-c.h"
#include "labelled_recording.h"
#include "load_model.h"

#include <zlib.h>

static struct labelled labelled;
static char *text;
static size_t size;

static const char *export(const char *name) {
    struct format_input input = {.model = labelled.model, .resolver = labelled.resolver};
    struct problem problem = {0};
    free(text);
    text = NULL;
    FILE *out = open_memstream(&text, &size);
    CHECK_EQUAL(format_write(format_find(name), &input, out, &problem), 0);
    fclose(out);
    return text;
}

/* A semicolon in a name does not become a frame. */
static void collapsed_has_them_as_frames(void) {
    static const char *const lines[] = {
        "[heap malloc];read_config 20\n",
        "[heap malloc];[cut] 10\n",
        "[heap malloc];[thread worker];load_level;[scope load: level];[type struct level] 40\n",
        "[heap malloc];[thread worker];[scope request] 50\n",
        "[heap malloc];[thread worker];read_config;[scope start];load_level;[scope load: level] 500\n",
        "[heap malloc];[thread worker];read_config;[scope start];load_level;[scope load: level];"
        "[type struct level] 300\n",
        "[heap textures];[thread worker];read_config;[scope start];load_level;[scope load: level];"
        "[type struct pixel] 1000\n",
    };
    size_t length = 0;
    export("collapsed");
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        CHECK(strstr(text, lines[i]));
        length += strlen(lines[i]);
    }
    const char *comment = strstr(text, "# bytes that the recorder takes itself: ");
    CHECK(comment && comment == text + length);
}

static void speedscope_has_them_as_frames(void) {
    export("speedscope");
    CHECK(strstr(text, "{\"name\":\"[scope load; level]\"}"));
    CHECK(strstr(text, "{\"name\":\"[heap textures]\"}"));
    CHECK(strstr(text, "{\"name\":\"[type struct pixel]\"}"));
    CHECK(strstr(text, "{\"name\":\"[thread worker]\"}"));
}

/* What differs in labels alone is one line: 1800 bytes of one place. */
static void the_text_for_pprof_keeps_what_has_an_address(void) {
    char line[128];
    export("heap");
    CHECK(strncmp(text, "heap profile: 7: 1920 [7: 1920] @ heapprofile\n", 46) == 0);
    snprintf(line, sizeof line, "\n3: 1800 [3: 1800] @ 0x%" PRIx64 " 0x%" PRIx64 "\n",
        call_in(load_level) - 1, call_in(read_config));
    CHECK(strstr(text, line));
    snprintf(line, sizeof line, "\n1: 20 [1: 20] @ 0x%" PRIx64 "\n", call_in(read_config) - 1);
    CHECK(strstr(text, line));
    CHECK(strstr(text, "\n1: 50 [1: 50] @ 0x800000003800\n"));
    CHECK(strstr(text, "\n800000003000-800000004000 r-xp 00000000 00:00 0 [scopes]\n"));
    CHECK(!strstr(text, "worker"));
}

static const char *label_of(const Pprof__Profile *profile, const Pprof__Sample *sample, const char *key) {
    for (size_t i = 0; i < sample->n_label; i++)
        if (strcmp(profile->string_table[sample->label[i]->key], key) == 0)
            return profile->string_table[sample->label[i]->str];
    return "";
}

static const Pprof__Sample *sample_of(const Pprof__Profile *profile, int64_t bytes) {
    for (size_t i = 0; i < profile->n_sample; i++)
        if (profile->sample[i]->value[3] == bytes) return profile->sample[i];
    abort();
}

static const char *function_at(const Pprof__Profile *profile, const Pprof__Sample *sample, size_t depth) {
    const Pprof__Location *location = profile->location[sample->location_id[depth] - 1];
    return profile->string_table[profile->function[location->line[0]->function_id - 1]->name];
}

static Pprof__Profile *export_pprof(void) {
    static unsigned char plain[65536];
    export("pprof");
    z_stream stream = {
        .next_in = (unsigned char *)text, .avail_in = size, .next_out = plain, .avail_out = sizeof plain};
    CHECK_EQUAL(inflateInit2(&stream, 15 + 16), Z_OK);
    CHECK_EQUAL(inflate(&stream, Z_FINISH), Z_STREAM_END);
    inflateEnd(&stream);
    return pprof__profile__unpack(NULL, stream.total_out, plain);
}

static void pprof_has_labels_and_scopes_as_frames(void) {
    Pprof__Profile *profile = export_pprof();
    CHECK_EQUAL(profile->n_sample, 7);

    const Pprof__Sample *pixel = sample_of(profile, 1000), *level = sample_of(profile, 300);
    CHECK_EQUAL(pixel->n_label, 4);
    CHECK_TEXT(label_of(profile, pixel, "heap"), "textures");
    CHECK_TEXT(label_of(profile, pixel, "type"), "struct pixel");
    CHECK_TEXT(label_of(profile, pixel, "scope"), "load; level");
    CHECK_TEXT(label_of(profile, pixel, "thread"), "worker");
    CHECK_TEXT(label_of(profile, level, "heap"), "malloc");
    CHECK_TEXT(label_of(profile, level, "type"), "struct level");
    CHECK_EQUAL(sample_of(profile, 500)->n_label, 3);
    CHECK_EQUAL(sample_of(profile, 20)->n_label, 1);

    CHECK_EQUAL(pixel->n_location_id, 5);
    CHECK(memcmp(pixel->location_id, level->location_id, 5 * sizeof *pixel->location_id) == 0);
    CHECK_TEXT(function_at(profile, pixel, 0), "load_level");
    CHECK_TEXT(function_at(profile, pixel, 1), "[scope load; level]");
    CHECK_TEXT(function_at(profile, pixel, 2), "[scope start]");
    CHECK_TEXT(function_at(profile, pixel, 3), "read_config");
    CHECK_TEXT(function_at(profile, pixel, 4), "[thread worker]");
    pprof__profile__free_unpacked(profile, NULL);
}

static void json_and_csv_have_fields_for_them(void) {
    export("json");
    CHECK(strstr(text, "\"heaps\":[{\"name\":\"malloc\",\"rate\":1,\"live_bytes\":920,"));
    CHECK(strstr(text, "{\"name\":\"textures\",\"rate\":1,\"live_bytes\":1000,"));
    CHECK(strstr(text,
        "\"heap\":\"textures\",\"type\":\"struct pixel\",\"scope\":\"load; level\",\"live_bytes\":1000,"));
    CHECK(strstr(text, "\"heap\":\"malloc\",\"type\":null,\"scope\":null,\"live_bytes\":20,"));
    CHECK(strstr(text, "{\"function\":\"[scope request]\",\"linkage\":null,\"file\":null,\"line\":0,"
                       "\"module\":null,\"address\":null,\"inlined\":false,\"kind\":\"scope\","
                       "\"name\":\"request\"}"));
    CHECK(strstr(text, "\"kind\":\"thread\",\"name\":\"worker\"}"));
    export("csv");
    CHECK(strstr(text, ",heap,type,scope,recorder_bytes\n"));
    CHECK(strstr(text, ",textures,struct pixel,load; level,"));
    CHECK(strstr(text, ",malloc,,,"));
}

/* The same number is another name in another process. */
static void pprof_names_scopes_of_several_processes(void) {
    struct labelled one = labelled;
    struct made other = made_new(1, 0);
    for (uint32_t i = 1; i <= one.worker; i++) made_name(&other, i == one.request ? "answer" : "other");
    allocated(&other, 0, 0, 77, (const uint64_t[]){scope(one.request)}, 1);
    made_write(&other, in_folder(one.folder, "other.mscope"));
    made_free(&other);
    CHECK(load_model(one.folder, &labelled.model, NULL) == 0);
    labelled.resolver = resolver_new(labelled.model);
    Pprof__Profile *profile = export_pprof();
    CHECK_TEXT(function_at(profile, sample_of(profile, 50), 0), "[scope request]");
    CHECK_TEXT(function_at(profile, sample_of(profile, 77), 0), "[scope answer]");
    CHECK_TEXT(label_of(profile, sample_of(profile, 77), "scope"), "answer");
    pprof__profile__free_unpacked(profile, NULL);
    resolver_free(labelled.resolver);
    model_free(labelled.model);
    labelled = one;
}

int main(void) {
    labelled = labelled_new();
    labelled_load(&labelled);
    collapsed_has_them_as_frames();
    speedscope_has_them_as_frames();
    the_text_for_pprof_keeps_what_has_an_address();
    pprof_has_labels_and_scopes_as_frames();
    json_and_csv_have_fields_for_them();
    pprof_names_scopes_of_several_processes();
    labelled_free(&labelled);
    free(text);
    return check_result();
}
