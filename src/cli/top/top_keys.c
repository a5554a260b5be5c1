/* The cursor of `top`, and what each key does to the state. */
#include "base/memory.h"
#include "cli/top/top_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The cursor */

static size_t lines_of(const struct top_site *site) {
    return 1 + (site->expanded ? site->stack_count : 0);
}

size_t top_line_count(const struct top_state *state) {
    size_t lines = 0;
    for (size_t i = 0; i < state->row_count; i++) lines += lines_of(state->rows[i].site);
    return lines;
}

size_t top_cursor_line(const struct top_state *state) {
    size_t lines = 0;
    for (size_t i = 0; i < state->row_count && state->cursor; i++) {
        const struct top_site *site = state->rows[i].site;
        if (site == state->cursor)
            return lines + (state->cursor_offset < lines_of(site) ? state->cursor_offset : 0);
        lines += lines_of(site);
    }
    return 0;
}

static void move_to(struct top_state *state, size_t line) {
    state->cursor = NULL;
    state->cursor_offset = 0;
    for (size_t i = 0; line && i < state->row_count; i++) {
        const struct top_site *site = state->rows[i].site;
        if (line < lines_of(site)) {
            state->cursor = site;
            state->cursor_offset = line;
            return;
        }
        line -= lines_of(site);
        if (i + 1 < state->row_count) state->cursor = state->rows[i + 1].site;
    }
}

static void move_by(struct top_state *state, long lines) {
    long count = (long)top_line_count(state), line = (long)top_cursor_line(state) + lines;
    move_to(state, line < 0 || !count ? 0 : line >= count ? (size_t)count - 1 : (size_t)line);
}

static void show_next_process(struct top_state *state, int step) {
    size_t place = 0; /* 0: all processes are shown; n: the n-th alone */
    for (size_t i = 0; i < state->process_count; i++)
        if (state->processes[i]->number == state->shown) place = i + 1;
    size_t places = state->process_count + 1;
    place = (step > 0 ? place + 1 : place + places - 1) % places;
    state->shown = place ? state->processes[place - 1]->number : 0;
    top_arrange(state);
}

static void sort_by(struct top_state *state, enum top_sort sort) {
    state->sort = sort;
    state->cursor = NULL; /* to the first row: that is what the user wants to see */
    state->first_line = 0;
    top_arrange(state);
}

/* Keys */

static void set_baseline(struct top_state *state, bool on) {
    state->base_time = on ? state->times[state->reading % TOP_LEVELS] : -1;
    for (size_t i = 0; i < state->process_count; i++)
        state->processes[i]->base = on ? state->processes[i]->now : (struct top_amounts){0};
    for (size_t i = 0; i < state->site_count; i++)
        for (size_t k = 0; k < state->sites[i]->cell_count; k++) {
            struct top_cell *cell = &state->sites[i]->cells[k];
            cell->base = on ? cell->now : (struct top_amounts){0};
        }
}

static enum top_action expand(struct top_state *state) {
    struct top_site *site = NULL;
    for (size_t i = 0; i < state->row_count; i++)
        if (state->rows[i].site == state->cursor) site = state->rows[i].site;
    if (!site && state->row_count) site = state->rows[0].site;
    if (!site) return TOP_DONE;
    site->expanded = !site->expanded;
    state->cursor = site;
    state->cursor_offset = 0;
    return TOP_EXPANDED;
}

static enum top_action type(struct top_state *state, int key) {
    size_t length = strlen(state->typed);
    if (key == TOP_KEY_ESCAPE) {
        state->editing = false;
    } else if (key == TOP_KEY_ENTER || key == '\r') {
        state->editing = false;
        free(state->filter);
        state->filter = length ? memory_copy_text(state->typed) : NULL;
        return TOP_FILTERED;
    } else if (key == TOP_KEY_BACKSPACE || key == '\b') {
        while (length && ((unsigned char)state->typed[length - 1] & 0xc0) == 0x80) length--;
        if (length) state->typed[length - 1] = 0;
    } else if (key == 'U' - '@') {
        state->typed[0] = 0;
    } else if (key >= ' ' && key < 0x100 && length + 1 < sizeof state->typed) {
        state->typed[length] = (char)key;
        state->typed[length + 1] = 0;
    }
    return TOP_DONE;
}

enum top_action top_press(struct top_state *state, int key) {
    static const char sort_keys[] = "lgtmo"; /* in the order of enum top_sort */
    if (state->editing) return type(state, key);
    if (key == 'q' || key == 'Q') return TOP_QUIT;
    if (state->helps) {
        state->helps = false;
        return TOP_DONE;
    }
    const char *sort_key = key > 0 && key < 0x80 ? strchr(sort_keys, key) : NULL;
    if (sort_key) sort_by(state, (enum top_sort)(sort_key - sort_keys));
    switch (key) {
    case '?':
    case 'h':
        state->helps = true;
        break;
    case 's':
        sort_by(state, (state->sort + 1) % TOP_SORTS);
        break;
    case 'S':
        sort_by(state, (state->sort + TOP_SORTS - 1) % TOP_SORTS);
        break;
    case '/':
        state->editing = true;
        snprintf(state->typed, sizeof state->typed, "%s", state->filter ? state->filter : "");
        break;
    case TOP_KEY_ENTER:
    case '\r':
        return expand(state);
    case ' ':
    case 'f':
        state->frozen = !state->frozen;
        break;
    case 'b':
    case 'B':
        set_baseline(state, key == 'b');
        top_arrange(state);
        break;
    case 'p':
    case 'P':
        show_next_process(state, key == 'p' ? 1 : -1);
        return TOP_EXPANDED; /* the stacks shown must be those of the process that is shown */
    case TOP_KEY_UP:
    case 'k':
        move_by(state, -1);
        break;
    case TOP_KEY_DOWN:
    case 'j':
        move_by(state, 1);
        break;
    case TOP_KEY_PAGE_UP:
        move_by(state, -(long)state->page);
        break;
    case TOP_KEY_PAGE_DOWN:
        move_by(state, (long)state->page);
        break;
    case TOP_KEY_HOME:
        move_to(state, 0);
        break;
    case TOP_KEY_END:
        move_by(state, (long)top_line_count(state));
        break;
    }
    return TOP_DONE;
}
