/* Linked into a program, makes it wait before main until the file that $ATTACH_GO names exists: time to
 * attach to it before its first allocation. */
#include <stdlib.h>
#include <unistd.h>

__attribute__((constructor)) static void wait_at_the_gate(void) {
    const char *file = getenv("ATTACH_GO");
    while (file && access(file, F_OK) != 0) usleep(5000);
}
