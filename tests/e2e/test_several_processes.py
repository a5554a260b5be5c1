"""Recordings of several processes: found by the number of `malloscope run`, told apart, and not added up in silence."""

import os
import re

import pytest

import harness
from harness import MALLOSCOPE, malloscope, report, stats

SLEEPER = "import sys, time; blocks = [bytes(200000) for i in range(50)]; print('ready', flush=True); sys.stdin.read()"


@pytest.mark.parametrize("gates", [[], ["--peak-limit", "1G"]])
def test_the_number_of_run_itself(start, folder, gates):
    """What a shell knows as $! is `malloscope run`: it stands for the program."""
    command = ["/usr/bin/python3", "-c", SLEEPER]
    process = start([MALLOSCOPE, "run", "-q", *gates, "-o", folder / "r.mscope", "--", *command], stdin=-1, stdout=-1)
    assert process.stdout.readline() == b"ready\n"
    program = harness.child_of(process.pid, "python3")
    for command in (["report", "--json"], ["stats", "--json"], ["info"], ["tree"]):
        by_run = malloscope(command[0], str(process.pid), *command[1:]).stdout
        assert by_run and len(by_run) > 100
    assert f"process {program}\n" in malloscope("info", str(process.pid)).stdout.decode()
    malloscope("dump", str(process.pid), "-o", folder / "copy.mscope")
    assert stats(folder / "copy.mscope")["totals"]["live_bytes"] > 5_000_000
    process.stdin.close()
    assert process.wait() == 0


@pytest.fixture
def one_after_the_other(folder):
    """Five processes that ran one after the other under a shell that ran all the time."""
    recordings = folder / "recordings"
    recordings.mkdir()
    line = "for i in 1 2 3 4 5; do /usr/bin/python3 -S -c 'b = bytearray(3000000)'; done; :"
    malloscope("run", "-q", "--exact", "-o", recordings / "%e.%p.mscope", "--", "dash", "-c", line)
    return recordings


def test_by_process(one_after_the_other):
    rows = report(one_after_the_other, "--by", "process")["rows"]
    pythons = [row for row in rows if row["function"].startswith("python")]
    assert len(pythons) == 5 and len({row["function"] for row in pythons}) == 5
    assert all(re.fullmatch(r"python[\d.]* \(process \d+\)", row["function"]) for row in pythons)
    totals = stats(one_after_the_other)["totals"]
    for figure in ("live_bytes", "total_bytes", "total_objects"):
        assert sum(row[figure] for row in rows) == totals[figure]
    for path in one_after_the_other.glob("python*.mscope"):
        alone = stats(path)["totals"]
        pid = int(path.name.split(".")[-2])
        row = next(row for row in pythons if f"process {pid})" in row["function"])
        assert (row["live_bytes"], row["peak_bytes"]) == (alone["live_bytes"], alone["peak_bytes"])
        assert alone["processes"] == alone["processes_at_once"] == 1
    assert "PROCESS" in malloscope("report", one_after_the_other, "--by", "process").stdout.decode()


def test_sums_over_processes_that_did_not_run_together(one_after_the_other):
    totals = stats(one_after_the_other)["totals"]
    assert totals["processes"] >= 6 and totals["processes_at_once"] < totals["processes"]
    for command in ("report", "leaks", "info"):
        told = " ".join(malloscope(command, one_after_the_other).stdout.decode().split())
        assert f"of the {totals['processes']} processes ran at the same time" in told, command
    alone = next(one_after_the_other.glob("python*.mscope"))
    assert "at the same time" not in malloscope("report", alone).stdout.decode()


def test_info_of_many_recordings_has_a_line_each(folder):
    malloscope("run", "-q", "--exact", "-o", folder / "%e.%p.mscope", "--", "dash", "-c", "ls; " * 10 + ":")
    count = len(list(folder.glob("*.mscope")))
    assert count > 8
    short = malloscope("info", folder).stdout.decode()
    whole = malloscope("info", folder, "--all").stdout.decode()
    assert len(short.splitlines()) < count + 40 and len(re.findall(r"^ *\d+ .*\bls$", short, re.M)) >= 10
    assert "mapped files\n" not in short and whole.count("  mapped files\n") == count
    few = folder / "few"
    few.mkdir()
    os.rename(next(folder.glob("ls*.mscope")), few / "ls.mscope")
    assert "  mapped files\n" in malloscope("info", few).stdout.decode()


def test_lost_children_are_not_called_no_drops(folder, good):
    """The header's count of children without a recording, set as the recorder would."""
    data = bytearray(good.read_bytes())
    told = malloscope("info", good).stdout.decode()
    assert "no drops" in told and re.search(r"drops +none", told)
    place = data.index(b"MSCOPE\r\n") + offset_of_lost_children()
    data[place : place + 8] = (42).to_bytes(8, "little")
    good.write_bytes(data)
    told = malloscope("info", good).stdout.decode()
    assert "no drops" not in told and not re.search(r"drops +none", told)
    assert "42 recordings of child processes missing" in " ".join(told.split())
    assert stats(good)["totals"]["drops_by_kind"]["child"] == 42


def offset_of_lost_children():
    """From core/recording.h, by the compiler."""
    source = '#include <stdio.h>\n#include "core/recording.h"\nint main(void) {' \
             'printf("%zu", offsetof(struct recording_header, drops) + 8 * DROP_CHILD); }'
    place = harness.BUILD / f"offset-{os.getpid()}"
    try:
        harness.run(["gcc", "-x", "c", "-I", harness.ROOT / "src", "-o", place, "-"], input=source.encode())
        return int(harness.run([place]).stdout)
    finally:
        place.unlink(missing_ok=True)
