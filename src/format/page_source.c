#include "format/page_source.h"

#include "base/nanoseconds.h"
#include "base/open_as.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define LINES_AROUND  5
#define FILE_MAX      (16u << 20)
#define TEXT_MAX      (3u << 20) /* bytes of text, of all files together */
#define LINE_MAX_SIZE 400

bool page_source_is_source(const char *path) {
    static const char *const endings[] = {"adb", "ads", "asm", "c", "c++", "cc", "cp", "cpp", "cs", "cu",
        "cxx", "d", "def", "f", "f03", "f08", "f90", "f95", "go", "h", "h++", "hh", "hpp", "hxx", "inc",
        "inl", "ipp", "java", "js", "kt", "l", "ll", "lua", "m", "ml", "mm", "nim", "pas", "php", "pl", "pm",
        "py", "pyx", "rb", "rs", "S", "s", "scala", "swift", "tcc", "tpp", "ts", "v", "vala", "y", "yy",
        "zig"};
    const char *name = strrchr(path, '/');
    const char *dot = strrchr(name ? name : path, '.');
    for (size_t i = 0; dot && i < sizeof endings / sizeof *endings; i++)
        if (strcmp(dot + 1, endings[i]) == 0) return true;
    /* Headers of the C++ standard library have no ending. */
    return !dot && strstr(path, "/include/c++/");
}

struct source_text {
    const char *bytes;
    size_t size;
    bool is_newer;
};

static bool open_source(
    const struct source_request *request, const char *path, struct source_text *ret_text) {
    if (path[0] != '/' || !page_source_is_source(path)) return false;
    int fd = request->sysroot ? open_as(request->sysroot, path, request->user) : -1;
    if (fd < 0) fd = open_as("/", path, request->user);
    if (fd < 0) return false;
    struct stat status;
    void *bytes = MAP_FAILED;
    if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0 &&
        status.st_size <= FILE_MAX) {
        /* It is read and not mapped, since somebody may cut it meanwhile. */
        bytes =
            mmap(NULL, (size_t)status.st_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        ssize_t length = bytes != MAP_FAILED ? pread(fd, bytes, (size_t)status.st_size, 0) : -1;
        if (bytes != MAP_FAILED && (length != status.st_size || memchr(bytes, '\0', (size_t)length))) {
            munmap(bytes, (size_t)status.st_size);
            bytes = MAP_FAILED;
        }
    }
    close(fd);
    if (bytes == MAP_FAILED) return false;
    uint64_t changed = nanoseconds_of(status.st_mtim);
    *ret_text = (struct source_text){
        bytes, (size_t)status.st_size, request->start_realtime && changed > request->start_realtime};
    return true;
}

static void write_line(struct json *json, const char *text, size_t length) {
    char line[LINE_MAX_SIZE + 1];
    if (length && text[length - 1] == '\r') length--;
    if (length > LINE_MAX_SIZE) {
        length = LINE_MAX_SIZE;
        while (length && (text[length] & 0xc0) == 0x80) length--; /* do not cut within a character */
    }
    memcpy(line, text, length);
    line[length] = '\0';
    json_string(json, line);
}

/* Writes the lines around the places, which are sorted and lie in one file. Returns how many bytes of text they
 * are. */
static size_t write_lines(
    struct json *json, const struct source_text *text, const struct source_place *places, size_t count) {
    const char *at = text->bytes, *end = at + text->size;
    size_t next = 0, written = 0;
    bool open = false;
    for (int line = 1; at < end && next < count; line++) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        if (!stop) stop = end;
        while (next < count && line > places[next].line + LINES_AROUND) next++;
        bool wanted = next < count && line >= places[next].line - LINES_AROUND;
        if (wanted && !open) {
            json_integer(json, line);
            json_array(json);
        }
        if (!wanted && open) json_array_end(json);
        open = wanted;
        if (wanted) {
            write_line(json, at, (size_t)(stop - at));
            written += (size_t)(stop - at);
        }
        at = stop < end ? stop + 1 : end;
    }
    if (open) json_array_end(json);
    return written;
}

static int compare_places(const void *a, const void *b) {
    const struct source_place *x = a, *y = b;
    if (x->file != y->file) return x->file < y->file ? -1 : 1;
    return (x->line > y->line) - (x->line < y->line);
}

size_t page_source_write(struct json *json, struct source_request *request) {
    size_t written = 0, left_out = 0;
    const struct source_place *places = request->places;
    if (request->place_count)
        qsort(request->places, request->place_count, sizeof *request->places, compare_places);
    json_array(json);
    for (size_t first = 0, last; first < request->place_count; first = last) {
        for (last = first; last < request->place_count && places[last].file == places[first].file;) last++;
        struct source_text text;
        if (!open_source(request, request->paths[places[first].file], &text)) continue;
        if (written < TEXT_MAX) {
            json_array(json);
            json_integer(json, places[first].file);
            json_boolean(json, text.is_newer);
            written += write_lines(json, &text, places + first, last - first);
            json_array_end(json);
        } else {
            left_out++;
        }
        munmap((void *)text.bytes, text.size);
    }
    json_array_end(json);
    return left_out;
}
