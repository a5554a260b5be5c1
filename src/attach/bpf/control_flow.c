#include "attach/bpf/control_flow.h"

#include <stdlib.h>
#include <string.h>

#include "attach/bpf/instruction.h"
#include "base/memory.h"

/* Enough for the fast paths of any allocator. A path that is longer counts as one that returns. */
#define INSTRUCTIONS_MAX 20000

/* What all functions on the paths share. */
struct search {
    const struct elf_code *elf;
    const struct control_flow_goal *goal;
    size_t budget; /* instructions that may still be decoded */
    struct control_flow_paths paths;
};

/* The state of one function. Its code is followed in straight runs: from an address to the next jump or return. */
struct function_trail {
    uint64_t start, end; /* of the function; end 0: not known */
    uint64_t *seen;      /* where the runs begin that are or were to be followed */
    size_t seen_count, seen_room;
    uint64_t *open; /* those of them that are still to be followed */
    size_t open_count, open_room;
};

static void push(uint64_t **list, size_t *count, size_t *room, uint64_t value) {
    if (*count == *room) {
        *room = *room ? 2 * *room : 64;
        *list = memory_reallocate(*list, *room * sizeof **list);
    }
    (*list)[(*count)++] = value;
}

/* A linear search will do: a function has few straight runs. */
static bool is_seen(const struct function_trail *trail, uint64_t address) {
    for (size_t i = 0; i < trail->seen_count; i++)
        if (trail->seen[i] == address) return true;
    return false;
}

static void open_address(struct function_trail *trail, uint64_t address) {
    if (is_seen(trail, address)) return;
    push(&trail->seen, &trail->seen_count, &trail->seen_room, address);
    push(&trail->open, &trail->open_count, &trail->open_room, address);
}

static bool is_inside(const struct function_trail *trail, uint64_t address) {
    return trail->end && address >= trail->start && address < trail->end;
}

static bool reach_address(struct search *search, uint64_t address) {
    if (!search->goal->is_address(search->goal->context, address)) return false;
    search->paths.reaches = true;
    search->paths.reached_address = address;
    return true;
}

static bool reach_name(struct search *search, const char *name) {
    if (!search->goal->is_name(search->goal->context, name)) return false;
    search->paths.reaches = true;
    search->paths.reached_name = name;
    return true;
}

/* Whether a function never returns. The compiler puts no code for the caller behind a call of such a function:
 * another function's code may follow there. */
static bool never_returns(const char *name) {
    static const char *const names[] = {"abort", "exit", "_exit", "__assert_fail", "__cxa_rethrow",
        "__cxa_throw", "__cxa_throw_bad_array_new_length", "__stack_chk_fail", "_Unwind_Resume",
        "_ZSt17__throw_bad_allocv", "_ZSt9terminatev"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i], name) == 0) return true;
    return false;
}

/* Whether a function does nothing but say where `errno` is. */
static bool is_harmless(const char *name) {
    return strcmp(name, "__errno_location") == 0 || strcmp(name, "___errno_location") == 0;
}

static bool follow_function(struct search *search, uint64_t start, int depth);

/* Whether a call of an imported function returns without having reached the goal. */
static bool name_returns(struct search *search, const char *name) {
    if (reach_name(search, name) || never_returns(name)) return false;
    if (!is_harmless(name)) search->paths.calls_others = true;
    return true;
}

/* The slot that the linkage stub at `address` jumps through, or NULL if there is no stub. A stub is `jmp
 * *slot(%rip)`, with or without an `endbr64` in front. */
static const struct elf_slot *slot_of_stub(const struct elf_code *elf, uint64_t address) {
    for (int i = 0; i < 2; i++) {
        size_t size;
        const uint8_t *code = elf_code_bytes(elf, address, &size);
        if (!code) return NULL;
        struct instruction instruction = instruction_decode(code, size, address);
        if (instruction.kind == INSTRUCTION_JUMP_SLOT) return elf_code_slot_at(elf, instruction.target);
        if (strcmp(instruction.name, "endbr64") != 0) return NULL;
        address += instruction.length;
    }
    return NULL;
}

/* Whether a call of the function at `address` can return without having reached the goal. */
static bool call_returns(struct search *search, uint64_t address, int depth) {
    if (reach_address(search, address)) return false;
    const struct elf_slot *slot = slot_of_stub(search->elf, address);
    if (slot && slot->name) return name_returns(search, slot->name);
    const struct elf_function *function = elf_code_function_at(search->elf, address);
    bool is_named = function && function->address == address;
    if (is_named && never_returns(function->name)) return false;
    if (!is_named || !is_harmless(function->name)) search->paths.calls_others = true;
    return depth == 0 || follow_function(search, address, depth - 1);
}

static bool slot_returns(struct search *search, uint64_t slot_address, int depth) {
    const struct elf_slot *slot = elf_code_slot_at(search->elf, slot_address);
    if (!slot) {
        search->paths.calls_others = true;
        return true;
    }
    if (slot->name) return name_returns(search, slot->name);
    return call_returns(search, slot->target, depth);
}

/* Follows one straight run. True if it leaves the function without having reached the goal. */
static bool follow_run(struct search *search, struct function_trail *trail, uint64_t address, int depth) {
    for (;;) {
        if (trail->end && address >= trail->end)
            return false; /* the last call of the function does not return */
        size_t size;
        const uint8_t *code = elf_code_bytes(search->elf, address, &size);
        if (!code || search->budget == 0) {
            search->paths.calls_others = true;
            return true;
        }
        search->budget--;
        struct instruction instruction = instruction_decode(code, size, address);
        uint64_t next = address + instruction.length;
        switch (instruction.kind) {
        case INSTRUCTION_UNKNOWN:
        case INSTRUCTION_JUMP_ANYWHERE:
            search->paths.calls_others = true;
            return true;
        case INSTRUCTION_RETURN:
            return true;
        case INSTRUCTION_STOP:
            return false;
        case INSTRUCTION_JUMP:
            if (!is_inside(trail, instruction.target) && (trail->end || depth > 0))
                return call_returns(search, instruction.target, depth);
            if (reach_address(search, instruction.target)) return false;
            open_address(trail, instruction.target);
            return false;
        case INSTRUCTION_JUMP_SLOT:
            return slot_returns(search, instruction.target, depth);
        case INSTRUCTION_BRANCH:
            if (!reach_address(search, instruction.target)) open_address(trail, instruction.target);
            break;
        case INSTRUCTION_CALL:
            if (!call_returns(search, instruction.target, depth)) return false;
            break;
        case INSTRUCTION_CALL_SLOT:
            if (!slot_returns(search, instruction.target, depth)) return false;
            break;
        case INSTRUCTION_CALL_ANYWHERE:
            search->paths.calls_others = true;
            break;
        default:
            break;
        }
        address = next;
        if (is_seen(trail, address)) return false;
    }
}

static bool follow_function(struct search *search, uint64_t start, int depth) {
    const struct elf_function *function = elf_code_function_at(search->elf, start);
    struct function_trail trail = {.start = start};
    if (function) trail.end = function->address + function->size;
    bool returns = false;
    open_address(&trail, start);
    const struct control_flow_goal *goal = search->goal;
    while (trail.open_count > 0 &&
           !(returns && !goal->visits_all && (search->paths.reaches || goal->stops_at_return))) {
        uint64_t address = trail.open[--trail.open_count];
        if (follow_run(search, &trail, address, depth)) returns = true;
    }
    free(trail.seen);
    free(trail.open);
    return returns;
}

struct control_flow_paths control_flow_follow(
    const struct elf_code *elf, uint64_t start, int depth, const struct control_flow_goal *goal) {
    struct search search = {.elf = elf, .goal = goal, .budget = INSTRUCTIONS_MAX};
    bool returns = follow_function(&search, start, depth);
    search.paths.returns = returns;
    return search.paths;
}

bool control_flow_jumps_into(const struct elf_code *elf, uint64_t start, uint64_t size, uint64_t last) {
    size_t available;
    const uint8_t *code = elf_code_bytes(elf, start, &available);
    if (!code || size == 0 || size > available) return true;
    for (uint64_t at = 0; at < size;) {
        struct instruction instruction = instruction_decode(code + at, size - at, start + at);
        if (instruction.kind == INSTRUCTION_UNKNOWN) return true;
        bool jumps = instruction.kind == INSTRUCTION_JUMP || instruction.kind == INSTRUCTION_BRANCH;
        if (jumps && instruction.target > start && instruction.target <= last) return true;
        at += instruction.length;
    }
    return false;
}
