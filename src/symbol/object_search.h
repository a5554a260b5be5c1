/* Finding the file that was mapped into a recorded program, or a debug file that describes it.
 *
 * A file counts only if it is the one that was recorded: by its build-id, or, where it has none, by not
 * having been changed since. Names from another version of a library would be wrong without anybody noticing.
 */
#ifndef MALLOSCOPE_SYMBOL_OBJECT_SEARCH_H
#define MALLOSCOPE_SYMBOL_OBJECT_SEARCH_H

#include "model/model.h"

#include <elfutils/libdwfl.h>
#include <stdbool.h>

/* Why a module has no names, worst last: of several places that were tried the worst is told. */
enum object_trouble {
    OBJECT_FINE,
    OBJECT_MISSING,
    OBJECT_FORBIDDEN,
    OBJECT_UNREADABLE,
    OBJECT_CHANGED,
};

struct found_object {
    Dwfl *dwfl; /* the caller ends it with dwfl_end */
    Dwfl_Module *module;
    bool is_debug_file; /* separate debug info alone: program headers do not give file offsets */
};

/* `process` may be NULL. Fills `*ret_found` only if it returns OBJECT_FINE. */
enum object_trouble object_search(
    const struct model_module *module, const struct model_process *process, struct found_object *ret_found);

/* Whether a debuginfod server kept silent for so long that it is asked no more. */
bool object_search_gave_up_server(void);

#endif
