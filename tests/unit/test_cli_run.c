/* What `run` does around the program: the name of the recording, LD_PRELOAD, starting, waiting, finding the
 * result. */
#include "check.h"
#include "cli/run/launch.h"
#include "cli/run/output_pattern.h"
#include "cli/run/recorder_library.h"
#include "cli/run/run_recordings.h"
#include "core/recording.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[] = "/tmp/test_cli_run.XXXXXX";

static int prepare(const char *given, bool force, char **ret_pattern) {
    struct problem problem = {0};
    *ret_pattern = NULL;
    int r = output_pattern_prepare(given, force, ret_pattern, &problem);
    if (r < 0) CHECK(problem.what[0] && problem.remedy[0]);
    return -r;
}

static void check_pattern(const char *given, const char *expected) {
    char *pattern, whole[256];
    snprintf(whole, sizeof whole, "%s/%s", folder, expected);
    CHECK_EQUAL(prepare(given, false, &pattern), 0);
    CHECK_TEXT(pattern, whole);
    free(pattern);
}

static void patterns_become_absolute(void) {
    check_pattern(NULL, "malloscope.%e.%p.mscope");
    check_pattern("x.mscope", "x.mscope");
    check_pattern("%h-%t-%n.mscope", "%h-%t-%n.mscope");
    CHECK(mkdir("inner", 0700) == 0);
    check_pattern("inner", "inner/malloscope.%e.%p.mscope");
    check_pattern("inner/", "inner/malloscope.%e.%p.mscope");
    check_pattern("inner/100%%.mscope", "inner/100%%.mscope");
}

static void impossible_places_are_refused_before_the_start(void) {
    char *pattern;
    CHECK_EQUAL(prepare("missing/x.mscope", false, &pattern), PROBLEM_MISSING);
    CHECK_EQUAL(prepare("missing/%p.mscope", false, &pattern), PROBLEM_MISSING);
    CHECK_EQUAL(prepare("%q.mscope", false, &pattern), PROBLEM_USAGE);
    CHECK_EQUAL(prepare("x%", false, &pattern), PROBLEM_USAGE);
    CHECK(prepare("/proc/x.mscope", false, &pattern) != 0);
    close(open("taken.mscope", O_CREAT | O_WRONLY, 0600));
    CHECK_EQUAL(prepare("taken.mscope", false, &pattern), PROBLEM_FAILURE);
    CHECK_EQUAL(prepare("taken.mscope", true, &pattern), 0);
    free(pattern);
    CHECK(prepare("taken.mscope/x", false, &pattern) != 0);
    CHECK(symlink("/dev/null", "device.mscope") == 0);
    CHECK_EQUAL(prepare("device.mscope", true, &pattern), PROBLEM_FAILURE);
    if (geteuid() == 0) return; /* root may write anywhere */
    CHECK(mkdir("locked", 0500) == 0);
    CHECK_EQUAL(prepare("locked/x.mscope", false, &pattern), PROBLEM_PERMISSION);
}

static void make_recording(const char *name, int pid, int parent, uint64_t start) {
    static struct recording_header header;
    memcpy(header.magic, RECORDING_MAGIC, sizeof header.magic);
    header.pid = pid;
    header.parent_pid = parent;
    header.start_realtime = start;
    FILE *file = fopen(name, "w");
    fwrite(&header, sizeof header, 1, file);
    fclose(file);
}

static void the_recordings_of_a_run_are_found(void) {
    make_recording("m.sh.10.mscope", 10, 1, 1000);
    make_recording("m.python.10.mscope", 10, 1, 2000); /* the same process, after exec */
    make_recording("m.child.11.mscope", 11, 10, 2100);
    make_recording("m.grandchild.12.mscope", 12, 11, 2200);
    make_recording("m.stranger.20.mscope", 20, 1, 2300); /* another run into the same folder */
    make_recording("m.old.10.mscope", 10, 1, 10);        /* an earlier run, same pid */
    FILE *file = fopen("m.text.10.mscope", "w");
    fputs("not a recording", file);
    fclose(file);
    char pattern[256];
    snprintf(pattern, sizeof pattern, "%s/m.%%e.%%p.mscope", folder);
    struct run_recordings found;
    run_recordings_find(pattern, 10, 900, &found);
    CHECK(found.main && strstr(found.main, "/m.python.10.mscope"));
    CHECK_EQUAL(found.child_count, 3);
    for (size_t i = 0; i < found.child_count; i++)
        CHECK(!strstr(found.children[i], "stranger") && !strstr(found.children[i], "old"));
    run_recordings_free(&found);
    run_recordings_find(pattern, 99, 900, &found);
    CHECK(!found.main && found.child_count == 0);
    run_recordings_free(&found);
}

static void names_with_a_suffix_are_found(void) {
    make_recording("fixed[1].mscope", 30, 1, 1000);
    make_recording("fixed[1].31.mscope", 31, 30, 1100);
    make_recording("fixed[1].31.2.mscope", 31, 30, 1200);
    make_recording("fixed1.mscope", 31, 30, 1200);
    char pattern[256];
    snprintf(pattern, sizeof pattern, "%s/fixed[1].mscope", folder);
    struct run_recordings found;
    run_recordings_find(pattern, 30, 900, &found);
    CHECK(found.main && strstr(found.main, "/fixed[1].mscope"));
    CHECK_EQUAL(found.child_count, 2);
    run_recordings_free(&found);
}

static void check_preload(const char *existing, const char *expected) {
    char *value = recorder_library_preload_value("/lib/r.so", existing);
    CHECK_TEXT(value, expected);
    free(value);
}

static void an_existing_preload_is_kept(void) {
    check_preload(NULL, "/lib/r.so");
    check_preload("", "/lib/r.so");
    check_preload("/a.so /b.so", "/lib/r.so:/a.so /b.so");
    check_preload("/a.so:/lib/r.so", "/a.so:/lib/r.so");
    check_preload("/lib/r.so.1", "/lib/r.so:/lib/r.so.1");
}

static void a_library_behind_blanks_gets_a_link(void) {
    char *path = NULL;
    struct problem problem = {0};
    setenv("XDG_RUNTIME_DIR", folder, 1);
    CHECK(mkdir("a b:c", 0700) == 0);
    close(open("a b:c/libmalloscope.so", O_CREAT | O_WRONLY, 0600));
    setenv("MALLOSCOPE_LIBRARY", "a b:c/libmalloscope.so", 1);
    for (int i = 0; i < 2; i++) { /* the second time the link is there */
        CHECK(recorder_library_find(&path, &problem) == 0);
        CHECK(path && !strpbrk(path, " :"));
        char *target = realpath(path, NULL);
        CHECK(target && strstr(target, "/a b:c/libmalloscope.so"));
        free(target);
        free(path);
    }
    char private[128];
    snprintf(private, sizeof private, "%s/malloscope-%u", folder, (unsigned)getuid());
    chmod(private, 0777); /* others could put something else there */
    CHECK(recorder_library_find(&path, &problem) == -PROBLEM_PERMISSION);
    setenv("MALLOSCOPE_LIBRARY", "nowhere.so", 1);
    CHECK(recorder_library_find(&path, &problem) == -PROBLEM_MISSING);
}

#define PID_VARIABLE "OWN_PID="
static char pid_variable[sizeof PID_VARIABLE + PID_TEXT_SIZE] = PID_VARIABLE;

static int launch(const char *path, char **arguments, struct launched *launched) {
    struct problem problem = {0};
    return launch_and_wait(path, arguments, pid_variable + strlen(PID_VARIABLE), launched, &problem);
}

#define SHELL(text)                                                                                          \
    (char *[]) {                                                                                             \
        "sh", "-c", text, NULL                                                                               \
    }

static void the_programs_end_is_known(void) {
    struct launched launched;
    CHECK(putenv(pid_variable) == 0);
    CHECK(launch("/bin/sh", SHELL("test $OWN_PID = $$ && exit 17"), &launched) == 0);
    CHECK(WIFEXITED(launched.status) && WEXITSTATUS(launched.status) == 17);
    CHECK_EQUAL(launch_pass_on(launched.status), 17);
    CHECK(launch("/bin/sh", SHELL("kill -SEGV $$"), &launched) == 0);
    CHECK(WIFSIGNALED(launched.status) && WTERMSIG(launched.status) == SIGSEGV);
    CHECK(launch("/nonexistent", SHELL(""), &launched) == -PROBLEM_MISSING);
    FILE *file = fopen("no-line", "w");
    fputs("exit $1\n", file);
    fclose(file);
    chmod("no-line", 0755);
    CHECK(launch("./no-line", (char *[]){"no-line", "5", NULL}, &launched) == 0);
    CHECK_EQUAL(WEXITSTATUS(launched.status), 5);
}

static void a_deadly_signal_is_passed_on(void) {
    pid_t pid = fork();
    if (pid == 0) {
        struct launched launched;
        launch("/bin/sh", SHELL("kill -ABRT $$"), &launched);
        _exit(launch_pass_on(launched.status));
    }
    int status;
    CHECK(waitpid(pid, &status, 0) == pid);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT && !WCOREDUMP(status));
}

/* The program says when it is ready. Then this test sends signals to the process that waits for it. */
static void signals_reach_the_program(void) {
    const struct {
        int signal, expected;
    } cases[] = {{SIGTERM, 40}, {SIGUSR1, 41}, {SIGINT, 42}, {SIGQUIT, 42}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int ready[2];
        CHECK(pipe(ready) == 0);
        pid_t pid = fork();
        if (pid == 0) {
            struct launched launched;
            char text[256];
            snprintf(text, sizeof text,
                "trap 'exit 40' TERM; trap 'exit 41' USR1; trap 'exit 1' INT; echo >&%d; sleep 0.5; sleep "
                "0.5; exit 42",
                ready[1]);
            launch("/bin/sh", SHELL(text), &launched);
            _exit(launch_pass_on(launched.status));
        }
        char byte;
        CHECK(read(ready[0], &byte, 1) == 1);
        CHECK(kill(pid, cases[i].signal) == 0);
        int status;
        CHECK(waitpid(pid, &status, 0) == pid);
        CHECK(WIFEXITED(status));
        CHECK_EQUAL(WEXITSTATUS(status), cases[i].expected);
        close(ready[0]);
        close(ready[1]);
    }
}

int main(void) {
    CHECK(mkdtemp(folder) != NULL && chdir(folder) == 0);
    patterns_become_absolute();
    impossible_places_are_refused_before_the_start();
    the_recordings_of_a_run_are_found();
    names_with_a_suffix_are_found();
    an_existing_preload_is_kept();
    a_library_behind_blanks_gets_a_link();
    the_programs_end_is_known();
    a_deadly_signal_is_passed_on();
    signals_reach_the_program();
    char command[64];
    snprintf(command, sizeof command, "rm -r %s", folder);
    CHECK(system(command) == 0);
    return check_result();
}
