/* Lines of /proc/self/maps: each is found, also behind one that is longer than the reader's buffer. */
#include "check.h"
#include "platform/maps.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define SIZE 4096

/* Maps a file and reads all lines: one of them is for this mapping, with the number of the file. */
static void check_mapped(const char *name, int flags, size_t path_least) {
    int file = open(name, O_RDWR | O_CREAT, 0600);
    CHECK(file >= 0 && ftruncate(file, SIZE) == 0);
    struct stat status;
    CHECK(fstat(file, &status) == 0);
    char *place = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, flags, file, 0);
    CHECK(place != MAP_FAILED);
    close(file);

    static struct maps_reader reader;
    unsigned found = 0, lines = 0, stacks = 0;
    CHECK(maps_open(&reader));
    for (struct maps_line line; maps_next(&reader, &line); lines++) {
        stacks += strcmp(line.path, "[stack]") == 0; /* one of the last lines */
        if (line.start != (uintptr_t)place) continue;
        found++;
        CHECK_EQUAL(line.end, (uintptr_t)place + SIZE);
        CHECK_EQUAL(line.inode, status.st_ino);
        CHECK(line.path[0] == '/' && strlen(line.path) >= path_least);
        CHECK(line.readable && line.writable && !line.executable);
        CHECK_EQUAL(line.shared, flags == MAP_SHARED);
    }
    CHECK_EQUAL(reader.error, 0);
    maps_close(&reader);
    CHECK(lines > 5);
    CHECK_EQUAL(found, 1);
    CHECK_EQUAL(stacks, 1);
    munmap(place, SIZE);
}

/* The kernel shows each newline of a path as "\012". */
static void a_line_that_is_too_long_hides_no_other(void) {
    char name[251] = "";
    memset(name, '\n', sizeof name - 1);
    for (int depth = 0; depth < 14; depth++) CHECK(mkdir(name, 0700) == 0 && chdir(name) == 0);
    check_mapped("file", MAP_SHARED, 8000);
}

int main(void) {
    char folder[] = "/tmp/test_platform_maps.XXXXXX", command[64];
    CHECK(mkdtemp(folder) && chdir(folder) == 0);
    check_mapped("file", MAP_SHARED, strlen(folder));
    check_mapped("file", MAP_PRIVATE, strlen(folder));
    a_line_that_is_too_long_hides_no_other();
    snprintf(command, sizeof command, "rm -rf %s", folder);
    CHECK(chdir("/") == 0 && system(command) == 0);
    return check_result();
}
