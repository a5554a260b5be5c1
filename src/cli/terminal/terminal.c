#include "cli/terminal/terminal.h"
#include "cli/terminal/units.h"

#include <langinfo.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static const struct glyphs ascii = {false, "+-", "..", "|", "us", "x", "|", "`", "|"};
static const struct glyphs unicode = {true, "±", "…", "·", "µs", "×", "├", "└", "│"};

static const struct glyphs *chosen = &ascii;

const struct glyphs *terminal_glyphs(void) {
    return chosen;
}

static bool is_set(const char *name) {
    const char *value = getenv(name);
    return value && *value;
}

void terminal_choose_glyphs(void) {
    bool asked = is_set("LC_ALL") || is_set("LC_CTYPE") || is_set("LANG");
    if (!setlocale(LC_CTYPE, asked ? "" : "C.UTF-8")) setlocale(LC_CTYPE, "C.UTF-8");
    chosen = strcmp(nl_langinfo(CODESET), "UTF-8") == 0 ? &unicode : &ascii;
}

static size_t width_of(int fd, bool is_terminal) {
    uint64_t columns;
    const char *text = getenv("COLUMNS");
    struct winsize size;
    if (is_terminal && ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
    if (text && units_parse_count(text, &columns) && columns > 0 && columns < 100000) return columns;
    return is_terminal ? 80 : 0;
}

struct terminal terminal_of(FILE *stream) {
    struct terminal terminal = {.bold = "", .dim = "", .alarm = "", .plain = ""};
    int fd = fileno(stream);
    terminal.is_terminal = isatty(fd);
    terminal.width = width_of(fd, terminal.is_terminal);
    const char *type = getenv("TERM");
    terminal.can_erase = terminal.is_terminal && type && *type && strcmp(type, "dumb") != 0;
    if (terminal.can_erase && !is_set("NO_COLOR")) {
        terminal.bold = "\033[1m";
        terminal.dim = "\033[2m";
        terminal.alarm = "\033[31m";
        terminal.plain = "\033[0m";
    }
    return terminal;
}
