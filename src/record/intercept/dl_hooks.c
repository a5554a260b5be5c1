#include "record/intercept/dl_hooks.h"

#include "core/unrecorded.h"
#include "record/intercept/export.h"
#include "record/intercept/search_order.h"
#include "record/python/python.h"
#include "record/sample/recorder_state.h"
#include "unwind/unwind.h"

#include <dlfcn.h>
#include <link.h>
#include <stdint.h>

EXPORT ANY_STACK int dlclose(void *handle);
ANY_STACK void dl_hooks_before_dlmopen(Lmid_t namespace, const char *path, int mode);

/* Where the entry code's dlmopen goes on. */
void *(*dl_hooks_next_dlmopen)(Lmid_t, const char *, int);

static int (*next_dlclose)(void *);

/* libc's: the program may have one of its own, which need not report the linker's counts. */
static int (*iterate)(int (*)(struct dl_phdr_info *, size_t, void *), void *);

/* At the start, while there is one thread (search_order.h). Constructors of other libraries may come before. */
__attribute__((constructor)) static void find_next(void) {
    if (next_dlclose) return;
    *(void **)&dl_hooks_next_dlmopen = search_order_next("dlmopen");
    *(void **)&next_dlclose = search_order_next("dlclose");
    *(void **)&iterate = search_order_libc("dl_iterate_phdr");
}

const void *dl_hooks_find(const char *name) {
    void *(*find)(void *, const char *);
    char *(*forget)(void);
    *(void **)&find = search_order_libc("dlsym");
    *(void **)&forget = search_order_libc("dlerror");
    const void *found = find(RTLD_DEFAULT, name);
    if (found) return found;
    forget(); /* returns the text of the error */
    forget(); /* frees it */
    return NULL;
}

int dl_hooks_iterate(int (*visit)(struct dl_phdr_info *, size_t, void *), void *data) {
    if (!iterate) find_next();
    return iterate(visit, data);
}

/* A namespace other than the program's gets libraries of its own, libc with its malloc among them. No calls of these
 * come here. */
void dl_hooks_before_dlmopen(Lmid_t namespace, const char *path, int mode) {
    (void)mode;
    if (!dl_hooks_next_dlmopen) find_next();
    if (namespace != LM_ID_BASE && path && recorder_is_recording())
        unrecorded_note(&recorder.recording, path, UNRECORDED_NAMESPACE);
}

const void *dl_hooks_find_dlclose(void) {
    find_next();
    return (void *)next_dlclose;
}

static int note_unloads(struct dl_phdr_info *info, size_t size, void *unloads) {
    (void)size;
    *(uint64_t *)unloads = info->dlpi_subs;
    return 1; /* stops: the count is in the report of every object */
}

static uint64_t unloads_so_far(void) {
    uint64_t unloads = 0;
    dl_hooks_iterate(note_unloads, &unloads);
    return unloads;
}

int dl_hooks_dlclose(void *handle) {
    find_next();
    python_before_closing();
    uint64_t before = unloads_so_far(), begun = unwind_closing_begin();
    int result = next_dlclose(handle);
    unwind_closing_end(begun, unloads_so_far() != before);
    python_after_closing();
    return result;
}

int dlclose(void *handle) {
    return dl_hooks_dlclose(handle);
}
