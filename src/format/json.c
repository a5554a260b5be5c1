#include "format/json.h"
#include "format/utf8.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Up to this, every integer is a double. Larger values are printed as doubles. */
static const double largest_whole = 9007199254740992.0; /* 2^53 */

static void new_line(struct json *json) {
    if (!json->pretty) return;
    fputc('\n', json->out);
    for (int i = 0; i < json->depth; i++) fputs("  ", json->out);
}

/* Writes what comes between the previous value and the next one. */
static void before_value(struct json *json) {
    if (json->after_key) {
        json->after_key = false;
        return;
    }
    if (!json->first) putc_unlocked(',', json->out);
    if (json->depth > 0) new_line(json);
    json->first = false;
}

static void open_bracket(struct json *json, char bracket) {
    before_value(json);
    fputc(bracket, json->out);
    json->depth++;
    json->first = true;
}

static void close_bracket(struct json *json, char bracket) {
    json->depth--;
    if (!json->first) new_line(json);
    fputc(bracket, json->out);
    json->first = false;
    if (json->depth == 0) fputc('\n', json->out);
}

static void write_quoted(FILE *out, const char *text) {
    fputc('"', out);
    while (*text) {
        size_t length = utf8_length(text);
        if (length == 0) {
            fputs(UTF8_REPLACEMENT, out);
            text++;
            continue;
        }
        if (*text == '"' || *text == '\\') {
            fputc('\\', out);
            fputc(*text, out);
        } else if (*text == '\n') {
            fputs("\\n", out);
        } else if (*text == '\t') {
            fputs("\\t", out);
        } else if (utf8_control_length(text)) {
            uint32_t code = utf8_code(text);
            if (code < 0x10000)
                fprintf(out, "\\u%04x", code);
            else /* two halves, as in UTF-16 */
                fprintf(out, "\\u%04x\\u%04x", 0xd7c0 + (code >> 10), 0xdc00 + (code & 0x3ff));
        } else {
            fwrite(text, 1, length, out);
        }
        text += length;
    }
    fputc('"', out);
}

void json_start(struct json *json, FILE *out, bool pretty) {
    *json = (struct json){.out = out, .pretty = pretty, .first = true};
}

void json_object(struct json *json) {
    open_bracket(json, '{');
}

void json_object_end(struct json *json) {
    close_bracket(json, '}');
}

void json_array(struct json *json) {
    open_bracket(json, '[');
}

void json_array_end(struct json *json) {
    close_bracket(json, ']');
}

void json_key(struct json *json, const char *key) {
    before_value(json);
    write_quoted(json->out, key);
    fputs(json->pretty ? ": " : ":", json->out);
    json->after_key = true;
}

void json_string(struct json *json, const char *text) {
    before_value(json);
    if (text) {
        write_quoted(json->out, text);
    } else {
        fputs("null", json->out);
    }
}

/* Without printf, which is slow: a page holds millions of numbers. */
static void whole_text(int64_t value, char text[JSON_NUMBER_SIZE]) {
    char digits[JSON_NUMBER_SIZE], *end = digits + sizeof digits, *start = end;
    uint64_t left = value < 0 ? -(uint64_t)value : (uint64_t)value;
    *--start = '\0';
    do {
        *--start = (char)('0' + left % 10);
        left /= 10;
    } while (left);
    if (value < 0) *--start = '-';
    memcpy(text, start, (size_t)(end - start));
}

void json_integer(struct json *json, int64_t value) {
    char text[JSON_NUMBER_SIZE];

    before_value(json);
    whole_text(value, text);
    fputs(text, json->out);
}

void json_number_text(double value, char text[JSON_NUMBER_SIZE]) {
    if (value == trunc(value) && fabs(value) <= largest_whole) {
        whole_text((int64_t)value, text);
        return;
    }
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, JSON_NUMBER_SIZE, "%.*g", digits, value);
        if (strtod(text, NULL) == value) break;
    }
}

void json_number(struct json *json, double value) {
    char text[JSON_NUMBER_SIZE];

    before_value(json);
    if (isfinite(value)) {
        json_number_text(value, text);
        fputs(text, json->out);
    } else {
        fputs("null", json->out);
    }
}

void json_boolean(struct json *json, bool value) {
    before_value(json);
    fputs(value ? "true" : "false", json->out);
}

void json_key_string(struct json *json, const char *key, const char *text) {
    json_key(json, key);
    json_string(json, text);
}

void json_key_integer(struct json *json, const char *key, int64_t value) {
    json_key(json, key);
    json_integer(json, value);
}

void json_key_number(struct json *json, const char *key, double value) {
    json_key(json, key);
    json_number(json, value);
}

void json_key_boolean(struct json *json, const char *key, bool value) {
    json_key(json, key);
    json_boolean(json, value);
}

void json_key_hexadecimal(struct json *json, const char *key, uint64_t value) {
    char text[32];
    snprintf(text, sizeof text, "%" PRIx64, value);
    json_key_string(json, key, text);
}
