#!/usr/bin/env python3
"""Checks by which names the built library reaches code of others: prints "clean", or each name that is not allowed.

usage: tests/analysis/symbols.py LIBRARY

Whatever the library calls by a name may be another library's function of that name: the program's own, or one of a
library that was preloaded. It may allocate, and so come back to the recorder, or wait for a lock that the caller of
malloc holds. So the recorder asks the system by its own system calls (src/platform/calls.h) and finds functions by
reading symbol tables (src/record/intercept/search_order.h). What is left is in the table below, with the reason why it
does no harm. A row that the library does not need is a fault, too.
"""
import re
import subprocess
import sys

ALLOWED = {
    # libc's variables: no code runs
    "environ": "the environment, as the program has it",
    "__environ": "the same, under libc's own name",
    "__libc_single_threaded": "whether there ever was a second thread",
    "__libc_stack_end": "where the kernel put the environment, for use before libc is set up",
    "_r_debug": "the dynamic linker's list of loaded objects",
    # libc's functions that every program calls all the time, and that ask the system for nothing
    "__errno_location": "the place of errno, in thread-local memory; the allocator that is called sets it, too",
    "getauxval": "looks into an array that the kernel has filled",
    "__getauxval": "the same, for the compiler's choice of atomic instructions on aarch64",
    "pthread_self": "reads the thread pointer",
    "sigabbrev_np": "looks into an array; at the start, if there is a signal for dumps",
    "strerrordesc_np": "looks into an array; when recording cannot start",
    "__memcpy_chk": "memory and text: an allocating memcpy could not serve any allocator",
    "memchr": "as memcpy", "memcmp": "as memcpy", "memcpy": "as memcpy", "memmove": "as memcpy", "memset": "as memcpy",
    "strcasecmp": "as memcpy", "__strcat_chk": "as memcpy", "strchr": "as memcpy", "strcmp": "as memcpy",
    "strcspn": "as memcpy", "strlen": "as memcpy", "strncasecmp": "as memcpy", "strncmp": "as memcpy",
    "strncpy": "as memcpy", "strnlen": "as memcpy", "strrchr": "as memcpy", "strspn": "as memcpy",
    "strstr": "as memcpy",
    # once, when recording begins: an allocation in them is passed on to the allocator, since recording has not begun
    "pthread_key_create": "tells of the ends of threads; there is no other way",
    "pthread_key_delete": "takes that back",
    "__register_atfork": "tells of forks; there is no other way",
    # once for each thread
    "pthread_setspecific": "stores a pointer; an allocation in it is recorded as one of a signal handler would be",
    # at the end
    "abort": "there is no memory, and no C++ library that could throw: the program ends",
    # what the compiler and the linker put into every library
    "__cxa_finalize": "weak", "__gmon_start__": "weak", "_ITM_deregisterTMCloneTable": "weak",
    "_ITM_registerTMCloneTable": "weak",
    "__tsan_acquire": "weak: tells ThreadSanitizer that pages are used again",
    "__tsan_release": "weak: tells ThreadSanitizer that pages are used again",
}

# On some machines only.
SOMETIMES = {"__environ", "__getauxval", "__memcpy_chk", "__strcat_chk", "__cxa_finalize", "__gmon_start__",
             "_ITM_deregisterTMCloneTable", "_ITM_registerTMCloneTable", "pthread_self"}

OWN = re.compile(r"mscope_\w+")  # our own functions that we call by names that others could define; nobody does


def readelf(*arguments):
    return subprocess.run(["readelf", "-W", *arguments], check=True, stdout=subprocess.PIPE, text=True).stdout


def names_of(library):
    """(undefined names, names of our own that relocations lead to by way of the linker)"""
    undefined, defined = set(), set()
    for line in readelf("--dyn-syms", library).splitlines():
        words = line.split()
        if len(words) >= 8 and words[0].rstrip(":").isdigit():
            name = words[7].split("@")[0]
            (undefined if words[6] == "UND" else defined).add(name)
    used = set(re.findall(r"R_\w+_(?:JUMP_SLOT?|GLOB_DAT?|64|ABS64)\s+[0-9a-f]+ (\w+)", readelf("-r", library)))
    return undefined, used & defined


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    undefined, own = names_of(sys.argv[1])
    faults = [f"{name}: is not on the list of tests/analysis/symbols.py" for name in sorted(undefined - set(ALLOWED))]
    faults += [f"{name}: our own function, called by a name that others may define" for name in sorted(own)
               if not OWN.fullmatch(name)]
    faults += [f"{name}: is on the list, and not needed" for name in sorted(set(ALLOWED) - undefined - SOMETIMES)]
    print("\n".join(faults) or "clean")
    sys.exit(1 if faults else 0)


main()
