/* Numbers and names as the command prints them. */
#include "check.h"
#include "cli/options/spelling.h"
#include "cli/terminal/sheet.h"
#include "cli/terminal/terminal.h"
#include "cli/terminal/text.h"
#include "cli/terminal/units.h"
#include "cli/words/site_text.h"

#include <stdint.h>
#include <stdlib.h>

static void bytes_have_three_digits_that_count(void) {
    CHECK_TEXT(units_bytes(0).text, "0 B");
    CHECK_TEXT(units_bytes(1023).text, "1023 B");
    CHECK_TEXT(units_bytes(1024).text, "1.00 KiB");
    CHECK_TEXT(units_bytes(10 * 1024 - 1).text, "10.0 KiB");
    CHECK_TEXT(units_bytes(524288).text, "512 KiB");
    CHECK_TEXT(units_bytes(12.34 * 1048576).text, "12.3 MiB");
    CHECK_TEXT(units_bytes(1048575.9).text, "1.00 MiB");
    CHECK_TEXT(units_bytes(3e21).text, "2602 EiB");
    CHECK_TEXT(units_bytes(-2048).text, "-2.00 KiB");
    CHECK_TEXT(units_bytes(0.0 / 0.0).text, "?");
    CHECK_TEXT(units_bytes_short(12.34 * 1048576).text, "12.3M");
}

static void counts_percents_and_times_are_short(void) {
    CHECK_TEXT(units_count(999).text, "999");
    CHECK_TEXT(units_count(1000).text, "1,000");
    CHECK_TEXT(units_count(999999.4).text, "999,999");
    CHECK_TEXT(units_count(1234567).text, "1.23 M");
    CHECK_TEXT(units_count(2.5e9).text, "2.50 G");
    CHECK_TEXT(units_counted(0, "sample").text, "0 samples");
    CHECK_TEXT(units_counted(1.2, "sample").text, "1 sample");
    CHECK_TEXT(units_counted(2e6, "temporary allocation").text, "2.00 M temporary allocations");
    CHECK_TEXT(units_percent(0).text, "0%");
    CHECK_TEXT(units_percent(0.001).text, "<1%");
    CHECK_TEXT(units_percent(0.999).text, ">99%");
    CHECK_TEXT(units_percent(1).text, "100%");
    CHECK_TEXT(units_percent(50).text, ">999%");
    CHECK_TEXT(units_seconds(0.00012).text, "120 µs");
    CHECK_TEXT(units_seconds(0.0125).text, "12.5 ms");
    CHECK_TEXT(units_seconds(1.25).text, "1.25 s");
    CHECK_TEXT(units_seconds(125).text, "2 min 05 s");
    CHECK_TEXT(units_seconds(12000).text, "3 h 20 min");
}

static uint64_t size_of(const char *text) {
    uint64_t size = 77;
    return units_parse_size(text, &size) ? size : UINT64_MAX;
}

static double seconds_of(const char *text) {
    double seconds;
    return units_parse_seconds(text, &seconds) ? seconds : -1;
}

static void sizes_are_read_strictly(void) {
    CHECK_EQUAL(size_of("1"), 1);
    CHECK_EQUAL(size_of("512K"), 524288);
    CHECK_EQUAL(size_of("512k"), 524288);
    CHECK_EQUAL(size_of("1MiB"), 1048576);
    CHECK_EQUAL(size_of("1MB"), 1048576);
    CHECK_EQUAL(size_of("4096B"), 4096);
    CHECK_EQUAL(size_of("2T"), 2199023255552.0);
    const char *const wrong[] = {
        "", "K", "-1", "+1", " 1", "1 K", "1.5M", "1X", "1KK", "1Mi", "99999999999999999999", "99999999T"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) CHECK(size_of(wrong[i]) == UINT64_MAX);
    uint64_t count;
    CHECK(units_parse_count("20", &count) && count == 20);
    CHECK(!units_parse_count("20K", &count));
}

static void check_clean(const char *text, const char *expected) {
    char *clean = text_clean(text);
    CHECK_TEXT(clean, expected);
    free(clean);
}

static void escapes_of_a_terminal_are_harmless(void) {
    check_clean("plain name", "plain name");
    check_clean("\033[31mred", "\\x1b[31mred");
    check_clean("a\nb\tc\rd", "a\\x0ab\\x09c\\x0dd");
    check_clean("del\177", "del\\x7f");
    check_clean("größe 大", "größe 大");
    check_clean("\xff\xfe", "\\xff\\xfe");
    check_clean("\xc2\x9b"
                "31m",
        "\\u{9b}31m"); /* the one-character form of ESC [ */
    check_clean("\xe2\x80\xae"
                "evil",
        "\\u{202e}evil");
    check_clean("\xc0\xaf", "\\xc0\\xaf");          /* overlong */
    check_clean("\xed\xa0\x80", "\\xed\\xa0\\x80"); /* surrogate */
    check_clean("cut\xe2\x80", "cut\\xe2\\x80");
    check_clean(NULL, "");
}

static void check_shortened(const char *text, size_t width, const char *expected) {
    char *shortened = text_shorten(text, width);
    CHECK_TEXT(shortened, expected);
    free(shortened);
}

static void check_word(const char *text, const char *expected) {
    char *word = text_shell_word(text);
    CHECK_TEXT(word, expected);
    free(word);
}

static void commands_can_be_copied(void) {
    check_word("app.1234.mscope", "app.1234.mscope");
    check_word("my app.mscope", "'my app.mscope'");
    check_word("it's.mscope", "'it'\\''s.mscope'");
    check_word("$HOME;reboot", "'$HOME;reboot'");
    check_word("-q.mscope", "./-q.mscope");
    check_word("", "''");
}

static void long_names_lose_their_middle(void) {
    check_shortened("abcdefghij", 10, "abcdefghij");
    check_shortened("abcdefghij", 9, "abcd…ghij");
    check_shortened("abcdefghij", 4, "ab…j");
    check_shortened("abcdefghij", 2, "a…");
    check_shortened("abcdefghij", 1, "…");
    check_shortened("abcdefghij", 0, "");
    check_shortened("大大大大大", 7, "大…大");
    check_shortened("大大大大大", 9, "大大…大大");
    const char *const texts[] = {"std::vector<int>::push_back", "größe大大x大ö",
        "e\xcc\x81"
        "e\xcc\x81"
        "e\xcc\x81"
        "abcdef"};
    for (size_t i = 0; i < 3; i++)
        for (size_t width = 0; width < 40; width++) {
            char *shortened = text_shorten(texts[i], width);
            CHECK(text_width(shortened) <= width);
            free(shortened);
        }
}

static void check_wrapped(const char *text, size_t indent, size_t width, const char *expected) {
    char *printed;
    size_t length;
    FILE *out = open_memstream(&printed, &length);
    text_print_wrapped(out, text, indent, width);
    fclose(out);
    CHECK_TEXT(printed, expected);
    free(printed);
}

static void help_wraps_where_the_terminal_is_narrow(void) {
    const char *full =
        "seventy-six columns or more make this line one that goes on in the next of them,\nas here.";
    check_wrapped(full, 0, 0,
        "seventy-six columns or more make this line one that goes on in the next of "
        "them,\nas here.\n");
    check_wrapped(full, 0, 50,
        "seventy-six columns or more make this line one\n"
        "that goes on in the next of them, as here.\n");
    check_wrapped("short\nlines\n\nstay", 2, 50, "short\n  lines\n\n  stay\n");
    check_wrapped("LIVE  what has not been freed", 0, 16, "LIVE  what has\n      not been\n      freed\n");
    check_wrapped("averyverylongword", 0, 4, "averyverylongword\n");
    check_wrapped("one two", 4, 8, "one\n    two\n");
}

static void check_place(const char *function, const char *module, const char *place) {
    struct place_text text = site_text(function, NULL, 0, module, false);
    CHECK_TEXT(text.name, function);
    CHECK_TEXT(text.place ? text.place : "", place);
    place_text_free(&text);
}

static void only_an_address_says_its_module(void) {
    check_place("main", "/bin/program", "program");
    check_place("[program+0x12]", "/bin/program", "");
    check_place("ls_main", "/bin/ls", "ls");
    check_place("[program+0x12]", "/bin/pro", "pro");
    check_place("[cut]", NULL, "");
}

static void slips_of_the_finger_are_recognised(void) {
    const char *const names[] = {"run", "report", "tree", "export", "leaks"};
    CHECK_TEXT(spelling_nearest("rnu", names, 5), "run");
    CHECK_TEXT(spelling_nearest("repor", names, 5), "report");
    CHECK_TEXT(spelling_nearest("exprot", names, 5), "export");
    CHECK(spelling_nearest("flamegraph", names, 5) == NULL);
    CHECK(spelling_nearest("x", names, 5) == NULL);
}

/* Prints a table of `width` columns into memory and returns the widest line. */
static size_t widest_line(size_t width, const char *name, const char *place) {
    char *printed = NULL;
    size_t size = 0, widest = 0;
    FILE *saved = stdout;
    stdout = open_memstream(&printed, &size);
    struct terminal terminal = {.width = width, .bold = "", .dim = "", .alarm = "", .plain = ""};
    struct sheet sheet;
    sheet_start(&sheet, terminal, "SITE");
    sheet_add_column(&sheet, "LIVE", 0);
    sheet_add_column(&sheet, "PEAK", 1);
    sheet_add_column(&sheet, "TOTAL", 2);
    struct sheet_row *row = sheet_add_row(&sheet);
    row->cells[0] = strdup("12.3 MiB");
    row->cells[1] = strdup("1023 MiB");
    row->cells[2] = strdup("9.99 GiB");
    row->last = (struct place_text){strdup(name), place ? strdup(place) : NULL};
    sheet_fit(&sheet);
    sheet_print_titles(&sheet);
    sheet_print_row(&sheet, 0);
    sheet_free(&sheet);
    fclose(stdout);
    stdout = saved;
    for (char *rest = printed, *line; (line = strsep(&rest, "\n"));)
        if (text_width(line) > widest) widest = text_width(line);
    free(printed);
    return widest;
}

static void tables_fit_every_width(void) {
    const char *const names[] = {"f", "a_name_of_medium_length",
        "std::map<std::string, std::vector<std::pair<int, "
        "std::string>>>::operator[](std::string const&) const [with a lot of template arguments in it]",
        "大大大大大大大大大大大大大大大"};
    const char *const places[] = {NULL, "x.c:1", "/a/very/long/path/to/some/file/in/some/folder/main.c:12345",
        "/x/a_file_name_that_is_quite_long_on_its_own_as_well_and_goes_on_and_on.c:1"};
    for (size_t width = 12; width < 220; width++)
        for (size_t i = 0; i < 4; i++)
            for (size_t k = 0; k < 4; k++) CHECK(widest_line(width, names[i], places[k]) <= width);
    CHECK(widest_line(0, names[2], places[2]) > 200); /* no limit */
}

static void check_seconds(void) {
    CHECK_EQUAL(seconds_of("30"), 30);
    CHECK_EQUAL(seconds_of("30s"), 30);
    CHECK_EQUAL(seconds_of("1.5m"), 90);
    CHECK_EQUAL(seconds_of("2min"), 120);
    CHECK_EQUAL(seconds_of("500ms"), 0.5);
    CHECK_EQUAL(seconds_of("1h"), 3600);
    const char *const wrong[] = {"", "s", "-1", "0", "1d", "1 s", "nan", "inf", "1e99", "+3", " 3"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) CHECK_EQUAL(seconds_of(wrong[i]), -1);
}

int main(void) {
    check_seconds();
    setenv("LC_ALL", "C.UTF-8", 1);
    terminal_choose_glyphs();
    bytes_have_three_digits_that_count();
    counts_percents_and_times_are_short();
    sizes_are_read_strictly();
    escapes_of_a_terminal_are_harmless();
    commands_can_be_copied();
    long_names_lose_their_middle();
    help_wraps_where_the_terminal_is_narrow();
    only_an_address_says_its_module();
    slips_of_the_finger_are_recognised();
    tables_fit_every_width();
    return check_result();
}
