"""Everything that can be wrong gets a message, a hint, the documented exit code, and never harms the program."""

import contextlib
import os
import random
import shutil
import struct
import subprocess
import time

import pytest

import harness
from harness import (
    MALLOSCOPE, PROGRAMS, child_of, figures_of_site, malloscope, record_command, report, stats, wait_until,
)

FAILURE, USAGE, MISSING, PERMISSION, DAMAGED = 1, 2, 3, 4, 5
READERS = [
    ["report"], ["report", "--json"], ["tree"], ["leaks"], ["info"], ["stats", "--json"],
    ["export", "--format", "collapsed"], ["export", "--format", "pprof"],
]
AS_NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]


def assert_explained(result, *words):
    """One message that names what it is about, and what to do next. A reader writes nothing else."""
    text = result.stderr.decode()
    assert text.startswith("malloscope: "), text
    assert "\nhint: " in text, f"no hint: {text}"
    for word in words:
        assert str(word) in text, f"{word!r} is not in: {text}"
    assert "\0" not in text and len(text) < 2000


def need_root():
    if os.geteuid() != 0:
        pytest.skip("needs root")


@pytest.fixture
def small_disk(folder):
    """small_disk(size) mounts a file system of that size."""
    need_root()
    with contextlib.ExitStack() as stack:

        def mount(size):
            place = folder / f"disk{size}"
            place.mkdir()
            result = harness.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", place], expect=None)
            if result.returncode:
                pytest.skip(f"cannot mount here: {result.stderr.decode()}")
            stack.callback(harness.run, ["umount", "-l", place])
            return place

        yield mount


# Reading


@pytest.mark.parametrize("reader", READERS, ids=" ".join)
def test_no_such_recording(folder, reader):
    path = folder / "nowhere.mscope"
    assert_explained(malloscope(*reader, path, expect=MISSING), path)


@pytest.mark.parametrize("reader", READERS, ids=" ".join)
def test_no_such_process(reader):
    number = int(open("/proc/sys/kernel/pid_max").read()) + 1000
    assert_explained(malloscope(*reader, number, expect=MISSING), number)


def test_process_that_is_not_recorded(start):
    process = start(["sleep", "100"])
    assert_explained(malloscope("report", process.pid, expect=MISSING), process.pid, "malloscope run")


@pytest.mark.parametrize("reader", READERS, ids=" ".join)
@pytest.mark.parametrize("content", [b"", b"x", b"MSCOPE", b"hello world\n" * 1000, b"\0" * 10000, b"\x7fELF" * 3000])
def test_not_a_recording(folder, reader, content):
    path = folder / "other.mscope"
    path.write_bytes(content)
    result = malloscope(*reader, path, expect=DAMAGED)
    assert_explained(result, path)
    assert result.stdout == b""


def test_special_files(folder):
    os.mkfifo(folder / "pipe.mscope")
    assert_explained(malloscope("report", folder / "pipe.mscope", expect=DAMAGED), "pipe.mscope")
    assert_explained(malloscope("report", "/dev/null", expect=DAMAGED), "/dev/null")
    (folder / "empty").mkdir()
    assert_explained(malloscope("report", folder / "empty", expect=MISSING), "empty")


def test_truncated_recordings(folder, good):
    """Whatever length is left: the message and the exit code, beside what can still be read. Never a crash."""
    whole = good.read_bytes()
    path = folder / "cut.mscope"
    lengths = [1, 7, 8, 12, 100, 512, 4095, 4096, 4097, 8192, 65536] + [len(whole) * i // 16 for i in range(1, 16)]
    for length in lengths:
        path.write_bytes(whole[:length])
        assert_explained(malloscope("report", "--json", path, expect=DAMAGED), path)


def test_newer_version(folder, good):
    content = bytearray(good.read_bytes())
    (version,) = struct.unpack_from("<I", content, 8)
    struct.pack_into("<I", content, 8, version + 1)
    path = folder / "newer.mscope"
    path.write_bytes(content)
    for reader in READERS:
        assert_explained(malloscope(*reader, path, expect=DAMAGED), path, "version", version + 1)


def test_damaged_tables(folder, good):
    """Each word of the header and random words of the tables, overwritten: no crash, no hang, no nonsense."""
    whole = good.read_bytes()
    path = folder / "damaged.mscope"
    numbers = random.Random(1)
    used = struct.unpack_from("<Q", whole, 8 + 4 * 8 + 8 * 7)[0]
    last = min(len(whole), max(used, 70000))
    places = list(range(8, 1024, 8)) + [numbers.randrange(4096, last) & ~7 for _ in range(150)]
    values = [0, 1, 0xFFFFFFFFFFFFFFFF, 0x7FFFFFFFFFFFFFFF, len(whole) - 1, 1 << 40, 0x0101010101010101]
    told = 0
    for number, place in enumerate(places):
        content = bytearray(whole)
        struct.pack_into("<Q", content, place, values[number % len(values)])
        path.write_bytes(content)
        result = malloscope("report", "--json", "-n", "0", path, expect=None)
        assert result.returncode in (0, DAMAGED), (place, result.returncode, result.stderr.decode())
        if result.returncode == DAMAGED:
            told += 1
            assert_explained(result, path)
        else:
            assert b"damaged" not in result.stderr, "damage that is noticed shows in the exit code"
            harness.json.loads(result.stdout)
    assert told >= 10, "damage to what the reader follows is noticed"


def test_every_reader_survives_wild_damage(folder, good):
    whole = good.read_bytes()
    numbers = random.Random(2)
    path = folder / "wild.mscope"
    for attempt in range(24):
        content = bytearray(whole)
        for _ in range(200):
            content[numbers.randrange(16, len(content))] = numbers.randrange(256)
        path.write_bytes(content)
        reader = READERS[attempt % len(READERS)]
        result = malloscope(*reader, path, expect=None)
        assert result.returncode in (0, DAMAGED), (attempt, reader, result.returncode, result.stderr.decode())


def test_recording_of_another_user(folder, good):
    need_root()
    assert good.stat().st_mode & 0o777 == 0o600
    result = harness.run([*AS_NOBODY, MALLOSCOPE, "report", good], expect=PERMISSION)
    assert_explained(result, good)


def test_process_of_another_user(folder, start, build):
    need_root()
    program = build("busy.c", "-O1")
    tool = start(record_command(folder / "x.mscope", [program, 1, folder / "c", 0], "512K"), stdout=subprocess.DEVNULL)
    pid = child_of(tool.pid, "busy")
    wait_until((folder / "c").exists, tool)
    result = harness.run([*AS_NOBODY, MALLOSCOPE, "report", pid], expect=PERMISSION)
    assert_explained(result, pid)
    os.kill(pid, 15)
    assert tool.wait(harness.PATIENCE) == 0


def test_dump_does_not_overwrite(folder, good):
    target = folder / "target.mscope"
    target.write_bytes(b"precious")
    result = malloscope("dump", good, "-o", target, expect=None)
    assert result.returncode != 0
    assert_explained(result, target)
    assert target.read_bytes() == b"precious"


# Usage


@pytest.mark.parametrize(
    "arguments",
    [
        ["frobnicate"], ["report"], ["report", "--frobnicate", "x"], ["report", "--by", "colour", "x"],
        ["report", "-n", "many", "x"], ["run"], ["run", "--rate", "fast", "--", "true"],
        ["run", "--rate", "0", "--", "true"],
        ["run", "--rate", "-5", "--", "true"], ["export", "x", "--format", "fax"], ["report", "x", "--filter", "("],
        ["dump", "x", "b", "-o", "c"],
    ],
    ids=" ".join,
)
def test_wrong_usage(folder, arguments, good):
    arguments = [str(good) if part == "x" else part for part in arguments]
    result = malloscope(*arguments, expect=USAGE, cwd=folder)
    assert_explained(result)
    assert result.stdout == b""


# Running


def test_no_such_program(folder):
    for name in ("no-such-program", "./no-such-program", "/nowhere/no-such-program"):
        result = malloscope("run", "-o", folder / "x.mscope", "--", name, expect=MISSING, cwd=folder)
        assert_explained(result, name)
    assert not (folder / "x.mscope").exists()


def test_program_that_cannot_be_executed(folder):
    text = folder / "text"
    text.write_text("not a program")
    result = malloscope("run", "-o", folder / "x.mscope", "--", text, expect=PERMISSION)
    assert_explained(result, text)
    result = malloscope("run", "-o", folder / "x.mscope", "--", folder, expect=None)
    assert result.returncode in (FAILURE, PERMISSION)
    assert_explained(result, folder)


def assert_runs_unrecorded(result, words, output=b"hello\n"):
    """The program ran as ever; one message says why it was not recorded."""
    assert result.stdout == output
    text = result.stderr.decode()
    assert text.count("malloscope: ") == 1, text
    for word in words:
        assert word in text, f"{word!r} is not in: {text}"


def test_static_program(build, folder):
    program = build("hello.c", "-static", target="static")
    result = malloscope("run", "-o", folder / "x.mscope", "--", program, 7, expect=None)
    assert_explained(result, program, "static")
    assert result.returncode in (FAILURE, 7)
    assert not (folder / "x.mscope").exists()


def test_set_uid_program(build, folder):
    need_root()
    program = folder / "setuid"
    shutil.copy(build("hello.c", "-O1"), program)
    os.chown(program, 65534, 65534)
    program.chmod(0o4755)
    result = malloscope("run", "-o", folder / "x.mscope", "--", program, expect=None)
    assert_explained(result, program, "set-uid")
    assert not (folder / "x.mscope").exists()


def test_program_with_its_own_malloc(build, folder):
    program = build("own_malloc.c", "-fno-builtin")
    harness.run([program])
    result = malloscope("run", "-o", folder / "x.mscope", "--", program, expect=None)
    assert_explained(result, program, "malloc")
    assert result.returncode in (0, FAILURE)


def test_output_into_a_missing_folder(hello, folder):
    path = folder / "missing" / "x.mscope"
    result = malloscope("run", "-o", path, "--", hello, expect=MISSING)
    assert_explained(result, folder / "missing")


def test_output_where_one_may_not_write(hello, folder):
    need_root()
    place = folder / "locked"
    place.mkdir(mode=0o755)
    result = harness.run([*AS_NOBODY, MALLOSCOPE, "run", "-o", place / "x.mscope", "--", hello], expect=PERMISSION)
    assert_explained(result, place)


def test_existing_file_is_not_overwritten(hello, folder):
    path = folder / "x.mscope"
    path.write_bytes(b"precious")
    result = malloscope("run", "-o", path, "--", hello, expect=FAILURE)
    assert_explained(result, path, "-f")
    assert path.read_bytes() == b"precious"
    assert malloscope("run", "-q", "-f", "-o", path, "--", hello).stdout == b"hello\n"
    assert stats(path)["totals"]["exact_total_bytes"] > 1_000_000


def test_recorder_that_cannot_start_lets_the_program_run(hello, folder):
    """With the library preloaded by the environment, without `run`: one message, and the program runs on."""
    for output in (folder / "missing" / "x.mscope", hello / "x.mscope", "/proc/x.mscope", "x" * 5000):
        env = {"LD_PRELOAD": str(harness.LIBRARY), "MALLOSCOPE_OUTPUT": str(output)}
        result = harness.run([hello, "3"], expect=3, env=env)
        assert_runs_unrecorded(result, ["cannot record"])
    env = {"LD_PRELOAD": str(harness.LIBRARY), "MALLOSCOPE_OUTPUT": str(folder / "missing" / "x.mscope")}
    result = harness.run(["bash", "-c", f"{hello}; {hello}; true | {hello}"], env=env)
    assert result.stdout == b"hello\nhello\nhello\n"


def test_disk_is_full_at_the_start(hello, small_disk):
    disk = small_disk("32k")
    result = malloscope("run", "-o", disk / "x.mscope", "--", hello, "3", expect=None)
    text = result.stderr.decode()
    assert "x.mscope" in text and "space" in text.lower(), text
    if result.stdout:
        assert result.stdout == b"hello\n" and result.returncode == 3
    else:
        assert result.returncode == FAILURE
        assert_explained(result)


@pytest.mark.parametrize("rate", ["1", "64"])
def test_disk_fills_while_running(build, small_disk, start, folder, rate):
    """The tables cannot grow any more: what is missing is counted, the program ends well."""
    disk = small_disk("12m")
    flag = folder / "flag"
    program = build("waiting.c", "-O1")
    tool = start(record_command(disk / "x.mscope", [program, flag], rate), stdout=subprocess.PIPE)
    wait_until(flag.exists, tool)
    with open(disk / "filler", "wb") as filler, contextlib.suppress(OSError):
        while True:
            filler.write(b"x" * 65536)
            filler.flush()
    pid = child_of(tool.pid, "waiting")
    wait_until(lambda: stats(pid)["totals"]["drops"] > 0, tool)
    live = report(pid)
    assert live["totals"]["live_bytes"] > 0
    flag.unlink()
    output, _ = tool.communicate(timeout=harness.PATIENCE)
    assert (tool.returncode, output) == (0, b"ended well\n")
    whole = report(disk / "x.mscope")
    assert whole["totals"]["drops"] > 0, "what did not fit is counted"
    assert whole["totals"]["live_bytes"] <= whole["totals"]["total_bytes"] * (1 + 1e-9)


@pytest.mark.parametrize("rate", ["1", "4K"])
def test_recording_is_deleted_while_running(build, start, folder, rate):
    flag, path = folder / "flag", folder / "x.mscope"
    program = build("waiting.c", "-O1")
    tool = start(
        [MALLOSCOPE, "run", "-o", path, "--rate", rate, "--", program, flag], stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    wait_until(flag.exists, tool)
    path.unlink()
    pid = child_of(tool.pid, "waiting")

    def allocated():
        return figures_of_site(report(pid)["rows"], PROGRAMS / "waiting.c", "waiting")["total_bytes"]

    first = allocated()
    assert first > 0, "a running program can still be read"
    # The recording cannot grow without its name: what finds no room in it is counted.
    wait_until(lambda: allocated() > first or report(pid)["totals"]["drops"] > 0, tool)
    second = report(pid)
    malloscope("dump", pid, "-o", folder / "saved.mscope")
    assert report(folder / "saved.mscope")["totals"]["total_bytes"] >= second["totals"]["total_bytes"]
    flag.unlink()
    output, errors = tool.communicate(timeout=harness.PATIENCE)
    assert (tool.returncode, output) == (0, b"ended well\n")
    assert b"x.mscope" in errors and b"hint: " in errors, errors.decode()


def test_output_that_nobody_reads(good):
    """A reader whose pipe is closed ends quietly."""
    script = f"{MALLOSCOPE} report {good} --json -n 0 | head -c 1 > /dev/null; echo ${{PIPESTATUS[0]}}"
    result = harness.run(["bash", "-c", script])
    assert result.stderr == b""
    assert result.stdout.strip() in (b"0", b"141")


def test_output_onto_a_full_disk(good):
    result = harness.run(["bash", "-c", f"{MALLOSCOPE} report {good} --json -n 0 > /dev/full"], expect=FAILURE)
    assert_explained(result)
