/* The JUnit file is whole XML, whatever the names in it. */
#include "check.h"
#include "cli/run/junit.h"

#include <stdlib.h>

static char *written(const char *program, const struct junit_case *cases, size_t count) {
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    CHECK_EQUAL(junit_write(out, program, 1.5, cases, count), 0);
    fclose(out);
    return text;
}

static void names_cannot_break_out(void) {
    struct junit_case cases[] = {
        {"gate", JUNIT_FAILED, "a \"quoted\" <b> & c", "f<int>(\x01)\n]]></failure>\n"}};
    char *text = written("./<program>", cases, 1);
    CHECK(strstr(text, "classname=\"./&lt;program&gt;\""));
    CHECK(strstr(text, "message=\"a &quot;quoted&quot; &lt;b&gt; &amp; c\""));
    CHECK(strstr(text, ">f&lt;int&gt;(\\x01)\n]]&gt;&lt;/failure&gt;\n</failure>"));
    free(text);
}

static void outcomes_are_counted(void) {
    struct junit_case cases[] = {{"a", JUNIT_PASSED, "fine", NULL}, {"b", JUNIT_FAILED, "bad", NULL},
        {"c", JUNIT_ERROR, "lost", NULL}};
    char *text = written("x", cases, 3);
    CHECK(strstr(text, "tests=\"3\" failures=\"1\" errors=\"1\" time=\"1.500\""));
    CHECK(strstr(text, "<system-out>fine</system-out>"));
    CHECK(strstr(text, "<error message=\"lost\"></error>"));
    free(text);
}

static void a_full_disk_is_noticed(void) {
    FILE *full = fopen("/dev/full", "w");
    if (!full) return;
    CHECK(junit_write(full, "x", 0, NULL, 0) < 0);
    fclose(full);
}

int main(void) {
    names_cannot_break_out();
    outcomes_are_counted();
    a_full_disk_is_noticed();
    return check_result();
}
