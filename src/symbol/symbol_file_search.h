/* Finds the file that a module was mapped from, or a debug file that describes it. It is searched for under its
 * path, below the root folder of the process while that runs, through the kernel's links to mapped files, by
 * build-id in the folders where debuggers look, and on debuginfod servers.
 *
 * A file counts only if it is the one that was mapped: its build-id must be the recorded one, or, if it has none,
 * it must not have been changed since. Names from another version of a library would be wrong, and nobody would
 * notice. */
#ifndef MALLOSCOPE_SYMBOL_SYMBOL_FILE_SEARCH_H
#define MALLOSCOPE_SYMBOL_SYMBOL_FILE_SEARCH_H

#include "model/model.h"
#include "symbol/file_version.h"

#include <elfutils/libdwfl.h>
#include <stdbool.h>

/* Why a module has no names. If several places were tried, the trouble that comes last in this list is reported. */
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
    struct debug_folders *folders; /* where libdwfl looks for debug info, for as long as `dwfl` lives */
    bool is_debug_file; /* only the separate debug file was found, whose program headers have no file
                                      offsets */
    struct file_version version;
};

/* The roots below which files are searched for. */
struct symbol_file_roots {
    const struct model_process *process; /* the process that had the file mapped, or NULL */
    const char *sysroot; /* the folder with the files of the recorded machine, searched first; or NULL */
};

/* Fills `*ret_found` only if it returns SYMBOL_FILE_FINE. For memory that belongs to no file it returns
 * SYMBOL_FILE_FINE and leaves `*ret_found` as it was. */
enum symbol_file_trouble symbol_file_search(
    const struct model_module *module, const struct symbol_file_roots *roots, struct found_file *ret_found);
void symbol_file_search_end(struct found_file *found);

/* Whether a debuginfod server did not answer for so long that none is asked any more. */
bool symbol_file_search_gave_up_server(void);

#endif
