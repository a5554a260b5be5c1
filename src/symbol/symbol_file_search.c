#include "symbol/symbol_file_search.h"

#include "base/memory.h"
#include "base/nanoseconds.h"
#include "base/open_as.h"
#include "base/open_in_root.h"
#include "base/open_regular.h"
#include "symbol/vdso.h"

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

/* libdwfl asks debuginfod servers by itself, but only if the user has named some in DEBUGINFOD_URLS. A server
 * that does not answer would delay the report once for each module, by default for 90 s. So the tool waits this
 * many seconds, once. */
#define SERVER_PATIENCE "10"

static bool server_given_up;

bool symbol_file_search_gave_up_server(void) {
    return server_given_up;
}

static double seconds_now(void) {
    return 1e-9 * (double)nanoseconds_now(CLOCK_MONOTONIC);
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

/* libdwfl keeps pointers to both members. */
struct debug_folders {
    Dwfl_Callbacks callbacks;
    /* Separated by colons. An empty entry is the file's own folder, a relative one a folder in that. */
    char *list;
};

/* The folders of the roots come before this machine's own. */
static struct debug_folders *folders_new(const struct symbol_file_roots *roots) {
    struct debug_folders *folders = memory_allocate(sizeof *folders);
    int running = roots->process ? roots->process->running_pid : 0;
    char *of_process =
        running ? memory_format_text("/proc/%d/root/usr/lib/debug:", running) : memory_copy_text("");
    folders->list = memory_format_text(":.debug:%s%s%s/usr/lib/debug", roots->sysroot ? roots->sysroot : "",
        roots->sysroot ? "/usr/lib/debug:" : "", of_process);
    free(of_process);
    folders->callbacks = (Dwfl_Callbacks){
        .find_elf = dwfl_build_id_find_elf,
        .find_debuginfo = find_debuginfo,
        .section_address = dwfl_offline_section_address,
        .debuginfo_path = &folders->list,
    };
    return folders;
}

void symbol_file_search_end(struct found_file *found) {
    if (found->dwfl) dwfl_end(found->dwfl);
    if (found->folders) free(found->folders->list);
    free(found->folders);
    *found = (struct found_file){0};
}

static bool build_id_fits(Dwfl_Module *found, const struct model_module *module) {
    const unsigned char *bits;
    GElf_Addr address;
    int size = dwfl_module_build_id(found, &bits, &address);
    /* A file without a build-id leaves `bits` unset. */
    return size == module->build_id_size && (size == 0 || memcmp(bits, module->build_id, (size_t)size) == 0);
}

/* Whether the file was written after the program had mapped it. Asked for files without a build-id. */
static bool written_since(
    const struct stat *status, const struct model_module *module, const struct model_process *process) {
    if (!process || !process->start_realtime) return false;
    uint64_t mapped = process->start_realtime + module->first_seen;
    return nanoseconds_of(status->st_mtim) > mapped;
}

/* Opens the file with libdwfl, at its link-time addresses. Takes over `fd`. False if it is no ELF file. */
static bool report_file(
    const char *path, int fd, const struct symbol_file_roots *roots, struct found_file *ret_found) {
    struct found_file found = {.folders = folders_new(roots), .version = file_version_of(fd)};
    found.dwfl = dwfl_begin(&found.folders->callbacks);
    dwfl_report_begin(found.dwfl);
    found.module = dwfl_report_elf(found.dwfl, lbasename(path), path, fd, 0, true);
    if (!found.module) close(fd);
    dwfl_report_end(found.dwfl, NULL, NULL);
    if (!found.module) {
        symbol_file_search_end(&found);
        return false;
    }
    *ret_found = found;
    return true;
}

/* When a file without a build-id is taken for the one that was mapped. */
enum trust {
    TRUST_IF_OLD, /* if it was not written since it was mapped */
    TRUST_USER,   /* always: the user has named the sysroot that it is in */
    TRUST_KERNEL, /* always: the kernel's link leads to what is mapped, whatever has the name by now */
};

/* A place where the file may be. */
struct place {
    char *root; /* the folder that counts as "/" for `path`; NULL: the tool's own root */
    char *path;
    enum trust trust;
};

/* Another user's recording may name any file, and the report would tell the names in it: a file that nothing but its
 * path speaks for is opened with that user's rights. */
static int open_place(
    const struct place *place, const struct model_module *module, const struct symbol_file_roots *roots) {
    const struct model_process *process = roots->process;
    if (process && process->user != (int64_t)geteuid() && !module->build_id_size &&
        place->trust == TRUST_IF_OLD)
        return open_as(place->root ? place->root : "/", place->path, process->user);
    return place->root ? open_in_root(place->root, place->path, 0) : open_regular(AT_FDCWD, place->path, 0);
}

static enum symbol_file_trouble try_place(const struct place *place, const struct model_module *module,
    const struct symbol_file_roots *roots, struct found_file *ret_found) {
    int fd = open_place(place, module, roots);
    if (fd == -ENOTSUP) return SYMBOL_FILE_UNREADABLE;
    if (fd < 0) return fd == -EACCES || fd == -EPERM ? SYMBOL_FILE_FORBIDDEN : SYMBOL_FILE_MISSING;
    struct stat status;
    if (fstat(fd, &status) != 0) {
        close(fd);
        return SYMBOL_FILE_UNREADABLE;
    }
    char *shown = memory_format_text("%s%s", place->root ? place->root : "", place->path);
    struct found_file found;
    bool is_elf = report_file(shown, fd, roots, &found);
    free(shown);
    if (!is_elf) return SYMBOL_FILE_UNREADABLE;
    bool fits = build_id_fits(found.module, module);
    if (!module->build_id_size && place->trust == TRUST_IF_OLD &&
        (module->deleted || written_since(&status, module, roots->process)))
        fits = false;
    if (!fits) {
        symbol_file_search_end(&found);
        return SYMBOL_FILE_CHANGED;
    }
    *ret_found = found;
    return SYMBOL_FILE_FINE;
}

/* Searches by build-id for the file itself, or else for its debug file, in the folders where debuggers look and on
 * debuginfod servers. */
static bool search_by_build_id(
    const struct model_module *module, const struct symbol_file_roots *roots, struct found_file *ret_found) {
    if (!module->build_id_size) return false;
    struct found_file seeker = {.folders = folders_new(roots)};
    seeker.dwfl = dwfl_begin(&seeker.folders->callbacks);
    dwfl_report_begin(seeker.dwfl);
    Dwfl_Module *wanted = dwfl_report_module(seeker.dwfl, "", 0x1000, 0x2000); /* any range will do */
    dwfl_module_report_build_id(wanted, module->build_id, module->build_id_size, 0);
    dwfl_report_end(seeker.dwfl, NULL, NULL);
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
    bool found = fd >= 0 && report_file(path ? path : "", fd, roots, ret_found);
    if (elf) elf_end(elf);
    free(path);
    symbol_file_search_end(&seeker);
    if (!found) return false;
    if (!build_id_fits(ret_found->module, module)) {
        symbol_file_search_end(ret_found);
        return false;
    }
    ret_found->is_debug_file = is_debug_file;
    return true;
}

/* The kernel's own library. Found only if the recording was made under the kernel that runs here. */
static bool find_vdso(
    const struct model_module *module, const struct symbol_file_roots *roots, struct found_file *ret_found) {
    int fd = module->build_id_size ? vdso_open() : -1;
    if (fd < 0 || !report_file(module->path, fd, roots, ret_found)) return false;
    if (build_id_fits(ret_found->module, module)) return true;
    symbol_file_search_end(ret_found);
    return false;
}

#define PLACES_MAX 5

/* Lists the places where the file may be, in the order in which they are tried. The sysroot that the user has named
 * comes first. With a build-id any of the others will do, so the cheapest one is next. Without one the order of the
 * others is reversed: what the process has mapped is better than a name. */
static size_t list_places(const struct model_module *module, const struct symbol_file_roots *roots,
    struct place places[PLACES_MAX]) {
    const struct model_process *process = roots->process;
    size_t count = 0;
    if (roots->sysroot)
        places[count++] =
            (struct place){memory_copy_text(roots->sysroot), memory_copy_text(module->path), TRUST_USER};
    /* With a sysroot the recording comes from another machine: the same path leads to another file here, and only
     * a build-id can tell. */
    if (!roots->sysroot || module->build_id_size)
        places[count++] = (struct place){NULL, memory_copy_text(module->path), TRUST_IF_OLD};
    if (!process || !process->running_pid) return count;

    /* The process may be in a container and see other files under the same paths. Only through the process can a
     * deleted file be reached. */
    int pid = process->running_pid;
    char *link =
        memory_format_text("/proc/%d/map_files/%" PRIx64 "-%" PRIx64, pid, module->start, module->end);
    places[count++] = (struct place){
        memory_format_text("/proc/%d/root", pid), memory_copy_text(module->path), TRUST_IF_OLD};
    places[count++] = (struct place){NULL, link, TRUST_KERNEL};
    if (strcmp(module->path, process->executable) == 0) /* unlike map_files, exe needs no privilege */
        places[count++] = (struct place){NULL, memory_format_text("/proc/%d/exe", pid), TRUST_KERNEL};
    size_t low = roots->sysroot ? 1 : 0;
    for (size_t high = count - 1; !module->build_id_size && low < high; low++, high--) {
        struct place place = places[low];
        places[low] = places[high];
        places[high] = place;
    }
    return count;
}

/* Whether the path is only a name that the kernel gives to memory. JIT compilers map such memory twice, once to
 * write and once to execute code. */
static bool is_memory(const struct model_module *module) {
    static const char *const names[] = {"/memfd:", "/dev/zero", "/dev/shm/", "/SYSV", "/anon_hugepage"};
    for (size_t i = 0; !module->build_id_size && i < sizeof names / sizeof *names; i++)
        if (strncmp(module->path, names[i], strlen(names[i])) == 0) return true;
    return false;
}

enum symbol_file_trouble symbol_file_search(
    const struct model_module *module, const struct symbol_file_roots *roots, struct found_file *ret_found) {
    struct found_file found;
    if (module->path[0] == '[') {
        bool is_vdso = strcmp(module->path, "[vdso]") == 0;
        if (is_vdso && (find_vdso(module, roots, &found) || search_by_build_id(module, roots, &found)))
            *ret_found = found;
        return SYMBOL_FILE_FINE;
    }
    struct place places[PLACES_MAX];
    size_t count = list_places(module, roots, places);
    enum symbol_file_trouble worst = SYMBOL_FILE_MISSING;
    bool done = false;
    for (size_t i = 0; i < count; i++) {
        if (!done) {
            enum symbol_file_trouble trouble = try_place(&places[i], module, roots, &found);
            done = trouble == SYMBOL_FILE_FINE;
            if (places[i].trust != TRUST_KERNEL && trouble > worst) worst = trouble;
        }
        free(places[i].root);
        free(places[i].path);
    }
    if (!done && !search_by_build_id(module, roots, &found))
        return is_memory(module) ? SYMBOL_FILE_FINE : worst;
    *ret_found = found;
    return SYMBOL_FILE_FINE;
}
