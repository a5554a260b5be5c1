"""Sampling rates that change while a program runs: figures stay unbiased, and their errors right."""

import json
import math
import subprocess

import pytest

import api
import harness
from counters import Counters
from harness import PROGRAMS, child_of, figures_of_site, report
from test_allocators import linked_with

SOURCE = PROGRAMS / "api_rates.c"
RUNS = 40


def seeds(record, program):
    """Each of the runs: what it says is true, and what its recording says."""
    for seed in range(1, RUNS + 1):
        recording = record(program, rate="32K", env={"MALLOSCOPE_SEED": str(seed)})
        yield recording.ledger, report(recording)


@pytest.mark.parametrize("allocator", ["libc", "jemalloc"])
def test_estimates_and_their_errors(build, record, allocator):
    """For blocks that have a mark in front, and for those that are found by address."""
    libraries = linked_with(allocator) if allocator != "libc" else []
    program = build("api_rates.c", "-O1", api.INCLUDE, *libraries)
    deviations = {"live": [], "total": []}
    for truth, whole in seeds(record, program):
        assert whole["totals"]["drops"] == 0
        assert [heap["name"] for heap in whole["heaps"]] == ["malloc"], "rates are no heaps of their own"
        rows = [row for row in whole["rows"] if row["function"] == "fill"]  # with a type, and without
        for what, found in deviations.items():
            deviation = math.hypot(*(row[f"{what}_error"] for row in rows)) / 1.96
            found.append((sum(row[f"{what}_bytes"] for row in rows) - truth[what]) / deviation)
    for what, found in deviations.items():
        assert abs(sum(found)) / math.sqrt(RUNS) < 5, (what, found)
        assert 0.6 < math.sqrt(sum(z * z for z in found) / RUNS) < 1.5, (what, found)


@pytest.mark.parametrize("allocator", ["libc", "jemalloc"])
def test_a_free_takes_away_what_its_allocation_brought(build, folder, allocator):
    """To the last bit: at changing rates, for blocks that got a type later, and in a forked child."""
    libraries = linked_with(allocator) if allocator != "libc" else []
    program = build("api_rates.c", "-O1", api.INCLUDE, *libraries)
    harness.malloscope("run", "-q", "--rate", "32K", "-o", folder / "%p.mscope", "--", program, "child")
    found = sorted(folder.glob("*.mscope"))
    assert len(found) == 2
    for path in found:
        site = figures_of_site(report(path)["rows"], SOURCE, "fill")
        assert site["live_bytes"] == site["live_objects"] == 0
        assert (site["samples"] > 1000) == (site["total_bytes"] > 0), "the child inherits what the parent allocated"
        assert site["frees"] > 1000


def test_an_exact_recording_stays_exact(build, record):
    recording = record(build("api_rates.c", "-O1", api.INCLUDE))
    site = figures_of_site(report(recording)["rows"], SOURCE, "fill")
    assert (site["total_bytes"], site["live_bytes"]) == (recording.ledger["total"], recording.ledger["live"])


def test_threads_go_on_while_the_rate_changes(build, start, folder):
    """Readings while threads allocate, free and fork, and after their end."""
    counters, path = folder / "counters", folder / "busy.mscope"
    command = [build("busy.c", "-O1"), 8, counters, 4, 0.5, 0.03]
    tool = start(harness.record_command(path, command, "32K"), stdout=subprocess.DEVNULL)
    pid = child_of(tool.pid, "busy")
    harness.wait_until(lambda: counters.exists() and counters.stat().st_size and path.exists(), tool)
    readings = 0
    while tool.poll() is None:
        before = Counters(counters)
        result = harness.malloscope("report", pid, "--json", "-n", "0", expect=None)
        after = Counters(counters)
        if result.returncode or tool.poll() is not None:
            break
        assert_near(json.loads(result.stdout), before, after)
        readings += 1
    assert tool.wait(harness.PATIENCE) == 0 and readings > 3
    truth = Counters(counters)
    assert_near(report(path), truth, truth)


def assert_near(whole, before, after):
    assert whole["totals"]["drops"] == 0
    site = [row for row in whole["rows"] if row["function"] == "work"]
    if not site:
        return  # nothing is sampled yet
    room = 5 / 1.96 * site[0]["live_error"]
    lowest = before.bytes - before.begun_freed_bytes - after.freed_bytes - after.begun_freed_bytes
    highest = after.bytes + after.begun_bytes - before.freed_bytes
    assert lowest - room <= site[0]["live_bytes"] <= highest + room


def test_a_heap_that_is_called_malloc_is_another(build, record):
    whole = report(record(build("api_heap_called_malloc.c", "-O1", api.INCLUDE), rate="32K"))
    live = {heap["name"]: round(heap["live_objects"]) for heap in whole["heaps"]}
    assert live == {"malloc": 7, "malloc [registered]": 5}
