#include "base/problem.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

int problem_set(
    struct problem *problem, enum problem_kind kind, const char *remedy, const char *format, ...) {
    if (problem) {
        problem->kind = kind;
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(problem->what, sizeof problem->what, format, arguments);
        va_end(arguments);
        snprintf(problem->remedy, sizeof problem->remedy, "%s", remedy ? remedy : "");
    }
    return -(int)kind;
}

enum problem_kind problem_kind_of_errno(int error) {
    switch (error) {
    case ENOENT:
    case ESRCH:
        return PROBLEM_MISSING;
    case EACCES:
    case EPERM:
        return PROBLEM_PERMISSION;
    default:
        return PROBLEM_FAILURE;
    }
}

const char *problem_remedy_of_errno(int error) {
    switch (error) {
    case EMFILE:
    case ENFILE:
        return "raise the limit on open files with 'ulimit -n', or close some";
    case ENOMEM:
        return "free some memory and try again";
    case EIO:
        return "the disk or its file system has a fault: copy the file elsewhere, and read the copy";
    default:
        return "try again, or read a copy of the file";
    }
}
