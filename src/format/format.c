#include "format/format.h"
#include "format/writers.h"

#include <errno.h>
#include <string.h>

static const struct format formats[] = {
    {"pprof", "pb.gz", "gzipped profile.proto, for pprof and compatible viewers", pprof_write, FORMAT_BINARY},
    {"heap", "heap", "pprof's text format, values as estimated", heap_text_write, FORMAT_TEXT},
    {"heap_v2", "heap", "pprof's text format, values as sampled: readers rescale them", heap_text_write_v2,
        FORMAT_TEXT},
    {"speedscope", "speedscope.json", "flame graphs in speedscope", speedscope_write, FORMAT_BULKY},
    {"chrome", "trace.json", "Chrome's trace viewer: heap dumps over time (heaps_v2)", chrome_write,
        FORMAT_TRACE},
    {"chrome-v1", "v1.trace.json", "the same in the older form (heaps)", chrome_write_v1, FORMAT_TRACE},
    {"collapsed", "collapsed", "one line a stack for flame graph scripts", collapsed_write, FORMAT_TEXT},
    {"json", "json", "everything: totals, processes, modules, threads, timeline, stacks", json_dump_write,
        FORMAT_BULKY},
    {"csv", "csv", "one line a site, as report --csv", csv_write, FORMAT_TEXT},
    {"html", "html", "a page in one file: flame graph, timeline, sites; as 'malloscope flame'", html_write,
        FORMAT_BULKY},
};

const char *const format_value_names[] = {
    [VALUE_LIVE] = "live",
    [VALUE_PEAK] = "peak",
    [VALUE_TOTAL] = "total",
    [VALUE_OBJECTS] = "objects",
    NULL,
};

const struct format *format_list(size_t *ret_count) {
    *ret_count = sizeof formats / sizeof formats[0];
    return formats;
}

const struct format *format_find(const char *name) {
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++)
        if (strcmp(formats[i].name, name) == 0) return &formats[i];
    return NULL;
}

int format_write(
    const struct format *format, const struct format_input *input, FILE *out, struct problem *problem) {
    errno = 0;
    int r = format->write(input, out, problem);
    if (r < 0) return r;
    if (fflush(out) != 0 || ferror(out))
        return problem_set(problem, PROBLEM_FAILURE, "free some space or choose another place with -o",
            "cannot write the %s output: %s", format->name, errno ? strerror(errno) : "write error");
    return 0;
}

double format_value_of(const struct figures *figures, enum value_kind value) {
    switch (value) {
    case VALUE_LIVE:
        return figures->live_bytes.value;
    case VALUE_PEAK:
        return figures->at_peak_bytes.value;
    case VALUE_TOTAL:
        return figures->total_bytes.value;
    case VALUE_OBJECTS:
        return figures->live_objects.value;
    }
    return 0;
}
