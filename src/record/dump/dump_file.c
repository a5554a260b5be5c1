#include "record/dump/dump_file.h"

#include "platform/calls.h"
#include "platform/pages.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#define PRIVATE_FILE 0600
#define HERE         ((uint64_t)AT_FDCWD)

struct dump_file *dump_file_new(void) {
    return pages_take(sizeof(struct dump_file));
}

void dump_file_free(struct dump_file *file) {
    pages_give(file, sizeof *file);
}

/* ---- the name ---- */

static void append_number(char *text, uint64_t number) {
    char digits[20];
    size_t length = 0, end = strlen(text);
    do digits[length++] = (char)('0' + number % 10);
    while ((number /= 10));
    while (length) text[end++] = digits[--length];
    text[end] = '\0';
}

/* PATH.PID.NUMBER.part. It does not end as PATH does: a command that reads all recordings of a folder must not
 * take an unfinished dump for one. */
static void name_temporary(struct dump_file *file) {
    static _Atomic uint64_t made; /* relaxed: each dump needs another number, and nothing else */
    size_t length = strlen(file->path);
    memcpy(file->temporary, file->path, length + 1);
    strcpy(file->temporary + length, ".");
    append_number(file->temporary, (uint64_t)call_getpid());
    strcat(file->temporary, ".");
    append_number(file->temporary, atomic_fetch_add_explicit(&made, 1, memory_order_relaxed));
    strcat(file->temporary, ".part");
}

/* ---- the file ---- */

int dump_file_start(struct dump_file *file) {
    /* Asked first so that no work is done in vain; the rename at the end is what decides. */
    long there = system_call(SYS_faccessat2, HERE, (uint64_t)file->path, F_OK, AT_SYMLINK_NOFOLLOW, 0, 0);
    if (there == 0) return -EEXIST;
    file->size_limit = call_file_size_limit();
    file->written = file->filled = 0;
    file->error = 0;
    name_temporary(file);
    int flags = O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY;
    int opened = call_open(file->temporary, flags, PRIVATE_FILE);
    if (opened < 0) return opened;
    file->descriptor = opened;
    return 0;
}

/* Fails where the name is taken. A plain rename would replace that file. */
static int publish(const struct dump_file *file) {
    uint64_t from = (uint64_t)file->temporary, to = (uint64_t)file->path;
    long r = system_call(SYS_renameat2, HERE, from, HERE, to, RENAME_NOREPLACE, 0);
    if (r != -EINVAL && r != -ENOSYS) return (int)r;
    /* The file system has no RENAME_NOREPLACE. A link fails likewise where the name is taken. */
    r = system_call(SYS_linkat, HERE, from, HERE, to, 0, 0);
    if (r == 0) call_unlink(file->temporary);
    return (int)r;
}

int dump_file_end(struct dump_file *file, int error) {
    int r = call_close(file->descriptor);
    if (error == 0 && r != -EINTR) error = r; /* -EINTR: Linux has closed it nevertheless */
    if (error == 0) error = publish(file);
    if (error < 0) call_unlink(file->temporary);
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
    return call_ftruncate(file->descriptor, size);
}
