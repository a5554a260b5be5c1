#include "cli/page.h"
#include "cli/advice.h"
#include "cli/memory.h"
#include "cli/summary.h"

#include <stdlib.h>
#include <string.h>

/* The notes are those above the tables, unwrapped: a line that begins with a blank goes on from the last. */
char *page_notes(const struct loaded *loaded) {
    char *text = NULL;
    size_t size = 0, used = 0;
    FILE *memory = open_memstream(&text, &size);
    if (!memory) return NULL;
    summary_print_notes(memory, loaded->model, SORT_TOTAL);
    advice_print(memory, loaded, SORT_TOTAL);
    const char *about_names = resolver_warning(loaded->resolver);
    if (about_names) fputs(about_names, memory);
    if (fclose(memory) != 0) return NULL;
    for (size_t i = 0; i < size; i++) {
        bool wrapped = text[i] == '\n' && text[i + 1] == ' ';
        if (wrapped) i += strspn(text + i + 1, " ");
        text[used++] = wrapped ? ' ' : text[i];
    }
    text[used] = '\0';
    return text;
}

int page_write(const struct loaded *loaded, struct page_wishes *page, char **sources, size_t source_count) {
    cleanup_text char *notes = page_notes(loaded);
    page->options.notes = notes;
    struct format_input input = {
        .model = loaded->model, .resolver = loaded->resolver, .value = VALUE_LIVE, .page = &page->options};
    return output_write(&page->output, format_find("html"), &input, sources, source_count);
}
