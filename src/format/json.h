/* Writes JSON. The writer adds commas, quotes and escapes; the caller calls its functions in the right order. */
#ifndef MALLOSCOPE_FORMAT_JSON_H
#define MALLOSCOPE_FORMAT_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct json {
    FILE *out;
    bool pretty;
    int depth;      /* how many brackets are open */
    bool first;     /* nothing was written into the innermost bracket yet */
    bool after_key; /* the next value belongs to the key that was just written */
};

void json_start(struct json *json, FILE *out, bool pretty);
void json_object(struct json *json); /* opens { */
void json_object_end(struct json *json);
void json_array(struct json *json);
void json_array_end(struct json *json);
void json_key(struct json *json, const char *key);
/* Bytes that are not UTF-8 become U+FFFD. NULL becomes null. */
void json_string(struct json *json, const char *text);
void json_integer(struct json *json, int64_t value);
/* Whole numbers are written without a point. A number that is not finite becomes null. */
void json_number(struct json *json, double value);
void json_boolean(struct json *json, bool value);

/* The text of a finite number: without a point if it is whole, else the shortest one that reads back as the same
 * number. The decimal point is that of the C locale, since the tool never sets LC_NUMERIC. */
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
