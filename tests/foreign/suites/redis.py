"""A part of Redis's own tests, with Debian's server (which uses jemalloc) and client. The Tcl program that drives the
tests, the servers that it starts, their forks for saving and the clients are all recorded."""

import re
import shutil

from comparing import Program, by_status
from sources import WORK, source

PACKAGES = ("redis-server", "redis-tools", "tcl", "dpkg-dev")
AT_ONCE = 1  # they find their ports by themselves, but not beside others
EXPECTED = {}
UNITS = (
    "unit/type/string", "unit/type/incr", "unit/type/list-3", "unit/type/set", "unit/type/hash", "unit/dump",
    "unit/expire", "unit/scan", "unit/sort", "unit/multi", "unit/scripting", "unit/bitops", "unit/lazyfree",
    "unit/pubsub", "integration/rdb", "integration/aof", "integration/dismiss-mem",
)  # fmt: skip
COLOUR = r"\x1b\[[0-9;]*m"
LINE = r"^(?:\*\*\* )?\[(ok|err|exception|skip|ignore)\]: (.*?)(?: \(\d+ ms\)| in tests/.*)?$"


def tree():
    """The sources with links to the programs that are installed, where the tests look for them."""
    folder = WORK / "redis"
    if not (folder / "built").exists():
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(source("redis"), folder, symlinks=True)
        for name in ("server", "cli", "benchmark", "check-aof", "check-rdb", "sentinel"):
            (folder / f"src/redis-{name}").unlink(missing_ok=True)
            (folder / f"src/redis-{name}").symlink_to(f"/usr/bin/redis-{name}")
        (folder / "built").touch()
    return folder


def outcomes(unit):
    """A case that comes more than once, in a loop, counts each time."""

    def read(status, output):
        found = {}
        for word, case in re.findall(LINE, re.sub(COLOUR, "", output), re.MULTILINE):
            name = f"{unit} {case}"
            times = sum(other == name or other.startswith(f"{name} #") for other in found)
            found[f"{name} #{times + 1}" if times else name] = {"ok": "passed", "err": "failed"}.get(word, word)
        return {**found, f"{unit} as a whole": by_status(status)}

    return read


def programs():
    folder = tree()
    driver = ["tclsh", "tests/test_helper.tcl", "--clients", "1", "--single"]
    return [Program(unit, [*driver, unit], folder, patience=900, outcomes=outcomes(unit)) for unit in UNITS]
