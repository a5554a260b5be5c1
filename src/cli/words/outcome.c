#include "cli/words/outcome.h"
#include "base/memory.h"
#include "cli/terminal/message.h"
#include "cli/terminal/pieces.h"
#include "cli/terminal/terminal.h"
#include "cli/terminal/text.h"
#include "cli/terminal/units.h"
#include "cli/words/estimate_text.h"
#include "cli/words/notes.h"
#include "cli/words/summary.h"
#include "model/load_recording.h"

char *outcome_path(const char *path) {
    return text_clean(text_path_from_here(path));
}

void outcome_print(const char *recording, double seconds, struct outcome_more more) {
    struct problem problem = {0};
    struct model *model;
    cleanup_text char *path = outcome_path(recording);
    if (load_recording_alone(recording, &model, &problem) < 0) {
        message_problem(&problem);
        return;
    }
    const struct totals *totals = &model->totals;
    struct terminal terminal = terminal_of(stderr);
    struct pieces pieces = {.out = stderr, .width = terminal.width, .indent = "  "};
    fprintf(stderr, "malloscope: recorded %s\n", path);
    pieces_add(&pieces, "%s", units_seconds(seconds).text);
    cleanup_text char *peak = estimate_text_peak(totals);
    pieces_add(&pieces, "peak %s", peak);
    cleanup_text char *live = estimate_text_bytes(totals->sum.live_bytes);
    pieces_add(&pieces, "live at the end %s", live);
    summary_add_total(&pieces, model);
    if (model->exact)
        pieces_add(&pieces, "%s%s", units_counted(totals->sum.total_objects.value, "allocation").text,
            notes_is_whole(model) ? ", exact" : "");
    else
        pieces_add(&pieces, "%s", units_counted((double)totals->sum.samples, "sample").text);
    pieces_end(&pieces);
    notes_print(stderr, model, SORT_TOTAL);
    if (more.unrecorded) text_print_titled(stderr, "not recorded:", more.unrecorded);
    if (more.recordings) fprintf(stderr, "  %s\n", more.recordings);
    bool leaks = totals->sum.live_bytes.value > 0 && summary_default_sort(model) == SORT_LIVE;
    const char *second = leaks ? "leaks" : "tree";
    cleanup_text char *word = text_shell_word(path);
    fprintf(stderr, "  next: malloscope report %s\n        malloscope %s %s\n", word, second, word);
    model_free(model);
}
