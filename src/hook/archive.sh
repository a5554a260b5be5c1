#!/bin/sh
# archive.sh OUT OBJECT...: a static library of one object, in which only what the program may call has a name.
set -e
out=$1
shift
${LD:-ld} -r -o "$out.o" "$@"
${OBJCOPY:-objcopy} --localize-hidden "$out.o"
rm -f "$out"
${AR:-ar} rcs "$out" "$out.o"
rm -f "$out.o"
