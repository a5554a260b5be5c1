"""The commands that watch programs, where memory is short: each allocation of `run`, `top` and `attach` fails in turn.
The program never notices; the tool says what failed, or does all that it was asked for."""

import contextlib
import fcntl
import os
import pty
import select
import struct
import subprocess
import termios
import time

import pytest

import attaching
import faults
import harness
from faults import ALL, NO_MEMORY
from harness import MALLOSCOPE


@pytest.fixture(scope="module")
def shim(build):
    return faults.memory_shim(build)


def tries(count, step):
    """Which allocation fails, and whether all later ones do."""
    numbers = faults.numbers_up_to(count, step)
    chosen = [
        (number, every_later)
        for turn, number in enumerate(numbers)
        for every_later in ((False, True) if ALL else (turn % 2 == 1,))
    ]
    print(f"{len(chosen)} runs, of {count} allocations")
    return chosen


# ---- run ----

GATES = ["--exact", "--leaks-fail", "--peak-limit", "1", "--max-allocs", "1", "--junit", "junit.xml"]
RUNS = {
    "quiet": ["-q"],
    "summary": ["--rate", "64"],
    "dumps": ["-q", "--dump", "%n.heap", "--dump-at", "exit,1M", "--signal", "USR2"],
    "gates": GATES,
}


@pytest.mark.parametrize("status", [0, 3])
@pytest.mark.parametrize("options", RUNS.values(), ids=RUNS)
def test_run_without_memory_starts_the_program_or_says_why_not(shim, build, folder, options, status):
    program = [build("hello.c", "-O1"), status]
    plain = harness.run(program, expect=status)
    gated = options is GATES

    def run(number, every_later=False, count_into=None):
        for path in folder.iterdir():
            path.unlink()
        environment = faults.without_memory(shim, number, every_later, count_into)
        return harness.malloscope(
            "run", "-o", "out", *options, "--", *program, expect=None, env=environment, cwd=folder
        )

    good = run(0, count_into=folder.parent / "count")
    assert (good.returncode, good.stdout) == (status or (6 if gated else 0), plain.stdout)
    count = int((folder.parent / "count").read_text())
    ended = 0
    for number, every_later in tries(count, 1):
        result = run(number, every_later)
        what = (number, every_later, result.returncode, result.stdout, result.stderr[-300:])
        has_run = result.stdout == plain.stdout
        assert has_run or result.stdout == b"", what
        if has_run:  # what it was recorded into can be read, and its status says more than the tool's trouble
            assert harness.stats(folder / "out")["totals"]["samples"] > 0, what
        if result.returncode == good.returncode and has_run and not NO_MEMORY.search(result.stderr):
            assert all((folder / name).read_bytes() for name in ("junit.xml",) if gated), what
            continue
        assert NO_MEMORY.search(result.stderr), what
        if not has_run:
            assert result.returncode == 1, what
        elif status or not gated:
            assert result.returncode == status, what
        else:  # judged, and the list of sites is said not to be whole; or not judged
            assert result.returncode in (1, 6), what
        ended += 1
    assert ended > 1, "it is the command's own memory that fails"


# ---- top ----


class Terminal:
    """A terminal in which one command runs."""

    def __init__(self, command, environment):
        self.master, self.slave = pty.openpty()
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        self.before = termios.tcgetattr(self.slave)
        self.said = b""
        self.process = subprocess.Popen(
            [str(word) for word in command], stdin=self.slave, stdout=self.slave, stderr=self.slave,
            env=harness.clean_environment({"TERM": "xterm", **environment}),
        )  # fmt: skip

    def read(self, wait):
        if select.select([self.master], [], [], wait)[0]:
            self.said += os.read(self.master, 65536)
            return True
        return False

    def wait_for(self, text):
        """False: the command has ended before."""
        deadline = time.monotonic() + harness.PATIENCE
        while text not in self.said and self.process.poll() is None:
            assert time.monotonic() < deadline, (text, self.said)
            self.read(0.05)
        return text in self.said

    def press(self, keys):
        os.write(self.master, keys)

    def end(self):
        """What it ended with, and all that it has written."""
        deadline = time.monotonic() + harness.PATIENCE
        while self.process.poll() is None:
            assert time.monotonic() < deadline, self.said
            self.read(0.05)
        while self.read(0):
            pass
        return self.process.returncode

    def is_as_before(self):
        return termios.tcgetattr(self.slave) == self.before

    def close(self):
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()
        self.process.wait()
        os.close(self.master)
        os.close(self.slave)


def use_top(recording, environment):
    """A look at the first site's stack, at a filter, at the help; and out."""
    with contextlib.closing(Terminal([MALLOSCOPE, "top", recording], environment)) as terminal:
        for keys, awaited in ((b"", b"q quit"), (b"\r", b"main"), (b"/views\r", b"filter: views"), (b"?", b"baseline")):
            terminal.press(keys)
            if not terminal.wait_for(awaited):
                break
        terminal.press(b"xq")
        return terminal.end(), terminal.said, terminal.is_as_before()


FULL_SCREEN, BACK = b"\x1b[?1049h", b"\x1b[?1049l"


def test_top_without_memory_gives_the_terminal_back_and_says_so(shim, build, record, folder):
    recording = record(build("views.c", "-O1"), "30")
    status, said, is_as_before = use_top(recording, faults.without_memory(shim, 0, count_into=folder / "count"))
    assert status == 0 and is_as_before and FULL_SCREEN in said and BACK in said
    count = int((folder / "count").read_text())
    ended = 0
    for number, every_later in tries(count, 10):
        status, said, is_as_before = use_top(recording, faults.without_memory(shim, number, every_later))
        what = (number, every_later, status, said[-300:])
        assert is_as_before, what
        if status == 0:
            continue
        assert status == 1 and NO_MEMORY.search(said), what
        assert NO_MEMORY.search(said.rpartition(BACK)[2] if FULL_SCREEN in said else said), f"{what}: not to be seen"
        ended += 1
    assert ended > 1


# ---- attach ----


@pytest.mark.probes
@pytest.mark.skipif(bool(attaching.why_not()), reason=attaching.why_not() or "probes work")
@pytest.mark.parametrize("options", [["--exact", "-q"], ["--rate", "1K", "--follow"], ["--plan"]],
                         ids=["quiet", "summary", "plan"])
def test_attach_without_memory_says_so_and_leaves_the_program_alone(shim, build, start, folder, options):
    target = start([build("top_growing.c")], stdout=subprocess.DEVNULL)
    recording = folder / "out"

    def attach(number, every_later=False, count_into=None):
        recording.unlink(missing_ok=True)
        environment = faults.without_memory(shim, number, every_later, count_into)
        return harness.malloscope(
            "attach", *options, "-d", "150ms", "-o", recording, target.pid, expect=None, env=environment, cwd=folder
        )

    good = attach(0, count_into=folder / "count")
    assert good.returncode == 0, good.stderr
    ended = 0
    for number, every_later in tries(int((folder / "count").read_text()), 10):
        result = attach(number, every_later)
        what = (number, every_later, result.returncode, result.stderr[-300:])
        assert target.poll() is None, what
        if recording.exists():
            harness.malloscope("info", recording)
        if result.returncode == 0 and not NO_MEMORY.search(result.stderr):
            assert recording.exists() or result.stdout == good.stdout, what
            continue
        assert result.returncode in (0, 1) and NO_MEMORY.search(result.stderr), what
        ended += 1
    assert ended > 1
    assert {path.name for path in folder.iterdir()} <= {"out", "count"}
