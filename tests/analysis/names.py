#!/usr/bin/env python3
"""Checks that no two files of src/ define one name for all others to see: prints "clean", or each name with its files.

usage: tests/analysis/names.py BUILD       (BUILD: a folder in which everything is built)

The commands are linked from an archive, libtool.a. Of two of its objects that define one name, the linker takes the one
that it comes to first, and says nothing. test_names.py plants faults to show that they are found.
"""
import collections
import json
import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# Names that two files may define, as no program is linked from both: pattern of the file, pattern of the name, why.
# A row that no name needs is a fault too.
STAND_INS = [
    ("src/record/*_static.c", "*", "the library that is linked into programs has these in place of their namesakes"),
    ("src/base/library_memory.c", "*alloc", "in the tool; the library's functions of these names never are"),
    ("src/cli/malloscope_commands.c", "main", "there are two executables"),
]


def objects_of(build, root):
    """(source, object) for each file below src/ that is compiled in `build`; a source may be in several targets."""
    for entry in json.loads((build / "compile_commands.json").read_text()):
        source = (Path(entry["directory"]) / entry["file"]).resolve()
        if source.is_relative_to(root / "src"):
            yield source.relative_to(root).as_posix(), Path(entry["directory"]) / entry["output"]


def names_of(objects):
    """{object: names that it defines for other objects}; weak names give way to others, and are left out."""
    listed = subprocess.run(["nm", "--defined-only", "--extern-only", "--print-file-name", "--format=posix", *objects],
                            stdout=subprocess.PIPE, text=True, check=True).stdout
    names = collections.defaultdict(set)
    for line in listed.splitlines():
        file, name, kind = line.split()[:3]
        if kind not in "WwVv":
            names[file.rstrip(":")].add(name)
    return names


def check(build, root=ROOT, stand_ins=STAND_INS):
    """The faults, as lines of text."""
    built = [(source, str(file)) for source, file in objects_of(build, root) if file.exists()]
    if not built:
        return [f"{build}: no object of src/ is there; build first"]
    names = names_of([file for _, file in built])
    files = collections.defaultdict(set)
    for source, file in built:
        for name in names[file]:
            files[name].add(source)
    faults, needed = [], set()
    for name, sources in sorted(files.items()):
        if len(sources) == 1:
            continue
        for row in stand_ins:
            found = {source for source in sources if fnmatch(name, row[1]) and fnmatch(source, row[0])}
            sources = sources - found
            needed.update([row] if found else [])
        if len(sources) > 1:
            faults.append(f"{name}: defined in {' and in '.join(sorted(sources))}")
    faults += [f"tests/analysis/names.py: no name needs this row of STAND_INS any more: {row[0]} {row[1]}"
               for row in stand_ins if row not in needed]
    return faults


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: tests/analysis/names.py BUILD")
    faults = check(Path(sys.argv[1]).resolve())
    print("\n".join(faults) or "clean")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
