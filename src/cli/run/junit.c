#include "cli/run/junit.h"
#include "base/memory.h"
#include "cli/terminal/text.h"

#include <errno.h>
#include <string.h>

/* XML cannot hold control characters. text_clean leaves none. */
static void write_text(FILE *out, const char *raw) {
    cleanup_text char *text = text_clean(raw);
    for (const char *p = text; *p; p++) switch (*p) {
        case '&':
            fputs("&amp;", out);
            break;
        case '<':
            fputs("&lt;", out);
            break;
        case '>':
            fputs("&gt;", out);
            break;
        case '"':
            fputs("&quot;", out);
            break;
        default:
            fputc(*p, out);
        }
}

static void write_lines(FILE *out, const char *text) {
    while (*text) {
        size_t length = strcspn(text, "\n");
        cleanup_text char *line = memory_format_text("%.*s", (int)length, text);
        write_text(out, line);
        fputc('\n', out);
        text += length + (text[length] == '\n');
    }
}

static void write_attribute(FILE *out, const char *name, const char *value) {
    fprintf(out, " %s=\"", name);
    write_text(out, value);
    fputc('"', out);
}

static void write_case(FILE *out, const char *program, const struct junit_case *one) {
    fputs("    <testcase", out);
    write_attribute(out, "classname", program);
    write_attribute(out, "name", one->name);
    fputs(">\n", out);
    const char *element = one->outcome == JUNIT_FAILED ? "failure" : "error";
    if (one->outcome == JUNIT_PASSED) {
        fputs("      <system-out>", out);
        write_text(out, one->message);
        fputs("</system-out>\n", out);
    } else {
        fprintf(out, "      <%s", element);
        write_attribute(out, "message", one->message);
        fputs(">", out);
        write_lines(out, one->details ? one->details : "");
        fprintf(out, "</%s>\n", element);
    }
    fputs("    </testcase>\n", out);
}

int junit_write(
    FILE *out, const char *program, double seconds, const struct junit_case *cases, size_t count) {
    size_t failures = 0, errors = 0;
    for (size_t i = 0; i < count; i++) {
        failures += cases[i].outcome == JUNIT_FAILED;
        errors += cases[i].outcome == JUNIT_ERROR;
    }
    fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n", out);
    fprintf(out,
        "  <testsuite name=\"malloscope\" tests=\"%zu\" failures=\"%zu\" errors=\"%zu\" time=\"%.3f\">\n",
        count, failures, errors, seconds);
    for (size_t i = 0; i < count; i++) write_case(out, program, &cases[i]);
    fputs("  </testsuite>\n</testsuites>\n", out);
    errno = 0;
    if (fflush(out) == 0 && !ferror(out)) return 0;
    return errno ? -errno : -EIO;
}
