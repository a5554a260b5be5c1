/* Names that would do harm if a page took them for HTML or a link. The test puts them where these stand in: the name of
 * the function in the debug information, the name of the file by #line. */
#include <stdlib.h>

static void *volatile kept;

__attribute__((noinline)) void HOSTILE_FUNCTION(void) {
#line 7 HOSTILE_FILE
    for (int i = 0; i < 10; i++) kept = malloc(1000);
}

int main(void) {
    HOSTILE_FUNCTION();
    return 0;
}
