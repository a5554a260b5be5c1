/* The child inherits all blocks, and the parent frees them at once. In the child's recording, which begins
 * later, they must stay live. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define BLOCKS 50000

int main(void) {
    static void *block[BLOCKS];
    for (int i = 0; i < BLOCKS; i++) block[i] = malloc(100);
    pid_t child = fork();
    if (child == 0) {
        usleep(100000);
        _exit(malloc(100) == NULL); /* with this its recording begins */
    }
    for (int i = 0; i < BLOCKS; i++) free(block[i]);
    int status;
    waitpid(child, &status, 0);
    printf("child ended with %d\n", status);
    return 0;
}
