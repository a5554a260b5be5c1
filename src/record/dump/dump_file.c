#include "record/dump/dump_file.h"

#include "platform/system.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#define PRIVATE_FILE 0600
#define HERE         ((uint64_t)AT_FDCWD)

/* ---- memory ---- */

void *dump_map(size_t size) {
    long memory =
        system_call(SYS_mmap, 0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, (uint64_t)-1, 0);
    return memory < 0 && memory > -4096 ? NULL : (void *)memory;
}

void dump_unmap(void *memory, size_t size) {
    system_call(SYS_munmap, (uint64_t)memory, size, 0, 0, 0, 0);
}

struct dump_file *dump_file_new(void) {
    return dump_map(sizeof(struct dump_file));
}

void dump_file_free(struct dump_file *file) {
    dump_unmap(file, sizeof *file);
}

/* ---- the file ---- */

static void append_number(char *text, uint64_t number) {
    char digits[20];
    size_t length = 0, end = strlen(text);
    do digits[length++] = (char)('0' + number % 10);
    while ((number /= 10));
    while (length) text[end++] = digits[--length];
    text[end] = '\0';
}

/* Not the name's own ending: who reads a folder of recordings must not take it for one. */
static void name_temporary(struct dump_file *file) {
    static _Atomic uint64_t made; /* relaxed: numbers that differ are all that is wanted */
    size_t length = strlen(file->path);
    memcpy(file->temporary, file->path, length + 1);
    strcpy(file->temporary + length, ".");
    append_number(file->temporary, (uint64_t)system_call(SYS_getpid, 0, 0, 0, 0, 0, 0));
    strcat(file->temporary, ".");
    append_number(file->temporary, atomic_fetch_add_explicit(&made, 1, memory_order_relaxed));
    strcat(file->temporary, ".part");
}

int dump_file_start(struct dump_file *file) {
    /* Not the last word, but before any work is done. */
    long there = system_call(SYS_faccessat2, HERE, (uint64_t)file->path, F_OK, AT_SYMLINK_NOFOLLOW, 0, 0);
    if (there == 0) return -EEXIST;
    struct rlimit limit;
    long r = system_call(SYS_prlimit64, 0, RLIMIT_FSIZE, 0, (uint64_t)&limit, 0, 0);
    file->size_limit = r == 0 ? limit.rlim_cur : UINT64_MAX;
    file->written = file->filled = 0;
    file->error = 0;
    name_temporary(file);
    uint64_t flags = O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY;
    r = system_call(SYS_openat, HERE, (uint64_t)file->temporary, flags, PRIVATE_FILE, 0, 0);
    if (r < 0) return (int)r;
    file->descriptor = (int)r;
    return 0;
}

/* Fails where the name is taken, which a plain rename would not. */
static int publish(const struct dump_file *file) {
    uint64_t from = (uint64_t)file->temporary, to = (uint64_t)file->path;
    long r = system_call(SYS_renameat2, HERE, from, HERE, to, RENAME_NOREPLACE, 0);
    if (r != -EINVAL && r != -ENOSYS) return (int)r;
    /* A file system that cannot do this. */
    r = system_call(SYS_linkat, HERE, from, HERE, to, 0, 0);
    if (r == 0) system_call(SYS_unlinkat, HERE, from, 0, 0, 0, 0);
    return (int)r;
}

int dump_file_end(struct dump_file *file, int error) {
    long r = system_call(SYS_close, (uint64_t)file->descriptor, 0, 0, 0, 0, 0);
    if (error == 0 && r != -EINTR) error = (int)r; /* an interrupted close has closed it */
    if (error == 0) error = publish(file);
    if (error < 0) system_call(SYS_unlinkat, HERE, (uint64_t)file->temporary, 0, 0, 0, 0);
    return error;
}

int dump_file_put(struct dump_file *file, uint64_t offset, const void *bytes, size_t size) {
    if (offset + size > file->size_limit) return -EFBIG;
    for (size_t done = 0; done < size;) {
        long r = system_call_again(SYS_pwrite64, (uint64_t)file->descriptor, (uint64_t)bytes + done,
            size - done, offset + done, 0, 0);
        if (r <= 0) return r < 0 ? (int)r : -EIO;
        done += (size_t)r;
    }
    return 0;
}

int dump_file_set_size(struct dump_file *file, uint64_t size) {
    if (size > file->size_limit) return -EFBIG;
    return (int)system_call(SYS_ftruncate, (uint64_t)file->descriptor, size, 0, 0, 0, 0);
}

/* ---- text ---- */

static void flush(struct dump_file *file) {
    if (file->error == 0) file->error = dump_file_put(file, file->written, file->buffer, file->filled);
    file->written += file->filled;
    file->filled = 0;
}

void dump_text_bytes(struct dump_file *file, const void *bytes, size_t size) {
    while (size) {
        if (file->filled == sizeof file->buffer) flush(file);
        size_t part = sizeof file->buffer - file->filled;
        if (part > size) part = size;
        memcpy(file->buffer + file->filled, bytes, part);
        file->filled += part;
        bytes = (const char *)bytes + part;
        size -= part;
    }
}

void dump_text(struct dump_file *file, const char *text) {
    dump_text_bytes(file, text, strlen(text));
}

void dump_text_decimal(struct dump_file *file, uint64_t number) {
    char digits[21] = "";
    append_number(digits, number);
    dump_text(file, digits);
}

void dump_text_hex(struct dump_file *file, uint64_t number, int digits_least) {
    char digits[16];
    int length = 0;
    do digits[sizeof digits - (size_t)++length] = "0123456789abcdef"[number % 16];
    while ((number /= 16) || length < digits_least);
    dump_text_bytes(file, digits + sizeof digits - length, (size_t)length);
}

int dump_text_end(struct dump_file *file) {
    flush(file);
    return file->error;
}
