/* Finding the file that was mapped into a recorded program, or a debug file that describes it: under its
 * name, below the root folder of the process while it runs, through the kernel's links to what is mapped,
 * by build-id in the folders of debuggers, from a debuginfod server.
 *
 * A file counts only if it is the one that was recorded: by its build-id, or, where it has none, by not
 * having been changed since. Names from another version of a library would be wrong without anybody noticing.
 */
#ifndef MALLOSCOPE_SYMBOL_SYMBOL_FILE_SEARCH_H
#define MALLOSCOPE_SYMBOL_SYMBOL_FILE_SEARCH_H

#include "model/model.h"
#include "symbol/file_version.h"

#include <elfutils/libdwfl.h>
#include <stdbool.h>

/* Why a module has no names, worst last: of several places that were tried the worst is told. */
enum symbol_file_trouble {
    SYMBOL_FILE_FINE,
    SYMBOL_FILE_MISSING,
    SYMBOL_FILE_FORBIDDEN,
    SYMBOL_FILE_UNREADABLE,
    SYMBOL_FILE_CHANGED,
};

/* All zero: nothing was found. */
struct found_file {
    Dwfl *dwfl;
    Dwfl_Module *module;
    struct debug_folders *folders; /* where libdwfl looks for debug info, now and later */
    bool is_debug_file;            /* separate debug info alone: program headers do not give file offsets */
    struct file_version version;
};

/* Where to look. */
struct symbol_file_roots {
    const struct model_process *process; /* that had it mapped, or NULL */
    const char *sysroot; /* folder that holds the files of the recorded machine and comes first, or NULL */
};

/* Fills `*ret_found` only if it returns SYMBOL_FILE_FINE, and then not for memory that is no file's. */
enum symbol_file_trouble symbol_file_search(
    const struct model_module *module, const struct symbol_file_roots *roots, struct found_file *ret_found);
void symbol_file_search_end(struct found_file *found);

/* Whether a debuginfod server kept silent for so long that it is asked no more. */
bool symbol_file_search_gave_up_server(void);

#endif
