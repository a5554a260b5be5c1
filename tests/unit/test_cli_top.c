/* What the live screen makes of readings and keys, without a terminal. */
#include "base/memory.h"
#include "check.h"
#include "cli/terminal/terminal.h"
#include "cli/terminal/text.h"
#include "cli/top/top_screen.h"

#include <stdlib.h>

#define KIB 1024.0

static struct top_state state;

static void start(void) {
    top_start(&state);
}

static void read_process(struct top_process *process, double live, double total, bool running) {
    struct model_process about = {.state = running ? PROCESS_RUNNING : PROCESS_FINISHED,
        .duration = state.times[state.reading % TOP_LEVELS]};
    struct model model = {.processes = &about, .process_count = 1};
    figures_clear(&model.totals.sum);
    model.totals.sum.live_bytes.value = live;
    model.totals.sum.total_bytes.value = total;
    model.totals.peak.value = live;
    top_set_process(&state, process, &model);
}

static struct top_site *read_site(
    const struct top_process *process, const char *name, double live, double total, double temporary) {
    struct view_row row = {.function = name, .file = "/src/a.c", .line = 7};
    figures_clear(&row.figures);
    row.figures.live_bytes.value = live;
    row.figures.total_bytes.value = total;
    row.figures.total_objects.value = 100;
    row.figures.temporary_objects = temporary;
    row.figures.oldest = live > 0 ? 1000000000 : UINT64_MAX;
    return top_set_site(&state, process, &row);
}

/* `count` readings, a second apart: `leak` grows by 10 KiB a second, `cache` stays, `churn` holds nothing. */
static struct top_process *grow(struct top_process *process, int count) {
    for (int i = 0; i < count; i++) {
        double before = state.reading ? state.times[state.reading % TOP_LEVELS] : 9;
        top_begin_reading(&state, before + 1);
        if (!process) process = top_add_process(&state, 4711, 1, "server");
        double leaked = 10 * KIB * (double)state.reading;
        read_process(process, leaked + 100 * KIB, leaked + 900 * KIB, true);
        read_site(process, "leak", leaked, leaked, 0);
        read_site(process, "cache", 100 * KIB, 100 * KIB, 0);
        read_site(process, "churn", 0, 800 * KIB, 99);
    }
    top_arrange(&state);
    return process;
}

static char *line_of(size_t number, size_t width, size_t height) {
    struct top_screen screen = top_compose(&state, width, height);
    char *text = memory_copy_text(screen.lines[number].text ? screen.lines[number].text : "");
    CHECK(screen.used == height);
    for (size_t i = 0; i < height; i++) CHECK(text_width(screen.lines[i].text) <= width);
    top_screen_free(&screen);
    for (size_t end = strlen(text); end && text[end - 1] == ' '; end--) text[end - 1] = 0;
    return text;
}

#define CHECK_LINE(number, expected)                                                                         \
    do {                                                                                                     \
        char *line_ = line_of(number, 80, 24);                                                               \
        CHECK_TEXT(line_, expected);                                                                         \
        free(line_);                                                                                         \
    } while (0)

static void the_screen_shows_totals_and_sites(void) {
    start();
    grow(NULL, 8);
    CHECK_LINE(0, " malloscope top  server (4711), running for 17.0 s");
    CHECK_LINE(1, " live 180 KiB   +10.0K/s   peak 180 KiB   total 980 KiB");
    CHECK_LINE(2, " 110 KiB ..::++## 180 KiB   last 7.0s");
    CHECK_LINE(3, "   LIVEv  GROWTH/s    TOTAL  TEMP  OLDEST  SITE");
    CHECK_LINE(4, "    100K               100K    0%     16s  cache  /src/a.c:7");
    CHECK_LINE(5, "   80.0K    +10.0K    80.0K    0%     16s  leak  /src/a.c:7");
    CHECK_LINE(6, "       0               800K   99%          churn  /src/a.c:7");
    CHECK_LINE(7, "");
    CHECK_LINE(23, " q quit  ? help  s sort  / filter  Enter stack  Space freeze  b baseline");
    top_free(&state);
}

static void growth_is_known_from_the_second_reading_on(void) {
    start();
    struct top_process *process = grow(NULL, 1);
    CHECK_EQUAL(state.rows[1].growth, 0);
    grow(process, 1);
    CHECK_EQUAL(state.rows[1].growth, 10 * KIB);
    /* A site that comes later has grown from nothing. */
    top_begin_reading(&state, 12);
    read_process(process, 500 * KIB, 500 * KIB, true);
    struct top_site *late = read_site(process, "late", 300 * KIB, 300 * KIB, 0);
    top_arrange(&state);
    CHECK(state.rows[0].site == late);
    CHECK_EQUAL(state.rows[0].growth, 150 * KIB); /* in two seconds */
    /* Its growth is 0 once the window has passed over its first reading. */
    for (int i = 0; i <= TOP_WINDOW; i++) top_begin_reading(&state, 13 + i);
    top_arrange(&state);
    CHECK_EQUAL(state.rows[0].growth, 0);
    top_free(&state);
}

static const char *first(void) {
    return state.row_count ? state.rows[0].site->function : "";
}

static void keys_sort(void) {
    start();
    grow(NULL, 8);
    const struct {
        int key;
        const char *first;
    } cases[] = {{'g', "leak"}, {'t', "churn"}, {'m', "churn"}, {'l', "cache"}, {'s', "leak"}, {'s', "churn"},
        {'S', "leak"}, {'S', "cache"}, {'o', "cache"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CHECK(top_press(&state, cases[i].key) == TOP_DONE);
        CHECK_TEXT(first(), cases[i].first);
    }
    CHECK_LINE(3, "    LIVE  GROWTH/s    TOTAL  TEMP OLDESTv  SITE");
    top_free(&state);
}

static void the_baseline_counts_from_now_on(void) {
    start();
    struct top_process *process = grow(NULL, 8);
    top_press(&state, 'b');
    CHECK_EQUAL(state.row_count, 0);
    CHECK_LINE(4, "  nothing was allocated or freed since the baseline; B leaves it");
    grow(process, 2);
    CHECK_EQUAL(state.row_count, 1);
    CHECK_LINE(1, " live 200 KiB (+20.0K)   +10.0K/s   peak 200 KiB   total +20.0 KiB");
    CHECK_LINE(3, "  +LIVEv  GROWTH/s   +TOTAL  TEMP  OLDEST  SITE");
    CHECK_LINE(4, "  +20.0K    +10.0K   +20.0K           18s  leak  /src/a.c:7");
    top_press(&state, 'B');
    CHECK_EQUAL(state.row_count, 3);
    top_free(&state);
}

static struct frame_text *made_stack(size_t count) {
    struct frame_text *frames = memory_allocate(count * sizeof *frames);
    for (size_t i = 0; i < count; i++)
        frames[i] =
            (struct frame_text){{memory_format_text("frame_%zu", i), memory_copy_text("a.c:1")}, i ? 1 : 3};
    return frames;
}

static void the_cursor_goes_through_an_open_stack_and_stays_with_its_site(void) {
    start();
    struct top_process *process = grow(NULL, 8);
    CHECK(top_press(&state, TOP_KEY_DOWN) == TOP_DONE);
    CHECK(top_press(&state, '\r') == TOP_EXPANDED);
    struct top_site *leak = state.rows[1].site;
    CHECK(leak->expanded);
    top_set_stack(leak, made_stack(30), 30);
    CHECK_EQUAL(top_line_count(&state), 33);
    CHECK_EQUAL(top_cursor_line(&state), 1);
    CHECK_LINE(6, "            frame_0  a.c:1  x 3");
    CHECK_LINE(7, "            frame_1  a.c:1");
    for (int i = 0; i < 31; i++) top_press(&state, 'j');
    CHECK_EQUAL(top_cursor_line(&state), 32); /* churn, the last */
    CHECK_LINE(22, "       0               800K   99%          churn  /src/a.c:7");
    top_press(&state, TOP_KEY_DOWN);
    CHECK_EQUAL(top_cursor_line(&state), 32);
    top_press(&state, TOP_KEY_PAGE_UP);
    CHECK_EQUAL(top_cursor_line(&state), 32 - 19);
    CHECK(state.cursor == leak);
    /* When it grows to the first place, the cursor goes with it. */
    grow(process, 10);
    CHECK_TEXT(first(), "leak");
    CHECK_EQUAL(top_cursor_line(&state), 12);
    top_press(&state, '\n');
    CHECK_EQUAL(top_line_count(&state), 3);
    top_press(&state, TOP_KEY_END);
    CHECK_EQUAL(top_cursor_line(&state), 2);
    top_press(&state, TOP_KEY_HOME);
    CHECK_EQUAL(top_cursor_line(&state), 0);
    top_free(&state);
}

static void a_filter_is_typed(void) {
    start();
    grow(NULL, 2);
    top_press(&state, '/');
    for (const char *c = "leqx"; *c; c++) CHECK(top_press(&state, *c) == TOP_DONE);
    top_press(&state, TOP_KEY_BACKSPACE);
    CHECK_LINE(23, " filter: leq_   Enter takes it, Esc leaves it");
    CHECK(top_press(&state, TOP_KEY_ESCAPE) == TOP_DONE);
    CHECK(!state.filter && !state.editing);
    top_press(&state, '/');
    CHECK_TEXT(state.typed, "");
    for (const char *c = "churn"; *c; c++) top_press(&state, *c);
    CHECK(top_press(&state, '\r') == TOP_FILTERED);
    CHECK_TEXT(state.filter, "churn");
    for (size_t i = 0; i < state.site_count; i++)
        state.sites[i]->matches = strcmp(state.sites[i]->function, "churn") == 0;
    top_arrange(&state);
    CHECK_EQUAL(state.row_count, 1);
    char *line = line_of(3, 80, 24);
    CHECK(strstr(line, "filter: churn"));
    free(line);
    /* More than there is room for is not taken. */
    top_press(&state, '/');
    for (int i = 0; i < 1000; i++) top_press(&state, 'x');
    CHECK(strlen(state.typed) < sizeof state.typed);
    CHECK(top_press(&state, 'q') == TOP_DONE);
    top_free(&state);
}

static void processes_are_a_tree_and_can_be_shown_alone(void) {
    start();
    struct top_process *parent = grow(NULL, 3);
    top_begin_reading(&state, 13);
    struct top_process *grandchild = top_add_process(&state, 50, 60, "grandchild");
    struct top_process *child = top_add_process(&state, 60, 4711, "child");
    struct top_process *other = top_add_process(&state, 9, 1, "other");
    struct top_process *others[] = {grandchild, child, other};
    for (int i = 0; i < 3; i++) {
        read_process(others[i], 10 * KIB, 10 * KIB, true);
        read_site(others[i], "leak", 10 * KIB, 10 * KIB, 0);
    }
    top_arrange(&state);
    CHECK_LINE(0, " malloscope top  4 of 4 processes running");
    CHECK_LINE(3, "     PID     LIVE  GROWTH/s     PEAK    TOTAL     TIME  PROGRAM");
    CHECK_LINE(4, "       9    10.0K              10.0K    10.0K      13s  other");
    CHECK_LINE(5, "    4711     130K    +6.67K     130K     930K      12s  server");
    CHECK_LINE(6, "      60    10.0K              10.0K    10.0K      13s  ` child");
    CHECK_LINE(7, "      50    10.0K              10.0K    10.0K      13s    ` grandchild");
    CHECK_EQUAL(state.rows[1].amounts.live, 60 * KIB); /* leak, of all four */
    for (int i = 0; i < 3; i++) CHECK(top_press(&state, 'p') == TOP_EXPANDED);
    CHECK(state.shown == child->number);
    CHECK_EQUAL(state.row_count, 1);
    CHECK_EQUAL(state.rows[0].amounts.live, 10 * KIB);
    CHECK_LINE(0, " malloscope top  child (60), running for 13.0 s");
    top_press(&state, 'P');
    CHECK(state.shown == parent->number);
    top_press(&state, 'P');
    top_press(&state, 'P');
    CHECK(state.shown == 0);

    /* Processes that have ended count no more, as long as others run. */
    top_begin_reading(&state, 14);
    read_process(child, 10 * KIB, 10 * KIB, false);
    top_arrange(&state);
    CHECK_LINE(6, "      60    10.0K              10.0K    10.0K      14s  ` child (ended)");
    CHECK_EQUAL(state.rows[1].amounts.live, 50 * KIB);
    CHECK_EQUAL(top_level(&state, state.reading), 150 * KIB);
    CHECK_EQUAL(top_growth_of_process(&state, child), 0);
    top_remove_process(&state, child->number);
    top_remove_process(&state, parent->number);
    top_arrange(&state);
    CHECK_EQUAL(state.process_count, 2);
    CHECK_EQUAL(state.row_count, 1);
    CHECK_EQUAL(state.site_count, 1);
    top_free(&state);
}

static void every_size_of_screen_can_be_drawn(void) {
    start();
    grow(NULL, 700); /* more than are kept for the sparkline */
    struct top_process *more = NULL;
    for (int i = 0; i < 20; i++) more = top_add_process(&state, 100 + i, 99 + i, "one of many \t processes");
    read_process(more, 1e15, 1e18, true);
    top_set_stack(state.rows[0].site, made_stack(200), 200);
    state.rows[0].site->expanded = true;
    top_arrange(&state);
    for (size_t width = 1; width < 200; width += 9)
        for (size_t height = 1; height < 80; height += 7)
            for (int mode = 0; mode < 4; mode++) {
                state.helps = mode == 1;
                state.editing = mode == 2;
                top_set_note(&state, mode == 3 ? "note" : NULL, 0, 1);
                top_press(&state, mode == 0 ? TOP_KEY_PAGE_DOWN : 0);
                free(line_of(0, width, height));
            }
    top_free(&state);
}

static void notes_about_what_the_user_did_stay_for_a_while(void) {
    start();
    top_set_note(&state, "no such thing", 10, 5);
    top_set_note(&state, NULL, 12, 0);
    CHECK_TEXT(state.note, "no such thing");
    top_set_note(&state, "all ended", 16, 0);
    CHECK_TEXT(state.note, "all ended");
    top_set_note(&state, NULL, 17, 0);
    CHECK(!state.note);
    top_free(&state);
}

int main(void) {
    setenv("LC_ALL", "C", 1);
    terminal_choose_glyphs();
    the_screen_shows_totals_and_sites();
    growth_is_known_from_the_second_reading_on();
    keys_sort();
    the_baseline_counts_from_now_on();
    the_cursor_goes_through_an_open_stack_and_stays_with_its_site();
    a_filter_is_typed();
    processes_are_a_tree_and_can_be_shown_alone();
    every_size_of_screen_can_be_drawn();
    notes_about_what_the_user_did_stay_for_a_while();
    return check_result();
}
