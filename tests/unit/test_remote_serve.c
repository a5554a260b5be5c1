/* test_remote_serve PID: walks the copied stacks of a process that it is given, for
 * tests/e2e/remote_in_gdb.py.
 *
 * In: struct request and the copied bytes, again and again. Out: for each a struct answer and its frames. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attach/remote/remote.h"

#define FRAMES_MAX 4096

struct request {
    struct unwind_registers registers;
    uint32_t stack_size, max;
};

struct answer {
    uint32_t end, count;
};

int main(int count, char **arguments) {
    static uint64_t frames[FRAMES_MAX];
    struct request request;
    struct remote *remote;
    int r = count == 2 ? remote_open(atoi(arguments[1]), &remote) : -1;
    if (r < 0) {
        fprintf(stderr, "test_remote_serve: cannot open %s: %s\n", count == 2 ? arguments[1] : "nothing",
            strerror(-r));
        return 1;
    }
    while (fread(&request, sizeof request, 1, stdin) == 1) {
        enum remote_end end;
        uint8_t *stack = malloc(request.stack_size + 1);
        if (request.max > FRAMES_MAX || fread(stack, 1, request.stack_size, stdin) != request.stack_size)
            return 1;
        struct answer answer = {.count = remote_unwind(remote, &request.registers, stack, request.stack_size,
                                    frames, request.max, &end)};
        answer.end = end;
        free(stack);
        fwrite(&answer, sizeof answer, 1, stdout);
        fwrite(frames, sizeof *frames, answer.count, stdout);
        fflush(stdout);
    }
    remote_close(remote);
    return 0;
}
