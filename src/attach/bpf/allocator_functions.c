#include "attach/bpf/allocator_functions.h"

#include <stdlib.h>
#include <string.h>

#define ALLOCATES(family, name, size, factor)                                                                \
    { name, family, ROLE_ALLOCATE, size, factor, -1, -1, false, false }
#define THROWS(family, name, size, factor)                                                                   \
    { name, family, ROLE_ALLOCATE, size, factor, -1, -1, true, false }
#define STORES(family, name, size, out)                                                                      \
    { name, family, ROLE_ALLOCATE, size, -1, -1, out, false, false }
#define RESIZES(family, name, old, size, factor)                                                             \
    { name, family, ROLE_RESIZE, size, factor, old, -1, false, false }
#define FREES(family, name, old)                                                                             \
    { name, family, ROLE_FREE, -1, -1, old, -1, false, false }

/* The C library's functions. jemalloc has all of them, too, with a prefix to the names. */
#define PLAIN(family)                                                                                        \
    ALLOCATES(family, "malloc", 0, -1), ALLOCATES(family, "calloc", 0, 1),                                   \
        RESIZES(family, "realloc", 0, 1, -1), RESIZES(family, "reallocarray", 0, 1, 2),                      \
        FREES(family, "free", 0), FREES(family, "cfree", 0), FREES(family, "free_sized", 0),                 \
        FREES(family, "free_aligned_sized", 0), STORES(family, "posix_memalign", 2, 0),                      \
        ALLOCATES(family, "aligned_alloc", 1, -1), ALLOCATES(family, "memalign", 1, -1),                     \
        ALLOCATES(family, "valloc", 0, -1), ALLOCATES(family, "pvalloc", 0, -1)

static const struct function_kind plain[] = {PLAIN(FAMILY_LIBC)};

static const char *const jemalloc_prefixes[] = {"_rjem_je_", "_rjem_", "je_"};
static const struct function_kind prefixed[] = {PLAIN(FAMILY_JEMALLOC)};
static const struct function_kind jemalloc[] = {
    ALLOCATES(FAMILY_JEMALLOC, "mallocx", 0, -1),
    RESIZES(FAMILY_JEMALLOC, "rallocx", 0, 1, -1),
    FREES(FAMILY_JEMALLOC, "dallocx", 0),
    FREES(FAMILY_JEMALLOC, "sdallocx", 0),
};

static const struct function_kind operators[] = {
    THROWS(FAMILY_OPERATORS, "_Znwm", 0, -1),
    THROWS(FAMILY_OPERATORS, "_Znam", 0, -1),
    THROWS(FAMILY_OPERATORS, "_ZnwmSt11align_val_t", 0, -1),
    THROWS(FAMILY_OPERATORS, "_ZnamSt11align_val_t", 0, -1),
    ALLOCATES(FAMILY_OPERATORS, "_ZnwmRKSt9nothrow_t", 0, -1),
    ALLOCATES(FAMILY_OPERATORS, "_ZnamRKSt9nothrow_t", 0, -1),
    ALLOCATES(FAMILY_OPERATORS, "_ZnwmSt11align_val_tRKSt9nothrow_t", 0, -1),
    ALLOCATES(FAMILY_OPERATORS, "_ZnamSt11align_val_tRKSt9nothrow_t", 0, -1),
    FREES(FAMILY_OPERATORS, "_ZdlPv", 0),
    FREES(FAMILY_OPERATORS, "_ZdaPv", 0),
    FREES(FAMILY_OPERATORS, "_ZdlPvm", 0),
    FREES(FAMILY_OPERATORS, "_ZdaPvm", 0),
    FREES(FAMILY_OPERATORS, "_ZdlPvSt11align_val_t", 0),
    FREES(FAMILY_OPERATORS, "_ZdaPvSt11align_val_t", 0),
    FREES(FAMILY_OPERATORS, "_ZdlPvmSt11align_val_t", 0),
    FREES(FAMILY_OPERATORS, "_ZdaPvmSt11align_val_t", 0),
    FREES(FAMILY_OPERATORS, "_ZdlPvRKSt9nothrow_t", 0),
    FREES(FAMILY_OPERATORS, "_ZdaPvRKSt9nothrow_t", 0),
    FREES(FAMILY_OPERATORS, "_ZdlPvSt11align_val_tRKSt9nothrow_t", 0),
    FREES(FAMILY_OPERATORS, "_ZdaPvSt11align_val_tRKSt9nothrow_t", 0),
};

static const struct function_kind mimalloc[] = {
    ALLOCATES(FAMILY_MIMALLOC, "mi_malloc", 0, -1),
    ALLOCATES(FAMILY_MIMALLOC, "mi_malloc_small", 0, -1),
    ALLOCATES(FAMILY_MIMALLOC, "mi_zalloc", 0, -1),
    ALLOCATES(FAMILY_MIMALLOC, "mi_zalloc_small", 0, -1),
    ALLOCATES(FAMILY_MIMALLOC, "mi_calloc", 0, 1),
    ALLOCATES(FAMILY_MIMALLOC, "mi_mallocn", 0, 1),
    RESIZES(FAMILY_MIMALLOC, "mi_realloc", 0, 1, -1),
    RESIZES(FAMILY_MIMALLOC, "mi_reallocn", 0, 1, 2),
    RESIZES(FAMILY_MIMALLOC, "mi_reallocf", 0, 1, -1),
    RESIZES(FAMILY_MIMALLOC, "mi_rezalloc", 0, 1, -1),
    RESIZES(FAMILY_MIMALLOC, "mi_recalloc", 0, 1, 2),
    FREES(FAMILY_MIMALLOC, "mi_free", 0),
    FREES(FAMILY_MIMALLOC, "mi_cfree", 0),
    FREES(FAMILY_MIMALLOC, "mi_free_size", 0),
    FREES(FAMILY_MIMALLOC, "mi_free_size_aligned", 0),
    FREES(FAMILY_MIMALLOC, "mi_free_aligned", 0),
    ALLOCATES(FAMILY_MIMALLOC, "mi_malloc_aligned", 0, -1),
    ALLOCATES(FAMILY_MIMALLOC, "mi_malloc_aligned_at", 0, -1),
    ALLOCATES(FAMILY_MIMALLOC, "mi_zalloc_aligned", 0, -1),
    ALLOCATES(FAMILY_MIMALLOC, "mi_zalloc_aligned_at", 0, -1),
    ALLOCATES(FAMILY_MIMALLOC, "mi_calloc_aligned", 0, 1),
    ALLOCATES(FAMILY_MIMALLOC, "mi_calloc_aligned_at", 0, 1),
    RESIZES(FAMILY_MIMALLOC, "mi_realloc_aligned", 0, 1, -1),
    RESIZES(FAMILY_MIMALLOC, "mi_realloc_aligned_at", 0, 1, -1),
    RESIZES(FAMILY_MIMALLOC, "mi_rezalloc_aligned", 0, 1, -1),
    RESIZES(FAMILY_MIMALLOC, "mi_rezalloc_aligned_at", 0, 1, -1),
    RESIZES(FAMILY_MIMALLOC, "mi_recalloc_aligned", 0, 1, 2),
    RESIZES(FAMILY_MIMALLOC, "mi_recalloc_aligned_at", 0, 1, 2),
    STORES(FAMILY_MIMALLOC, "mi_posix_memalign", 2, 0),
    ALLOCATES(FAMILY_MIMALLOC, "mi_memalign", 1, -1),
    ALLOCATES(FAMILY_MIMALLOC, "mi_aligned_alloc", 1, -1),
    ALLOCATES(FAMILY_MIMALLOC, "mi_valloc", 0, -1),
    ALLOCATES(FAMILY_MIMALLOC, "mi_pvalloc", 0, -1),
    RESIZES(FAMILY_MIMALLOC, "mi_reallocarray", 0, 1, 2),
    THROWS(FAMILY_MIMALLOC, "mi_new", 0, -1),
    THROWS(FAMILY_MIMALLOC, "mi_new_n", 0, 1),
    THROWS(FAMILY_MIMALLOC, "mi_new_aligned", 0, -1),
    ALLOCATES(FAMILY_MIMALLOC, "mi_new_nothrow", 0, -1),
    ALLOCATES(FAMILY_MIMALLOC, "mi_new_aligned_nothrow", 0, -1),
    RESIZES(FAMILY_MIMALLOC, "mi_new_realloc", 0, 1, -1),
    RESIZES(FAMILY_MIMALLOC, "mi_new_reallocn", 0, 1, 2),
    ALLOCATES(FAMILY_MIMALLOC, "mi_heap_malloc", 1, -1),
    ALLOCATES(FAMILY_MIMALLOC, "mi_heap_malloc_small", 1, -1),
    ALLOCATES(FAMILY_MIMALLOC, "mi_heap_zalloc", 1, -1),
    ALLOCATES(FAMILY_MIMALLOC, "mi_heap_calloc", 1, 2),
    ALLOCATES(FAMILY_MIMALLOC, "mi_heap_mallocn", 1, 2),
    ALLOCATES(FAMILY_MIMALLOC, "mi_heap_malloc_aligned", 1, -1),
    ALLOCATES(FAMILY_MIMALLOC, "mi_heap_malloc_aligned_at", 1, -1),
    ALLOCATES(FAMILY_MIMALLOC, "mi_heap_zalloc_aligned", 1, -1),
    ALLOCATES(FAMILY_MIMALLOC, "mi_heap_zalloc_aligned_at", 1, -1),
    ALLOCATES(FAMILY_MIMALLOC, "mi_heap_calloc_aligned", 1, 2),
    ALLOCATES(FAMILY_MIMALLOC, "mi_heap_calloc_aligned_at", 1, 2),
    RESIZES(FAMILY_MIMALLOC, "mi_heap_realloc", 1, 2, -1),
    RESIZES(FAMILY_MIMALLOC, "mi_heap_reallocn", 1, 2, 3),
    RESIZES(FAMILY_MIMALLOC, "mi_heap_reallocf", 1, 2, -1),
    RESIZES(FAMILY_MIMALLOC, "mi_heap_rezalloc", 1, 2, -1),
    RESIZES(FAMILY_MIMALLOC, "mi_heap_recalloc", 1, 2, 3),
    RESIZES(FAMILY_MIMALLOC, "mi_heap_realloc_aligned", 1, 2, -1),
    RESIZES(FAMILY_MIMALLOC, "mi_heap_realloc_aligned_at", 1, 2, -1),
    RESIZES(FAMILY_MIMALLOC, "mi_heap_rezalloc_aligned", 1, 2, -1),
    RESIZES(FAMILY_MIMALLOC, "mi_heap_rezalloc_aligned_at", 1, 2, -1),
    RESIZES(FAMILY_MIMALLOC, "mi_heap_recalloc_aligned", 1, 2, 3),
    RESIZES(FAMILY_MIMALLOC, "mi_heap_recalloc_aligned_at", 1, 2, 3),
    THROWS(FAMILY_MIMALLOC, "mi_heap_alloc_new", 1, -1),
    THROWS(FAMILY_MIMALLOC, "mi_heap_alloc_new_n", 1, 2),
};

static const struct function_kind tcmalloc[] = {
    ALLOCATES(FAMILY_TCMALLOC, "tc_malloc", 0, -1),
    ALLOCATES(FAMILY_TCMALLOC, "tc_malloc_skip_new_handler", 0, -1),
    ALLOCATES(FAMILY_TCMALLOC, "tc_calloc", 0, 1),
    RESIZES(FAMILY_TCMALLOC, "tc_realloc", 0, 1, -1),
    FREES(FAMILY_TCMALLOC, "tc_free", 0),
    FREES(FAMILY_TCMALLOC, "tc_free_sized", 0),
    FREES(FAMILY_TCMALLOC, "tc_cfree", 0),
    STORES(FAMILY_TCMALLOC, "tc_posix_memalign", 2, 0),
    ALLOCATES(FAMILY_TCMALLOC, "tc_memalign", 1, -1),
    ALLOCATES(FAMILY_TCMALLOC, "tc_valloc", 0, -1),
    ALLOCATES(FAMILY_TCMALLOC, "tc_pvalloc", 0, -1),
    THROWS(FAMILY_TCMALLOC, "tc_new", 0, -1),
    THROWS(FAMILY_TCMALLOC, "tc_newarray", 0, -1),
    THROWS(FAMILY_TCMALLOC, "tc_new_aligned", 0, -1),
    THROWS(FAMILY_TCMALLOC, "tc_newarray_aligned", 0, -1),
    ALLOCATES(FAMILY_TCMALLOC, "tc_new_nothrow", 0, -1),
    ALLOCATES(FAMILY_TCMALLOC, "tc_newarray_nothrow", 0, -1),
    ALLOCATES(FAMILY_TCMALLOC, "tc_new_aligned_nothrow", 0, -1),
    ALLOCATES(FAMILY_TCMALLOC, "tc_newarray_aligned_nothrow", 0, -1),
    FREES(FAMILY_TCMALLOC, "tc_delete", 0),
    FREES(FAMILY_TCMALLOC, "tc_deletearray", 0),
    FREES(FAMILY_TCMALLOC, "tc_delete_sized", 0),
    FREES(FAMILY_TCMALLOC, "tc_deletearray_sized", 0),
    FREES(FAMILY_TCMALLOC, "tc_delete_nothrow", 0),
    FREES(FAMILY_TCMALLOC, "tc_deletearray_nothrow", 0),
    FREES(FAMILY_TCMALLOC, "tc_delete_aligned", 0),
    FREES(FAMILY_TCMALLOC, "tc_deletearray_aligned", 0),
    FREES(FAMILY_TCMALLOC, "tc_delete_sized_aligned", 0),
    FREES(FAMILY_TCMALLOC, "tc_deletearray_sized_aligned", 0),
    FREES(FAMILY_TCMALLOC, "tc_delete_aligned_nothrow", 0),
    FREES(FAMILY_TCMALLOC, "tc_deletearray_aligned_nothrow", 0),
};

/* __rust_realloc(pointer, old size, alignment, new size) */
static const struct function_kind rust[] = {
    ALLOCATES(FAMILY_RUST, "__rust_alloc", 0, -1),
    ALLOCATES(FAMILY_RUST, "__rust_alloc_zeroed", 0, -1),
    RESIZES(FAMILY_RUST, "__rust_realloc", 0, 3, -1),
    FREES(FAMILY_RUST, "__rust_dealloc", 0),
};

/* The methods of the trait GlobalAlloc: alloc(self, layout), dealloc(self, block, layout),
 * realloc(self, block, layout, size). A layout is a pair of words, one of which is the size. */
#define METHOD(name, role, size, old)                                                                        \
    { name, FAMILY_RUST, role, size, -1, old, -1, false, true }

static const struct function_kind methods[] = {
    METHOD("alloc", ROLE_ALLOCATE, 1, -1),
    METHOD("alloc_zeroed", ROLE_ALLOCATE, 1, -1),
    METHOD("realloc", ROLE_RESIZE, 3, 1),
    METHOD("dealloc", ROLE_FREE, -1, 1),
};

static const struct function_kind others[] = {
    {"_dl_debug_state", FAMILY_SYSTEM, ROLE_MODULES, -1, -1, -1, -1, false, false},
    {"_Unwind_RaiseException", FAMILY_SYSTEM, ROLE_UNWIND, -1, -1, -1, -1, false, false},
    {"_Unwind_ForcedUnwind", FAMILY_SYSTEM, ROLE_UNWIND, -1, -1, -1, -1, false, false},
};

static const struct function_kind *find_in(
    const struct function_kind *kinds, size_t count, const char *name) {
    for (size_t i = 0; i < count; i++)
        if (strcmp(kinds[i].name, name) == 0) return &kinds[i];
    return NULL;
}

#define FIND_IN(table, name) find_in(table, sizeof table / sizeof *table, name)

/* The plain name in a mangled one such as _RNvCs<hash>_7___rustc12___rust_alloc, or NULL. That is a path in the
 * crate __rustc; the hash changes with each version of the compiler. Mangling puts an underscore in front of a
 * name that begins with one. */
static const char *rust_name(const char *name) {
    if (strncmp(name, "_RNvC", 5) != 0) return NULL;
    const char *crate = strstr(name, "7___rustc");
    if (!crate) return NULL;
    char *end;
    unsigned long length = strtoul(crate + 9, &end, 10);
    return *end == '_' && strlen(end + 1) == length ? end + 1 : NULL;
}

/* What is known about a method of core::alloc::GlobalAlloc, of any type; NULL for other names. The forms of
 * mangled names:
 *
 *     _ZN61_$LT$a..Shelf$u20$as$u20$core..alloc..global..GlobalAlloc$GT$5alloc17h…E     old scheme, a type's own
 *     _ZN4core5alloc6global11GlobalAlloc7realloc17h…E                                   old scheme, the default
 *     _RNvXs_Cs…_1aNtB4_5ShelfNtNtNtCs…_4core5alloc6global11GlobalAlloc5alloc           new scheme, a type's own
 *     _RNvYNtCs…_1a5ShelfNtNtNtCs…_4core5alloc6global11GlobalAlloc7reallocB4_           new scheme, the default */
static const struct function_kind *find_method(const char *name) {
    static const char *const forms[][2] = {{"_ZN", "core..alloc..global..GlobalAlloc$GT$"},
        {"_ZN4core5alloc6global11GlobalAlloc", "11GlobalAlloc"}, {"_RNvX", "11GlobalAlloc"},
        {"_RNvY", "11GlobalAlloc"}};
    const char *method = NULL;
    for (size_t i = 0; i < sizeof forms / sizeof *forms && !method; i++)
        if (strncmp(name, forms[i][0], strlen(forms[i][0])) == 0 && (method = strstr(name, forms[i][1])))
            method += strlen(forms[i][1]);
    if (!method) return NULL;
    char *start;
    unsigned long length = strtoul(method, &start, 10);
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        if (strlen(methods[i].name) != length || strncmp(start, methods[i].name, length) != 0) continue;
        /* The old scheme has a hash after the method's name; the new one may have the crate that it was
         * instantiated for. Another name in that place means that this is not the method itself. */
        bool is_old = name[1] == 'Z';
        return is_old == (strncmp(start + length, "17h", 3) == 0) ? &methods[i] : NULL;
    }
    return NULL;
}

const struct function_kind *allocator_functions_find(const char *name) {
    const struct function_kind *kind = NULL;
    if (strncmp(name, "_ZN", 3) == 0) return find_method(name);
    if (strncmp(name, "_Z", 2) == 0) return FIND_IN(operators, name);
    if (strncmp(name, "mi_", 3) == 0) return FIND_IN(mimalloc, name);
    if (strncmp(name, "tc_", 3) == 0) return FIND_IN(tcmalloc, name);
    if (strncmp(name, "__rust_", 7) == 0) return FIND_IN(rust, name);
    if (strncmp(name, "_R", 2) == 0) {
        const char *plain_name = rust_name(name);
        return plain_name ? FIND_IN(rust, plain_name) : find_method(name);
    }
    if (name[0] == '_' && (kind = FIND_IN(others, name))) return kind;
    if ((kind = FIND_IN(plain, name)) || (kind = FIND_IN(jemalloc, name))) return kind;
    for (size_t i = 0; i < sizeof jemalloc_prefixes / sizeof *jemalloc_prefixes; i++) {
        size_t length = strlen(jemalloc_prefixes[i]);
        if (strncmp(name, jemalloc_prefixes[i], length) != 0) continue;
        kind = FIND_IN(prefixed, name + length);
        return kind ? kind : FIND_IN(jemalloc, name + length);
    }
    return NULL;
}
