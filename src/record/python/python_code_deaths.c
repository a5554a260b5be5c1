/* The interpreter's function that ends code objects, tp_dealloc of PyCode_Type, is replaced by one that counts
 * first. */
#include "record/python/python_internals.h"

#define TYPE_DEALLOC 48 /* offset of tp_dealloc, in every type */

_Atomic uint64_t python_code_deaths;

static void (*_Atomic end_code)(void *code);

static void count_and_end(void *code) {
    atomic_fetch_add_explicit(&python_code_deaths, 1, memory_order_relaxed);
    end_code(code);
}

static void (**dealloc_slot(void))(void *) {
    return (void (**)(void *))(uintptr_t)((const char *)python.interpreter.code_type + TYPE_DEALLOC);
}

void python_code_deaths_watch(void) {
    /* Code objects may have died before the interpreter was watched. */
    atomic_fetch_add_explicit(&python_code_deaths, 1, memory_order_relaxed);
    if (*dealloc_slot() == count_and_end) return;
    end_code = *dealloc_slot();
    /* Release: a thread that finds count_and_end in the slot finds end_code set. */
    __atomic_store_n(dealloc_slot(), count_and_end, __ATOMIC_RELEASE);
}

void python_code_deaths_unwatch(void) {
    if (python.interpreter.code_type && *dealloc_slot() == count_and_end) *dealloc_slot() = end_code;
}
