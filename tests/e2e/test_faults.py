"""Every system call of the recorder, and every allocation and system call of the tool, is made to fail in turn. The
program never notices. The tool says what failed, or gives the whole result.

MALLOSCOPE_ALL_FAULTS=1 tries all of them, which takes an hour; otherwise a selection."""

import collections
import errno
import os
import re

import pytest

import harness
from harness import LIBRARY, MALLOSCOPE, PROGRAMS, ROOT

TOOLS = ROOT / "tests" / "tools"
ALL = os.environ.get("MALLOSCOPE_ALL_FAULTS") == "1"

# ---- the recorder ----

EXACT = {"MALLOSCOPE_RATE": "1"}
SAMPLED = {"MALLOSCOPE_RATE": "4K", "MALLOSCOPE_SEED": "5"}
DUMPING = {"MALLOSCOPE_RATE": "64K", "MALLOSCOPE_SEED": "5", "MALLOSCOPE_SIGNAL": "USR2", "MALLOSCOPE_DUMP_AT": "exit"}
Call = collections.namedtuple("Call", "number failed name place pid")


class Faults:
    """Runs all_calls under the recorder, some of whose system calls fail."""

    def __init__(self, build):
        self.injector = build(str(TOOLS / "fail_calls.c"), "-D_GNU_SOURCE")
        self.program = build("all_calls.c", "-O1", "-D_GNU_SOURCE", "-ldl")
        self.library = self.program.parent / "libplugin.so"
        if not self.library.exists():
            harness.run(["gcc", "-shared", "-fPIC", "-g", PROGRAMS / "plugin.c", "-o", self.library])
        # The library's version of syscall() makes the program's calls, not its own.
        symbols = harness.run(["nm", "-S", "-D", LIBRARY]).stdout.decode()
        start, size = re.search(r"^(\w+) (\w+) T syscall$", symbols, re.M).groups()
        self.skipped = [start, f"{int(start, 16) + int(size, 16):x}"]
        self.plain = harness.run([self.program, self.library], expect=None)
        assert self.plain.returncode == 3

    def run(self, folder, options, number=0, how="once", error=0):
        """The result, and the calls that were the recorder's."""
        folder.mkdir()
        options = {**options, "MALLOSCOPE_OUTPUT": str(folder / "%p.%n.mscope")}
        if "MALLOSCOPE_SIGNAL" in options:
            options["MALLOSCOPE_DUMP"] = str(folder / "%p.%n.heap")
        log = folder / "log"
        result = harness.run(
            [self.injector, LIBRARY, *self.skipped, number, how, error, log, self.program, self.library],
            expect=None, env=options,
        )  # fmt: skip
        calls = []
        for line in log.read_text().splitlines():
            count, outcome, name, _, place, _, pid = line.split()
            calls.append(Call(int(count), outcome == "failed", int(name), place, int(pid)))
        return result, calls


@pytest.fixture(scope="module")
def faults(build):
    return Faults(build)


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


def selection(calls, step):
    """The first call from each place of the recorder's code, every `step`th of them."""
    if ALL:
        return calls
    first = {(call.name, call.place): call for call in reversed(calls)}
    return sorted(first.values(), key=lambda call: call.number)[::step]


def assert_unharmed(faults, folder, options, expected, number, how, error):
    result, calls = faults.run(folder, options, number, how, error)
    failed = [call for call in calls if call.failed]
    what = f"call {number} {how}: {errno.errorcode[error]} in {failed[:3]}"
    assert failed or len(calls) < number, what  # one more or less is possible
    assert (result.returncode, result.stdout) == (faults.plain.returncode, faults.plain.stdout), (what, result.stderr)
    text = result.stderr.decode()
    assert re.fullmatch(r"(malloscope: cannot (record into|write a dump to) .*\n)*", text), (what, text)
    found = totals_by_process(folder, calls[0].pid, how == "from")
    if "parent" not in found:
        silenced = any(call.failed and call.name == 1 for call in calls)  # the message itself
        assert "cannot record into" in text or silenced, what
    elif "child" not in found:
        assert found["parent"]["drops_by_kind"]["child"] == 1, what
    for process, totals in found.items():
        same = all(totals[figure] == expected[process][figure] for figure in ("total_objects", "live_objects"))
        assert same or totals["drops"] or options is not EXACT, f"{what}: {process} lacks something, and says nothing"
    if how == "once":
        assert not list(folder.glob("*.part")), what


@pytest.mark.parametrize(
    "options, how, error, step",
    [
        (EXACT, "once", errno.EACCES, 2),
        (EXACT, "from", errno.EINTR, 12),
        (SAMPLED, "once", errno.ENOMEM, 5),
        (DUMPING, "once", errno.ENOSPC, 2),
        (DUMPING, "from", errno.EMFILE, 6),
    ],
    ids=["exact-once", "exact-from", "sampled-once", "dumping-once", "dumping-from"],
)
def test_no_failing_call_of_the_recorder_harms_the_program(faults, folder, options, how, error, step):
    result, calls = faults.run(folder / "0", options)
    assert (result.returncode, result.stdout, result.stderr) == (3, faults.plain.stdout, b"")
    expected = totals_by_process(folder / "0", calls[0].pid)
    assert set(expected) == {"parent", "child"} and len(calls) > 90
    assert {257, 9, 285} <= {call.name for call in calls}, "openat, mmap, fallocate"
    for call in selection(calls, step):
        place = folder / str(call.number)
        assert_unharmed(faults, place, options, expected, call.number, how, error)
        for path in place.iterdir():
            path.unlink()


# ---- the tool: memory ----

COMMANDS = [
    "stats a --json", "info a", "info a --symbols", "report a", "report a --json", "report a b", "report a --filter views",
    "report c", "tree a", "leaks a", "diff a b", "timeline a", "flame a -o -", "archive a -f -q -o out", "dump a -f -q -o out",
] + [
    f"export a -o - --format {name}"
    for name in ("pprof", "heap", "heap_v2", "speedscope", "chrome", "chrome-v1", "collapsed", "json", "csv", "html")
]  # fmt: skip


class Tool:
    """Commands on real recordings, a and b, and an archive, c. Names are looked up anew each time."""

    def __init__(self, build, folder):
        self.folder = folder
        self.shim = build(str(TOOLS / "fail_memory.c"), "-D_GNU_SOURCE", "-shared", "-fPIC", target="libfail_memory.so")
        program = build("views.c", "-O1")
        for name, rate in (("a", "exact"), ("b", "4K")):
            harness.run(harness.record_command(folder / name, [program], rate))
        harness.malloscope("archive", "-q", folder / "a", "-o", folder / "c")

    def run(self, command, before=(), **env):
        cache = self.folder / "cache"
        harness.run(["rm", "-rf", cache, self.folder / "out"])
        cache.mkdir()
        return harness.run(
            [*before, MALLOSCOPE, *command.split()], expect=None, cwd=self.folder, env={"XDG_CACHE_HOME": str(cache), **env}
        )

    def without(self, command, number, every_later, count_into=None):
        env = {"LD_PRELOAD": str(self.shim), "FAIL_MEMORY": str(number)}
        if every_later:
            env["FAIL_MEMORY_FROM"] = "1"
        if count_into:
            env["FAIL_MEMORY_COUNT"] = str(count_into)
        return self.run(command, **env)

    def written(self):
        """The file that a command has written, and no other."""
        left = sorted(path.name for path in self.folder.iterdir() if path.name not in ("a", "b", "c", "cache", "count"))
        assert left in ([], ["out"]), f"left behind: {left}"
        return (self.folder / "out").read_bytes() if left else None


@pytest.fixture(scope="module")
def tool(build, session_folder):
    folder = session_folder / "tool"
    folder.mkdir()
    return Tool(build, folder)


def numbers_up_to(count, step):
    """All of the first three hundred, and then ever fewer; or ever fewer from the start."""
    dense, ratio = (300, 1.1) if ALL else (1, 1.7)
    chosen = list(range(1, min(count, dense) + 1))
    while chosen[-1] * ratio + step < count:
        chosen.append(int(chosen[-1] * ratio) + step)
    return chosen


@pytest.mark.parametrize("command", COMMANDS)
def test_where_memory_is_short_the_tool_says_so_or_gives_the_whole_result(tool, command):
    count_file = tool.folder / "count"
    good = tool.without(command, 0, False, count_file)
    assert (good.returncode, good.stderr) == (0, b"")
    written = tool.written()
    count = int(count_file.read_text())
    assert count > 3, "allocations pass the shim"
    ended = 0
    for turn, number in enumerate(numbers_up_to(count, 1)):
        for every_later in (False, True) if ALL else (turn % 2 == 1,):
            result = tool.without(command, number, every_later)
            what = (number, every_later, result.returncode, result.stderr[-300:])
            if result.returncode == 0:
                assert result.stdout == good.stdout, what
                assert (tool.written() or b"")[:8] == (written or b"")[:8], what
                continue
            left_out = result.returncode == 5 and b"left out" in result.stderr  # one of two recordings
            assert result.returncode == 1 or left_out, what
            assert re.search(rb"out of memory|Cannot allocate memory", result.stderr), what
            assert tool.written() is None, what
            ended += 1
    assert ended > 1, "it is the command's own memory that fails"


# ---- the tool: system calls ----

# Of the calls that can fail in a way that matters, the errors that they fail with.
ERRORS = {
    "mmap": ["ENOMEM"], "openat": ["EACCES", "EMFILE"], "read": ["EIO"], "pread64": ["EIO"], "write": ["ENOSPC"],
    "newfstatat": ["EIO"], "lseek": ["EIO"], "memfd_create": ["EMFILE"], "ftruncate": ["ENOSPC"], "pwrite64": ["ENOSPC"],
    "close": ["EIO"], "mkdir": ["EACCES"], "rename": ["EACCES"], "readlink": ["EACCES"], "getdents64": ["EIO"],
    "madvise": ["EINVAL"], "ioctl": ["ENOTTY"], "fcntl": ["EINVAL"], "sched_getaffinity": ["EPERM"], "link": ["EACCES"],
}  # fmt: skip
TRACED = ["report a", "report c", "stats a --json", "flame a -o -", "export a -o - --format pprof", "archive a -f -q -o out"]


def calls_of_tool(tool, command):
    """How many calls of each kind a command makes, and how many of them before it comes to its recording."""
    log = tool.folder.parent / "strace"
    good = tool.run(command, before=["strace", "-f", "-qq", "-o", log])
    lines = [re.match(r"\d+ +(\w+)\(", line) for line in log.read_text(errors="replace").splitlines()]
    text = log.read_text(errors="replace").splitlines()
    begin = next(i for i, line in enumerate(text) if re.search(r'\bopenat\(.*, "[abc]"', line))
    names = [match[1] if match else "" for match in lines]
    return good, collections.Counter(names), collections.Counter(names[:begin])


@pytest.mark.parametrize("command", TRACED)
def test_where_the_system_fails_the_tool_says_so_or_gives_the_whole_result(tool, command):
    good, all_calls, early = calls_of_tool(tool, command)
    assert good.returncode == 0
    tried = 0
    for name, errors in ERRORS.items():
        numbers = list(range(early[name] + 1, all_calls[name] + 1))
        for number in numbers if ALL else numbers[:: max(1, len(numbers) // 2)]:
            for error in errors:
                inject = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", f"inject={name}:error={error}:when={number}"]
                result = tool.run(command, before=inject)
                what = (name, number, error, result.returncode, result.stderr[-300:])
                tried += 1
                if result.returncode == 0:
                    # Source, and debug info in a file of its own, are as good as not there if they cannot be read.
                    reads = name in ("openat", "mmap", "read", "pread64", "newfstatat", "lseek")
                    is_optional = reads and ("flame" in command or "pprof" in command or "archive" in command)
                    assert result.stdout == good.stdout or b"warning" in result.stderr or is_optional, what
                else:
                    assert result.returncode in (1, 3, 4, 5), what
                    assert re.search(rb"malloscope: .*\n(.*\n)*.*hint: ", result.stderr), what
                tool.written()
    assert tried > 5
