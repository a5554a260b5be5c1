"""Dumps that a program writes of itself: by a call, on a signal, at exit, every so often."""

import ctypes
import os
import random
import re
import signal
import time
from pathlib import Path

import pytest

import harness
from harness import malloscope
from test_bad_input import small_disk  # noqa: F401, a fixture
from test_formats import SITES, google_pprof, pprof_top

SOURCE = harness.PROGRAMS / "dump_small.c"
LINES = {name: lines[0] for name, lines in harness.site_lines(SOURCE).items()}
OK, BAD_ARGUMENT, FAILED = 0, -3, -7
SUCCESS = [OK, 99]  # errno is as it was
ENOENT, EEXIST, ENOTDIR, EFBIG, ENOSPC, EROFS, ENAMETOOLONG = 2, 17, 20, 27, 28, 30, 36


@pytest.fixture(scope="module")
def small(build):
    return build("dump_small.c", "-O0", f"-I{harness.ROOT / 'include'}")


@pytest.fixture(scope="module")
def busy(build):
    return build("busy.c", "-O1")


def dump_by_call(program, folder, *dumps, **options):
    """The results of the dumps that the program was told to make: [[result, errno], …]"""
    command = [program, *(part for dump in dumps for part in dump)]
    command = harness.record_command(folder / "whole.mscope", command, "exact")
    lines = harness.run(command, **options).stdout.decode().splitlines()
    return [[int(word) for word in line.split()] for line in lines]


def read_heap(path):
    """Of pprof's text: the header's sums, [(figures, [address, …]), …] and the rest of the lines."""
    head, *lines = Path(path).read_text().splitlines()
    numbers = r"(\d+): (\d+) \[(\d+): (\d+)\] @"
    sums = re.fullmatch(rf"heap profile: {numbers} heapprofile", head)
    assert sums, head
    stacks, rest = [], []
    for line in lines:
        match = re.fullmatch(rf"{numbers}((?: 0x[0-9a-f]+)+)", line)
        if match:
            stacks.append((tuple(map(int, match.groups()[:4])), match.group(5).split()))
        else:
            rest.append(line)
    return tuple(map(int, sums.groups())), stacks, rest


def assert_sums_agree(path, inherits=False):
    sums, stacks, rest = read_heap(path)
    assert sums == tuple(sum(column) for column in zip(*(figures for figures, _ in stacks))), path
    addresses = [tuple(stack) for _, stack in stacks]
    assert len(set(addresses)) == len(addresses), "a stack has two lines"
    for (live, live_bytes, total, total_bytes), _ in stacks:
        assert inherits or (live <= total and live_bytes <= total_bytes)
    assert "MAPPED_LIBRARIES:" in rest
    return sums


def assert_recording_agrees(path):
    whole = harness.report(path, "--by", "module")
    totals, rows = whole["totals"], whole["rows"]
    for figure in ("live_bytes", "total_bytes", "live_objects", "total_objects"):
        assert sum(row[figure] for row in rows) == pytest.approx(totals[figure]), (path, figure)
    assert totals["live_bytes"] <= totals["peak_bytes"] + 1e-6, path
    assert totals["live_bytes"] <= totals["total_bytes"] + 1e-6, path
    return totals


def no_remains(folder):
    assert not [path for path in folder.iterdir() if path.name.endswith(".part")]


# By a call


def test_small_program_in_text(small, folder):
    path = folder / "small.heap"
    assert dump_by_call(small, folder, ("heap", path)) == [SUCCESS]
    assert path.read_text().startswith("heap profile: 5: 11 [5: 11] @ heapprofile\n")
    _, stacks, rest = read_heap(path)
    assert sorted(figures for figures, _ in stacks) == [(1, 3, 1, 3), (2, 4, 2, 4), (2, 4, 2, 4)]
    assert [line for line in rest if re.match(r"# bytes that the recorder takes itself: [1-9]\d+$", line)]
    maps = rest[rest.index("MAPPED_LIBRARIES:") + 1 :]
    assert any(line.endswith("[stack]") for line in maps) and any(line.endswith(str(small)) for line in maps)
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("column", ["--inuse_space", "--alloc_space"])
def test_google_pprof_reads_it(small, folder, column):
    path = folder / "small.heap"
    dump_by_call(small, folder, ("heap", path))
    total, flat = google_pprof(small, path, column)
    assert total == 11 and flat["a"] == 4 and flat["b"] == 7
    _, flat = google_pprof(small, path, "--lines", column)
    of_source = {name: value for name, value in flat.items() if f"{SOURCE.name}:" in name and value}
    by_line = {int(name.rsplit(":", 1)[1]): value for name, value in of_source.items()}
    assert by_line == {LINES["a"]: 4, LINES["b"]: 7}


def test_pprof_reads_it(pprof, small, folder):
    path = folder / "small.heap"
    dump_by_call(small, folder, ("heap", path))
    flat = pprof_top(pprof, path, "-sample_index=inuse_space", "-functions")
    assert flat["a"] == 4 and flat["b"] == 7
    flat = pprof_top(pprof, path, "-sample_index=inuse_space", "-lines")
    assert flat[f"a {SOURCE}:{LINES['a']}"] == 4 and flat[f"b {SOURCE}:{LINES['b']}"] == 7


@pytest.mark.parametrize("column,key", [("inuse_space", "bytes"), ("alloc_space", "total_bytes")])
def test_pprof_tells_what_is_live_from_what_was_allocated(pprof, build, folder, column, key):
    program = build("format_sites.c", "-O1", "-fno-optimize-sibling-calls")
    truth = {name: figures[key] for name, figures in SITES.items()}
    truth["outer"] = truth.pop("inner")  # an inlined call counts for the function that it is in
    malloscope("run", "-q", "-e", "-o", folder / "whole.mscope", "--dump", folder / "end.heap", "--", program)
    flat = pprof_top(pprof, folder / "end.heap", f"-sample_index={column}", "-functions")
    assert {name: flat.get(name, 0) for name in truth} == truth
    _, flat = google_pprof(program, folder / "end.heap", f"--{column}")
    flat["outer"] = flat.get("outer", 0) + flat.get("inner", 0)
    assert {name: flat.get(name, 0) for name in truth} == truth


def test_text_agrees_with_the_export(small, folder):
    """The two writers of the format follow the same rules, down to the addresses."""
    recording, text, exported = folder / "now.mscope", folder / "now.heap", folder / "exported.heap"
    assert dump_by_call(small, folder, ("recording", recording), ("heap", text)) == [SUCCESS, SUCCESS]
    malloscope("export", recording, "--format", "heap", "-o", exported)
    sums, stacks, _ = read_heap(text)
    other_sums, other_stacks, _ = read_heap(exported)
    assert sums == other_sums and sorted(stacks) == sorted(other_stacks)


@pytest.mark.parametrize("rate", ["exact", "512"])
def test_text_at_exit_agrees_with_the_export(build, folder, rate):
    program = build("format_sites.c", "-O1")
    recording, text, exported = folder / "whole.mscope", folder / "end.heap", folder / "exported.heap"
    malloscope("run", "-q", *harness.rate_options(rate), "-o", recording, "--dump", text, "--", program)
    malloscope("export", recording, "--format", "heap", "-o", exported)
    sums, stacks, _ = read_heap(text)
    other_sums, other_stacks, _ = read_heap(exported)
    assert sums == other_sums and sorted(stacks) == sorted(other_stacks) and len(stacks) > 4


def test_scopes_and_types_are_left_out_of_the_text(build, folder):
    """Stacks that differ only in scopes and types become one line, as in the tool's export."""
    program = build("dump_scopes.c", "-O0", f"-I{harness.ROOT / 'include'}")
    text, recording = folder / "now.heap", folder / "now.mscope"
    harness.run(harness.record_command(folder / "whole.mscope", [program, text, recording], "exact"))
    sums, stacks, _ = read_heap(text)
    assert sums == (5, 5400, 5, 5400) == assert_sums_agree(text)
    assert sorted(figures for figures, _ in stacks) == [(1, 5000, 1, 5000), (4, 400, 4, 400)]
    malloscope("export", recording, "--format", "heap", "-o", folder / "exported.heap")
    other_sums, other_stacks, _ = read_heap(folder / "exported.heap")
    assert other_sums == sums and sorted(other_stacks) == sorted(stacks)
    assert harness.report(recording)["totals"]["live_bytes"] == 5400


def test_recording_is_read_by_the_tool(small, folder):
    path = folder / "now.mscope"
    assert dump_by_call(small, folder, ("recording", path)) == [SUCCESS]
    whole = harness.report(path)
    assert whole["totals"]["live_bytes"] == 11 and whole["totals"]["total_objects"] == 5
    assert {(row["function"], row["line"]): row["live_bytes"] for row in whole["rows"]} == {
        ("a", LINES["a"]): 4,
        ("b", LINES["b"]): 7,
    }
    assert "running when this copy" in malloscope("info", path).stdout.decode()
    for command in ("tree", "leaks"):
        assert b"damaged" not in malloscope(command, path).stderr


def test_dumps_leave_the_recording_alone(small, folder):
    dump_by_call(small, folder, ("recording", folder / "a.mscope"), ("heap", folder / "a.heap"))
    with_dumps = harness.report(folder / "whole.mscope")["totals"]
    (folder / "whole.mscope").unlink()
    dump_by_call(small, folder, ("recording", "NULL"), ("heap", "NULL"))  # which prints as much
    without = harness.report(folder / "whole.mscope")["totals"]
    assert with_dumps["total_objects"] == without["total_objects"] and with_dumps["live_bytes"] == without["live_bytes"]


def test_names(small, folder):
    there = folder / "there.heap"
    there.write_text("mine")
    assert dump_by_call(
        small,
        folder,
        ("heap", folder / "%e-%n-%%.heap"),
        ("heap", folder / "%e-%n-%%.heap"),
        ("heap", there),
        ("recording", folder / "here.mscope"),
        ("recording", folder / "here.mscope"),
        ("heap", "relative.heap"),
        cwd=folder,
    ) == [SUCCESS, SUCCESS, [FAILED, EEXIST], SUCCESS, [FAILED, EEXIST], SUCCESS]
    assert there.read_text() == "mine"
    names = {path.name for path in folder.iterdir()}
    assert names == {
        "dump_small-1-%.heap", "dump_small-2-%.heap", "there.heap", "here.mscope", "relative.heap", "whole.mscope"
    }  # fmt: skip


def test_names_that_are_taken_are_counted_past(small, folder):
    for number in (1, 2, 3, 5):
        (folder / f"{number}.heap").write_text("mine")
    dumps = [("heap", folder / "%n.heap")] * 2
    assert dump_by_call(small, folder, *dumps) == [SUCCESS, SUCCESS]
    assert [(folder / f"{number}.heap").read_text() == "mine" for number in range(1, 7)] == [
        True, True, True, False, True, False
    ]  # fmt: skip


def test_what_makes_no_sense(small, folder):
    assert dump_by_call(small, folder, ("heap", "NULL"), ("heap", ""), ("nonsense", folder / "x")) == [
        [BAD_ARGUMENT, 99]
    ] * 3


def test_bad_paths(small, folder):
    (folder / "file").write_text("mine")
    (folder / "place").mkdir()
    (folder / "link").symlink_to(folder / "nowhere")
    assert dump_by_call(
        small,
        folder,
        ("heap", folder / "no" / "such" / "x.heap"),
        ("recording", folder / "file" / "x.mscope"),
        ("heap", folder / "place"),
        ("heap", folder / "link"),
        ("heap", folder / ("x" * 300)),
        ("heap", "/" + "x" * 5000),
    ) == [
        [FAILED, error] for error in (ENOENT, ENOTDIR, EEXIST, EEXIST, ENAMETOOLONG, ENAMETOOLONG)
    ]
    assert not (folder / "nowhere").exists()
    no_remains(folder)


def test_read_only_folder(small, folder, small_disk):  # noqa: F811
    place = small_disk("1M")
    harness.run(["mount", "-o", "remount,ro", place])
    dumps = [("heap", place / "x.heap"), ("recording", place / "x.mscope")]
    assert dump_by_call(small, folder, *dumps) == [[FAILED, EROFS]] * 2


def test_full_disk(small, folder, small_disk):  # noqa: F811
    """Nothing is left of a dump that does not fit, and the next one that does is whole."""
    place = small_disk("64K")
    filler = place / "filler"
    filler.write_bytes(bytes(64 << 10))
    assert dump_by_call(small, folder, ("heap", place / "x.heap"), ("recording", place / "x.mscope")) == [
        [FAILED, ENOSPC]
    ] * 2
    assert list(place.iterdir()) == [filler]
    filler.unlink()
    (folder / "whole.mscope").unlink()
    assert dump_by_call(small, folder, ("recording", place / "x.mscope"), ("heap", place / "x.heap"))[1] == SUCCESS
    assert_sums_agree(place / "x.heap")


def test_limit_of_file_sizes(small, folder):
    """A write beyond the limit raises SIGXFSZ, which would kill the program."""
    dumps = [("limit", "2000"), ("heap", folder / "x.heap"), ("recording", folder / "x.mscope")]
    assert dump_by_call(small, folder, *dumps) == [SUCCESS, [FAILED, EFBIG], [FAILED, EFBIG]]
    assert [path.name for path in folder.iterdir()] == ["whole.mscope"]


# Every so often


def test_every_so_many_bytes(busy, folder):
    dumps = folder / "dumps"
    dumps.mkdir()
    malloscope(
        "run", "-q", "-o", folder / "whole.mscope", "--rate", "64K", "--dump", dumps / "%n.heap", "--dump-at", "20M",
        "--", busy, 2, folder / "counters", 3,
    )  # fmt: skip
    found = sorted(dumps.iterdir(), key=lambda path: int(path.stem))
    assert [path.name for path in found] == [f"{number}.heap" for number in range(1, len(found) + 1)]
    totals = [assert_sums_agree(path)[3] for path in found]
    assert totals == sorted(totals) and len(totals) >= 3
    # Each is made soon after its mark is passed.
    steps = [later - earlier for earlier, later in zip([0, *totals], totals)]
    assert sum(steps) / len(steps) >= 0.9 * (20 << 20), steps
    assert totals[0] >= 0.9 * (20 << 20)


def test_every_so_many_bytes_exactly(small, folder):
    malloscope(
        "run", "-q", "-e", "-o", folder / "whole.mscope", "--dump", folder / "d%n.heap", "--dump-at", "4", "--", small,
    )  # fmt: skip
    totals = [read_heap(folder / f"d{number}.heap")[0][3] for number in (1, 2)]
    assert totals == [4, 8], "at 2 + 2 and 2 + 2 + 2 + 2 bytes"
    assert not (folder / "d3.heap").exists()


def test_every_so_often(busy, folder):
    dumps = folder / "dumps"
    dumps.mkdir()
    begin = time.monotonic()
    malloscope(
        "run", "-q", "-o", folder / "whole.mscope", "--rate", "64K", "--dump", dumps / "%n.mscope",
        "--dump-at", "200ms", "--", busy, 2, folder / "counters", 2,
    )  # fmt: skip
    found = sorted(dumps.iterdir(), key=lambda path: int(path.stem))
    assert 3 <= len(found) <= (time.monotonic() - begin) / 0.2
    seen = [assert_recording_agrees(path)["total_bytes"] for path in found]
    assert seen == sorted(seen) and seen[0] < seen[-1]


# At exit


def test_at_exit_is_the_default(small, folder):
    malloscope("run", "-q", "-e", "-o", folder / "whole.mscope", "--dump", folder / "end.heap", "--", small)
    assert read_heap(folder / "end.heap")[0] == (5, 11, 5, 11)
    assert {path.name for path in folder.iterdir()} == {"whole.mscope", "end.heap"}


def test_name_by_default(small, folder):
    malloscope("run", "-q", "-e", "-o", folder / "whole.mscope", "--dump-at", "exit", "--", small, cwd=folder)
    (made,) = folder.glob("malloscope.dump_small.*.1.heap")
    assert read_heap(made)[0] == (5, 11, 5, 11)


@pytest.mark.parametrize(
    "name,option,expected",
    [
        ("x.mscope", "auto", "recording"),
        ("x.heap", "auto", "heap"),
        ("x.txt", "auto", "heap"),
        ("x.txt", "recording", "recording"),
        ("x.mscope", "heap", "heap"),
    ],
)
def test_formats_by_name_and_by_option(small, folder, name, option, expected):
    (folder / "d").mkdir()
    path = folder / "d" / name
    malloscope("run", "-q", "-e", "-o", folder / "whole.mscope", "--dump", path, "--dump-format", option, "--", small)
    assert path.read_bytes().startswith(b"MSCOPE" if expected == "recording" else b"heap profile: 5: 11")


def test_at_exit_of_every_process(build, folder):
    """Also of processes that end by _exit. Dumps that would have one name get different ones."""
    program = build("dump_signals.c", "-O1")
    malloscope(
        "run", "-q", "-e", "-o", folder / "%n.mscope", "--dump", folder / "end.heap", "--dump-at", "exit",
        "--signal", "USR2", "--", program, "fork",
    )  # fmt: skip
    found = {path.name for path in folder.glob("*.heap")}
    assert len(found) == 4 and "end.heap" in found  # each on the signal and at exit
    # A child begins with what it inherits as live.
    sums = [assert_sums_agree(path, inherits=True)[1] for path in folder.glob("*.heap")]
    assert sorted(sums) == [3000, 3000, 4000, 4000]


def test_libraries_that_were_closed_are_named(build, folder):
    program = build("library_places.c", "-O1", "-ldl")
    names = ["keep_a", "keep_b", "keep_c", "keep_d"]
    libraries = [folder / f"lib{name}.so" for name in names]
    for name, library in zip(names, libraries):
        source = harness.PROGRAMS / "library_keep.c"
        harness.run(["gcc", "-shared", "-fPIC", "-O1", "-g", f"-DNAME={name}", source, "-o", library])
    malloscope(
        "run", "-q", "-e", "-o", folder / "%n.mscope", "--dump", folder / "%n.heap", "--dump-at", "exit",
        "--", program, *libraries,
    )  # fmt: skip
    seen = []
    for path in folder.glob("*.heap"):
        _, flat = google_pprof(program, path, "--inuse_space")
        seen.append({name: value for name, value in flat.items() if name in names and value})
    assert sorted(seen, key=list) == sorted(
        [{"keep_a": 1000, "keep_b": 2000, "keep_d": 4000}, {"keep_a": 1000, "keep_b": 2000, "keep_c": 3000}], key=list
    )


# On a signal


def signals_of(status, kind):
    """A mask of signals from a /proc/…/status: those that are caught (SigCgt) or blocked (SigBlk)."""
    return int(re.search(rf"^{kind}:\s*(\w+)", status.read_text(), re.M).group(1), 16)


def has_signal(mask, number):
    return bool(mask >> (number - 1) & 1)


def is_in_handler(pid, number):
    """Whether a thread of the process is in its handler for the signal, which is blocked there."""
    threads = Path(f"/proc/{pid}/task").glob("*/status")
    return any(has_signal(signals_of(status, "SigBlk"), number) for status in threads)


def test_no_signal_is_taken_unless_asked_for(busy, folder, start):
    masks = []
    for options in ([], ["--dump", folder / "x.heap", "--dump-at", "exit,1G"], ["--signal", "SIGUSR2"]):
        run = start([harness.MALLOSCOPE, "run", "-q", "-f", "-o", folder / "x.mscope", *options,
                     "--", busy, 1, folder / "c", 0])
        pid = harness.child_of(run.pid, "busy")
        harness.wait_until(lambda: (folder / "c").exists(), run)
        caught = signals_of(Path(f"/proc/{pid}/status"), "SigCgt")
        masks.append(has_signal(caught, signal.SIGUSR2))
        os.kill(pid, signal.SIGKILL)
        run.wait()
        (folder / "c").unlink()
    assert masks == [False, False, True]


def thread_kill(pid, number):
    """Sends the signal to a thread at random, so that each is interrupted at whatever it does."""
    thread = random.choice(os.listdir(f"/proc/{pid}/task"))
    ctypes.CDLL(None).syscall({"x86_64": 234, "aarch64": 131}[os.uname().machine], pid, int(thread), number)


@pytest.mark.parametrize("rate", ["exact", "4096"])
@pytest.mark.parametrize("ending", ["mscope", "heap"])
def test_on_a_signal_under_load(busy, folder, start, rate, ending):
    """Four threads allocate at full speed, and each may be the one that is interrupted.

    A signal that comes while another dump is being written is left out. The file of a dump appears before the handler
    that wrote it has ended, so the next signal waits for the end of the handler too."""
    dumps = folder / "dumps"
    dumps.mkdir()
    run = start(
        [harness.MALLOSCOPE, "run", "-q", "-o", folder / "whole.mscope", *harness.rate_options(rate),
         "--signal", "USR2", "--dump", dumps / f"%n.{ending}", "--", busy, 4, folder / "counters", 0]
    )  # fmt: skip
    pid = harness.child_of(run.pid, "busy")
    harness.wait_until(lambda: len(os.listdir(f"/proc/{pid}/task")) == 5, run)
    for number in range(1, 201):
        path = dumps / f"{number}.{ending}"
        thread_kill(pid, signal.SIGUSR2)
        harness.wait_until(lambda: path.exists() and not is_in_handler(pid, signal.SIGUSR2), run)
        if ending == "heap":
            assert_sums_agree(path)
        elif number % 4 == 0 or rate != "exact":
            assert_recording_agrees(path)
        else:
            assert malloscope("stats", path, "--json").stderr == b""
        path.unlink()
    os.kill(pid, signal.SIGTERM)
    assert run.wait() == 0
    assert list(dumps.iterdir()) == []
    assert_recording_agrees(folder / "whole.mscope")


def test_signals_at_any_moment_are_no_harm(busy, folder, start):
    """Far more signals than dumps can be made: some are left out, and none is half done."""
    dumps = folder / "dumps"
    dumps.mkdir()
    run = start(
        [harness.MALLOSCOPE, "run", "-q", "-o", folder / "whole.mscope", "--rate", "512", "--signal", "USR2", "--dump",
         dumps / "%n.heap", "--dump-at", "exit,5ms,1M", "--", busy, 4, folder / "counters", 0]
    )  # fmt: skip
    pid = harness.child_of(run.pid, "busy")
    harness.wait_until(lambda: len(os.listdir(f"/proc/{pid}/task")) == 5, run)
    end = time.monotonic() + 3
    while time.monotonic() < end or len(os.listdir(dumps)) <= 50:
        assert run.poll() is None and time.monotonic() < end + harness.PATIENCE
        thread_kill(pid, signal.SIGUSR2)
    os.kill(pid, signal.SIGTERM)
    assert run.wait() == 0
    no_remains(dumps)
    found = list(dumps.iterdir())
    assert len(found) > 50
    for path in found:
        assert_sums_agree(path)
    assert_recording_agrees(folder / "whole.mscope")


def test_the_programs_own_handler_wins(build, folder):
    program = build("dump_signals.c", "-O1")
    command = ["run", "-q", "-o", folder / "x.mscope", "--signal", "USR2", "--dump", folder / "%n.heap",
               "--", program, "own"]
    assert malloscope(*command).stdout == b"1\n"
    assert not list(folder.glob("*.heap"))


def test_program_goes_on_after_the_signal(build, folder):
    program = build("dump_signals.c", "-O1")
    malloscope(
        "run", "-q", "-e", "-o", folder / "x.mscope", "--signal", "12", "--dump", folder / "%n.heap",
        "--", program, "plain", expect=7,
    )  # fmt: skip
    (made,) = folder.glob("*.heap")
    assert assert_sums_agree(made)[1] == 1000


@pytest.mark.parametrize("name", ["%e.%p.%h.%t.%n.heap", "%e.%p.%h.%t.%n.mscope"])
def test_small_signal_stack(build, folder, name):
    program = build("dump_signals.c", "-O1")
    result = malloscope(
        "run", "-q", "-e", "-o", folder / "x.mscope", "--signal", "USR2", "--dump", folder / name,
        "--", program, "small",
    )
    assert result.stdout == b"alive\n"
    assert len(list(folder.glob("dump_signals.*"))) == 1


# By the environment alone


def test_environment(small, folder):
    """Without `malloscope run`; a relative name is meant in the folder where the program was started."""
    environment = {
        "LD_PRELOAD": str(harness.LIBRARY),
        "MALLOSCOPE_RATE": "1",
        "MALLOSCOPE_OUTPUT": str(folder / "whole.mscope"),
        "MALLOSCOPE_DUMP": "end.heap",
    }
    (folder / "100%n").mkdir()
    result = harness.run([small], env=environment, cwd=folder / "100%n")
    assert result.stderr == b""
    assert read_heap(folder / "100%n" / "end.heap")[0] == (5, 11, 5, 11)


@pytest.mark.parametrize(
    "name,value,said",
    [
        ("MALLOSCOPE_DUMP_AT", "exit,10m", "does not know '10m'"),
        ("MALLOSCOPE_SIGNAL", "USR3", "is no signal"),
        ("MALLOSCOPE_SIGNAL", "SEGV", "cannot be taken"),
        ("MALLOSCOPE_DUMP", "/nowhere/x.heap", "No such file or directory"),
        ("MALLOSCOPE_DUMP", "/" + 4100 * "x", "too long"),
    ],
)
def test_bad_environment_is_said_in_one_line(small, folder, name, value, said):
    environment = {"LD_PRELOAD": str(harness.LIBRARY), "MALLOSCOPE_OUTPUT": str(folder / "x.mscope"), name: value}
    result = harness.run([small], env=environment, cwd=folder)
    assert result.stderr.count(b"\n") == 1 and result.stderr.startswith(b"malloscope: ")
    assert said in result.stderr.decode()


# What `run` says of bad wishes


@pytest.mark.parametrize(
    "options,code,said",
    [
        (["--dump-at", "10m"], 2, "'10m'"),
        (["--dump-at", "exit,,5s"], 2, "''"),
        (["--dump-at", "0s"], 2, "'0s'"),
        (["--dump-at", "99999999999999999999"], 2, "'99999999999999999999'"),
        (["--signal", "USR3"], 2, "'USR3' is no signal"),
        (["--signal", "65"], 2, "'65' is no signal"),
        (["--signal", "KILL"], 2, "'KILL' cannot be taken"),
        (["--dump", "%x.heap"], 2, "'%x'"),
        (["--dump", "/nowhere/x.heap"], 3, "cannot dump into the folder '/nowhere'"),
        (["--dump-format", "pdf"], 2, "pdf"),
    ],
)
def test_bad_options(small, folder, options, code, said):
    result = malloscope("run", "-o", folder / "x.mscope", *options, "--", small, expect=code)
    assert said in result.stderr.decode() and result.stdout == b""
    assert list(folder.iterdir()) == []


def test_a_folder_with_dumps_counts_the_program_once(tmp_path):
    """The recording lies beside the dumps that its program made."""
    source = tmp_path / "grows.c"
    source.write_text("#include <malloscope.h>\n#include <stdlib.h>\n#include <unistd.h>\nvoid *volatile kept;\n"
                      "int main(void) {\n"
                      "    for (int i = 0; i < 30; i++) {\n"
                      "        kept = malloc(1000);\n"
                      "        if (i % 10 == 4) mscope_snapshot(\"dump.%n.mscope\");\n"
                      "    }\n"
                      "    _exit(0);\n}\n")
    harness.run(["gcc", f"-I{harness.ROOT}/include", source, "-o", tmp_path / "grows"])
    folder = tmp_path / "here"
    folder.mkdir()
    harness.malloscope("run", "-q", "--exact", "-o", folder / "grows.mscope", tmp_path / "grows", cwd=folder)
    assert len(list(folder.glob("*.mscope"))) == 4
    assert harness.report(folder)["totals"]["live_bytes"] == 30000
    (folder / "grows.mscope").unlink()
    assert harness.report(folder)["totals"]["live_bytes"] == 25000  # the last dump
