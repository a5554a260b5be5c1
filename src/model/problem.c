#include "model/problem.h"

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
