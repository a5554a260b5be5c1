/* Programs are judged before they run. These are compiled here, by the compiler that builds malloscope. */
#include "check.h"
#include "cli/run/program.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/test_cli_program.XXXXXX";

static void write_file(const char *name, const char *text, mode_t mode) {
    FILE *file = fopen(name, "w");
    CHECK(file != NULL);
    fputs(text, file);
    fclose(file);
    chmod(name, mode);
}

static bool run(const char *command) {
    return system(command) == 0;
}

/* Returns the kind of problem, 0 = none; the words are left in `problem`. */
static int judge(const char *path, struct problem *problem) {
    char *warning = NULL;
    *problem = (struct problem){0};
    int r = program_check(path, &warning, problem);
    free(warning);
    return -r;
}

static void check_refused(const char *path, const char *word) {
    struct problem problem;
    CHECK_EQUAL(judge(path, &problem), PROBLEM_FAILURE);
    CHECK(strstr(problem.what, word) != NULL);
    CHECK(problem.remedy[0] != 0);
}

static void patch(const char *from, const char *to, off_t offset, unsigned char value) {
    char command[256];
    snprintf(command, sizeof command, "cp %s %s", from, to);
    CHECK(run(command));
    int fd = open(to, O_WRONLY);
    CHECK(pwrite(fd, &value, 1, offset) == 1);
    close(fd);
}

static void dynamic_programs_are_fine(void) {
    struct problem problem;
    CHECK_EQUAL(judge("./dynamic", &problem), 0);
    CHECK_EQUAL(judge("/bin/sh", &problem), 0);
    CHECK_EQUAL(judge("./no-pie", &problem), 0);
}

static void programs_that_cannot_be_seen_are_refused(void) {
    check_refused("./static", "statically linked");
    check_refused("./static-pie", "statically linked");
    check_refused("./own", "its own malloc");
    if (access("./sanitized", X_OK) == 0) check_refused("./sanitized", "sanitizer");
    patch("dynamic", "other-class", 4, 1);
    check_refused("./other-class", "32-bit");
    patch("dynamic", "other-machine", 18, 8);
    check_refused("./other-machine", "another kind of machine");
}

static void allocators_under_other_names_are_mentioned(void) {
    char *warning = NULL;
    CHECK_EQUAL(program_check("./inner", &warning, NULL), 0);
    CHECK(warning && strstr(warning, "mimalloc"));
    free(warning);
    warning = NULL;
    CHECK_EQUAL(program_check("./own-hidden", &warning, NULL), 0);
    CHECK(warning && strstr(warning, "hidden malloc"));
    free(warning);
}

static void damaged_programs_do_no_harm(void) {
    struct problem problem;
    write_file("stub", "\177ELF", 0755);
    CHECK_EQUAL(judge("./stub", &problem), PROBLEM_FAILURE);
    /* Every byte of the headers, spoilt in turn: any verdict, no crash. */
    for (off_t offset = 4; offset < 64; offset++) {
        patch("dynamic", "spoilt", offset, 0xff);
        int kind = judge("./spoilt", &problem);
        CHECK(kind >= 0 && kind <= PROBLEM_GATE);
    }
}

/* Another user's rights take effect only when we are not that user; to give a file away takes root. */
static void changed_rights_are_refused_where_they_take_effect(void) {
    struct problem problem;
    CHECK(run("cp dynamic set-uid && chmod u+s set-uid && cp dynamic set-gid && chmod g+s set-gid"));
    CHECK_EQUAL(judge("./set-uid", &problem), 0);
    CHECK_EQUAL(judge("./set-gid", &problem), 0);
    if (geteuid() != 0) return;
    CHECK(chown("set-uid", 65534, 0) == 0 && chmod("set-uid", 04755) == 0);
    check_refused("./set-uid", "set-uid");
    CHECK(chown("set-gid", 0, 65534) == 0 && chmod("set-gid", 02755) == 0);
    check_refused("./set-gid", "set-gid");
}

static void scripts_are_judged_by_their_interpreter(void) {
    struct problem problem;
    char text[256];
    write_file("script", "#!/bin/sh\nexit 0\n", 0755);
    CHECK_EQUAL(judge("./script", &problem), 0);
    write_file("env-script", "#!/usr/bin/env sh\n", 0755);
    CHECK_EQUAL(judge("./env-script", &problem), 0);
    snprintf(text, sizeof text, "#! %s/static -x\n", folder);
    write_file("static-script", text, 0755);
    check_refused("./static-script", "statically linked");
    snprintf(text, sizeof text, "#!/usr/bin/env -S A=1 %s/own\n", folder);
    write_file("env-own-script", text, 0755);
    check_refused("./env-own-script", "its own malloc");
    snprintf(text, sizeof text, "#!%s/static-script\n", folder);
    write_file("script-script", text, 0755);
    check_refused("./script-script", "statically linked");
    write_file("lost-script", "#!/nonexistent/interpreter\n", 0755);
    CHECK_EQUAL(judge("./lost-script", &problem), PROBLEM_MISSING);
    write_file("no-line", "echo hello\n", 0755);
    CHECK_EQUAL(judge("./no-line", &problem), 0);
    snprintf(text, sizeof text, "#!%s/loop\n", folder);
    write_file("loop", text, 0755);
    CHECK_EQUAL(judge("./loop", &problem), 0); /* ends; the kernel says ELOOP */
}

static void programs_are_found_as_by_the_shell(void) {
    char *path = NULL;
    struct problem problem = {0};
    setenv("PATH", "/nonexistent::/bin", 1);
    CHECK(program_find("dynamic", &path, &problem) == 0);
    CHECK_TEXT(path, "./dynamic");
    free(path);
    CHECK(program_find("sh", &path, &problem) == 0);
    CHECK_TEXT(path, "/bin/sh");
    free(path);
    CHECK(program_find("no-such-program", &path, &problem) == -PROBLEM_MISSING);
    CHECK(program_find("./no-such-program", &path, &problem) == -PROBLEM_MISSING);
    CHECK(program_find("/tmp", &path, &problem) == -PROBLEM_PERMISSION);
    write_file("plain-text", "text", 0644);
    CHECK(program_find("./plain-text", &path, &problem) == -PROBLEM_PERMISSION);
    CHECK(program_find("plain-text", &path, &problem) == -PROBLEM_PERMISSION);
    CHECK(program_find("", &path, &problem) == -PROBLEM_USAGE);
}

int main(void) {
    CHECK(mkdtemp(folder) != NULL && chdir(folder) == 0);
    write_file("plain.c", "#include <stdlib.h>\nint main(void) { return malloc(1) == 0; }\n", 0644);
    write_file("own.c",
        "#include <stddef.h>\nstatic char heap[65536]; static size_t used;\n"
        "void *malloc(size_t n) { void *p = heap + used; used += (n + 15) & ~15ul; return p; }\n"
        "void free(void *p) { (void)p; }\nint main(void) { return malloc(1) == 0; }\n",
        0644);
    write_file("inner.c",
        "#include <stdlib.h>\nvoid *mi_malloc(size_t n) { return malloc(n); }\n"
        "int main(void) { return mi_malloc(1) == 0; }\n",
        0644);
    CHECK(run("cc plain.c -o dynamic && cc -no-pie plain.c -o no-pie && cc -static plain.c -o static"));
    CHECK(run("cc -static-pie -fPIE plain.c -o static-pie && cc own.c -o own && cc inner.c -o inner"));
    CHECK(run("cc -fvisibility=hidden own.c -o own-hidden"));
    run("cc -fsanitize=address plain.c -o sanitized 2>/dev/null");
    dynamic_programs_are_fine();
    programs_that_cannot_be_seen_are_refused();
    allocators_under_other_names_are_mentioned();
    damaged_programs_do_no_harm();
    changed_rights_are_refused_where_they_take_effect();
    scripts_are_judged_by_their_interpreter();
    char *path = strdup(getenv("PATH"));
    programs_are_found_as_by_the_shell();
    setenv("PATH", path, 1);
    free(path);
    char command[64];
    snprintf(command, sizeof command, "rm -r %s", folder);
    CHECK(run(command));
    return check_result();
}
