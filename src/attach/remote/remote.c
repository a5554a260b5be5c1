#include "attach/remote/remote.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "attach/remote/remote_private.h"
#include "base/memory.h"

#define VAIN_MAX     32 /* refreshes that may find nothing new in a row, for one reason ... */
#define VAIN_PERIOD  50 /* ... and after how many milliseconds one more is granted */
#define REOPENED_MAX 8  /* times that a module's content may turn out to be another */

/* ---- Modules ---- */

int remote_refresh(struct remote *remote) {
    /* Memory belongs to a program, not to a process: after exec it must be opened again. */
    int memory = openat(remote->process.folder, "mem", O_RDONLY | O_CLOEXEC);
    if (memory >= 0) {
        if (remote->process.memory >= 0) close(remote->process.memory);
        remote->process.memory = memory;
    }
    remote->figures.refreshes++;
    return address_space_refresh(&remote->address_space, &remote->process, remote->rules);
}

static uint64_t milliseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* Walks into nowhere must not make each one read the maps. */
static bool budget_grants(struct budget *budget) {
    uint64_t now = milliseconds(), forgiven = (now - budget->since) / VAIN_PERIOD;
    if (forgiven) {
        budget->used -= forgiven < budget->used ? (uint32_t)forgiven : budget->used;
        budget->since = now;
    }
    if (budget->used >= VAIN_MAX) return false;
    budget->used++;
    return true;
}

static struct address_space_entry *remote_find(struct remote *remote, uint64_t address) {
    struct address_space_entry *entry = address_space_find(&remote->address_space, address);
    if (entry) return entry;
    if (!budget_grants(&remote->uncovered)) {
        remote->figures.refreshes_refused++;
        return NULL;
    }
    remote_refresh(remote);
    entry = address_space_find(&remote->address_space, address);
    if (entry) remote->uncovered.used = 0;
    return entry;
}

bool remote_changed(struct remote *remote, uint64_t newest) {
    if (remote->address_space.newest > newest) return true;
    if (!budget_grants(&remote->doubted)) return false;
    remote_refresh(remote);
    if (remote->address_space.newest == newest) return false;
    remote->doubted.used = 0;
    return true;
}

const struct mapping *remote_covering(struct remote *remote, uint64_t address) {
    const struct address_space_entry *entry = remote_find(remote, address);
    return entry ? &entry->bytes.mapping : NULL;
}

uint32_t remote_module_count(const struct remote *remote) {
    return remote->address_space.count;
}

const struct remote_module *remote_module_at(const struct remote *remote, uint32_t index) {
    return &remote->address_space.entry[index]->module;
}

struct module_record remote_module_record(const struct remote_module *module) {
    struct module_record record = {.start = module->start,
        .end = module->end,
        .file_offset = module->file_offset,
        .inode = module->inode,
        .device_major = module->device_major,
        .device_minor = module->device_minor,
        .build_id_size = module->build_id_size};
    memcpy(record.build_id, module->build_id, sizeof record.build_id);
    return record;
}

uint64_t remote_newest_module(const struct remote *remote) {
    return remote->address_space.newest;
}

struct remote_figures remote_figures(const struct remote *remote) {
    return remote->figures;
}

/* ---- Rules ---- */

static struct rule evaluate_in(struct remote *remote, struct address_space_entry *entry, uint64_t pc) {
    struct rule rule;
    if (rule_evaluate(&entry->bytes.mapping, pc, &rule)) return rule;
    if (entry->reopened < REOPENED_MAX) {
        address_space_reopen(entry, remote->rules);
        if (rule_evaluate(&entry->bytes.mapping, pc, &rule)) return rule;
    }
    return (struct rule){.cfa = RULE_FRAME_POINTER};
}

struct rule remote_evaluate(struct remote *remote, uint64_t pc) {
    struct address_space_entry *entry = remote_find(remote, pc);
    if (!entry) return (struct rule){.cfa = RULE_OUTSIDE};
    struct rule rule = {.cfa = RULE_UNKNOWN};
    /* The kernel put its own address in the place of the one that the function will return to. */
    if (strcmp(entry->module.path, "[uprobes]") != 0) rule = evaluate_in(remote, entry, pc);
    /* Where a module has unwind information, but not for this pc, another one may be there now. */
    if (rule_kind(rule) == RULE_FRAME_POINTER && entry->bytes.mapping.header &&
        remote_changed(remote, remote->address_space.newest)) {
        entry = remote_find(remote, pc);
        if (!entry) return (struct rule){.cfa = RULE_OUTSIDE};
        rule = evaluate_in(remote, entry, pc);
    }
    remote->figures.rules++;
    remote_rule_cache_insert(remote->rules, pc, rule);
    return rule;
}

/* ---- Opening ---- */

/* Whether the process runs a program of the kind whose stacks we can walk. */
static int check_kind(int folder) {
    Elf64_Ehdr elf;
    int file = openat(folder, "exe", O_RDONLY | O_CLOEXEC);
    if (file < 0) return errno == ENOENT ? -ENODATA : errno == EPERM ? -EACCES : -errno;
    bool fits = pread(file, &elf, sizeof elf, 0) == sizeof elf && module_bytes_machine_fits(&elf);
    close(file);
    return fits ? 0 : -ENOEXEC;
}

int remote_open(int pid, struct remote **ret_remote) {
    char path[32];
    snprintf(path, sizeof path, "/proc/%d", pid);
    int folder = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0) return errno == ENOENT ? -ESRCH : -errno;
    int r = check_kind(folder);
    void *rules = mmap(
        NULL, sizeof(struct remote_rule_cache), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (r == 0 && rules == MAP_FAILED) r = -ENOMEM;
    if (r < 0) {
        if (rules != MAP_FAILED) munmap(rules, sizeof(struct remote_rule_cache));
        close(folder);
        return r;
    }
    struct remote *remote = memory_allocate(sizeof *remote);
    remote->process = (struct remote_process){.folder = folder, .memory = -1};
    remote->rules = rules;
    r = remote_refresh(remote);
    if (r < 0)
        remote_close(remote);
    else
        *ret_remote = remote;
    return r;
}

void remote_close(struct remote *remote) {
    if (!remote) return;
    address_space_free(&remote->address_space);
    munmap(remote->rules, sizeof *remote->rules);
    if (remote->process.memory >= 0) close(remote->process.memory);
    close(remote->process.folder);
    free(remote);
}
