/* Which processes there are, whose children they are, and what they record. */
#include "check.h"
#include "model/model.h"
#include "model/running_processes.h"
#include "recording_fixture.h"

#include <signal.h>
#include <sys/wait.h>

/* A child with a child of its own; both wait to be killed. The number of the grandchild is told by a pipe. */
static pid_t start_family(pid_t *ret_grandchild) {
    int ends[2];
    if (pipe(ends) < 0) abort();
    pid_t child = fork();
    if (child == 0) {
        pid_t grandchild = fork();
        if (grandchild == 0) {
            pause();
            _exit(0);
        }
        if (write(ends[1], &grandchild, sizeof grandchild) != sizeof grandchild) _exit(1);
        pause();
        _exit(0);
    }
    if (read(ends[0], ret_grandchild, sizeof *ret_grandchild) != sizeof *ret_grandchild) abort();
    close(ends[0]);
    close(ends[1]);
    return child;
}

static void end(pid_t pid) {
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

static void children_descend_from_their_ancestors(void) {
    struct running_processes running = {0};
    pid_t grandchild, child = start_family(&grandchild);
    running_processes_update(&running, 1);
    CHECK(running_processes_find(&running, child) &&
          running_processes_find(&running, child)->parent == getpid());
    CHECK(running_processes_find(&running, grandchild) &&
          running_processes_find(&running, grandchild)->parent == child);
    CHECK(!running_processes_find(&running, getpid())); /* the process that looks is left out */
    CHECK(running_processes_descends(&running, grandchild, child));
    CHECK(running_processes_descends(&running, child, child));
    CHECK(!running_processes_descends(&running, child, grandchild));
    CHECK(running_processes_find(&running, child)->recording == NULL);
    end(grandchild);
    end(child);
    waitpid(grandchild, NULL, 0);
    running_processes_update(&running, 2);
    CHECK(!running_processes_find(&running, child));
    CHECK(!running_processes_descends(&running, grandchild, child));
    running_processes_free(&running);
}

/* A child that has a recording mapped, of which there is no name any more. */
static pid_t start_recorder(void) {
    int ends[2];
    char byte;
    if (pipe(ends) < 0) abort();
    pid_t child = fork();
    if (child == 0) {
        struct recording *recording = fixture_recording(1 << 20);
        memcpy(recording->header->magic, RECORDING_MAGIC, sizeof recording->header->magic);
        recording->header->pid = getpid();
        unlink(recording->path);
        if (write(ends[1], "", 1) != 1) _exit(1);
        pause();
        _exit(0);
    }
    if (read(ends[0], &byte, 1) != 1) abort();
    close(ends[0]);
    close(ends[1]);
    return child;
}

static void a_process_is_asked_again_ever_less_often(void) {
    struct running_processes running = {0};
    pid_t child = start_recorder();
    running_processes_update(&running, 100);
    struct running_process *process = running_processes_find(&running, child);
    CHECK(process && process->recording);
    CHECK_EQUAL(process->next_look, 101);
    double looks[] = {101, 103, 107, 115, 131, 147};
    for (size_t i = 0; i + 1 < sizeof looks / sizeof *looks; i++) {
        running_processes_update(&running, looks[i]);
        CHECK_EQUAL(running_processes_find(&running, child)->next_look, looks[i + 1]);
        running_processes_update(&running, looks[i] + 0.5);
        CHECK_EQUAL(running_processes_find(&running, child)->next_look, looks[i + 1]);
    }
    running_processes_look_again(&running, child);
    running_processes_update(&running, 132);
    CHECK_EQUAL(running_processes_find(&running, child)->next_look, 133);
    CHECK(running_processes_find(&running, child)->recording);
    end(child);
    running_processes_free(&running);
}

int main(void) {
    children_descend_from_their_ancestors();
    a_process_is_asked_again_ever_less_often();
    return check_result();
}
