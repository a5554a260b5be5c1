#include "symbol/object_search.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libiberty/libiberty.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* libdwfl asks debuginfod servers by itself, but only where the user has named some in DEBUGINFOD_URLS. A
 * server that keeps silent would hold up the report once for each module, by default for 90 s. */
#define SERVER_PATIENCE "10"

static bool server_given_up;

bool object_search_gave_up_server(void) {
    return server_given_up;
}

static double seconds_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void limit_patience(void) {
    setenv("DEBUGINFOD_TIMEOUT", SERVER_PATIENCE, 0);
    setenv("DEBUGINFOD_RETRY_LIMIT", "0", 0);
}

static void give_up_server_after(double begin) {
    if (!getenv("DEBUGINFOD_URLS") || seconds_now() - begin < atof(SERVER_PATIENCE) - 1) return;
    server_given_up = true;
    unsetenv("DEBUGINFOD_URLS");
}

static int find_debuginfo(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base,
    const char *file, const char *link, GElf_Word checksum, char **ret_path) {
    limit_patience();
    double begin = seconds_now();
    int fd = dwfl_standard_find_debuginfo(module, data, name, base, file, link, checksum, ret_path);
    if (fd < 0) give_up_server_after(begin);
    return fd;
}

static const Dwfl_Callbacks callbacks = {
    .find_elf = dwfl_build_id_find_elf,
    .find_debuginfo = find_debuginfo,
    .section_address = dwfl_offline_section_address,
};

static bool build_id_fits(Dwfl_Module *found, const struct model_module *module) {
    const unsigned char *bits;
    GElf_Addr address;
    int size = dwfl_module_build_id(found, &bits, &address);
    return size == module->build_id_size && memcmp(bits, module->build_id, (size_t)size) == 0;
}

/* Without a build-id: whether the file was written after the program had mapped it. */
static bool written_since(
    const struct stat *status, const struct model_module *module, const struct model_process *process) {
    if (!process || !process->start_realtime) return false;
    uint64_t mapped = process->start_realtime + module->first_seen;
    return (uint64_t)status->st_mtim.tv_sec * 1000000000u + (uint64_t)status->st_mtim.tv_nsec > mapped;
}

/* Hands the file to libdwfl at its link-time addresses. Takes over `fd`. */
static bool report_file(const char *path, int fd, struct found_object *ret_found) {
    Dwfl *dwfl = dwfl_begin(&callbacks);
    dwfl_report_begin(dwfl);
    Dwfl_Module *module = dwfl_report_elf(dwfl, lbasename(path), path, fd, 0, true);
    if (!module) close(fd);
    dwfl_report_end(dwfl, NULL, NULL);
    if (!module) {
        dwfl_end(dwfl);
        return false;
    }
    *ret_found = (struct found_object){.dwfl = dwfl, .module = module};
    return true;
}

/* `is_mapping`: the path leads to what is mapped itself, whatever has become of its name since. */
static enum object_trouble try_file(const char *path, bool is_mapping, const struct model_module *module,
    const struct model_process *process, struct found_object *ret_found) {
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return errno == EACCES || errno == EPERM ? OBJECT_FORBIDDEN : OBJECT_MISSING;
    struct stat status;
    if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) {
        close(fd);
        return OBJECT_UNREADABLE;
    }
    struct found_object found;
    if (!report_file(path, fd, &found)) return OBJECT_UNREADABLE;
    bool fits = build_id_fits(found.module, module);
    if (!module->build_id_size && !is_mapping && (module->deleted || written_since(&status, module, process)))
        fits = false;
    if (!fits) {
        dwfl_end(found.dwfl);
        return OBJECT_CHANGED;
    }
    *ret_found = found;
    return OBJECT_FINE;
}

/* By build-id alone: the file itself, or else its debug info, from the folders that debuggers look into or
 * from a debuginfod server. */
static bool search_by_build_id(const struct model_module *module, struct found_object *ret_found) {
    if (!module->build_id_size) return false;
    Dwfl *dwfl = dwfl_begin(&callbacks);
    dwfl_report_begin(dwfl);
    Dwfl_Module *wanted = dwfl_report_module(dwfl, "", 0x1000, 0x2000); /* any range will do */
    dwfl_module_report_build_id(wanted, module->build_id, module->build_id_size, 0);
    dwfl_report_end(dwfl, NULL, NULL);
    limit_patience();

    char *path = NULL;
    Elf *elf = NULL;
    double begin = seconds_now();
    int fd = dwfl_build_id_find_elf(wanted, NULL, "", 0, &path, &elf);
    bool is_debug_file = fd < 0;
    if (fd < 0) {
        give_up_server_after(begin);
        fd = find_debuginfo(wanted, NULL, "", 0, NULL, NULL, 0, &path);
    }
    bool found = fd >= 0 && report_file(path ? path : "", fd, ret_found);
    if (elf) elf_end(elf);
    free(path);
    dwfl_end(dwfl);
    if (!found) return false;
    if (!build_id_fits(ret_found->module, module)) {
        dwfl_end(ret_found->dwfl);
        return false;
    }
    ret_found->is_debug_file = is_debug_file;
    return true;
}

enum object_trouble object_search(
    const struct model_module *module, const struct model_process *process, struct found_object *ret_found) {
    enum { BY_NAME, IN_ITS_ROOT, AS_MAPPED, PLACES };
    char *places[PLACES] = {[BY_NAME] = xstrdup(module->path)};
    if (process && process->state == PROCESS_RUNNING) {
        /* The process may see other files under the same names, and holds the only link to a deleted one. */
        places[IN_ITS_ROOT] = xasprintf("/proc/%d/root%s", process->pid, module->path);
        places[AS_MAPPED] =
            xasprintf("/proc/%d/map_files/%" PRIx64 "-%" PRIx64, process->pid, module->start, module->end);
    }
    static const int checked_order[PLACES] = {BY_NAME, IN_ITS_ROOT, AS_MAPPED};
    static const int unchecked_order[PLACES] = {AS_MAPPED, IN_ITS_ROOT, BY_NAME};
    const int *order = module->build_id_size ? checked_order : unchecked_order;
    enum object_trouble worst = OBJECT_MISSING;
    struct found_object found;
    bool done = false;
    for (int i = 0; i < PLACES && !done; i++) {
        if (!places[order[i]]) continue;
        bool is_mapping = order[i] == AS_MAPPED;
        enum object_trouble trouble = try_file(places[order[i]], is_mapping, module, process, &found);
        done = trouble == OBJECT_FINE;
        if (!is_mapping && trouble > worst) worst = trouble;
    }
    for (int i = 0; i < PLACES; i++) free(places[i]);
    if (!done && !search_by_build_id(module, &found)) return worst;
    *ret_found = found;
    return OBJECT_FINE;
}
