/* Reads the demangled name of a C++ or Rust function from left to right, and tells where brackets open and close.
 * Not every < and > is a bracket: they may be part of an operator's name, a comparison, or an arrow. */
#ifndef MALLOSCOPE_VIEW_NAME_SCAN_H
#define MALLOSCOPE_VIEW_NAME_SCAN_H

#include <stdbool.h>
#include <stddef.h>

#define NAME_NESTING_MAX 200 /* names with more brackets inside each other count as broken */

enum bracket {
    BRACKET_GENERIC,   /* map<K, V>  collect::<T> */
    BRACKET_QUALIFIED, /* Rust: <Type as Trait>::method */
    BRACKET_ROUND,
    BRACKET_OTHER, /* [] and {} */
};

struct open_bracket {
    size_t at;
    enum bracket kind;
};

/* A position in a name. Zeroed but for `text` at first. */
struct name_scan {
    const char *text;
    size_t at; /* index of the next character */
    struct open_bracket open[NAME_NESTING_MAX];
    size_t depth;
    size_t generic_depth;     /* how many of the open brackets are generic */
    bool after_operator;      /* the last thing was the name of an operator, such as "operator<" */
    bool broken;              /* brackets do not match */
    bool closed;              /* the last step closed a bracket, */
    struct open_bracket last; /* which is this one */
};

/* Goes on by one character, or by the name of an operator. False: this is the end of the name, or it is broken. */
bool name_scan_step(struct name_scan *scan);

/* Whether each bracket of `text` has its partner. */
bool name_scan_is_sound(const char *text);

/* Whether the character can be part of an identifier. */
bool name_scan_is_identifier(char c);

#endif
