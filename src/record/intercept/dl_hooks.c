#include "record/intercept/dl_hooks.h"

#include "core/unrecorded.h"
#include "record/intercept/export.h"
#include "record/python/python.h"
#include "record/sample/recorder_state.h"
#include "unwind/unwind.h"

#include <dlfcn.h>
#include <link.h>
#include <stdint.h>

EXPORT int dlclose(void *handle);
void dl_hooks_before_dlmopen(Lmid_t namespace, const char *path, int mode);

/* Where the entry code's dlmopen goes on. */
void *(*dl_hooks_next_dlmopen)(Lmid_t, const char *, int);

/* A namespace other than the program's gets libraries of its own, libc with its malloc among them. No calls of these
 * come here. */
void dl_hooks_before_dlmopen(Lmid_t namespace, const char *path, int mode) {
    (void)mode;
    if (!dl_hooks_next_dlmopen) *(void **)&dl_hooks_next_dlmopen = dlsym(RTLD_NEXT, "dlmopen");
    if (namespace != LM_ID_BASE && path && recorder_is_recording())
        unrecorded_note(&recorder.recording, path, UNRECORDED_NAMESPACE);
}

/* The functions behind us: the program may have a dl_iterate_phdr of its own, which need not report the linker's
 * counts. */
static struct {
    int (*dlclose)(void *);
    int (*dl_iterate_phdr)(int (*)(struct dl_phdr_info *, size_t, void *), void *);
} next;

const void *dl_hooks_find_dlclose(void) {
    if (!next.dlclose) {
        *(void **)&next.dl_iterate_phdr = dlsym(RTLD_NEXT, "dl_iterate_phdr");
        *(void **)&next.dlclose = dlsym(RTLD_NEXT, "dlclose");
    }
    return (void *)next.dlclose;
}

static int note_unloads(struct dl_phdr_info *info, size_t size, void *unloads) {
    (void)size;
    *(uint64_t *)unloads = info->dlpi_subs;
    return 1; /* stops: the count is in the report of every object */
}

static uint64_t unloads_so_far(void) {
    uint64_t unloads = 0;
    next.dl_iterate_phdr(note_unloads, &unloads);
    return unloads;
}

int dl_hooks_dlclose(void *handle) {
    dl_hooks_find_dlclose();
    python_before_closing();
    uint64_t before = unloads_so_far(), begun = unwind_closing_begin();
    int result = next.dlclose(handle);
    unwind_closing_end(begun, unloads_so_far() != before);
    python_after_closing();
    return result;
}

int dlclose(void *handle) {
    return dl_hooks_dlclose(handle);
}
