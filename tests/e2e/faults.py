"""Faults that the tests put into the recorder and the tool: system calls that fail, and memory that is short.

MALLOSCOPE_ALL_FAULTS=1 tries all of them, which takes hours; otherwise a selection."""

import collections
import os
import re

import harness
from harness import LIBRARY, ROOT

TOOLS = ROOT / "tests" / "tools"
ALL = os.environ.get("MALLOSCOPE_ALL_FAULTS") == "1"

# ---- system calls of the recorder ----

Call = collections.namedtuple("Call", "number failed name place pid")
WRITE = 1  # its number on x86-64


class Injector:
    """Runs programs with the recorder, some of whose system calls fail."""

    def __init__(self, build):
        self.tool = build(str(TOOLS / "fail_calls.c"), "-D_GNU_SOURCE")
        # The library's function syscall() makes calls for the program: these are not the recorder's.
        symbols = harness.run(["nm", "-S", "-D", LIBRARY]).stdout.decode()
        start, size = re.search(r"^(\w+) (\w+) T syscall$", symbols, re.M).groups()
        self.skipped = [start, f"{int(start, 16) + int(size, 16):x}"]

    def run(self, command, folder, options, number=0, how="once", error=0):
        """The result, and the calls that were the recorder's."""
        folder.mkdir()
        options = {**options, "MALLOSCOPE_OUTPUT": str(folder / "%p.%n.mscope")}
        if "MALLOSCOPE_SIGNAL" in options:
            options["MALLOSCOPE_DUMP"] = str(folder / "%p.%n.heap")
        log = folder / "log"
        result = harness.run(
            [self.tool, LIBRARY, *self.skipped, number, how, error, log, *command], expect=None, env=options
        )
        calls = []
        for line in log.read_text().splitlines():
            count, outcome, name, _, place, _, pid = line.split()
            calls.append(Call(int(count), outcome == "failed", int(name), place, int(pid)))
        return result, calls


def selection(calls, step):
    """The first call from each place of the recorder's code, every `step`th of them."""
    if ALL:
        return calls
    first = {(call.name, call.place): call for call in reversed(calls)}
    return sorted(first.values(), key=lambda call: call.number)[::step]


def is_begun(path):
    with open(path, "rb") as file:
        return file.read(6) == b"MSCOPE"


def totals_by_process(folder, first, may_be_left=False):
    """What the recordings say: that of the first process, and its child's. A recording can always be read."""
    found = {}
    for path in folder.glob("*.mscope"):
        if may_be_left and not is_begun(path):
            continue  # it could not be filled, and not be removed either
        pid = int(path.name.split(".")[0])
        found["parent" if pid == first else "child"] = harness.stats(path)["totals"]
    return found


def assert_said(result, calls, found, what):
    """Standard error has what the recorder says of itself alone; if there is no recording, it says so."""
    text = result.stderr.decode()
    assert re.fullmatch(r"(malloscope: cannot (record into|write a dump to) .*\n)*", text), (what, text)
    silenced = any(call.failed and call.name == WRITE for call in calls)  # the message itself
    assert "parent" in found or "cannot record into" in text or silenced, what


# ---- memory of the tool ----

NO_MEMORY = re.compile(rb"out of memory|Cannot allocate memory")


def memory_shim(build):
    return build(str(TOOLS / "fail_memory.c"), "-D_GNU_SOURCE", "-shared", "-fPIC", target="libfail_memory.so")


def without_memory(shim, number, every_later=False, count_into=None):
    """The environment in which the tool's `number`th allocation fails."""
    environment = {"LD_PRELOAD": str(shim), "FAIL_MEMORY": str(number)}
    if every_later:
        environment["FAIL_MEMORY_FROM"] = "1"
    if count_into:
        environment["FAIL_MEMORY_COUNT"] = str(count_into)
    return environment


def numbers_up_to(count, step, dense=300):
    """All of the first `dense`, and then ever fewer; or ever fewer from the start."""
    first, ratio = (dense, 1.1) if ALL else (1, 1.7)
    chosen = list(range(1, min(count, first) + 1))
    while chosen[-1] * ratio + step < count:
        chosen.append(int(chosen[-1] * ratio) + step)
    return chosen
