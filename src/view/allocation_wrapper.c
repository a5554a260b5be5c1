#include "view/allocation_wrapper.h"

#include <ctype.h>
#include <fnmatch.h>
#include <stdbool.h>
#include <string.h>

/* The rules, tried in order. Patterns are those of fnmatch(3), and are matched with skeletons.
 *
 * Allocation functions themselves are always skipped. Standard libraries are skipped if that leads to a source
 * line: `std::vector::push_back` is of no help if the program's own line is known, and of much help if it is not.
 * Wrappers of malloc are skipped if that leads to a function that has a name. */
static const struct rule {
    const char *function;
    const char *module; /* how the file name of the module begins; NULL: any module */
    enum allocation_wrapper verdict;
} rules[] = {
    /* C++ */
    {"operator new", NULL, WRAPPER_ALWAYS},
    {"operator new\\[\\]", NULL, WRAPPER_ALWAYS},
    {"std::allocator*", NULL, WRAPPER_ALWAYS}, /* and allocator_traits */
    {"std::__new_allocator::*", NULL, WRAPPER_ALWAYS},
    {"std::__allocate*", NULL, WRAPPER_ALWAYS},
    {"__gnu_cxx::new_allocator::*", NULL, WRAPPER_ALWAYS},
    {"__gnu_cxx::__alloc_traits::*", NULL, WRAPPER_ALWAYS},
    {"std::__1::__libcpp_*", NULL, WRAPPER_ALWAYS},
    {"std::__1::allocator*", NULL, WRAPPER_ALWAYS},
    /* Rust */
    {"__rust_*", NULL, WRAPPER_ALWAYS},
    {"__rustc*::*", NULL, WRAPPER_ALWAYS},
    {"__rdl_*", NULL, WRAPPER_ALWAYS},
    {"__rg_*", NULL, WRAPPER_ALWAYS},
    {"alloc::alloc::*", NULL, WRAPPER_ALWAYS},
    {"alloc::raw_vec::*", NULL, WRAPPER_ALWAYS},
    {"core::alloc::*", NULL, WRAPPER_ALWAYS},
    {"std::alloc::*", NULL, WRAPPER_ALWAYS},
    {"std::sys::*alloc*", NULL, WRAPPER_ALWAYS},
    /* The standard libraries of both */
    {"std::*", NULL, WRAPPER_IF_SOURCE},
    {"\\[*", "libstdc++", WRAPPER_IF_SOURCE},
    {"__gnu_cxx::*", NULL, WRAPPER_IF_SOURCE},
    {"alloc::*", NULL, WRAPPER_IF_SOURCE},
    {"core::*", NULL, WRAPPER_IF_SOURCE},
    {"hashbrown::*", NULL, WRAPPER_IF_SOURCE},
    /* The loader's own way to malloc */
    {"*alloc", "ld-linux", WRAPPER_ALWAYS},
    /* Functions of libc that hand out memory */
    {"*strdup", "libc.so", WRAPPER_IF_SOURCE},
    {"*strndup", "libc.so", WRAPPER_IF_SOURCE},
    {"*wcsdup", "libc.so", WRAPPER_IF_SOURCE},
    {"*asprintf*", "libc.so", WRAPPER_IF_SOURCE},
    {"*getline", "libc.so", WRAPPER_IF_SOURCE},
    {"*getdelim", "libc.so", WRAPPER_IF_SOURCE},
    {"*realpath*", "libc.so", WRAPPER_IF_SOURCE},
    /* What programs and libraries wrap malloc in: GNU, Perl, GLib, Python, OpenSSL, SQLite */
    {"Perl_safesys*", NULL, WRAPPER_IF_NAMED},
    {"xmalloc", NULL, WRAPPER_IF_NAMED},
    {"xzalloc", NULL, WRAPPER_IF_NAMED},
    {"xcalloc", NULL, WRAPPER_IF_NAMED},
    {"xpalloc", NULL, WRAPPER_IF_NAMED},
    {"xrealloc*", NULL, WRAPPER_IF_NAMED},
    {"xn*alloc", NULL, WRAPPER_IF_NAMED},
    {"x2*alloc", NULL, WRAPPER_IF_NAMED},
    {"xstrdup", NULL, WRAPPER_IF_NAMED},
    {"xstrndup", NULL, WRAPPER_IF_NAMED},
    {"xmemdup*", NULL, WRAPPER_IF_NAMED},
    {"xasprintf", NULL, WRAPPER_IF_NAMED},
    {"g_malloc*", NULL, WRAPPER_IF_NAMED},
    {"g_try_malloc*", NULL, WRAPPER_IF_NAMED},
    {"g_realloc*", NULL, WRAPPER_IF_NAMED},
    {"g_try_realloc*", NULL, WRAPPER_IF_NAMED},
    {"g_strdup*", NULL, WRAPPER_IF_NAMED},
    {"g_strndup", NULL, WRAPPER_IF_NAMED},
    {"g_memdup*", NULL, WRAPPER_IF_NAMED},
    {"g_slice_alloc*", NULL, WRAPPER_IF_NAMED},
    {"PyMem_*lloc", NULL, WRAPPER_IF_NAMED},
    {"_PyMem_*lloc", NULL, WRAPPER_IF_NAMED},
    {"PyObject_*lloc", NULL, WRAPPER_IF_NAMED},
    {"_PyObject_*lloc", NULL, WRAPPER_IF_NAMED},
    {"_PyObject_New*", NULL, WRAPPER_IF_NAMED},
    {"_PyObject_GC_New*", NULL, WRAPPER_IF_NAMED},
    {"PyType_GenericAlloc", NULL, WRAPPER_IF_NAMED},
    {"CRYPTO_*alloc", NULL, WRAPPER_IF_NAMED},
    {"CRYPTO_strdup", NULL, WRAPPER_IF_NAMED},
    {"CRYPTO_strndup", NULL, WRAPPER_IF_NAMED},
    {"CRYPTO_memdup", NULL, WRAPPER_IF_NAMED},
    {"sqlite3*Malloc*", NULL, WRAPPER_IF_NAMED},
    {"sqlite3*Realloc*", NULL, WRAPPER_IF_NAMED},
    {"sqlite3_malloc*", NULL, WRAPPER_IF_NAMED},
    {"sqlite3_realloc*", NULL, WRAPPER_IF_NAMED},
};

static bool in_module(const char *path, const char *start) {
    if (!start) return true;
    if (!path) return false;
    const char *slash = strrchr(path, '/');
    return strncmp(slash ? slash + 1 : path, start, strlen(start)) == 0;
}

/* Most names differ from a pattern before its first wildcard. strncmp finds that out faster than fnmatch. */
static bool matches(const char *pattern, const char *skeleton) {
    return strncmp(pattern, skeleton, strcspn(pattern, "*\\")) == 0 && fnmatch(pattern, skeleton, 0) == 0;
}

enum allocation_wrapper allocation_wrapper_of(const char *function, const char *module) {
    char skeleton[512];
    allocation_wrapper_skeleton(function, skeleton, sizeof skeleton);
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (in_module(module, rules[i].module) && matches(rules[i].function, skeleton))
            return rules[i].verdict;
    return WRAPPER_NOT;
}

/* One past the partner of the bracket that opens at `text`. The > of an arrow closes nothing. */
static const char *skip_bracket(const char *text, char open, char close) {
    int depth = 0;
    for (; *text; text++) {
        if (*text == open) depth++;
        if (*text == close && !(close == '>' && text[-1] == '-') && --depth == 0) return text + 1;
    }
    return text;
}

static bool has_path(const char *type, const char *end) {
    for (; type + 1 < end && *type != '<'; type++)
        if (type[0] == ':' && type[1] == ':') return true;
    return false;
}

/* Rust's "<Type as Trait>::method": returns Type or Trait, whichever tells whose code it is; it ends at `*ret_end`.
 * Type is chosen if it has a path. Generic parameters and built-in types have none. For methods of GlobalAlloc,
 * Trait is chosen: these make a type an allocator. NULL for "<str>::repeat" and the like: only the standard library
 * can add methods to a built-in type. */
static const char *choose_implementation(const char *inside, const char *close, const char **ret_end) {
    const char *as = NULL;
    int depth = 0;
    for (const char *p = inside; p < close; p++) {
        if (*p == '<') depth++;
        if (*p == '>' && p[-1] != '-') depth--;
        if (depth == 0 && strncmp(p, " as ", 4) == 0) {
            as = p;
            break;
        }
    }
    *ret_end = as ? as : close;
    static const char allocator[] = " as core::alloc::global::GlobalAlloc";
    bool allocates = as && strncmp(as, allocator, strlen(allocator)) == 0;
    if (!allocates && (*inside == '<' || has_path(inside, *ret_end))) return inside;
    *ret_end = close;
    return as ? as + 4 : NULL;
}

struct sink {
    char *text;
    size_t used, size;
};

static void sink_add(struct sink *sink, char c) {
    if (sink->used + 1 < sink->size) sink->text[sink->used++] = c;
}

static bool is_word_character(char c) {
    return isalnum((unsigned char)c) || c == '_';
}

/* Whether `text`, within a name that begins at `start`, is at the word `operator`. */
static bool is_operator(const char *start, const char *text) {
    return strncmp(text, "operator", 8) == 0 && !is_word_character(text[8]) &&
           (text == start || !is_word_character(text[-1]));
}

/* Copies a name without its bracketed parts, up to the parameter list. A blank outside of brackets ends a return
 * type or a word such as `static`: what was copied so far is dropped. */
static void copy_plain(const char *text, const char *end, struct sink *sink) {
    const char *begin = text;
    size_t start = sink->used;
    while (text < end && *text) {
        if (strncmp(text, "(anonymous namespace)", 21) == 0) {
            text += 21;
            sink_add(sink, '_');
        } else if (is_operator(begin, text)) {
            const char *stop = text + 8;
            if (strncmp(stop, "()", 2) == 0) stop += 2;
            while (stop < end && *stop && *stop != '(') stop++;
            while (text < stop) sink_add(sink, *text++);
            return;
        } else if (*text == '<') {
            text = skip_bracket(text, '<', '>');
        } else if (*text == '(') {
            return;
        } else if (*text == ' ') {
            if (strncmp(text, " [", 2) == 0) return; /* " [clone .cold]" */
            sink->used = start;
            text++;
        } else {
            sink_add(sink, *text++);
        }
    }
}

void allocation_wrapper_skeleton(const char *function, char *skeleton, size_t size) {
    struct sink sink = {skeleton, 0, size};
    const char *rest = function;
    while (*rest == '<') { /* also "<<A as B>::C as D>::f" */
        const char *close = skip_bracket(rest, '<', '>');
        if (close == rest || close[-1] != '>') break;
        const char *end;
        const char *chosen = choose_implementation(rest + 1, close - 1, &end);
        if (chosen && *chosen == '<') {
            rest = chosen;
            continue;
        }
        static const char built_in[] = "core::_";
        if (!chosen) end = (chosen = built_in) + strlen(built_in);
        copy_plain(chosen, end, &sink);
        rest = close;
        break;
    }
    copy_plain(rest, rest + strlen(rest), &sink);
    if (sink.used && skeleton[sink.used - 1] == ' ') sink.used--;
    if (size) skeleton[sink.used] = 0;
}
