#include "model/header.h"

#include "model/snapshot.h"

#include <string.h>

int header_check(
    const struct recording_header *header, ssize_t length, const char *path, struct problem *problem) {
    static const char AGAIN[] = "record again; 'malloscope info' works on any good recording";
    size_t have = length > 0 ? (size_t)length : 0;
    if (have == 0)
        return problem_set(problem, PROBLEM_DAMAGED,
            "the program did not get as far as recording, or the file was emptied since: record again",
            "'%s' is empty", path);
    size_t magic = have < sizeof header->magic ? have : sizeof header->magic;
    if (memcmp(header->magic, (char[sizeof header->magic]){0}, magic) == 0)
        return problem_set(problem, PROBLEM_DAMAGED,
            "if the program has just been started, try again; otherwise it ended before it could record",
            "'%s' has no header yet", path);
    if (memcmp(header->magic, RECORDING_MAGIC, magic) != 0)
        return problem_set(problem, PROBLEM_DAMAGED,
            "name a file that 'malloscope run' has written (*.mscope)", "'%s' is not a recording", path);
    if (have < sizeof *header)
        return problem_set(problem, PROBLEM_DAMAGED, "get a whole copy of the file, or record again",
            "'%s' is cut off within its header, after %zu bytes", path, have);
    if (header->version > RECORDING_VERSION)
        return problem_set(problem, PROBLEM_DAMAGED, "update malloscope to read it",
            "'%s' is a recording of version %u, and this is malloscope " MALLOSCOPE_VERSION
            ", which reads versions up to %d",
            path, header->version, RECORDING_VERSION);
    if (header->version > 0 && header->version < RECORDING_VERSION)
        return problem_set(problem, PROBLEM_DAMAGED,
            "read it with the version of malloscope that made it, or record again",
            "'%s' is a recording of version %u, and this is malloscope " MALLOSCOPE_VERSION
            ", which reads version %d",
            path, header->version, RECORDING_VERSION);
    if (header->version == 0 || header->header_size < HEADER_SIZE_LEAST || header->header_size > HEADER_SPAN)
        return problem_set(problem, PROBLEM_DAMAGED, AGAIN, "the header of '%s' is damaged", path);
    return 0;
}
