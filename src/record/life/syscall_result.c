#include "record/life/syscall_result.h"

#include <errno.h>

long syscall_result(long result) {
    if (result >= 0 || result < -4095) return result;
    errno = (int)-result;
    return -1;
}
