#include "hook/memo.h"

#include <stdatomic.h>
#include <stddef.h>
#include <sys/mman.h>

#define ENTRIES_LOG 8 /* 256 entries in 400 KiB, of which only used pages become resident */

static __thread struct memo_entry *memo;

struct memo_entry *memo_entry(const struct unwind_registers *registers) {
    if (!memo) {
        void *memory = mmap(NULL, sizeof(struct memo_entry) << ENTRIES_LOG, PROT_READ | PROT_WRITE,
            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (memory == MAP_FAILED) return NULL;
        memo = memory;
    }
    uint64_t hash = (registers->pc ^ registers->sp << 20) * UINT64_C(0x9e3779b97f4a7c15);
    return &memo[hash >> (64 - ENTRIES_LOG)];
}

/* The words lie above the stack pointer on a stack that this thread runs on: they can be read. */
__attribute__((no_sanitize("address"))) uint32_t memo_stack(
    const struct memo_entry *entry, const struct unwind_registers *registers) {
    const struct unwind_trace *trace = &entry->trace;
    if (entry->pc != registers->pc || entry->sp != registers->sp || !trace->whole) return MEMO_NONE;
    if (trace->uses_fp && entry->fp != registers->fp) return MEMO_NONE;
    const uint64_t *stack = (const uint64_t *)registers->sp;
    for (uint32_t i = 0; i < trace->count; i++)
        if (stack[trace->place[i]] != trace->word[i]) return MEMO_NONE;
    return entry->stack;
}

/* A handler runs further down the stack (or on another one): it would leave another sp. */
void memo_begin(struct memo_entry *entry, const struct unwind_registers *registers) {
    entry->pc = 0;
    entry->sp = registers->sp;
    atomic_signal_fence(memory_order_seq_cst);
}

void memo_keep(struct memo_entry *entry, const struct unwind_registers *registers, uint32_t stack) {
    atomic_signal_fence(memory_order_seq_cst);
    if (entry->sp != registers->sp || entry->pc != 0) return;
    entry->fp = registers->fp;
    entry->stack = stack;
    atomic_signal_fence(memory_order_seq_cst);
    entry->pc = registers->pc;
}

void memo_free(void) {
    if (memo) munmap(memo, sizeof(struct memo_entry) << ENTRIES_LOG);
    memo = NULL;
}
