/* A small JSON writer: commas, quotes and escapes are its business, the order of calls the caller's. */
#ifndef MALLOSCOPE_FORMAT_JSON_H
#define MALLOSCOPE_FORMAT_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct json {
    FILE *out;
    bool pretty;
    int depth;
    bool first;
    bool after_key;
};

void json_start(struct json *json, FILE *out, bool pretty);
void json_object(struct json *json); /* opens { */
void json_object_end(struct json *json);
void json_array(struct json *json);
void json_array_end(struct json *json);
void json_key(struct json *json, const char *key);
/* Bytes that are not UTF-8 become U+FFFD; NULL becomes null. */
void json_string(struct json *json, const char *text);
void json_integer(struct json *json, int64_t value);
void json_number(
    struct json *json, double value); /* whole numbers without a point; not finite becomes null */
void json_boolean(struct json *json, bool value);

/* How a finite number is written: whole ones without a point, others in the shortest form that reads back as
 * the same number. The point is that of the C locale: the tool never sets LC_NUMERIC. */
#define JSON_NUMBER_SIZE 32
void json_number_text(double value, char text[JSON_NUMBER_SIZE]);

/* Key and value in one call. */
void json_key_string(struct json *json, const char *key, const char *text);
void json_key_integer(struct json *json, const char *key, int64_t value);
void json_key_number(struct json *json, const char *key, double value);
void json_key_boolean(struct json *json, const char *key, bool value);
/* A string of hexadecimal digits, without "0x". */
void json_key_hexadecimal(struct json *json, const char *key, uint64_t value);

#endif
