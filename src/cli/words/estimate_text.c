#include "cli/words/estimate_text.h"
#include "base/memory.h"
#include "cli/terminal/terminal.h"
#include "cli/terminal/units.h"

#include <stdlib.h>

static char *with_error(struct estimate estimate, struct unit_text (*text_of)(double)) {
    double error = estimate_error(estimate);
    if (error <= 0) return memory_copy_text(text_of(estimate.value).text);
    return memory_format_text(
        "%s %s %s", text_of(estimate.value).text, terminal_glyphs()->plus_minus, text_of(error).text);
}

char *estimate_text_bytes(struct estimate estimate) {
    return with_error(estimate, units_bytes);
}

char *estimate_text_share(struct estimate estimate) {
    double error = estimate_error(estimate);
    if (!(error > 0) || !(estimate.value > 0)) return NULL;
    return memory_format_text(
        "%s%s", terminal_glyphs()->plus_minus, units_percent(error / estimate.value).text);
}

/* At most: the peak may have been at a moment when it did not seem so. */
#define ERRORS_ABOVE 1.25

char *estimate_text_peak(const struct totals *totals) {
    char *text = estimate_text_bytes(totals->peak);
    if (!(totals->peak_at_most > totals->peak.value + ERRORS_ABOVE * estimate_error(totals->peak)))
        return text;
    char *whole = memory_format_text("%s, at most %s", text, units_bytes(totals->peak_at_most).text);
    free(text);
    return whole;
}

char *estimate_text_count(struct estimate estimate) {
    return with_error(estimate, units_count);
}
