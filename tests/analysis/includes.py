#!/usr/bin/env python3
"""Checks that no #include in src/ goes against the order of the folders: prints "clean", or each include that does.

usage: tests/analysis/includes.py [ROOT]       (ROOT: the folder that holds src/ and include/; default: this repository)

The rules are the three tables below. A row that no include needs is a fault too, so that the tables stay as short as
the code permits. test_includes.py plants faults to show that they are found.
"""
import os
import re
import sys
from fnmatch import fnmatch
from pathlib import Path

# folder, the folders that its files may include besides their own, why
FOLDERS = [
    ("base", "", "everybody may use it, so it uses nobody"),
    ("platform", "base", "the seam to the operating system; runs in the target"),
    ("core", "base platform", "the recording's format and tables; written in the target, read by the tool"),
    ("unwind", "base platform core", "stack capture; runs in the target, and in attach on another process' memory"),
    ("record", "base platform core unwind", "the library in the target: nothing of the tool may reach the target"),
    ("attach/bpf", "base platform core unwind", "knows probes and the kernel, not what is done with their events"),
    ("attach/remote", "base platform core unwind", "walks stacks of another process, whoever asks"),
    ("attach/session", "base platform core unwind attach/bpf attach/remote", "puts the two together into a recording"),
    ("model", "base platform core", "reads the recording, knows only its format"),
    ("symbol", "base core model", "names for addresses that the model holds"),
    ("view", "base core model symbol", "figures of named call sites, whatever shows them"),
    ("format", "base core model symbol view", "files for other tools, from views"),
    ("cli", "base core model symbol view format attach/bpf attach/remote attach/session",
     "the commands: everything but what runs in the target"),
]

# What runs in the target is one library, whose parts call each other. Each part of record/ may include those before it.
RECORD_ORDER = ["sample", "intercept", "python", "walkcache", "dump", "api", "life"]

# Includes against that order: file, header, why. This list may only become shorter.
RECORD_UPWARD = [
    ("sample/recorder.c", "walkcache/walk_cache.h", "a sample's stack comes from the walk cache"),
    ("sample/recorder.c", "python/python.h", "Python frames are merged into a sample's stack"),
    ("sample/recorder.c", "api/scopes.h", "a sample carries the thread's scope"),
    ("sample/recorder.c", "dump/dump_triggers.h", "a sample may be the one at which a dump is due"),
    ("sample/recorder.c", "life/start.h", "the first allocation starts the recording"),
    ("sample/recorder.c", "life/fork.h", "a forked child's first event makes it a recording of its own"),
    ("sample/recorder.c", "life/thread.h", "a thread's first event gives it a record"),
    ("intercept/got_takeover.c", "life/exit.h", "_exit is among the functions whose addresses are exchanged"),
    ("intercept/dl_hooks.c", "python/python.h", "a library that was just loaded may bring an interpreter"),
    ("python/python_objects.c", "api/own_heaps.h", "the interpreter's small objects are a heap of their own"),
    ("dump/dump.c", "api/own_heaps.h", "a dump asks the program's heaps for their figures first"),
    ("dump/dump.c", "life/options.h", "the name of a dump is made from a pattern, as the recording's is"),
    ("dump/dump_triggers.c", "life/options.h", "when dumps are written is an option"),
    ("api/control.c", "life/start.h", "a program may start the recording"),
    ("api/control.c", "life/finish.h", "a program may end the recording"),
    ("api/control.c", "life/options.h", "a program that starts the recording brings its own options"),
]

PUBLIC_HEADER = "malloscope.h"  # of include/: for programs, and for record/, which implements it
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)
SOURCES = (".c", ".h", ".S")


def folder_of(path, folders):
    """The longest folder of the table that `path` (below src/) lies in, or None."""
    inside = [folder for folder in folders if path.startswith(folder + "/")]
    return max(inside, key=len, default=None)


def includes_of(root):
    """(file, line, header) of every quoted include; file and header are paths below src/, or just malloscope.h."""
    for path in sorted(root.glob("src/**/*")):
        if path.suffix not in SOURCES:
            continue
        file, text = path.relative_to(root / "src").as_posix(), path.read_text()
        for found in INCLUDE.finditer(text):
            header, line = os.path.normpath(found[1]), text.count("\n", 0, found.start(1)) + 1
            beside = os.path.normpath(os.path.join(os.path.dirname(file), header))  # where the compiler looks first
            yield file, line, beside if (root / "src" / beside).exists() else header


def record_fault(file, header, used_upward):
    """What is wrong with an include from one part of record/ into another, or None."""
    part, other = file.split("/")[0], header.split("/")[0]
    for name in (part, other):
        if name not in RECORD_ORDER:
            return f"record/{name} is not in RECORD_ORDER"
    if RECORD_ORDER.index(other) <= RECORD_ORDER.index(part):
        return None
    for row in RECORD_UPWARD:
        if fnmatch(file, row[0]) and header == row[1]:
            used_upward.add(row)
            return None
    return f"record/{part} comes before record/{other} in RECORD_ORDER"


def check(root):
    """The faults of all includes below `root`, as lines of text."""
    allowed = {folder: set(others.split()) for folder, others, _ in FOLDERS}
    faults, used_upward = [], set()
    for file, line, header in includes_of(root):
        folder, other = folder_of(file, allowed), folder_of(header, allowed)
        fault = None
        if not folder:
            fault = "its folder has no row in FOLDERS"
        elif header == PUBLIC_HEADER:
            fault = None if folder == "record" else f"{folder} may not include the public header"
        elif not other:
            fault = "write the header's path below src/, beginning with a folder of FOLDERS"
        elif other != folder and other not in allowed[folder]:
            fault = f"{folder} may include only: {' '.join(sorted(allowed[folder])) or 'nothing else of ours'}"
        elif folder == other == "record":
            fault = record_fault(file.removeprefix("record/"), header.removeprefix("record/"), used_upward)
        if fault:
            faults.append(f'src/{file}:{line}: #include "{header}": {fault}')
    public = (root / "include" / PUBLIC_HEADER).read_text()
    faults += [f'include/{PUBLIC_HEADER}: #include "{header}": programs have this header alone'
               for header in INCLUDE.findall(public)]
    faults += [f"tests/analysis/includes.py: no file needs this row of RECORD_UPWARD any more: {file} {header}"
               for file, header, why in RECORD_UPWARD if (file, header, why) not in used_upward]
    return faults


def main():
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parents[2]
    faults = check(root)
    print("\n".join(faults) or "clean")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
