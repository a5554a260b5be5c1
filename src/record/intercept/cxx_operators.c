#include "record/intercept/cxx_operators.h"

#include "platform/calls.h"
#include "record/intercept/export.h"
#include "record/intercept/hooks.h"
#include "record/intercept/real_allocator.h"
#include "record/intercept/search_order.h"
#include "record/sample/work.h"

#include <link.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/auxv.h>

void *entry_new_by_malloc(size_t size);
void *entry_new_by_program(size_t size);
void *entry_new_array_by_program(size_t size);
void entry_delete_by_free(void *block);
ANY_STACK void *cxx_operators_new_failed(size_t size);
void *cxx_operators_new(
    size_t size, size_t second, size_t third, const struct unwind_registers *at, unsigned form);

/* Where the entry code goes on in the first two forms, when it has charged the countdown and no sample is due. */
void *(*cxx_operators_next_new[2])(size_t) = {entry_new_by_malloc, entry_new_by_malloc};

/* Where the entry code goes on in each form of operator delete. */
#define BY_FREE(form, name) entry_delete_by_free,
void (*cxx_operators_next_delete[DELETE_FORMS])(void *) = {OPERATORS_DELETE(BY_FREE)};
#undef BY_FREE

typedef void *(*new_function)(size_t, size_t, size_t); /* the forms take one to three of these */

/* The operators behind ours. */
static new_function next_new[NEW_FORMS];

/* BY_PROGRAM: the program's own. */
new_function cxx_operators_program_new[NEW_FORMS];
static enum operators whose_they_are;

#define NAME(form, name) #name,
static const char *const new_name[] = {OPERATORS_NEW(NAME)};
static const char *const delete_name[] = {OPERATORS_DELETE(NAME)};
#undef NAME

bool cxx_operators_are_replaced(void) {
    for (unsigned form = 0; form < NEW_FORMS; form++)
        if (search_order_is_before(new_name[form])) return true;
    for (unsigned form = 0; form < DELETE_FORMS; form++)
        if (search_order_is_before(delete_name[form])) return true;
    return false;
}

/* Sets the values of our operators' symbols to 0: the dynamic linker passes over such symbols. No call can have
 * been bound to them yet, because no C++ library is loaded. */
static void withdraw(void) {
    ElfW(Sym) * symbol[NEW_FORMS + DELETE_FORMS];
    uintptr_t low = UINTPTR_MAX, high = 0;
    for (unsigned i = 0; i < NEW_FORMS + DELETE_FORMS; i++) {
        symbol[i] =
            (ElfW(Sym) *)search_order_own_symbol(i < NEW_FORMS ? new_name[i] : delete_name[i - NEW_FORMS]);
        if (!symbol[i]) continue;
        if ((uintptr_t)symbol[i] < low) low = (uintptr_t)symbol[i];
        if ((uintptr_t)(symbol[i] + 1) > high) high = (uintptr_t)(symbol[i] + 1);
    }
    low &= -getauxval(AT_PAGESZ);
    if (high == 0 || call_mprotect((void *)low, high - low, PROT_READ | PROT_WRITE) != 0) return;
    for (unsigned i = 0; i < NEW_FORMS + DELETE_FORMS; i++)
        if (symbol[i]) symbol[i]->st_value = 0;
    call_mprotect((void *)low, high - low, PROT_READ);
}

void cxx_operators_set(enum operators whose) {
    whose_they_are = whose;
    for (unsigned form = 0; form < NEW_FORMS && whose != WITHDRAWN; form++)
        *(void **)&next_new[form] = search_order_behind(new_name[form]);
    switch (whose) {
    case BY_MALLOC:
        break;
    case WITHDRAWN:
        withdraw();
        break;
    case BY_PROGRAM:
        for (unsigned form = 0; form < NEW_FORMS; form++) cxx_operators_program_new[form] = next_new[form];
        for (unsigned form = 0; form < DELETE_FORMS; form++)
            *(void **)&cxx_operators_next_delete[form] = search_order_behind(delete_name[form]);
        cxx_operators_next_new[0] = entry_new_by_program;
        cxx_operators_next_new[1] = entry_new_array_by_program;
        break;
    }
}

/* There is no memory. The operator behind ours calls the new-handler, and throws or returns NULL. */
static void *fail(unsigned form, size_t size, size_t second, size_t third) {
    if (next_new[form]) return next_new[form](size, second, third);
    if (form & 2) return NULL; /* the nothrow forms */
    abort(); /* an older C++ library does not have this form: no code is there that could throw */
}

void *cxx_operators_new_failed(size_t size) {
    return fail(0, size, 0, 0);
}

void *cxx_operators_new(
    size_t size, size_t second, size_t third, const struct unwind_registers *at, unsigned form) {
    if (real_allocator_ready() && whose_they_are == BY_PROGRAM) {
        work_end_here();
        return cxx_operators_program_new[form](size, second, third);
    }
    void *block = form < 4 ? hooks_malloc(size, at) : hooks_allocate_aligned(second, size, at);
    if (block) return block;
    work_end_here();
    return fail(form, size, second, third);
}
