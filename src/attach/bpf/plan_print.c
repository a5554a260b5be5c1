#include "attach/bpf/plan.h"

#include <inttypes.h>
#include <string.h>

#include <libiberty/libiberty.h>

static const char *cost_text(const struct plan_probe *probe) {
    switch (probe->point.cost) {
    case COST_REPLACED:
        return "replaced by a call";
    case COST_EMULATED:
        return "emulated";
    case COST_STEPPED:
        return "single-stepped: slow";
    }
    return "";
}

static const char *watch_text(const struct plan_probe *probe) {
    if (!probe->catches_return) return "call";
    return probe->nests ? "call and return" : "call; return if sampled";
}

static void print_place(FILE *out, const struct plan_probe *probe) {
    char place[64], bytes[32] = "";
    snprintf(place, sizeof place, "%s+0x%" PRIx64, lbasename(probe->module), probe->file_offset);
    size_t length =
        probe->point.length < sizeof probe->point.bytes ? probe->point.length : sizeof probe->point.bytes;
    for (size_t i = 0; i < length; i++) snprintf(bytes + 3 * i, 4, "%02x ", probe->point.bytes[i]);
    fprintf(out, "  %-28s %-24s %-30s %s (%s%s", probe->function, watch_text(probe), place,
        probe->point.instruction[0] ? probe->point.instruction : "?", bytes, cost_text(probe));
    if (probe->distance) fprintf(out, ", %" PRIu64 " bytes in", probe->distance);
    fprintf(out, ")%s\n", probe->throws ? ", may throw" : "");
}

static void print_others(FILE *out, const struct plan *plan, enum function_role role, const char *title) {
    for (size_t i = 0; i < plan->probe_count; i++) {
        if (plan->probes[i].role != role) continue;
        if (title) fprintf(out, "\n%s\n", title);
        title = NULL;
        print_place(out, &plan->probes[i]);
    }
}

void plan_print(FILE *out, const struct plan *plan) {
    fprintf(out, "process %d, %s\n", (int)plan->pid, plan->program);
    for (size_t i = 0; i < plan->layer_count; i++) {
        fprintf(out, "\n%s: %s\n", plan->layers[i].name, plan->layers[i].why);
        for (size_t k = 0; k < plan->probe_count; k++)
            if (plan->probes[k].layer == i) print_place(out, &plan->probes[k]);
    }
    print_others(out, plan, ROLE_MODULES, "libraries that are loaded later are noticed at");
    print_others(out, plan, ROLE_UNWIND, "exceptions that pass through a probe are put right at");
    if (plan->refused_count) fprintf(out, "\nnot probed\n");
    for (size_t i = 0; i < plan->refused_count; i++)
        fprintf(out, "  %s: %s\n", plan->refused[i].what, plan->refused[i].why);
    if (plan->warning_count) fprintf(out, "\nnot seen\n");
    for (size_t i = 0; i < plan->warning_count; i++)
        fprintf(out, "  %s: %s\n", plan->warnings[i].what, plan->warnings[i].why);
}
