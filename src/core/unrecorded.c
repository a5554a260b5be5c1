#include "core/unrecorded.h"

#include <string.h>

void unrecorded_start(struct recording *recording) {
    recording->header->unrecorded = arena_allocate(recording, sizeof(struct unrecorded_programs), 8);
}

/* FNV-1a; never 0. */
static uint64_t key_of(const char *path, enum unrecorded_reason reason) {
    uint64_t hash = UINT64_C(0xcbf29ce484222325) + reason;
    for (; *path; path++) hash = (hash ^ (unsigned char)*path) * UINT64_C(0x100000001b3);
    return hash ? hash : 1;
}

/* Fills a place that the caller has just taken. Release: a reader that sees the reason sees the path. */
static void fill(struct unrecorded_program *program, const char *path, enum unrecorded_reason reason) {
    size_t length = strlen(path), most = sizeof program->path - 1;
    const char *from = length > most ? path + length - most : path;
    memcpy(program->path, from, length > most ? most : length);
    atomic_store_explicit(&program->reason, reason, memory_order_release);
}

_Atomic uint64_t *unrecorded_note(
    struct recording *recording, const char *path, enum unrecorded_reason reason) {
    uint64_t offset = recording->header->unrecorded;
    if (!offset) return NULL;
    struct unrecorded_programs *table = arena_at(recording, offset);
    uint64_t key = key_of(path, reason);
    _Atomic uint64_t *count = &table->others;
    for (size_t i = 0; i < UNRECORDED_MOST; i++) {
        struct unrecorded_program *program = &table->program[i];
        uint64_t found = 0;
        bool is_new = atomic_compare_exchange_strong(&program->key, &found, key);
        if (is_new) fill(program, path, reason);
        if (!is_new && found != key) continue;
        count = &program->count;
        break;
    }
    atomic_fetch_add_explicit(count, 1, memory_order_relaxed);
    return count;
}
