#include "cli/output/page.h"
#include "base/memory.h"
#include "cli/terminal/message.h"
#include "cli/words/advice.h"
#include "cli/words/notes.h"
#include "cli/words/summary.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Takes the notes that reports print above their tables, and undoes their wrapping: a line that begins with a blank
 * continues the line before. */
char *page_notes(const struct loaded *loaded) {
    char *text = NULL;
    size_t size = 0, used = 0;
    FILE *memory = memory_stream_open(&text, &size);
    notes_print(memory, loaded->model, SORT_TOTAL);
    advice_print(memory, loaded, SORT_TOTAL);
    const char *about_names = resolver_warning(loaded->resolver);
    if (about_names) fputs(about_names, memory);
    memory_stream_close(memory);
    for (size_t i = 0; i < size; i++) {
        bool wrapped = text[i] == '\n' && text[i + 1] == ' ';
        if (wrapped) i += strspn(text + i + 1, " ");
        text[used++] = wrapped ? ' ' : text[i];
    }
    text[used] = '\0';
    return text;
}

void page_choose_sources(struct page_options *options, bool with_source, bool quiet,
    const struct model *model, const struct model *fresh) {
    int64_t user = model_user(model);
    if (fresh && model_user(fresh) != user) user = -1;
    options->source_user = user;
    if (options->no_source || with_source || user == (int64_t)geteuid()) return;
    options->no_source = true;
    if (quiet) return;
    cleanup_text char *whose = user < 0 ? memory_copy_text("another user's program")
                                        : memory_format_text("a program of user %" PRId64, user);
    message_note(
        "lines of source files are left out, since %s chose their names; --source shows those that this "
        "user may read",
        whose);
}

static int write_with_notes(
    const struct loaded *loaded, struct page_output *page, char *notes, char **sources, size_t source_count) {
    page->options.notes = notes;
    struct format_input input = {
        .model = loaded->model, .resolver = loaded->resolver, .value = VALUE_LIVE, .page = &page->options};
    return output_file_write(&page->output, format_find("html"), &input, sources, source_count);
}

int page_write(const struct loaded *loaded, struct page_output *page, char **sources, size_t source_count) {
    cleanup_text char *notes = page_notes(loaded);
    page_choose_sources(&page->options, page->with_source, page->output.quiet, loaded->model, NULL);
    return write_with_notes(loaded, page, notes, sources, source_count);
}

/* Puts the name of the side, "base" or "new", before each note. */
static void print_side_notes(FILE *out, const char *side, const struct loaded *loaded) {
    cleanup_text char *notes = page_notes(loaded);
    char *rest = notes;
    for (char *line; (line = strsep(&rest, "\n"));)
        if (*line) fprintf(out, "%s: %s\n", side, strncmp(line, "note: ", 6) == 0 ? line + 6 : line);
    if (loaded->model->damaged) fprintf(out, "%s: the recording is damaged, figures may be missing\n", side);
}

int page_write_comparison(const struct loaded *base, const struct loaded *fresh, struct page_output *page) {
    cleanup_text char *notes = NULL;
    size_t size = 0;
    FILE *memory = memory_stream_open(&notes, &size);
    print_side_notes(memory, "base", base);
    print_side_notes(memory, "new", fresh);
    memory_stream_close(memory);
    page_choose_sources(&page->options, page->with_source, page->output.quiet, base->model, fresh->model);
    char *name[] = {(char[]){"malloscope.diff"}};
    return write_with_notes(fresh, page, notes, name, 1);
}
