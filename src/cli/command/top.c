#include "base/memory.h"
#include "base/nanoseconds.h"
#include "cli/command/command.h"
#include "cli/options/options.h"
#include "cli/terminal/message.h"
#include "cli/top/top_reader.h"
#include "cli/top/top_screen.h"

#include <curses.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* The share of one core that readings may take. The pause between readings is cost / BUDGET, at least one second. */
#define BUDGET 0.02

struct top {
    struct top_state state;
    struct top_reader reader;
    double last_progress;
};

static const char about[] =
    "Shows the heap of running programs, live: totals, processes and sites, read anew each second.\n"
    "FILE is a recording or a folder of recordings; PID is a running program that was started with\n"
    "'malloscope run', or attached to. Processes that they start are shown as well. Without any: all\n"
    "recordings that are being written and may be read.\n\n"
    "LIVE      bytes allocated and not freed\n"
    "GROWTH/s  how fast that grows, over the last 5 readings\n"
    "TOTAL     bytes ever allocated\n"
    "TEMP      share of the allocations that were freed within about a millisecond, by whichever thread\n"
    "OLDEST    age of the oldest block that is live\n\n"
    "Keys: s sort, / filter, Enter opens a site's stack, Space freezes, b counts from now on, p shows one\n"
    "process after the other, q quits, ? shows all of them. The programs are not touched: their\n"
    "recordings are read. If that takes more than 2 % of a processor it is done less often, and the\n"
    "screen says so.";

static const char examples[] = "  malloscope top                 all that is being recorded\n"
                               "  malloscope top 4711            a program and its children";

static double clock_now(clockid_t clock) {
    return 1e-9 * (double)nanoseconds_now(clock);
}

static volatile sig_atomic_t interrupted;

static void on_signal(int number) {
    (void)number;
    interrupted = 1;
}

/* Drawing. ncurses compares the lines with what the terminal shows, and sends the difference. */

enum { PAIR_ALARM = 1, PAIR_CURSOR };

static void start_colours(void) {
    const char *unwanted = getenv("NO_COLOR");
    if ((unwanted && *unwanted) || !has_colors() || start_color() == ERR) return;
    use_default_colors();
    init_pair(PAIR_ALARM, COLOR_RED, -1);
    init_pair(PAIR_CURSOR, COLOR_BLACK, COLOR_CYAN);
}

static bool in_colour(void) {
    short foreground, background;
    return pair_content(PAIR_CURSOR, &foreground, &background) == OK && background == COLOR_CYAN;
}

static attr_t attributes_of(enum top_line_style style) {
    switch (style) {
    case LINE_BAR:
        return A_REVERSE;
    case LINE_CURSOR:
        return in_colour() ? (attr_t)COLOR_PAIR(PAIR_CURSOR) : A_REVERSE | A_BOLD;
    case LINE_DIM:
        return A_DIM;
    case LINE_NOTE:
        return A_BOLD;
    default:
        return A_NORMAL;
    }
}

static void draw(struct top *top) {
    struct top_screen screen = top_compose(&top->state, (size_t)COLS, (size_t)LINES);
    erase();
    for (size_t i = 0; i < screen.height; i++) {
        const struct top_screen_line *line = &screen.lines[i];
        if (!line->text) continue;
        int row = (int)i;
        mvaddstr(row, 0, line->text);
        attr_t attributes = attributes_of(line->style);
        mvchgat(row, 0, -1, attributes & ~A_COLOR, PAIR_NUMBER((int)attributes), NULL);
        if (line->alarm_length && line->style != LINE_CURSOR)
            mvchgat(row, (int)line->alarm_from, (int)line->alarm_length, A_BOLD, in_colour() ? PAIR_ALARM : 0,
                NULL);
    }
    top_screen_free(&screen);
    wnoutrefresh(stdscr);
    doupdate();
}

static void show_progress(void *context, size_t done, size_t all) {
    struct top *top = context;
    double now = clock_now(CLOCK_MONOTONIC);
    if (!stdscr || !all || now - top->last_progress < 0.2) return;
    top->last_progress = now;
    cleanup_text char *text = memory_format_text("reading symbols: %zu %%", 100 * done / all);
    mvaddstr(LINES - 1, 0, text);
    clrtoeol();
    refresh();
}

/* Reading */

static void read_again(struct top *top) {
    double start = clock_now(CLOCK_PROCESS_CPUTIME_ID) - top->reader.names_cost,
           now = clock_now(CLOCK_MONOTONIC);
    struct problem problem = {0};
    if (top_reader_find(&top->reader, now, &problem) < 0) top_set_note(&top->state, problem.what, now, 1);
    top_reader_read(&top->reader, now);
    top_arrange(&top->state);
    /* The cost of symbolization does not count: names are looked up only once. */
    double cost = clock_now(CLOCK_PROCESS_CPUTIME_ID) - top->reader.names_cost - start;
    top->state.interval = cost / BUDGET > 1 ? cost / BUDGET : 1;
}

/* Keys */

static int key_of(int key) {
    switch (key) {
    case KEY_UP:
        return TOP_KEY_UP;
    case KEY_DOWN:
        return TOP_KEY_DOWN;
    case KEY_PPAGE:
        return TOP_KEY_PAGE_UP;
    case KEY_NPAGE:
        return TOP_KEY_PAGE_DOWN;
    case KEY_HOME:
        return TOP_KEY_HOME;
    case KEY_END:
        return TOP_KEY_END;
    case KEY_BACKSPACE:
        return TOP_KEY_BACKSPACE;
    case KEY_ENTER:
        return TOP_KEY_ENTER;
    default:
        return key < 0x100 ? key : 0;
    }
}

/* Returns false if the user wants to quit. */
static bool press(struct top *top, int key) {
    if (key == 'L' - '@') clearok(stdscr, true);
    if (key == KEY_RESIZE) return true; /* the next drawing has the new size */
    switch (top_press(&top->state, key_of(key))) {
    case TOP_QUIT:
        return false;
    case TOP_FILTERED:
        top_set_note(&top->state, NULL, clock_now(CLOCK_MONOTONIC), 1e-9);
        top_reader_filter(&top->reader, clock_now(CLOCK_MONOTONIC));
        break;
    case TOP_EXPANDED:
        top_reader_expand(&top->reader);
        break;
    case TOP_DONE:
        break;
    }
    return true;
}

static bool terminal_is_gone(void) {
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    return poll(&input, 1, 0) > 0 && (input.revents & (POLLHUP | POLLERR | POLLNVAL));
}

static void show(struct top *top) {
    double next = 0;
    bool goes_on = true;
    while (goes_on && !interrupted && !terminal_is_gone()) {
        double now = clock_now(CLOCK_MONOTONIC);
        if (now >= next && !top->state.frozen) {
            read_again(top);
            next = now + top->state.interval;
        }
        draw(top);
        double wait = top->state.frozen ? 1 : next - clock_now(CLOCK_MONOTONIC);
        timeout(wait > 0 ? (int)(wait * 1000) + 1 : 1);
        int key = getch();
        while (goes_on && key != ERR) { /* handle all keys that were typed before drawing once */
            goes_on = press(top, key);
            timeout(0);
            key = getch();
        }
    }
}

/* The terminal */

static void leave_screen(void) {
    endwin();
}

static int open_terminal(SCREEN **ret_screen) {
    static const char instead[] = "use 'malloscope report PID' or 'malloscope stats PID --json' in its place";
    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
        return message_error(PROBLEM_FAILURE, instead, "top needs a terminal to show its screen on");
    struct sigaction action = {.sa_handler = on_signal};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGHUP, &action, NULL);
    SCREEN *screen = newterm(NULL, stdout, stdin);
    bool places_cursor = screen && tigetstr("cup");
    if (screen && !places_cursor) {
        endwin();
        delscreen(screen);
    }
    if (!places_cursor) {
        const char *type = getenv("TERM");
        return message_error(PROBLEM_FAILURE,
            "set TERM to what your terminal is, for instance TERM=xterm; or use 'malloscope report PID'",
            "the terminal type TERM='%s' is not known, or cannot place its cursor", type ? type : "");
    }
    memory_short_restores(leave_screen);
    set_escdelay(25);
    cbreak();
    noecho();
    nonl();
    keypad(stdscr, true);
    curs_set(0);
    start_colours();
    *ret_screen = screen;
    return 0;
}

static int run(struct top *top) {
    struct problem problem = {0};
    if (top_reader_find(&top->reader, clock_now(CLOCK_MONOTONIC), &problem) < 0 ||
        top_reader_check(&top->reader, &problem) < 0)
        return message_problem(&problem);
    if (!top->reader.watch_count)
        return message_error(PROBLEM_MISSING,
            "start a program with 'malloscope run -- PROGRAM', or attach to one with 'sudo malloscope attach "
            "PID'",
            "no recording is being written that you may read");
    SCREEN *screen = NULL;
    int code = open_terminal(&screen);
    if (code) return code;
    show(top);
    memory_short_restores(NULL);
    endwin();
    delscreen(screen);
    return 0;
}

int command_top(int argc, char **argv) {
    struct top top = {0};
    struct option_rule rules[] = {
        LOAD_RULES(top.reader.options),
    };
    struct command_line line = {.name = "top",
        .usage = "malloscope top [OPTION]... [FILE|PID]...",
        OPTIONS_TABLE(rules, about, examples),
        .arguments_max = ARGUMENTS_ANY};
    int code;
    if (!options_begin(&line, argc, argv, &code)) return code;
    code = load_check_options(&top.reader.options);
    if (code) return code;
    top_start(&top.state);
    top.reader.state = &top.state;
    top.reader.targets = line.arguments;
    top.reader.target_count = line.argument_count;
    top.reader.progress = show_progress;
    top.reader.context = &top;
    code = run(&top);
    top_reader_free(&top.reader);
    top_free(&top.state);
    return code;
}
