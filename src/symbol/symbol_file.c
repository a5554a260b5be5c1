#include "symbol/symbol_file.h"

#include "base/elf/dwarf_units.h"
#include "base/elf/elf_segments.h"
#include "base/limits.h"
#include "base/memory.h"
#include "symbol/demangle.h"
#include "symbol/plt.h"
#include "symbol/symbol_table.h"

#include <elfutils/libdwelf.h>
#include <gelf.h>
#include <inttypes.h>
#include <libiberty/hashtab.h>
#include <libiberty/libiberty.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* A source file's name as libdw gives it for a unit, and the full path that is shown for it. */
struct known_path {
    const struct dwarf_unit *unit;
    const char *source, *path;
};

#define KNOWN_PATHS 256

struct symbol_file {
    struct result_pool *pool;
    const char *name;
    enum symbol_file_trouble trouble;
    struct found_file found; /* dwfl is NULL if nothing was found */
    Elf *handle;             /* of the file, owned by `found` */
    struct elf_segments segments;
    bool loaded;    /* the members below have been read */
    bool is_second; /* a second reader owns `dwarf`, `units` and `places`, the first reader all the rest */
    Dwarf *dwarf;   /* NULL if there is no debug info */
    bool lacks_debug_info; /* parts of it are in other files, which do not exist here */
    struct symbol_table symbols;
    struct plt plt;
    struct dwarf_units units;
    /* DWARF address = link-time address + dwarf_bias. Not 0 only for files that prelink has changed. */
    uint64_t dwarf_bias;
    htab_t places;
    struct known_path known_paths[KNOWN_PATHS];
};

/* The frames at one address. */
struct place {
    uint64_t address;
    const struct symbol *frames;
    size_t count;
};

bool symbol_file_is_found(const struct symbol_file *file) {
    return file->found.dwfl != NULL;
}

enum symbol_file_trouble symbol_file_trouble(const struct symbol_file *file) {
    return file->trouble;
}

const char *symbol_file_name(const struct symbol_file *file) {
    return file->name;
}

static const char SIGNAL_FRAME[] = "[signal handler called]";

/* Whether `address` is that of the instructions to which signal handlers return. */
static bool is_trampoline(const struct symbol_file *file, uint64_t address) {
    static const uint8_t code[] = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05}; /* mov $15,%rax; syscall */
    static pthread_mutex_t lock =
        PTHREAD_MUTEX_INITIALIZER; /* the read changes the Elf, which readers share */
    for (size_t i = 0; i < file->segments.count && !file->found.is_debug_file; i++) {
        const struct elf_segment *segment = &file->segments.list[i];
        uint64_t place = address - segment->address;
        if (!segment->has_code || place >= segment->file_size || segment->file_size - place < sizeof code)
            continue;
        pthread_mutex_lock(&lock);
        Elf_Data *data = elf_getdata_rawchunk(
            file->handle, (int64_t)(segment->file_offset + place), sizeof code, ELF_T_BYTE);
        bool is_same = data && memcmp(data->d_buf, code, sizeof code) == 0;
        pthread_mutex_unlock(&lock);
        return is_same;
    }
    return false;
}

static const struct symbol *unknown_frame(struct symbol_file *file, uint64_t address) {
    struct symbol *frame = result_pool_allocate(file->pool, sizeof *frame);
    if (file->found.dwfl && is_trampoline(file, address))
        frame->function = SIGNAL_FRAME;
    else if (file->name[0] == '[')
        frame->function = file->name; /* "[vdso]" and other names in brackets are no files */
    else
        frame->function = result_pool_format(file->pool, "[%s+0x%" PRIx64 "]", file->name, address);
    return frame;
}

static const struct symbol *frame_from_table(
    struct symbol_file *file, const struct table_symbol *entry, const char *path, int line) {
    struct symbol *frame = result_pool_allocate(file->pool, sizeof *frame);
    bool is_signal = strcmp(entry->name, "__restore_rt") == 0;
    frame->function = is_signal ? SIGNAL_FRAME : demangle_name(file->pool, entry->name, NULL);
    frame->linkage = result_pool_text(file->pool, entry->name);
    frame->file = path;
    frame->line = line;
    return frame;
}

static const struct symbol *frame_from_plt(struct symbol_file *file, const char *name) {
    struct symbol *frame = result_pool_allocate(file->pool, sizeof *frame);
    frame->function = result_pool_format(file->pool, "%s@plt", demangle_name(file->pool, name, NULL));
    frame->linkage = result_pool_format(file->pool, "%s@plt", name);
    return frame;
}

/* Removes "." and "x/.." from an absolute path, in place. Build systems compile "../src/a.c" in a folder of their
 * own. */
static const char *fold_dots(char *path) {
    char *to = path, *from = path;
    while (*from) { /* at a slash */
        size_t length = 1 + strcspn(from + 1, "/");
        if (length == 3 && from[1] == '.' && from[2] == '.') {
            while (to > path && *--to != '/') {
            }
        } else if (length > 1 && !(length == 2 && from[1] == '.')) {
            memmove(to, from, length);
            to += length;
        }
        from += length;
    }
    *to = '\0';
    return path;
}

static const char *make_path(struct symbol_file *file, const struct dwarf_unit *unit, const char *source) {
    bool relative = source[0] != '/';
    if (relative && (!unit->folder || unit->folder[0] != '/')) return result_pool_text(file->pool, source);
    char *path = memory_format_text("%s%s%s", relative ? unit->folder : "", relative ? "/" : "", source);
    const char *kept = result_pool_text(file->pool, fold_dots(path));
    free(path);
    return kept;
}

static const char *full_path(struct symbol_file *file, const struct dwarf_unit *unit, const char *source) {
    if (!source) return NULL;
    struct known_path *known = &file->known_paths[((uintptr_t)source >> 3) % KNOWN_PATHS];
    if (known->source != source || known->unit != unit)
        *known = (struct known_path){unit, source, make_path(file, unit, source)};
    return known->path;
}

static const char *mangled(const struct table_symbol *entry) {
    return entry && demangle_is_mangled(entry->name) ? entry->name : NULL;
}

/* The mangled name that the symbol table has for a function that was not inlined, or NULL. `entry` is the symbol
 * at some address of the function. The symbol at the function's entry is preferred: other parts of a function may
 * have names of their own (f.cold). */
static const char *linkage_in_table(const struct symbol_file *file, const struct dwarf_unit *unit,
    const struct dwarf_scope *scope, const struct table_symbol *entry) {
    Dwarf_Die die = {.addr = scope->die, .cu = unit->code_die.cu};
    Dwarf_Addr start;
    const char *name = NULL;
    if (dwarf_entrypc(&die, &start) == 0)
        name = mangled(symbol_table_find(&file->symbols, start - file->dwarf_bias));
    return name ? name : mangled(entry);
}

/* Fills in the names of a function or inlined call. DWARF may lack the linkage name: C functions need none, and
 * lambdas have one in the symbol table only, unless they were inlined. */
static void name_scope(struct symbol_file *file, const struct dwarf_unit *unit,
    const struct dwarf_scope *scope, const struct table_symbol *entry) {
    struct dwarf_name *name = scope->name;
    if (name->shown) return;
    bool is_function = scope->caller == SCOPE_NONE;
    if (!name->linkage && is_function) name->linkage = linkage_in_table(file, unit, scope, entry);
    if (!name->linkage && is_function) name->linkage = name->name;
    name->linkage = result_pool_text(file->pool, name->linkage);
    if (name->linkage || name->name)
        name->shown = demangle_name(file->pool, name->linkage, name->name);
    else
        name->shown = "[unnamed function]";
}

static const struct symbol *frames_from_dwarf(struct symbol_file *file, struct dwarf_unit *unit,
    struct dwarf_scope *innermost, const struct table_symbol *entry, const char *source, int line,
    size_t *ret_count) {
    size_t count = 1;
    for (struct dwarf_scope *scope = innermost; scope->caller != SCOPE_NONE;
         scope = &unit->scopes[scope->caller])
        count++;
    struct symbol *frames = result_pool_allocate(file->pool, count * sizeof *frames);
    struct dwarf_scope *scope = innermost;
    for (size_t i = 0;; i++, scope = &unit->scopes[scope->caller]) {
        dwarf_unit_describe(unit, scope);
        name_scope(file, unit, scope, entry);
        frames[i] = (struct symbol){
            .function = scope->name->shown,
            .linkage = scope->name->linkage,
            .file = full_path(file, unit, source),
            .line = line,
            .function_line = scope->name->line,
            .inlined = scope->caller != SCOPE_NONE,
        };
        if (scope->caller == SCOPE_NONE) break;
        source = scope->call_file; /* the next frame, the caller, is at the line of this call */
        line = scope->call_line;
    }
    *ret_count = count;
    return frames;
}

static void find_frames(struct symbol_file *file, struct place *place) {
    const char *stub = plt_find(&file->plt, place->address);
    if (stub) {
        place->count = 1;
        place->frames = frame_from_plt(file, stub);
        return;
    }
    const struct table_symbol *entry = symbol_table_find(&file->symbols, place->address);
    uint64_t dwarf_address = place->address + file->dwarf_bias;
    struct dwarf_unit *unit = dwarf_units_find(&file->units, dwarf_address);
    struct dwarf_scope *scope = unit ? dwarf_unit_find_scope(unit, dwarf_address) : NULL;
    const char *source = NULL;
    int line = 0;
    if (unit) dwarf_unit_find_line(unit, dwarf_address, &source, &line);
    place->count = 1;
    if (scope)
        place->frames = frames_from_dwarf(file, unit, scope, entry, source, line, &place->count);
    else if (entry)
        place->frames = frame_from_table(file, entry, unit ? full_path(file, unit, source) : NULL, line);
    else
        place->frames = unknown_frame(file, place->address);
}

static void load(struct symbol_file *file);

const char *symbol_file_describe(struct symbol_file *file) {
    static const char *const troubles[] = {
        [SYMBOL_FILE_FINE] = "no names: not a file",
        [SYMBOL_FILE_MISSING] = "no names: the file does not exist here",
        [SYMBOL_FILE_FORBIDDEN] = "no names: the file may not be read",
        [SYMBOL_FILE_UNREADABLE] = "no names: what is there is not an ELF file",
        [SYMBOL_FILE_CHANGED] = "no names: the file has changed since the recording",
    };
    if (strcmp(file->name, MODULE_ANONYMOUS) == 0)
        return "no file: what /tmp/perf-PID.map says, if a JIT compiler wrote it";
    if (!file->handle) return troubles[file->trouble];
    load(file);
    const char *main_file = NULL, *debug_file = NULL;
    dwfl_module_info(file->found.module, NULL, NULL, NULL, NULL, NULL, &main_file, &debug_file);
    if (file->units.count)
        return result_pool_format(file->pool, "functions and lines: %s", debug_file ? debug_file : main_file);
    if (file->symbols.count) return result_pool_format(file->pool, "functions only: %s", main_file);
    return result_pool_format(file->pool, "no names: %s is stripped", main_file);
}

static hashval_t hash_place(const void *place) {
    return iterative_hash(&((const struct place *)place)->address, sizeof(uint64_t), 0);
}

static int same_place(const void *left, const void *right) {
    return ((const struct place *)left)->address == ((const struct place *)right)->address;
}

const struct symbol *symbol_file_find(struct symbol_file *file, uint64_t link_address, size_t *ret_count) {
    load(file);
    struct place key = {.address = link_address};
    void **slot = htab_find_slot(file->places, &key, INSERT);
    if (!*slot) {
        struct place *place = result_pool_allocate(file->pool, sizeof *place);
        place->address = link_address;
        find_frames(file, place);
        *slot = place;
    }
    const struct place *place = *slot;
    *ret_count = place->count;
    return place->frames;
}

/* Whether the module is a mapping of this whole segment. A debug file does not keep the file offsets of the
 * segments that were stripped from it, so only the sizes can be compared. */
static bool segment_is_mapping(const struct elf_segment *segment, const struct model_module *module) {
    uint64_t page = PAGE_SIZE_MIN, low = segment->address & -page;
    return module->end - module->start ==
           ((segment->address + segment->memory_size + page - 1) & -page) - low;
}

uint64_t symbol_file_link_address(
    const struct symbol_file *file, const struct model_module *module, uint64_t address) {
    uint64_t offset = address - module->start + module->file_offset;
    for (size_t i = 0; i < file->segments.count; i++) {
        const struct elf_segment *segment = &file->segments.list[i];
        if (!segment->has_code) continue;
        if (file->found.is_debug_file) {
            if (segment_is_mapping(segment, module))
                return (segment->address & -PAGE_SIZE_MIN) + (address - module->start);
        } else if (offset - segment->file_offset < segment->file_size) {
            return segment->address + (offset - segment->file_offset);
        }
    }
    return offset;
}

static void read_units(struct symbol_file *file) {
    uint64_t low, high;
    elf_segments_code_range(&file->segments, &low, &high);
    dwarf_units_read(&file->units, file->dwarf, low + file->dwarf_bias, high + file->dwarf_bias);
}

/* Whether the debug info refers to a file with common parts (made by dwz) that does not exist here. */
static bool lacks_common_file(Dwarf *dwarf) {
    const char *name;
    const void *build_id;
    return dwelf_dwarf_gnu_debugaltlink(dwarf, &name, &build_id) > 0 && !dwarf_getalt(dwarf);
}

static void load(struct symbol_file *file) {
    if (file->loaded) return;
    file->loaded = true;
    if (!file->handle) return;
    GElf_Addr elf_bias, dwarf_bias;
    dwfl_module_getelf(file->found.module, &elf_bias);
    file->dwarf = dwfl_module_getdwarf(file->found.module, &dwarf_bias);
    if (file->dwarf) {
        file->dwarf_bias = elf_bias - dwarf_bias;
        read_units(file);
        file->lacks_debug_info = file->units.lacks_parts || lacks_common_file(file->dwarf);
    }
    symbol_table_read(&file->symbols, file->found.module);
    plt_read(&file->plt, file->handle, &file->symbols);
}

struct symbol_file *symbol_file_open(
    struct result_pool *pool, const struct model_module *module, const struct symbol_file_roots *roots) {
    struct symbol_file *file = memory_allocate(sizeof *file);
    file->pool = pool;
    file->places = htab_create(64, hash_place, same_place, NULL);
    bool is_file = module->path[0] != '[';
    file->name = result_pool_text(pool, is_file ? lbasename(module->path) : module->path);
    file->trouble = symbol_file_search(module, roots, &file->found);
    if (!file->found.dwfl) return file;
    GElf_Addr bias;
    file->handle = dwfl_module_getelf(file->found.module, &bias);
    if (file->handle)
        elf_segments_read(&file->segments, file->handle);
    else
        file->trouble = SYMBOL_FILE_UNREADABLE;
    return file;
}

/* Threads must not share a Dwarf of libdw. But two Dwarfs over one Elf share only the sections that were read
 * from the file, and libdw does not change these any more. */
struct symbol_file *symbol_file_open_second(struct symbol_file *file, struct result_pool *pool) {
    load(file);
    Dwarf *dwarf = file->dwarf ? dwarf_begin_elf(dwarf_getelf(file->dwarf), DWARF_C_READ, NULL) : NULL;
    if (!dwarf) return NULL;
    struct symbol_file *second = memory_allocate(sizeof *second);
    *second = *file;
    second->is_second = true;
    second->pool = pool;
    second->places = htab_create(64, hash_place, same_place, NULL);
    second->dwarf = dwarf;
    second->units = (struct dwarf_units){0};
    memset(second->known_paths, 0, sizeof second->known_paths);
    return second;
}

void symbol_file_read_second(struct symbol_file *second) {
    read_units(second);
}

bool symbol_file_debug_info(struct symbol_file *file, struct debug_info *ret_info) {
    load(file);
    const char *debug_file = NULL;
    if (!file->dwarf) return false;
    dwfl_module_info(file->found.module, NULL, NULL, NULL, NULL, NULL, NULL, &debug_file);
    *ret_info = (struct debug_info){.path = debug_file, .is_whole = !file->lacks_debug_info};
    return true;
}

struct file_version symbol_file_version(const struct symbol_file *file) {
    return file->found.version;
}

void symbol_file_close(struct symbol_file *file) {
    if (!file) return;
    dwarf_units_clear(&file->units);
    htab_delete(file->places);
    if (file->is_second) {
        dwarf_end(file->dwarf);
    } else {
        plt_clear(&file->plt);
        symbol_table_clear(&file->symbols);
        elf_segments_clear(&file->segments);
        symbol_file_search_end(&file->found);
    }
    free(file);
}
