/* The JSON writer, and text and numbers on their way into formats. */
#include "check.h"
#include "format/intern_table.h"
#include "format/json.h"
#include "format/utf8.h"

#include <math.h>
#include <stdlib.h>

static char *text;
static size_t size;

static struct json start(bool pretty) {
    struct json json;
    free(text);
    json_start(&json, open_memstream(&text, &size), pretty);
    return json;
}

static const char *finish(struct json *json) {
    fclose(json->out);
    return text;
}

static const char *as_string(const char *value) {
    struct json json = start(false);
    json_string(&json, value);
    return finish(&json);
}

static const char *as_number(double value) {
    struct json json = start(false);
    json_number(&json, value);
    return finish(&json);
}

static void commas_and_colons_are_placed(void) {
    struct json json = start(false);
    json_object(&json);
    json_key_integer(&json, "a", -1);
    json_key(&json, "b");
    json_array(&json);
    json_array(&json);
    json_array_end(&json);
    json_object(&json);
    json_object_end(&json);
    json_boolean(&json, true);
    json_array_end(&json);
    json_key_string(&json, "c", NULL);
    json_key_number(&json, "d", 0.5);
    json_object_end(&json);
    CHECK_TEXT(finish(&json), "{\"a\":-1,\"b\":[[],{},true],\"c\":null,\"d\":0.5}\n");
}

static void pretty_output_is_indented(void) {
    struct json json = start(true);
    json_object(&json);
    json_key_integer(&json, "a", 1);
    json_key(&json, "b");
    json_array(&json);
    json_integer(&json, 2);
    json_integer(&json, 3);
    json_array_end(&json);
    json_object_end(&json);
    CHECK_TEXT(finish(&json), "{\n  \"a\": 1,\n  \"b\": [\n    2,\n    3\n  ]\n}\n");
}

static void strings_are_escaped(void) {
    CHECK_TEXT(as_string("a\"b\\c\nd\te\x01\x7f"), "\"a\\\"b\\\\c\\nd\\te\\u0001\\u007f\"");
    CHECK_TEXT(as_string("é€😀"), "\"é€😀\"");
    CHECK_TEXT(as_string(""), "\"\"");
}

static void bytes_that_are_not_utf8_are_replaced(void) {
    CHECK_TEXT(as_string("a\xff"), "\"a\xef\xbf\xbd\"");
    CHECK_TEXT(as_string("\xe2\x82"), "\"\xef\xbf\xbd\xef\xbf\xbd\"");                 /* ends too soon */
    CHECK_TEXT(as_string("\xc0\xaf"), "\"\xef\xbf\xbd\xef\xbf\xbd\"");                 /* overlong */
    CHECK_TEXT(as_string("\xed\xa0\x80"), "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""); /* surrogate */
    char *clean = utf8_clean_copy("x\xfey");
    CHECK_TEXT(clean, "x\xef\xbf\xbdy");
    free(clean);
}

static void numbers_keep_their_value(void) {
    CHECK_TEXT(as_number(0), "0");
    CHECK_TEXT(as_number(-0.0), "0");
    CHECK_TEXT(as_number(1048576), "1048576");
    CHECK_TEXT(as_number(9007199254740992.0), "9007199254740992");
    CHECK_TEXT(as_number(0.1), "0.1");
    CHECK_TEXT(as_number(NAN), "null");
    CHECK_TEXT(as_number(-INFINITY), "null");
    CHECK_EQUAL(strtod(as_number(1.0 / 3), NULL), 1.0 / 3);
    CHECK_EQUAL(strtod(as_number(1e300), NULL), 1e300);
}

static void equal_keys_get_the_same_number(void) {
    struct intern_table intern = {0};
    char key[16];
    for (uint32_t i = 0; i < 10000; i++) {
        snprintf(key, sizeof key, "key %u", i);
        if (!CHECK(intern_table_add_text(&intern, key) == i)) break;
    }
    for (uint32_t i = 0; i < 10000; i++) {
        snprintf(key, sizeof key, "key %u", i);
        if (!CHECK(intern_table_add_text(&intern, key) == i)) break;
    }
    CHECK_EQUAL(intern.count, 10000);
    CHECK_TEXT(intern.entries[1234].key, "key 1234");
    CHECK_EQUAL(intern_table_add(&intern, "key 1\0x", 7), 10000); /* keys are bytes, not text */
    intern_table_free(&intern);
}

int main(void) {
    commas_and_colons_are_placed();
    pretty_output_is_indented();
    strings_are_escaped();
    bytes_that_are_not_utf8_are_replaced();
    numbers_keep_their_value();
    equal_keys_get_the_same_number();
    free(text);
    return check_result();
}
