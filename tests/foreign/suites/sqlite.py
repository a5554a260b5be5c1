"""A part of SQLite's own tests, in its own interpreter for them: testfixture, with the C library's malloc."""

import re
import shutil
from pathlib import Path

from comparing import Program, by_status
from sources import WORK, call, source

PACKAGES = ("gcc", "make", "tcl", "tcl-dev", "dpkg-dev")
AT_ONCE = 2
EXPECTED = {}
# Of all parts: statements, indexes, transactions, journals and the log, faults of memory (malloc*), threads, full text.
FILES = (
    "select1", "select4", "insert", "update", "delete", "join", "where", "index", "trigger1", "view", "trans", "expr",
    "func", "types", "blob", "alter", "vacuum", "pager1", "wal", "wal2", "savepoint", "fkey1", "memsubsys1",
    "memsubsys2", "softheap1", "malloc5", "mallocA", "mallocI", "memdb", "thread001", "thread003", "shared",
    "fts3aa", "fts3malloc", "json101", "with1", "window1", "zeroblob", "incrblob",
)  # fmt: skip



def build(folder):
    log = WORK / "sqlite.log"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    tcl = max(Path("/usr/lib").glob("*/tcl8.*"))
    call([source("sqlite3") / "configure", f"--with-tcl={tcl}"], folder, log)
    call(["make", "-j2", "testfixture"], folder, log)
    (folder / "built").touch()


def outcomes(file):
    def read(status, output):
        passed = re.findall(r"^(\S+)\.\.\. Ok$", output, re.MULTILINE)
        failed = re.findall(r"^! (\S+) (?:expected|error)", output, re.MULTILINE)
        found = {**{f"{file} {case}": "passed" for case in passed}, **{f"{file} {case}": "failed" for case in failed}}
        return {**found, f"{file} as a whole": by_status(status)}

    return read


def programs():
    folder = WORK / "sqlite"
    if not (folder / "built").exists():
        build(folder)
    tests = source("sqlite3") / "test"
    return [
        Program(file, [folder / "testfixture", tests / f"{file}.test"], outcomes=outcomes(file)) for file in FILES
    ]
