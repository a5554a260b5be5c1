#!/bin/sh
# archive.sh CC OBJCOPY AR OUT OBJECT...: a static library of one object, in which only what the program may call
# has a name.
set -e
cc=$1 objcopy=$2 ar=$3 out=$4
shift 4
"$cc" -r -nostdlib -o "$out.o" "$@"
"$objcopy" --localize-hidden "$out.o"
rm -f "$out"
"$ar" rcs "$out" "$out.o"
rm -f "$out.o"
