"""Exact mode gives exactly the right figures per line, for programs whose every allocation is known."""

import json

import pytest

import harness
from harness import PROGRAMS, figures_of_site, report

FRAME_POINTERS = ["-fno-omit-frame-pointer", "-fomit-frame-pointer"]
COUNTED = ("total_objects", "total_bytes", "frees", "live_objects", "live_bytes")


def assert_ledger(ledger, rows, source, figures=COUNTED):
    """Every site of the ledger has the same figures in the report."""
    wrong = []
    for name, truth in ledger["sites"].items():
        found = figures_of_site(rows, source, name)
        for figure in figures:
            if found[figure] != truth[figure]:
                wrong.append(f"{name}: {figure} is {found[figure]}, must be {truth[figure]}")
    assert not wrong, "\n".join(wrong)


def assert_adds_up(whole):
    """The rows' figures are those of the whole program."""
    for figure in COUNTED + ("samples", "at_peak_bytes"):
        if figure in whole["totals"]:
            assert sum(row[figure] for row in whole["rows"]) == whole["totals"][figure], figure
    totals = whole["totals"]
    assert totals["total_objects"] == totals["live_objects"] + totals["frees"]
    assert totals["exact_total_bytes"] == totals["total_bytes"]
    assert totals["drops"] == 0
    assert totals["live_error"] == 0
    assert totals["rate"] == 1
    assert all(row["live_error"] == 0 for row in whole["rows"])


@pytest.mark.parametrize("pointers", FRAME_POINTERS)
@pytest.mark.parametrize("optimise", ["-O0", "-O2"])
def test_every_function_of_the_malloc_family(build, record, optimise, pointers):
    program = build("truth.c", optimise, pointers)
    plain = harness.run([program])
    recording = record(program)
    assert recording.stdout == plain.stdout
    assert recording.ledger["notes"]["realloc_same"] > 0 and recording.ledger["notes"]["realloc_moved"] > 0
    whole = report(recording)
    assert_ledger(recording.ledger, whole["rows"], PROGRAMS / "truth.c", COUNTED + ("own_peak_at_most",))
    assert_adds_up(whole)


def test_sizes_of_blocks_that_libc_allocates(build, record):
    recording = record(build("truth.c", "-O0"))
    rows = report(recording, "--filter", "inside_libc|strdup")["rows"]
    size = len("nineteen characters") + 1
    assert sum(row["total_objects"] for row in rows) == 20
    assert sum(row["total_bytes"] for row in rows) == 20 * size
    assert sum(row["live_objects"] for row in rows) == 15


@pytest.mark.parametrize("pointers", FRAME_POINTERS)
@pytest.mark.parametrize("optimise", ["-O0", "-O2"])
def test_threads_and_blocks_freed_elsewhere(build, record, optimise, pointers):
    program = build("truth_threads.c", optimise, pointers)
    for _ in range(3):
        recording = record(program)
        whole = report(recording)
        assert_ledger(recording.ledger, whole["rows"], PROGRAMS / "truth_threads.c", COUNTED + ("own_peak_at_most",))
        assert_adds_up(whole)


@pytest.mark.parametrize("pointers", FRAME_POINTERS)
@pytest.mark.parametrize("optimise", ["-O0", "-O2"])
def test_cpp(build, record, optimise, pointers):
    recording = record(build("truth_cpp.cpp", "-std=c++17", optimise, pointers))
    whole = report(recording)
    assert_ledger(recording.ledger, whole["rows"], PROGRAMS / "truth_cpp.cpp")
    assert_adds_up(whole)


@pytest.mark.parametrize(
    "flags",
    [(), ("-O",), ("-C", "force-frame-pointers=yes"), ("-O", "-C", "force-frame-pointers=yes")],
    ids=["debug", "release", "debug-fp", "release-fp"],
)
def test_rust(build, record, flags):
    truth = json.loads(harness.run([build("truth_rust.rs", "--cfg", "ledger", *flags)]).stdout)
    recording = record(build("truth_rust.rs", *flags))
    whole = report(recording)
    assert_ledger(truth, whole["rows"], PROGRAMS / "truth_rust.rs")
    assert_adds_up(whole)


def test_peaks_lifetimes_and_the_heap_at_its_largest(build, record):
    recording = record(build("peaks.c", "-O1"))
    whole = report(recording)
    source = PROGRAMS / "peaks.c"
    assert_ledger(recording.ledger, whole["rows"], source, COUNTED + ("own_peak_at_most", "at_peak_bytes"))
    assert sum(row["at_peak_bytes"] for row in whole["rows"]) == whole["totals"]["peak_bytes"]
    # Blocks that lived for two milliseconds are not temporary; of those freed at once, only the ones during
    # which the program lost the processor are not.
    assert figures_of_site(whole["rows"], source, "long_lived")["temporary_objects"] == 0
    assert figures_of_site(whole["rows"], source, "short_lived")["temporary_objects"] > 900


def test_every_rate_of_one_byte_is_exact(build, record):
    program = build("truth.c", "-O1")
    recording = record(program, rate="1")
    assert_ledger(recording.ledger, report(recording)["rows"], PROGRAMS / "truth.c")


def test_groupings_add_up_to_the_same(build, record):
    recording = record(build("truth_cpp.cpp", "-std=c++17", "-O1"))
    sums = set()
    for by in ("site", "function", "line", "file", "module"):
        whole = report(recording, "--by", by)
        sums.add(tuple(sum(row[figure] for row in whole["rows"]) for figure in COUNTED))
    assert len(sums) == 1


@pytest.mark.parametrize("key, figure", [
    ("live", "live_bytes"), ("peak", "at_peak_bytes"), ("total", "total_bytes"), ("allocs", "total_objects"),
    ("temp", "temporary_objects"),
])
def test_rows_are_sorted_as_asked(build, record, key, figure):
    recording = record(build("truth.c", "-O1"))
    rows = report(recording, "--sort", key)["rows"]
    values = [row[figure] for row in rows]
    assert values == sorted(values, reverse=True) and values[0] > values[-1]


def test_stats_are_the_totals_of_the_report(build, record):
    recording = record(build("truth.c", "-O1"))
    whole, short = report(recording), harness.stats(recording)
    assert short["totals"] == whole["totals"]
    assert short["health"] == whole["health"]
