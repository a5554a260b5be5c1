"""Every system call of the recorder, and every allocation and system call of the tool, is made to fail in turn. The
program never notices. The tool says what failed, or gives the whole result.

MALLOSCOPE_ALL_FAULTS=1 tries all of them, which takes an hour; otherwise a selection."""

import collections
import errno
import re

import pytest

import faults as fault
import harness
from faults import ALL
from harness import MALLOSCOPE, PROGRAMS

# ---- the recorder ----

EXACT = {"MALLOSCOPE_RATE": "1"}
SAMPLED = {"MALLOSCOPE_RATE": "4K", "MALLOSCOPE_SEED": "5"}
DUMPING = {"MALLOSCOPE_RATE": "64K", "MALLOSCOPE_SEED": "5", "MALLOSCOPE_SIGNAL": "USR2", "MALLOSCOPE_DUMP_AT": "exit"}


class Faults:
    """Runs all_calls under the recorder, some of whose system calls fail."""

    def __init__(self, build):
        self.injector = fault.Injector(build)
        self.program = build("all_calls.c", "-O1", "-D_GNU_SOURCE", "-ldl")
        self.library = self.program.parent / "libplugin.so"
        if not self.library.exists():
            harness.run(["gcc", "-shared", "-fPIC", "-g", PROGRAMS / "plugin.c", "-o", self.library])
        self.plain = harness.run([self.program, self.library], expect=None)
        assert self.plain.returncode == 3

    def run(self, folder, options, number=0, how="once", error=0):
        return self.injector.run([self.program, self.library], folder, options, number, how, error)


@pytest.fixture(scope="module")
def faults(build):
    return Faults(build)


def assert_unharmed(faults, folder, options, expected, number, how, error):
    result, calls = faults.run(folder, options, number, how, error)
    failed = [call for call in calls if call.failed]
    what = f"call {number} {how}: {errno.errorcode[error]} in {failed[:3]}"
    assert failed or len(calls) < number, what  # one more or less is possible
    assert (result.returncode, result.stdout) == (faults.plain.returncode, faults.plain.stdout), (what, result.stderr)
    found = fault.totals_by_process(folder, calls[0].pid, how == "from")
    fault.assert_said(result, calls, found, what)
    if "parent" in found and "child" not in found:
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
    expected = fault.totals_by_process(folder / "0", calls[0].pid)
    assert set(expected) == {"parent", "child"} and len(calls) > 60
    assert {257, 9, 285} <= {call.name for call in calls}, "openat, mmap, fallocate"
    for call in fault.selection(calls, step):
        place = folder / str(call.number)
        assert_unharmed(faults, place, options, expected, call.number, how, error)
        for path in place.iterdir():
            path.unlink()


# ---- the tool: memory ----

COMMANDS = [
    "stats a --json", "info a", "info a --symbols", "report a", "report a --json", "report a b",
    "report a --filter views", "report c", "tree a", "leaks a", "diff a b", "timeline a", "flame a -o -",
    "archive a -f -q -o out", "dump a -f -q -o out",
] + [f"export a -o - --format {name}" for name in harness.export_formats()]  # fmt: skip


class Tool:
    """Commands on real recordings, a and b, and an archive, c. Names are looked up anew each time."""

    def __init__(self, build, folder):
        self.folder = folder
        self.shim = fault.memory_shim(build)
        program = build("views.c", "-O1")
        for name, rate in (("a", "exact"), ("b", "4K")):
            harness.run(harness.record_command(folder / name, [program], rate))
        harness.malloscope("archive", "-q", folder / "a", "-o", folder / "c")

    def run(self, command, before=(), tool=harness.COMMANDS, **env):
        cache = self.folder / "cache"
        harness.run(["rm", "-rf", cache, self.folder / "out"])
        cache.mkdir()
        return harness.run(
            [*before, tool, *command.split()], expect=None, cwd=self.folder, env={"XDG_CACHE_HOME": str(cache), **env}
        )

    def without(self, command, number, every_later, count_into=None, tool=harness.COMMANDS):
        env = fault.without_memory(self.shim, number, every_later, count_into)
        return self.run(command, tool=tool, **env)

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


@pytest.mark.parametrize("command", COMMANDS)
def test_where_memory_is_short_the_tool_says_so_or_gives_the_whole_result(tool, command):
    count_file = tool.folder / "count"
    good = tool.without(command, 0, False, count_file)
    assert (good.returncode, good.stderr) == (0, b"")
    written = tool.written()
    count = int(count_file.read_text())
    assert count > 3, "allocations pass the shim"
    ended = 0
    for turn, number in enumerate(fault.numbers_up_to(count, 1)):
        for every_later in (False, True) if ALL else (turn % 2 == 1,):
            result = tool.without(command, number, every_later)
            what = (number, every_later, result.returncode, result.stderr[-300:])
            if result.returncode == 0:
                assert result.stdout == good.stdout, what
                assert (tool.written() or b"")[:8] == (written or b"")[:8], what
                continue
            left_out = result.returncode == 5 and b"left out" in result.stderr  # one of two recordings
            assert result.returncode == 1 or left_out, what
            assert fault.NO_MEMORY.search(result.stderr), what
            assert tool.written() is None, what
            ended += 1
    assert ended > 1, "it is the command's own memory that fails"


def test_where_memory_is_short_the_other_commands_are_not_begun(tool):
    good = tool.without("stats a --json", 0, False, tool=MALLOSCOPE)
    failed = [tool.without("stats a --json", number, True, tool=MALLOSCOPE) for number in range(1, 4)]
    assert (good.returncode, good.stderr) == (0, b"")
    for result in failed:
        assert (result.returncode, result.stdout) == (1, b"") and fault.NO_MEMORY.search(result.stderr)


# ---- the tool: system calls ----

# Of the calls that can fail in a way that matters, the errors that they fail with.
ERRORS = {
    "mmap": ["ENOMEM"], "openat": ["EACCES", "EMFILE"], "read": ["EIO"], "pread64": ["EIO"], "write": ["ENOSPC"],
    "newfstatat": ["EIO"], "lseek": ["EIO"], "memfd_create": ["EMFILE"], "ftruncate": ["ENOSPC"],
    "pwrite64": ["ENOSPC"],
    "close": ["EIO"], "mkdir": ["EACCES"], "rename": ["EACCES"], "readlink": ["EACCES"], "getdents64": ["EIO"],
    "madvise": ["EINVAL"], "ioctl": ["ENOTTY"], "fcntl": ["EINVAL"], "sched_getaffinity": ["EPERM"], "link": ["EACCES"],
}  # fmt: skip
TRACED = ["report a", "report c", "stats a --json", "flame a -o -", "export a -o - --format pprof",
          "archive a -f -q -o out"]


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
                    # Source files and separate debug files that cannot be read are treated as missing.
                    reads = name in ("openat", "mmap", "read", "pread64", "newfstatat", "lseek")
                    is_optional = reads and ("flame" in command or "pprof" in command or "archive" in command)
                    assert result.stdout == good.stdout or b"warning" in result.stderr or is_optional, what
                else:
                    assert result.returncode in (1, 3, 4, 5), what
                    assert re.search(rb"malloscope: .*\n(.*\n)*.*hint: ", result.stderr), what
                tool.written()
    assert tried > 5
