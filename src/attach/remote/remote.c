#include "attach/remote/remote.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "attach/remote/remote_private.h"
#include "base/memory.h"

#define REOPENED_MAX 8 /* times that the content of one mapping may turn out to have changed */

/* ---- Modules ---- */

int remote_refresh(struct remote *remote) {
    /* /proc/PID/mem stays bound to the program that ran when it was opened: after exec it must be opened again. */
    int memory = openat(remote->process.folder, "mem", O_RDONLY | O_CLOEXEC);
    if (memory >= 0) {
        if (remote->process.memory >= 0) close(remote->process.memory);
        remote->process.memory = memory;
    }
    remote->figures.refreshes++;
    return address_space_refresh(&remote->address_space, &remote->process, remote->rules);
}

/* The entry that covers an address, or NULL. If none is known, the maps are read again, as far as the budget allows. */
static struct address_space_entry *remote_find(struct remote *remote, uint64_t address) {
    struct address_space_entry *entry = address_space_find(&remote->address_space, address);
    if (entry) return entry;
    if (!refresh_budget_take(&remote->uncovered)) {
        remote->figures.refreshes_refused++;
        return NULL;
    }
    remote_refresh(remote);
    entry = address_space_find(&remote->address_space, address);
    if (entry) refresh_budget_refill(&remote->uncovered);
    return entry;
}

bool remote_changed(struct remote *remote, uint64_t newest) {
    if (remote->address_space.newest > newest) return true;
    if (!refresh_budget_take(&remote->doubted)) return false;
    remote_refresh(remote);
    if (remote->address_space.newest == newest) return false;
    refresh_budget_refill(&remote->doubted);
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

/* If the mapping's content is not what it was taken for, its bytes are opened again, once. */
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
    /* A return probe: the kernel has put its own address in the place of the return address. The walk cannot go on. */
    if (strcmp(entry->module.path, "[uprobes]") != 0) rule = evaluate_in(remote, entry, pc);
    /* If a mapping has unwind information, but none for this pc, another library may be there now. */
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

/* 0 if the process runs a 64-bit program for this machine, else a negative errno (remote_open). */
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
