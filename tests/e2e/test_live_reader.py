"""Reading a program that allocates at full speed: every read is consistent, the program is not disturbed."""

import os
import signal
import subprocess

import pytest

import harness
from counters import Counters
from harness import PROGRAMS, child_of, figures_of_site, malloscope, record_command, report, stats, wait_until

THREADS = 8
READS = 15
NICE = ["nice", "-n", "10"]  # the readers get their turn beside eight threads that never rest


def assert_consistent(whole, exact):
    totals = whole["totals"]
    for row in whole["rows"] + [totals]:
        where = f"{row.get('function')}:{row.get('line')}"
        assert 0 <= row["live_bytes"] <= row["total_bytes"], where
        assert 0 <= row["live_objects"] <= row["total_objects"], where
        assert 0 <= row["frees"] <= row["total_objects"], where
        assert row.get("own_peak_at_most", totals["peak_bytes"]) >= row["live_bytes"], where
        assert row["live_error"] >= 0 and row["samples"] >= 0, where
        if exact:
            for figure in ("live_bytes", "live_objects", "total_bytes", "total_objects", "frees"):
                assert row[figure] == int(row[figure]), where
            assert row["total_objects"] == row["live_objects"] + row["frees"], where
            assert row["live_error"] == 0, where
    for row in whole["rows"]:
        assert row["temporary_objects"] <= row["frees"] + 1e-6
        assert row["at_peak_bytes"] >= 0
    for figure in ("live_bytes", "live_objects", "total_bytes", "total_objects", "frees", "samples"):
        assert sum(row[figure] for row in whole["rows"]) == pytest.approx(totals[figure], rel=1e-9), figure
    assert totals["drops"] == 0


@pytest.mark.parametrize("rate", ["exact", "4K", "512K"])
def test_reading_in_a_loop(build, start, folder, rate):
    program = build("busy.c", "-O1")
    counters = folder / "counters"
    tool = start(
        [*NICE, *record_command(folder / "live.mscope", [program, THREADS, counters, 0], rate)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    pid = child_of(tool.pid, "busy")
    wait_until(counters.exists, tool)
    exact = rate == "exact"
    last = {"total_bytes": 0, "total_objects": 0, "frees": 0, "samples": 0, "exact_total_bytes": 0}
    if exact:
        last["peak_bytes"] = 0  # an estimate of it may be corrected downwards
    for number in range(READS):
        before = Counters(counters)
        whole = report(pid)
        after = Counters(counters)
        assert_consistent(whole, exact)
        short = stats(pid)["totals"]
        copy = folder / f"copy{number}.mscope"
        malloscope("dump", pid, "-o", copy)
        copied = report(copy)
        copy.unlink()
        assert_consistent(copied, exact)
        for now in (whole["totals"], short, copied["totals"]):
            for figure, value in last.items():
                assert now[figure] >= value, f"{figure} fell from {value} to {now[figure]} at read {number}"
            last = {figure: now[figure] for figure in last}
        if exact:
            site = figures_of_site(whole["rows"], PROGRAMS / "busy.c", "busy")
            assert before.objects <= site["total_objects"] <= after.objects + after.begun_objects
            assert before.frees <= site["frees"] <= after.frees + after.begun_frees
    assert last["total_objects"] > 0
    assert tool.poll() is None, "the program ended while it was read"

    os.kill(pid, signal.SIGTERM)
    output, errors = tool.communicate(timeout=harness.PATIENCE)
    assert (tool.returncode, output, errors) == (0, b"ended well\n", b"")
    counted = Counters(counters)
    whole = report(folder / "live.mscope")
    site = figures_of_site(whole["rows"], PROGRAMS / "busy.c", "busy")
    if exact:
        assert (site["total_objects"], site["total_bytes"]) == (counted.objects, counted.bytes)
        assert (site["frees"], site["live_bytes"]) == (counted.frees, counted.bytes - counted.freed_bytes)
    else:
        others = whole["totals"]["exact_total_bytes"] - counted.bytes
        assert 0 <= others < 200000, "exact bytes are wrong"


def test_several_readers_at_once(build, start, folder):
    program = build("busy.c", "-O1")
    tool = start(
        [*NICE, *record_command(folder / "live.mscope", [program, THREADS, folder / "counters", 0], "4K")],
        stdout=subprocess.DEVNULL,
    )
    pid = child_of(tool.pid, "busy")
    wait_until((folder / "counters").exists, tool)
    for _ in range(5):
        readers = [
            start([harness.MALLOSCOPE, "report", pid, "--json", "-n", "0"], stdout=subprocess.PIPE) for _ in range(4)
        ]
        for reader in readers:
            output, _ = reader.communicate(timeout=harness.PATIENCE)
            assert reader.returncode == 0
            assert_consistent(harness.json.loads(output), False)
    os.kill(pid, signal.SIGTERM)
    assert tool.wait(harness.PATIENCE) == 0


def test_reader_of_a_program_that_ends_meanwhile(build, start, folder):
    """A reader that comes too late says so; it never fails otherwise."""
    program = build("busy.c", "-O1")
    for attempt in range(6):
        path = folder / f"{attempt}.mscope"
        tool = start(
            record_command(path, [program, 2, folder / "counters", 0.05 * attempt + 0.02], "4K"),
            stdout=subprocess.DEVNULL,
        )
        pid = child_of(tool.pid, "busy")
        statuses = set()
        while tool.poll() is None:
            result = malloscope("report", pid, "--json", expect=None)
            statuses.add(result.returncode)
            assert result.returncode in (0, 3), result.stderr.decode()
            if result.returncode == 0:
                harness.json.loads(result.stdout)
        assert tool.returncode == 0
        assert malloscope("report", pid, "--json", expect=3).stderr


@pytest.mark.parametrize("command", [["export", "--format", "collapsed"], ["flame"]])
def test_its_recording_is_replaced(build, start, folder, command):
    """By what a command read from it, under the same name: the program goes on in the old file."""
    counters, recording = folder / "counters", folder / "live.mscope"
    tool = start(
        [*NICE, *record_command(recording, [build("busy.c", "-O1"), 2, counters, 0], "64K")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    pid = child_of(tool.pid, "busy")
    wait_until(counters.exists, tool)
    malloscope(*command, recording, "-f", "-o", recording)
    assert recording.read_bytes()[:6] != b"MSCOPE"
    before = Counters(counters)
    wait_until(lambda: Counters(counters).objects > before.objects + 10_000, tool)
    os.kill(pid, signal.SIGTERM)
    output, _ = tool.communicate(timeout=harness.PATIENCE)
    assert output == b"ended well\n"
