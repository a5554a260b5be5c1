#include "view/c_library_keeps.h"

#include <fnmatch.h>
#include <string.h>

/* Functions of the C library that keep what they allocate, as patterns of fnmatch(3). Those that hand the memory to
 * their caller, such as strdup, fopen and getline, are not among them. */
static const char *const holders[] = {
    "_IO_file_doallocate", "_IO_wfile_doallocate", /* the buffer of a stream */
    "_dl_*", "allocate_dtv*",                      /* loaded libraries, thread-local storage */
    "setlocale", "_nl_*", "textdomain", "bindtextdomain", "__gconv*", "__wcsmbs*", /* languages */
    "tzset*", "__tz*",                                                             /* time zones */
    "__new_exitfn", "__cxa_atexit", "__cxa_thread_atexit*", /* what is called at exit */
    "__nss_*", "__res*",                                    /* names of hosts and users */
};

static bool is_of_library(const struct model_module *module) {
    static const char *const names[] = {"libc.so", "libc-", "ld-linux", "ld-2."};
    if (!module) return false;
    const char *slash = strrchr(module->path, '/'), *name = slash ? slash + 1 : module->path;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strncmp(name, names[i], strlen(names[i])) == 0) return true;
    return false;
}

/* Looks only at the innermost frames that are the library's own. Further out the loader is on many stacks, since
 * constructors of libraries run below it. */
bool c_library_keeps(const struct source_frames *frames) {
    for (size_t i = frames->first; i < frames->end && is_of_library(frames->frames[i].module); i++)
        for (size_t j = 0; j < sizeof holders / sizeof *holders; j++)
            if (fnmatch(holders[j], frames->frames[i].symbol->function, 0) == 0) return true;
    return false;
}
