#include "symbol/symbol_cache.h"

#include "base/memory.h"
#include "base/packer.h"
#include "symbol/symbol_store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define CACHE_MAGIC   "MSCACHE\n"
#define CACHE_VERSION 2
#define SUFFIX        ".names"
#define LEFTOVER      3600 /* seconds: a temporary file that is older was left by a command that was killed */

/* The head of a cache file. The symbol store follows it, compressed. A file whose head is not the expected one
 * was made from other files, and is not used. */
struct cache_head {
    char magic[8];
    uint32_t version;
    uint32_t build_id_size;
    uint8_t build_id[32];
    struct file_version tool, file;
    struct file_version debug_file; /* all zero: the debug info is in the program or library itself */
    char debug_path[PATH_MAX];      /* empty in that case */
    uint64_t size, packed_size;     /* of the store, before and after compression */
};

/* The content of a cache file when it was read. */
struct contents {
    void *bytes; /* NULL: there was no file, or it could not be used */
    struct symbol_store store;
    ino_t inode; /* of the file: tells whether another command has replaced it since */
};

struct symbol_cache {
    char *path;
    struct cache_head head;
    struct contents contents;
    struct symbol_store_writer *additions;
    size_t addition_count;
};

/* ---- the folder ---- */

static bool is_own_folder(const char *path) {
    struct stat status;
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == geteuid();
}

/* Creates the folder if it does not exist. False if it does not belong to the user: cache files of others could
 * contain any names, and folders that root creates in a user's home could not be used by that user. */
static bool make_folder(const char *path) {
    return (mkdir(path, 0700) == 0 || errno == EEXIST) && is_own_folder(path);
}

char *symbol_cache_folder(void) {
    const char *base = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    char *parent;
    if (base && base[0] == '/')
        parent = memory_copy_text(base);
    else if (home && home[0] == '/' && is_own_folder(home))
        parent = memory_format_text("%s/.cache", home);
    else
        return NULL;
    char *folder = memory_format_text("%s/malloscope", parent);
    bool is_good = make_folder(parent) && make_folder(folder);
    free(parent);
    if (is_good) return folder;
    free(folder);
    return NULL;
}

struct cached_file {
    char *path;
    uint64_t size;
    struct timespec used;
};

static int compare_use(const void *left, const void *right) {
    const struct cached_file *a = left, *b = right;
    if (a->used.tv_sec != b->used.tv_sec) return a->used.tv_sec < b->used.tv_sec ? -1 : 1;
    return (a->used.tv_nsec > b->used.tv_nsec) - (a->used.tv_nsec < b->used.tv_nsec);
}

static bool is_leftover(const char *name, const struct stat *status) {
    return strstr(name, SUFFIX ".") && time(NULL) - status->st_mtime > LEFTOVER;
}

static bool is_cached(const char *name) {
    size_t length = strlen(name), suffix = strlen(SUFFIX);
    return length > suffix && strcmp(name + length - suffix, SUFFIX) == 0;
}

void symbol_cache_trim(const char *folder, uint64_t size_max) {
    DIR *directory = opendir(folder);
    if (!directory) return;
    struct cached_file *files = NULL;
    size_t count = 0;
    uint64_t sum = 0;
    for (struct dirent *entry; (entry = readdir(directory));) {
        struct stat status;
        if (fstatat(dirfd(directory), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0 ||
            !S_ISREG(status.st_mode))
            continue;
        if (is_leftover(entry->d_name, &status)) unlinkat(dirfd(directory), entry->d_name, 0);
        if (!is_cached(entry->d_name)) continue;
        files = memory_reallocate(files, (count + 1) * sizeof *files);
        files[count++] = (struct cached_file){
            memory_format_text("%s/%s", folder, entry->d_name), (uint64_t)status.st_size, status.st_mtim};
        sum += (uint64_t)status.st_size;
    }
    closedir(directory);
    if (count) qsort(files, count, sizeof *files, compare_use);
    for (size_t i = 0; i < count; i++) {
        if (sum > size_max && unlink(files[i].path) == 0) sum -= files[i].size;
        free(files[i].path);
    }
    free(files);
}

/* ---- a cache file ---- */

static uint64_t mix(uint64_t hash, const void *bytes, size_t size) {
    for (const uint8_t *byte = bytes; size--; byte++) hash = (hash ^ *byte) * UINT64_C(0x100000001b3);
    return hash;
}

/* The path of the cache file. Its name contains a hash of the versions of the tool and of the file: two copies of
 * a program with the same build-id have cache files of their own, and do not replace each other's again and
 * again. */
static char *path_of(const char *folder, const struct cache_head *head) {
    char id[2 * sizeof head->build_id + 1];
    for (uint32_t i = 0; i < head->build_id_size; i++) sprintf(id + 2 * i, "%02x", head->build_id[i]);
    uint64_t hash = mix(UINT64_C(0xcbf29ce484222325), &head->tool, sizeof head->tool);
    hash = mix(hash, &head->file, sizeof head->file);
    return memory_format_text("%s/%s-%016" PRIx64 SUFFIX, folder, id, hash);
}

static bool read_head(int descriptor, struct cache_head *head) {
    return pread(descriptor, head, sizeof *head, 0) == (ssize_t)sizeof *head &&
           memchr(head->debug_path, 0, sizeof head->debug_path) != NULL;
}

/* Whether two heads agree in all but the debug file, which is not known before the debug info is read. */
static bool same_origin(const struct cache_head *a, const struct cache_head *b) {
    return memcmp(a, b, offsetof(struct cache_head, debug_file)) == 0;
}

/* Whether the debug file is as it was. If it does not exist any more, the stored frames are still right. If it
 * has changed, the new one may tell more. */
static bool debug_file_is_good(const struct cache_head *head) {
    struct file_version now = file_version_at(head->debug_path), gone = {0};
    return !head->debug_path[0] || file_version_same(now, gone) || file_version_same(now, head->debug_file);
}

static void *read_store(int descriptor, const struct cache_head *head) {
    if (head->size > SYMBOL_CACHE_SIZE_MAX || head->packed_size > SYMBOL_CACHE_SIZE_MAX) return NULL;
    void *bytes = memory_try_allocate(head->size);
    if (!bytes) return NULL;
    struct unpacker *unpacker = unpacker_new(descriptor, sizeof *head, head->packed_size);
    int r = unpacker_read(unpacker, bytes, head->size);
    if (unpacker_end(unpacker) < 0) r = -EBADMSG;
    if (r == 0) return bytes;
    free(bytes);
    return NULL;
}

/* Reads the cache file, if it can be used. */
static void read_file(const struct symbol_cache *cache, struct contents *contents) {
    *contents = (struct contents){0};
    int descriptor = open(cache->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (descriptor < 0) return;
    struct stat status;
    struct cache_head head;
    if (fstat(descriptor, &status) == 0 && status.st_uid == geteuid() && read_head(descriptor, &head) &&
        same_origin(&head, &cache->head) && debug_file_is_good(&head))
        contents->bytes = read_store(descriptor, &head);
    if (contents->bytes && !symbol_store_open(&contents->store, contents->bytes, head.size)) {
        free(contents->bytes);
        contents->bytes = NULL;
    }
    contents->inode = status.st_ino;
    if (contents->bytes) futimens(descriptor, NULL); /* symbol_cache_trim goes by the time of the last use */
    close(descriptor);
}

struct symbol_cache *symbol_cache_open(
    const char *folder, const struct model_module *module, const struct symbol_file *file) {
    struct cache_head head = {.magic = CACHE_MAGIC,
        .version = CACHE_VERSION,
        .build_id_size = module->build_id_size,
        .tool = file_version_at("/proc/self/exe"),
        .file = symbol_file_version(file)};
    if (!module->build_id_size || !head.file.size || !head.tool.size || !file_version_is_own(head.file))
        return NULL;
    memcpy(head.build_id, module->build_id, module->build_id_size);
    struct symbol_cache *cache = memory_allocate(sizeof *cache);
    cache->head = head;
    cache->path = path_of(folder, &head);
    cache->additions = symbol_store_writer_new();
    read_file(cache, &cache->contents);
    return cache;
}

const struct symbol *symbol_cache_find(
    const struct symbol_cache *cache, uint64_t address, struct result_pool *pool, size_t *ret_count) {
    const struct symbol_store *store = &cache->contents.store;
    const struct store_entry *entry = symbol_store_find(store, 0, address);
    if (!entry) return NULL;
    *ret_count = entry->frame_count;
    return symbol_store_frames(store, entry, pool);
}

void symbol_cache_add(
    struct symbol_cache *cache, uint64_t address, const struct symbol *frames, size_t count) {
    symbol_store_writer_add(cache->additions, 0, address, address, frames, count);
    cache->addition_count++;
}

static int write_file(int descriptor, struct cache_head *head, const void *store) {
    if (lseek(descriptor, sizeof *head, SEEK_SET) < 0) return -errno;
    struct packer *packer = packer_new(descriptor, PACKED_FAST);
    int r = packer_write(packer, store, head->size);
    int end = packer_end(packer, &head->packed_size);
    if (r == 0) r = end;
    if (r == 0 && pwrite(descriptor, head, sizeof *head, 0) != (ssize_t)sizeof *head) r = -EIO;
    return r;
}

static void replace_file(const struct symbol_cache *cache, struct cache_head *head, const void *store) {
    char *temporary = memory_format_text("%s.XXXXXX", cache->path);
    int descriptor = mkostemp(temporary, O_CLOEXEC); /* mode 0600 */
    if (descriptor >= 0) {
        int r = write_file(descriptor, head, store);
        if (close(descriptor) < 0) r = -errno;
        if (r < 0 || rename(temporary, cache->path) < 0) unlink(temporary);
    }
    free(temporary);
}

static void add_all(
    struct symbol_store_writer *writer, const struct symbol_store *store, struct result_pool *pool) {
    for (size_t i = 0; i < store->entry_count; i++) {
        const struct store_entry *entry = &store->entries[i];
        symbol_store_writer_add(writer, 0, entry->key, entry->module_address,
            symbol_store_frames(store, entry, pool), entry->frame_count);
    }
}

/* Whether the file lies below the root folder of a process: whoever made that chose the files in it. */
static bool is_of_process(const char *path) {
    return strncmp(path, "/proc/", strlen("/proc/")) == 0;
}

void symbol_cache_save(struct symbol_cache *cache, struct symbol_file *file) {
    struct debug_info info;
    if (!cache->addition_count || !symbol_file_debug_info(file, &info) || !info.is_whole) return;
    struct cache_head head = cache->head;
    if (info.path) {
        if (strlen(info.path) >= sizeof head.debug_path) return;
        strcpy(head.debug_path, info.path);
        head.debug_file = file_version_at(info.path);
        if (!file_version_is_own(head.debug_file) || is_of_process(info.path)) return;
    }
    struct result_pool *pool = result_pool_new();
    add_all(cache->additions, &cache->contents.store, pool);
    struct stat status;
    struct contents others = {0}; /* what another command has written meanwhile */
    if (lstat(cache->path, &status) == 0 && status.st_ino != cache->contents.inode) read_file(cache, &others);
    add_all(cache->additions, &others.store, pool);
    void *store = symbol_store_writer_finish(cache->additions, &head.size);
    if (store && head.size <= SYMBOL_CACHE_SIZE_MAX) {
        replace_file(cache, &head, store);
        char *folder = memory_copy_text(cache->path);
        *strrchr(folder, '/') = 0;
        symbol_cache_trim(folder, SYMBOL_CACHE_SIZE_MAX);
        free(folder);
    }
    free(store);
    free(others.bytes);
    result_pool_free(pool);
}

void symbol_cache_close(struct symbol_cache *cache) {
    if (!cache) return;
    symbol_store_writer_free(cache->additions);
    free(cache->contents.bytes);
    free(cache->path);
    free(cache);
}
