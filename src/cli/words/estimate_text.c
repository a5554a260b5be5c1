#include "cli/words/estimate_text.h"
#include "base/memory.h"
#include "cli/terminal/terminal.h"
#include "cli/terminal/units.h"

static char *with_error(struct estimate estimate, struct unit_text (*text_of)(double)) {
    double error = estimate_error(estimate);
    if (error <= 0) return memory_copy_text(text_of(estimate.value).text);
    return memory_format_text(
        "%s %s %s", text_of(estimate.value).text, terminal_glyphs()->plus_minus, text_of(error).text);
}

char *estimate_text_bytes(struct estimate estimate) {
    return with_error(estimate, units_bytes);
}

char *estimate_text_count(struct estimate estimate) {
    return with_error(estimate, units_count);
}
