#include "symbol/jit_names.h"
#include "symbol/object.h"
#include "symbol/pool.h"
#include "symbol/symbol.h"

#include <inttypes.h>
#include <libiberty/hashtab.h>
#include <libiberty/libiberty.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* A frame word of a process and what it stands for. */
struct known_word {
    uint64_t word;
    uint32_t process;
    struct symbol_list list; /* with count 0 until it is resolved */
};

/* An object serves all modules that were mapped from the same file, in any process. */
struct known_object {
    const struct model_module *module; /* the first of them */
    struct object *object;
};

struct resolver {
    const struct model *model;
    const char *sysroot;
    struct pool *pool;
    struct jit_names *jit_names;
    htab_t words;   /* struct known_word */
    htab_t objects; /* struct known_object */
};

static hashval_t hash_word(const void *entry) {
    const struct known_word *word = entry;
    return iterative_hash(&word->word, sizeof word->word, word->process);
}

static int same_word(const void *left, const void *right) {
    const struct known_word *a = left, *b = right;
    return a->word == b->word && a->process == b->process;
}

static hashval_t hash_object(const void *entry) {
    const struct model_module *module = ((const struct known_object *)entry)->module;
    return iterative_hash(module->build_id, module->build_id_size, htab_hash_string(module->path));
}

/* Without a build-id a path may mean another file in another process. */
static int same_object(const void *left, const void *right) {
    const struct model_module *a = ((const struct known_object *)left)->module;
    const struct model_module *b = ((const struct known_object *)right)->module;
    if (strcmp(a->path, b->path) != 0 || a->build_id_size != b->build_id_size) return false;
    if (!a->build_id_size)
        return a->process == b->process && a->deleted == b->deleted && a->inode == b->inode;
    return memcmp(a->build_id, b->build_id, a->build_id_size) == 0;
}

static void forget_object(void *entry) {
    object_close(((struct known_object *)entry)->object);
    free(entry);
}

int resolver_new(const struct model *model, struct resolver **ret_resolver, struct problem *problem) {
    struct resolver *resolver = xcalloc(1, sizeof *resolver);
    resolver->model = model;
    resolver->pool = pool_new();
    resolver->jit_names = jit_names_new(model, resolver->pool);
    resolver->words = htab_create(1024, hash_word, same_word, NULL);
    resolver->objects = htab_create(64, hash_object, same_object, forget_object);
    *ret_resolver = resolver;
    return 0;
}

void resolver_set_sysroot(struct resolver *resolver, const char *folder) {
    resolver->sysroot = pool_text(resolver->pool, folder);
    jit_names_set_sysroot(resolver->jit_names, folder);
}

void resolver_free(struct resolver *resolver) {
    if (!resolver) return;
    htab_delete(resolver->words);
    htab_delete(resolver->objects);
    jit_names_free(resolver->jit_names);
    pool_free(resolver->pool);
    free(resolver);
}

static struct object *object_of(struct resolver *resolver, const struct model_module *module) {
    struct known_object key = {.module = module};
    void **slot = htab_find_slot(resolver->objects, &key, INSERT);
    if (!*slot) {
        const struct model *model = resolver->model;
        struct search search = {.sysroot = resolver->sysroot};
        if (module->process < model->process_count) search.process = &model->processes[module->process];
        struct known_object *known = xmalloc(sizeof *known);
        *known = (struct known_object){module, object_open(resolver->pool, module, &search)};
        *slot = known;
    }
    return ((struct known_object *)*slot)->object;
}

static struct symbol_list list_of_text(struct resolver *resolver, uint64_t address, const char *text) {
    struct symbol *frame = pool_allocate(resolver->pool, sizeof *frame);
    frame->function = text;
    return (struct symbol_list){.frames = frame, .count = 1, .module_address = address};
}

static struct symbol_list resolve_word(struct resolver *resolver, uint32_t process, uint64_t word) {
    uint64_t kind = word >> FRAME_KIND_SHIFT, value = word & FRAME_VALUE_MASK;
    if (kind == FRAME_CUT) return list_of_text(resolver, 0, "[cut]");
    struct model_place place = model_find_place(resolver->model, process, word);
    if (kind != FRAME_NATIVE && !place.address)
        return list_of_text(resolver, 0,
            pool_format(resolver->pool, "[frame of kind %" PRIu64 ": 0x%" PRIx64 "]", kind, value));
    uint64_t address = place.address ? place.address - 1 : 0;
    struct symbol_list list = {.module = place.module, .count = 1};
    struct object *object = list.module ? object_of(resolver, list.module) : NULL;
    list.module_address = object ? object_link_address(object, list.module, address) : address;
    if (!object || !object_is_found(object))
        list.frames = jit_names_find(resolver->jit_names, process, address);
    if (list.frames) return list;
    if (!object)
        return list_of_text(resolver, address, pool_format(resolver->pool, "[0x%" PRIx64 "]", address));
    list.frames = object_find(object, list.module_address, &list.count);
    return list;
}

static struct known_word *note_word(struct resolver *resolver, uint32_t process, uint64_t word) {
    struct known_word key = {.word = word, .process = process};
    void **slot = htab_find_slot(resolver->words, &key, INSERT);
    if (!*slot) {
        struct known_word *known = pool_allocate(resolver->pool, sizeof *known);
        *known = key;
        *slot = known;
    }
    return *slot;
}

struct symbol_list resolver_look_up(
    struct resolver *resolver, const struct model_stack *stack, uint32_t index) {
    struct known_word *known = note_word(resolver, stack->process, stack->frames[index]);
    if (!known->list.count) known->list = resolve_word(resolver, known->process, known->word);
    return known->list;
}

static int compare_words(const void *left, const void *right) {
    const struct known_word *a = *(struct known_word *const *)left, *b = *(struct known_word *const *)right;
    if (a->process != b->process) return a->process < b->process ? -1 : 1;
    return (a->word > b->word) - (a->word < b->word);
}

static int collect_word(void **slot, void *cursor) {
    struct known_word *known = *slot, ***next = cursor;
    *(*next)++ = known;
    return 1;
}

static double seconds_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

void resolver_resolve_all(struct resolver *resolver, symbol_progress progress, void *context) {
    const struct model *model = resolver->model;
    for (size_t i = 0; i < model->stack_count; i++) {
        const struct model_stack *stack = &model->stacks[i];
        for (uint32_t j = 0; j < stack->frame_count; j++)
            note_word(resolver, stack->process, stack->frames[j]);
    }
    size_t all = htab_elements(resolver->words);
    struct known_word **words = xmalloc((all + 1) * sizeof *words), **end = words;
    htab_traverse_noresize(resolver->words, collect_word, &end);
    /* In the order of addresses one unit of one file is read after the other. */
    qsort(words, all, sizeof *words, compare_words);
    double told = seconds_now();
    for (size_t i = 0; i < all; i++) {
        if (!words[i]->list.count) words[i]->list = resolve_word(resolver, words[i]->process, words[i]->word);
        if (progress && seconds_now() - told > 0.05) {
            progress(context, i + 1, all);
            told = seconds_now();
        }
    }
    free(words);
    if (progress) progress(context, all, all);
}

struct names {
    enum object_trouble trouble;
    const char *text; /* "liba.so, libb.so", or NULL */
    size_t count;
    struct pool *pool;
};

static int collect_name(void **slot, void *context) {
    const struct object *object = ((const struct known_object *)*slot)->object;
    struct names *names = context;
    if (object_trouble(object) != names->trouble) return 1;
    const char *name = object_name(object);
    names->text = names->text ? pool_format(names->pool, "%s, %s", names->text, name) : name;
    names->count++;
    return 1;
}

const char *resolver_describe(struct resolver *resolver, const struct model_module *module) {
    return object_describe(object_of(resolver, module));
}

static size_t count_trouble(struct resolver *resolver, enum object_trouble trouble) {
    struct names names = {.trouble = trouble, .pool = resolver->pool};
    htab_traverse_noresize(resolver->objects, collect_name, &names);
    return names.count;
}

bool resolver_lacks_files(struct resolver *resolver) {
    return count_trouble(resolver, OBJECT_MISSING) || count_trouble(resolver, OBJECT_CHANGED);
}

const char *resolver_warning(struct resolver *resolver) {
    static const struct {
        enum object_trouble trouble;
        const char *one, *several;
    } sentences[] = {
        {OBJECT_CHANGED, "has changed since the recording", "have changed since the recording"},
        {OBJECT_MISSING, "does not exist here", "do not exist here"},
        {OBJECT_FORBIDDEN, "may not be read", "may not be read"},
        {OBJECT_UNREADABLE, "cannot be read as an ELF file", "cannot be read as ELF files"},
    };
    const char *text = NULL;
    for (size_t i = 0; i < sizeof sentences / sizeof *sentences; i++) {
        struct names names = {.trouble = sentences[i].trouble, .pool = resolver->pool};
        htab_traverse_noresize(resolver->objects, collect_name, &names);
        if (!names.count) continue;
        bool one = names.count == 1;
        text = pool_format(resolver->pool, "%s%s%s %s: %s functions are shown as addresses", text ? text : "",
            text ? "\n" : "", names.text, one ? sentences[i].one : sentences[i].several,
            one ? "its" : "their");
    }
    if (object_search_gave_up_server())
        text = pool_format(resolver->pool,
            "%s%sno answer from the servers in DEBUGINFOD_URLS: some functions may lack file and line",
            text ? text : "", text ? "\n" : "");
    const char *generated = jit_names_warning(resolver->jit_names);
    if (generated) text = text ? pool_format(resolver->pool, "%s\n%s", text, generated) : generated;
    return text;
}
