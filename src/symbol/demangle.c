#include "symbol/demangle.h"

#include "base/memory.h"
#include "symbol/bounded_demangler.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

bool demangle_is_mangled(const char *linkage) {
    return linkage && linkage[0] == '_' &&
           (linkage[1] == 'Z' || linkage[1] == 'R' ||
               (linkage[1] == 'D' && isdigit((unsigned char)linkage[2])));
}

/* The length of `name` without the suffixes that compilers and linkers append. */
static size_t length_without_suffixes(const char *name) {
    static const char *const suffixes[] = {
        "cold", "part", "isra", "constprop", "lto_priv", "localalias", "llvm", "actor", "destroy"};
    for (const char *mark = name + 1; *name && (mark = strpbrk(mark, ".@")); mark++) {
        if (*mark == '@') return (size_t)(mark - name);
        for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
            size_t length = strlen(suffixes[i]);
            char after = strncmp(mark + 1, suffixes[i], length) == 0 ? mark[1 + length] : 'x';
            if (after == 0 || after == '.' || after == '@') return (size_t)(mark - name);
        }
    }
    return strlen(name);
}

/* Rust's old mangling scheme ends a path with "::h" and 16 digits. libiberty removes them only if it recognises
 * Rust. */
static void cut_rust_hash(char *name) {
    size_t length = strlen(name);
    if (length <= 19) return;
    char *hash = name + length - 19;
    if (strncmp(hash, "::h", 3) == 0 && strspn(hash + 3, "0123456789abcdef") == 16) *hash = 0;
}

const char *demangle_name(struct result_pool *pool, const char *linkage, const char *name) {
    if (name && !demangle_is_mangled(linkage)) return result_pool_text(pool, name);
    char *plain = memory_copy_text_part(linkage, length_without_suffixes(linkage));
    char *demangled = demangle_is_mangled(plain) ? bounded_demangler_name(plain) : NULL;
    if (demangled) cut_rust_hash(demangled);
    const char *kept = result_pool_text(pool, demangled ? demangled : name ? name : plain);
    free(demangled);
    free(plain);
    return kept;
}
