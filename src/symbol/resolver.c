#include "base/memory.h"
#include "model/stack_labels.h"
#include "symbol/archived_names.h"
#include "symbol/bounded_demangler.h"
#include "symbol/jit_names.h"
#include "symbol/lookup_batch.h"
#include "symbol/result_pool.h"
#include "symbol/symbol.h"
#include "symbol/symbol_store.h"

#include <inttypes.h>
#include <libiberty/hashtab.h>
#include <stdlib.h>
#include <string.h>

/* A frame word of a process and what it stands for. */
struct known_word {
    uint64_t word;
    uint32_t process;
    struct symbol_list list; /* its count is 0 until the word is resolved */
};

/* A file with symbols. It serves all modules that were mapped from it, in any process. */
struct known_file {
    const struct model_module *module; /* the first of them */
    struct symbol_file *file;
    struct symbol_cache *cache; /* or NULL */
    struct lookup_batch batch;  /* the addresses that resolver_resolve_all will look up in it */
    bool is_needed;             /* a frame in one of its modules was not named by an archive */
    struct known_file *next;    /* in the order in which they became known */
};

/* Stacks share most of their frames. `recent` finds a word that was met lately without a search in the hash
 * table. */
#define RECENT_WORDS 4096

struct resolver {
    const struct model *model;
    const char *sysroot;
    char *cache_folder; /* NULL: no cache is used */
    struct result_pool *pool;
    struct result_pool_list pools; /* the results of other threads */
    struct jit_names *jit_names;
    struct archived_names *archived;
    htab_t words;  /* struct known_word */
    htab_t labels; /* struct symbol */
    struct known_word *recent[RECENT_WORDS];
    htab_t files; /* struct known_file */
    struct known_file *first_file, **last_file;
};

static hashval_t hash_word(const void *entry) {
    const struct known_word *word = entry;
    return iterative_hash(&word->word, sizeof word->word, word->process);
}

static int same_word(const void *left, const void *right) {
    const struct known_word *a = left, *b = right;
    return a->word == b->word && a->process == b->process;
}

/* Labels are compared by pointer: the pool keeps equal texts once. */
static hashval_t hash_label(const void *entry) {
    return htab_hash_pointer(((const struct symbol *)entry)->function);
}

static int same_label(const void *left, const void *right) {
    return ((const struct symbol *)left)->function == ((const struct symbol *)right)->function;
}

static hashval_t hash_file(const void *entry) {
    const struct model_module *module = ((const struct known_file *)entry)->module;
    return iterative_hash(module->build_id, module->build_id_size, htab_hash_string(module->path));
}

/* Whether two modules were mapped from the same file. Without a build-id the modules must be of one process: in
 * another process the same path may lead to another file. */
static int same_file(const void *left, const void *right) {
    const struct model_module *a = ((const struct known_file *)left)->module;
    const struct model_module *b = ((const struct known_file *)right)->module;
    if (strcmp(a->path, b->path) != 0 || a->build_id_size != b->build_id_size) return false;
    if (!a->build_id_size)
        return a->process == b->process && a->deleted == b->deleted && a->inode == b->inode;
    return memcmp(a->build_id, b->build_id, a->build_id_size) == 0;
}

static void forget_file(void *entry) {
    struct known_file *known = entry;
    symbol_cache_close(known->cache);
    symbol_file_close(known->file);
    free(known);
}

struct resolver *resolver_new(const struct model *model) {
    struct resolver *resolver = memory_allocate(sizeof *resolver);
    resolver->model = model;
    resolver->pool = result_pool_new();
    resolver->jit_names = jit_names_new(model, resolver->pool);
    resolver->words = htab_create(1024, hash_word, same_word, NULL);
    resolver->labels = htab_create(64, hash_label, same_label, NULL);
    resolver->files = htab_create(64, hash_file, same_file, forget_file);
    resolver->last_file = &resolver->first_file;
    resolver->archived = archived_names_new(model, resolver->pool);
    return resolver;
}

void resolver_set_sysroot(struct resolver *resolver, const char *folder) {
    resolver->sysroot = result_pool_text(resolver->pool, folder);
    jit_names_set_sysroot(resolver->jit_names, folder);
}

void resolver_use_cache(struct resolver *resolver, const char *folder) {
    free(resolver->cache_folder);
    resolver->cache_folder = memory_copy_text(folder);
}

void resolver_free(struct resolver *resolver) {
    if (!resolver) return;
    htab_delete(resolver->words);
    htab_delete(resolver->labels);
    htab_delete(resolver->files);
    jit_names_free(resolver->jit_names);
    archived_names_free(resolver->archived);
    result_pool_list_free(&resolver->pools);
    result_pool_free(resolver->pool);
    free(resolver->cache_folder);
    free(resolver);
}

/* The module of the model `to` that was `module` in a former reading of the recording, or NULL. A module keeps
 * its number while a recording grows. */
static const struct model_module *same_module(const struct model *to, const struct model_module *module) {
    size_t low = 0, high = module ? to->module_count : 0;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (to->numbered[middle]->number == module->number) return to->numbered[middle];
        if (to->numbered[middle]->number < module->number)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

static int follow_word(void **slot, void *context) {
    struct known_word *known = *slot;
    known->list.module = same_module(context, known->list.module);
    return 1;
}

static bool is_later_reading(const struct resolver *resolver, const struct model *model) {
    const struct model *former = resolver->model;
    if (former->process_count != 1 || model->process_count != 1 ||
        former->processes[0].pid != model->processes[0].pid ||
        former->processes[0].start_realtime != model->processes[0].start_realtime)
        return false;
    for (const struct known_file *known = resolver->first_file; known; known = known->next) {
        const struct known_file key = {.module = same_module(model, known->module)};
        if (!key.module || !same_file(known, &key)) return false;
    }
    return true;
}

bool resolver_follow(struct resolver *resolver, const struct model *model) {
    if (!is_later_reading(resolver, model)) return false;
    htab_traverse_noresize(resolver->words, follow_word, (void *)model);
    for (struct known_file *known = resolver->first_file; known; known = known->next)
        known->module = same_module(model, known->module);
    /* The JIT compilers' maps are read again: they may have grown. */
    jit_names_free(resolver->jit_names);
    resolver->jit_names = jit_names_new(model, resolver->pool);
    if (resolver->sysroot) jit_names_set_sysroot(resolver->jit_names, resolver->sysroot);
    archived_names_free(resolver->archived);
    resolver->archived = archived_names_new(model, resolver->pool);
    resolver->model = model;
    return true;
}

static struct known_file *file_of(struct resolver *resolver, const struct model_module *module) {
    struct known_file key = {.module = module};
    void **slot = htab_find_slot(resolver->files, &key, INSERT);
    if (!*slot) {
        const struct model *model = resolver->model;
        struct symbol_file_roots roots = {.sysroot = resolver->sysroot};
        if (module->process < model->process_count) roots.process = &model->processes[module->process];
        struct known_file *known = memory_allocate(sizeof *known);
        *known =
            (struct known_file){.module = module, .file = symbol_file_open(resolver->pool, module, &roots)};
        if (resolver->cache_folder)
            known->cache = symbol_cache_open(resolver->cache_folder, module, known->file);
        *slot = *resolver->last_file = known;
        resolver->last_file = &known->next;
    }
    return *slot;
}

static struct symbol_list list_of_text(struct resolver *resolver, uint64_t address, const char *text) {
    struct symbol *frame = result_pool_allocate(resolver->pool, sizeof *frame);
    frame->function = text;
    return (struct symbol_list){.frames = frame, .count = 1, .module_address = address};
}

const struct symbol *resolver_label(struct resolver *resolver, const char *what, const char *name) {
    struct symbol key = {.function = result_pool_format(resolver->pool, "[%s %s]", what, name)};
    void **slot = htab_find_slot(resolver->labels, &key, INSERT);
    if (!*slot) {
        struct symbol *label = result_pool_allocate(resolver->pool, sizeof *label);
        label->function = key.function;
        label->given = result_pool_text(resolver->pool, name);
        *slot = label;
    }
    return *slot;
}

/* Whether the word stands for a label that the program has set. Its text is in the recording, so it is not looked
 * up in an archive. */
static bool is_label(uint64_t word) {
    uint64_t kind = word >> FRAME_KIND_SHIFT;
    return kind == FRAME_SCOPE || kind == FRAME_THREAD;
}

static struct symbol_list list_of_label(struct resolver *resolver, const struct known_word *word) {
    const char *what = word->word >> FRAME_KIND_SHIFT == FRAME_SCOPE ? "scope" : "thread";
    const char *name = model_find_text(resolver->model, word->process, word->word & FRAME_VALUE_MASK);
    return (struct symbol_list){
        .frames = resolver_label(resolver, what, name ? name : LABEL_LOST), .count = 1};
}

static bool has_debug_info(struct known_file *known) {
    struct debug_info info;
    return symbol_file_debug_info(known->file, &info);
}

/* Takes the names from the archive that the recording came in. False if the archive has none for the word, or if
 * the file itself knows more: the archive may have been made without debug info that is present here. */
static bool take_from_archive(
    struct resolver *resolver, const struct known_word *known, struct symbol_list *list) {
    struct symbol_list archived;
    if (!archived_names_find(resolver->archived, known->process, known->word, &archived)) return false;
    archived.module = model_find_place(resolver->model, known->process, known->word).module;
    if (!archived.frames[0].line && archived.module && archived.module->build_id_size &&
        has_debug_info(file_of(resolver, archived.module)))
        return false;
    *list = archived;
    return true;
}

/* Resolves a word unless a file has to be searched for it. In that case returns the file, and
 * `list->module_address` is the address to be searched for. */
static struct known_file *begin_word(struct resolver *resolver, struct known_word *word) {
    struct symbol_list *list = &word->list;
    uint64_t kind = word->word >> FRAME_KIND_SHIFT, value = word->word & FRAME_VALUE_MASK;
    if (is_label(word->word)) {
        *list = list_of_label(resolver, word);
        return NULL;
    }
    if (take_from_archive(resolver, word, list)) return NULL;
    struct model_place place = model_find_place(resolver->model, word->process, word->word);
    const struct model_code *code =
        kind == FRAME_PYTHON ? model_find_code(resolver->model, word->process, word->word) : NULL;
    if (code) {
        *list = list_of_text(resolver, 0, result_pool_text(resolver->pool, code->name));
        struct symbol *frame = (struct symbol *)list->frames;
        frame->file = code->file ? result_pool_text(resolver->pool, code->file) : NULL;
        frame->line = (int)(word->word & FRAME_LINE_MASK);
        frame->function_line = (int)code->first_line;
        frame->interpreted = true;
        return NULL;
    }
    if (kind != FRAME_NATIVE && !place.address) {
        *list = list_of_text(resolver, 0,
            kind == FRAME_CUT ? "[cut]"
                              : result_pool_format(resolver->pool,
                                    "[frame of kind %" PRIu64 ": 0x%" PRIx64 "]", kind, value));
        return NULL;
    }
    uint64_t address = place.address ? place.address - 1 : 0;
    const struct model_module *module = place.module;
    struct known_file *known = module ? file_of(resolver, module) : NULL;
    if (known) known->is_needed = true;
    *list = (struct symbol_list){.module = module,
        .module_address = known ? symbol_file_link_address(known->file, module, address) : address};
    if (known && symbol_file_is_found(known->file)) return known;
    list->frames = jit_names_find(resolver->jit_names, word->process, address);
    list->count = 1;
    if (list->frames) return NULL;
    if (known) return known;
    *list = list_of_text(resolver, address, result_pool_format(resolver->pool, "[0x%" PRIx64 "]", address));
    return NULL;
}

static struct known_word *note_word(struct resolver *resolver, uint32_t process, uint64_t word) {
    uint64_t mixed = (word ^ (uint64_t)process << 48) * UINT64_C(0x9e3779b97f4a7c15);
    struct known_word **recent = &resolver->recent[mixed >> 32 & (RECENT_WORDS - 1)];
    if (*recent && (*recent)->word == word && (*recent)->process == process) return *recent;
    struct known_word key = {.word = word, .process = process};
    void **slot = htab_find_slot(resolver->words, &key, INSERT);
    if (!*slot) {
        struct known_word *known = result_pool_allocate(resolver->pool, sizeof *known);
        *known = key;
        *slot = known;
    }
    return *recent = *slot;
}

struct symbol_list resolver_look_up(
    struct resolver *resolver, const struct model_stack *stack, uint32_t index) {
    struct known_word *known = note_word(resolver, stack->process, stack->frames[index]);
    struct symbol_list *list = &known->list;
    if (list->count) return *list;
    struct known_file *asked = begin_word(resolver, known);
    if (asked) list->frames = symbol_file_find(asked->file, list->module_address, &list->count);
    return *list;
}

struct telling {
    symbol_progress progress;
    void *context;
    size_t done, all;
};

static void tell(void *context, size_t found) {
    const struct telling *telling = context;
    if (telling->progress) telling->progress(telling->context, telling->done + found, telling->all);
}

static int begin_all(void **slot, void *context) {
    struct known_word *known = *slot;
    struct resolver *resolver = context;
    if (known->list.count) return 1;
    struct known_file *asked = begin_word(resolver, known);
    if (asked) lookup_batch_add(&asked->batch, known->list.module_address, &known->list);
    return 1;
}

/* How many of its outermost frames a stack shares with the stack before it. Neighbours share most of their
 * frames. */
static uint32_t shared_callers(const struct model_stack *stack, const struct model_stack *before) {
    uint32_t most = stack->frame_count < before->frame_count ? stack->frame_count : before->frame_count;
    const uint64_t *end = stack->frames + stack->frame_count,
                   *end_before = before->frames + before->frame_count;
    uint32_t shared = 0;
    while (shared < most && end[-1 - (ptrdiff_t)shared] == end_before[-1 - (ptrdiff_t)shared]) shared++;
    return stack->process == before->process ? shared : 0;
}

static void note_all_words(struct resolver *resolver) {
    const struct model *model = resolver->model;
    for (size_t i = 0; i < model->stack_count; i++) {
        const struct model_stack *stack = &model->stacks[i];
        uint32_t known = i ? shared_callers(stack, stack - 1) : 0;
        for (uint32_t j = 0; j < stack->frame_count - known; j++)
            note_word(resolver, stack->process, stack->frames[j]);
    }
}

void resolver_resolve_all(struct resolver *resolver, symbol_progress progress, void *context) {
    note_all_words(resolver);
    htab_traverse_noresize(resolver->words, begin_all, resolver);
    struct telling telling = {progress, context, .all = htab_elements(resolver->words)};
    for (struct known_file *known = resolver->first_file; known; known = known->next) {
        size_t count = known->batch.count;
        lookup_batch_resolve(
            &known->batch, known->file, known->cache, resolver->pool, &resolver->pools, tell, &telling);
        telling.done += count;
    }
    if (progress) progress(context, telling.all, telling.all);
}

struct packing {
    struct resolver *resolver;
    struct symbol_store_writer *writer;
    size_t count;
};

/* Adds a word to the archive's store. A word without a name whose file was not found is left out: the machine
 * that reads the archive may have the file. */
static int pack_word(void **slot, void *context) {
    const struct known_word *known = *slot;
    const struct symbol_list *list = &known->list;
    struct packing *packing = context;
    if (!list->count || is_label(known->word)) return 1;
    struct known_file key = {.module = list->module};
    const struct known_file *file = list->module ? htab_find(packing->resolver->files, &key) : NULL;
    bool is_named = list->frames[0].function[0] != '[';
    if (file && !symbol_file_is_found(file->file) && !is_named) return 1;
    symbol_store_writer_add(
        packing->writer, known->process, known->word, list->module_address, list->frames, list->count);
    packing->count++;
    return 1;
}

void *resolver_pack(struct resolver *resolver, size_t *ret_size, size_t *ret_count) {
    struct packing packing = {resolver, symbol_store_writer_new(), 0};
    htab_traverse_noresize(resolver->words, pack_word, &packing);
    void *bytes = symbol_store_writer_finish(packing.writer, ret_size);
    symbol_store_writer_free(packing.writer);
    if (bytes) *ret_count = packing.count;
    return bytes;
}

#define NAMES_SHOWN 10

/* The names of the files that were needed and had a certain trouble. */
struct names {
    enum symbol_file_trouble trouble;
    const char *text; /* "liba.so, libb.so", or NULL */
    size_t count;
    struct result_pool *pool;
};

static int collect_name(void **slot, void *context) {
    const struct known_file *known = *slot;
    const struct symbol_file *file = known->file;
    struct names *names = context;
    if (!known->is_needed || symbol_file_trouble(file) != names->trouble) return 1;
    const char *name = result_pool_line(names->pool, symbol_file_name(file));
    if (names->count < NAMES_SHOWN)
        names->text = names->text ? result_pool_format(names->pool, "%s, %s", names->text, name) : name;
    names->count++;
    return 1;
}

const char *resolver_describe(struct resolver *resolver, const struct model_module *module) {
    struct known_file *known = file_of(resolver, module);
    const char *archive = archived_names_of(resolver->archived, module);
    if (archive && !has_debug_info(known))
        return result_pool_format(resolver->pool, "the names in %s", archive);
    return symbol_file_describe(known->file);
}

static size_t count_trouble(struct resolver *resolver, enum symbol_file_trouble trouble) {
    struct names names = {.trouble = trouble, .pool = resolver->pool};
    htab_traverse_noresize(resolver->files, collect_name, &names);
    return names.count;
}

bool resolver_lacks_files(struct resolver *resolver) {
    return count_trouble(resolver, SYMBOL_FILE_MISSING) || count_trouble(resolver, SYMBOL_FILE_CHANGED);
}

const char *resolver_warning(struct resolver *resolver) {
    static const struct {
        enum symbol_file_trouble trouble;
        const char *one, *several;
    } sentences[] = {
        {SYMBOL_FILE_CHANGED, "has changed since the recording", "have changed since the recording"},
        {SYMBOL_FILE_MISSING, "does not exist here", "do not exist here"},
        {SYMBOL_FILE_FORBIDDEN, "may not be read", "may not be read"},
        {SYMBOL_FILE_UNREADABLE, "cannot be read as an ELF file", "cannot be read as ELF files"},
    };
    const char *text = archived_names_warning(resolver->archived);
    for (size_t i = 0; i < sizeof sentences / sizeof *sentences; i++) {
        struct names names = {.trouble = sentences[i].trouble, .pool = resolver->pool};
        htab_traverse_noresize(resolver->files, collect_name, &names);
        if (!names.count) continue;
        bool one = names.count == 1;
        if (names.count > NAMES_SHOWN)
            names.text = result_pool_format(
                resolver->pool, "%s and %zu more files", names.text, names.count - NAMES_SHOWN);
        text = result_pool_format(resolver->pool, "%s%s%s %s: %s functions are shown as addresses",
            text ? text : "", text ? "\n" : "", names.text, one ? sentences[i].one : sentences[i].several,
            one ? "its" : "their");
    }
    if (symbol_file_search_gave_up_server())
        text = result_pool_format(resolver->pool,
            "%s%sno answer from the servers in DEBUGINFOD_URLS: some functions may lack file and line",
            text ? text : "", text ? "\n" : "");
    if (bounded_demangler_given_up())
        text = result_pool_format(resolver->pool,
            "%s%s%zu names of functions are shown mangled: they would be longer than %u KiB, or take too "
            "long",
            text ? text : "", text ? "\n" : "", bounded_demangler_given_up(), DEMANGLED_SIZE_MOST / 1024);
    const char *generated = jit_names_warning(resolver->jit_names);
    if (generated) text = text ? result_pool_format(resolver->pool, "%s\n%s", text, generated) : generated;
    return text;
}
