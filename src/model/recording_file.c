#include "model/recording_file.h"

#include "base/open_regular.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static const char SUFFIX[] = ".mscope";

bool recording_file_has_suffix(const char *name) {
    size_t length = strlen(name);
    return length > strlen(SUFFIX) && strcmp(name + length - strlen(SUFFIX), SUFFIX) == 0;
}

const char *recording_file_access_remedy(void) {
    return geteuid() == 0
               ? "root may not do that here: a container, a namespace or a security module forbids "
                 "it; run this where the program was started"
               : "a recording and a process can be read by their owner: run this as that user, or "
                 "as root with sudo";
}

int recording_file_open(
    const char *path, int writer, struct recording_file *ret_file, struct problem *problem) {
    int descriptor = open_regular(AT_FDCWD, path, 0);
    if (descriptor == -ENOTSUP)
        return problem_set(problem, PROBLEM_DAMAGED,
            "name a recording (*.mscope), a folder of recordings or a process number",
            "'%s' is not a regular file", path);
    if (descriptor < 0) {
        int error = -descriptor;
        const char *remedy = error == ENOENT || error == ENOTDIR
                                 ? "check the path; 'malloscope run' names the recording it writes, usually "
                                   "malloscope.PROGRAM.PID.mscope in the folder it was started in"
                             : error == EACCES || error == EPERM ? recording_file_access_remedy()
                                                                 : problem_remedy_of_errno(error);
        return problem_set(problem, error == ENOTDIR ? PROBLEM_MISSING : problem_kind_of_errno(error), remedy,
            "cannot open '%s': %s", path, strerror(error));
    }
    *ret_file = (struct recording_file){.descriptor = descriptor, .path = path, .writer = writer};
    return 0;
}

void recording_file_close(struct recording_file *file) {
    close(file->descriptor);
}
