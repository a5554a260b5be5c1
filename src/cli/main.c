#include <stdio.h>

int main(void) {
    puts("malloscope " MALLOSCOPE_VERSION);
    return 0;
}
