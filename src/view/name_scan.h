/* Reading demangled names of C++ and Rust functions: where brackets open and close. A `<` may be half an
 * operator, an arrow's point may look like a closing bracket. */
#ifndef MALLOSCOPE_VIEW_NAME_SCAN_H
#define MALLOSCOPE_VIEW_NAME_SCAN_H

#include <stdbool.h>
#include <stddef.h>

#define NAME_NESTING_MAX 200 /* deeper names are not understood */

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

/* A place in a name. Begins zeroed but for `text`. */
struct name_scan {
    const char *text;
    size_t at; /* of what comes next */
    struct open_bracket open[NAME_NESTING_MAX];
    size_t depth;
    size_t generic_depth; /* of those, how many are generic */
    bool after_operator;  /* "operator<" and the like came last */
    bool broken;          /* brackets do not match */
    /* What the last step went over: a bracket that it closed, whose contents are all behind. */
    bool closed;
    struct open_bracket last;
};

/* Goes on by one character, bracket or operator. False at the end of the name or where it is broken. */
bool name_scan_step(struct name_scan *scan);

/* Whether all brackets of `text` match. */
bool name_scan_is_sound(const char *text);

/* Whether the character belongs to an identifier. */
bool name_scan_is_identifier(char c);

#endif
