/* What went wrong, in words for the user: what happened, to which file or process, and what to do next.
 *
 * Functions of the tool that can fail return 0 or a negative `enum problem_kind`, leave their `ret_`
 * arguments untouched on failure, and describe the failure in the `struct problem` they were given. Only cli/
 * prints. */
#ifndef MALLOSCOPE_BASE_PROBLEM_H
#define MALLOSCOPE_BASE_PROBLEM_H

/* The kinds are the tool's exit codes. */
enum problem_kind {
    PROBLEM_FAILURE = 1,    /* anything else */
    PROBLEM_USAGE = 2,      /* wrong command line */
    PROBLEM_MISSING = 3,    /* no such process or file */
    PROBLEM_PERMISSION = 4, /* not allowed */
    PROBLEM_DAMAGED = 5,    /* not a recording, or damaged */
    PROBLEM_GATE = 6,       /* a gate failed */
};

struct problem {
    enum problem_kind kind;
    char what[1024];   /* "cannot open 'x.mscope': No such file or directory" */
    char remedy[1024]; /* "list recordings with ls *.mscope, ..." or empty */
};

/* Fills `problem` (which may be NULL) and returns -kind, so that `return problem_set(...)` reads well.
 * `remedy` is plain text and may be NULL; `format` describes what happened. */
int problem_set(struct problem *problem, enum problem_kind kind, const char *remedy, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* The kind that fits an errno: ENOENT and ESRCH are missing, EACCES and EPERM permission, others failure. */
enum problem_kind problem_kind_of_errno(int error);

/* What to do about an errno that says that a file could not be opened or read, if nothing better is known. */
const char *problem_remedy_of_errno(int error);

#endif
