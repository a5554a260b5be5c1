"""Heaps of the program's own, reported through malloscope.h: every figure against what the program knows of itself."""

import math
import re
from pathlib import Path

import pytest

import api
import harness
from harness import PROGRAMS, site_lines
from test_allocators import linked_with
from test_formats import export_to, google_pprof, pprof_top

FIGURES = {
    "objects": "total_objects", "bytes": "total_bytes", "live_objects": "live_objects", "live_bytes": "live_bytes",
}  # fmt: skip


@pytest.fixture
def program(build):
    return build("api_heaps.c", "-O1", api.INCLUDE)


def assert_exact(recording):
    heaps = api.heaps(recording)
    for name, truth in recording.ledger.items():
        found = {figure: heaps[name][key] for figure, key in FIGURES.items()}
        assert found == truth, name
    totals = harness.stats(recording)["totals"]
    assert totals["drops"] == 0
    return heaps


# --- exact ---


CASES = ["shared", "apart", "across", "resize", "many", "same_address", "enumerate", "fork"]


@pytest.mark.parametrize("case", CASES)
def test_figures_are_exact(program, record, case):
    assert_exact(record(program, case))


def test_a_heap_can_record_everything_beside_a_sampled_malloc(program, record):
    recording = record(program, "rates", rate="512K")
    heap, truth = api.heaps(recording)["everything"], recording.ledger["everything"]
    assert {figure: heap[key] for figure, key in FIGURES.items()} == truth


def test_what_is_sampled_has_an_error_beside_an_exact_malloc(program, record):
    error = record(program, "estimated").ledger["sampled"]["live_bytes"]
    expected = 1.96 * math.sqrt(640_000 * 4096)
    assert expected / 2 < error < expected * 2


@pytest.mark.parametrize("case", ["shared", "apart"])
def test_nothing_else_is_counted(program, record, case):
    heaps = assert_exact(record(program, case))
    assert len(heaps) == (2 if case == "shared" else 9)
    assert heaps["malloc"]["total_bytes"] < 100_000  # threads


# --- on top of malloc ---


@pytest.mark.parametrize("allocator", [None, "jemalloc", "tcmalloc_minimal"])
@pytest.mark.parametrize("rate", ["exact", "512"])
def test_a_heap_on_top_of_malloc_counts_once(build, record, allocator, rate):
    """Sampled blocks of libc carry a mark, those of other allocators are found by address."""
    libraries = linked_with(allocator) if allocator else []
    recording = record(build("api_heaps.c", "-O1", api.INCLUDE, *libraries), "on_malloc", rate=rate)
    heaps = api.heaps(recording)
    truth = recording.ledger
    if rate == "exact":
        for name in ("on malloc", "malloc"):
            rows = heaps[name]
            if name == "malloc":  # the allocator may have called malloc itself
                rows = harness.figures_of_site(harness.report(recording)["rows"], PROGRAMS / "api_heaps.c", "other")
            assert {figure: rows[key] for figure, key in FIGURES.items()} == truth[name]
    # The blocks of malloc below, 200 of 3 KiB and more, are not counted besides.
    assert heaps["malloc"]["live_bytes"] < 100_000
    assert heaps["malloc"]["total_bytes"] < 200_000
    assert heaps["on malloc"]["live_bytes"] == pytest.approx(truth["on malloc"]["live_bytes"], rel=0.5)


# --- sampled ---


def sigmas(heap, figure, error, truth):
    """How far an estimate is from the truth; errors are half the width of a 95 % interval."""
    return (heap[figure] - truth) / (heap[error] / 1.96) if heap[error] else math.inf * (heap[figure] != truth)


ESTIMATES = (
    ("live_bytes", "live_error", "live_bytes"),
    ("total_bytes", "total_error", "bytes"),
    ("live_objects", "live_objects_error", "live_objects"),
    ("total_objects", "total_objects_error", "objects"),
)


def test_sampled_heaps_are_unbiased_each_at_its_own_rate(program, record):
    runs = 12
    sums = {}
    for seed in range(runs):
        recording = record(program, "rates", rate="512K", env={"MALLOSCOPE_SEED": str(seed + 1)})
        heaps = api.heaps(recording)
        for name in ("each 4096", "each 65536", "many at once"):
            assert heaps[name]["rate"] == int(re.sub(r"\D", "", name) or 4096)
            for figure, error, key in ESTIMATES:
                away = sigmas(heaps[name], figure, error, recording.ledger[name][key])
                assert abs(away) < 4.5, f"{name}: {figure} is {away} sigma away"
                sums[name, figure] = sums.get((name, figure), 0) + away
    for where, total in sums.items():
        assert abs(total) / math.sqrt(runs) < 4.5, f"{where} is biased"


def test_a_heap_without_a_rate_is_sampled_as_malloc_is(program, record):
    recording = record(program, "as_malloc", rate="4K")
    heap, truth = api.heaps(recording)["as malloc"], recording.ledger["as malloc"]
    assert heap["rate"] == 4096
    assert 1000 < heap["samples"] < 30000
    for figure, error, key in ESTIMATES:
        assert abs(sigmas(heap, figure, error, truth[key])) < 4.5


# --- children ---


def test_a_child_inherits_heaps_and_their_types(program, folder):
    command = harness.record_command(folder / "%p.mscope", [program, "fork"], "exact")
    harness.run(command)
    paths = list(folder.glob("*.mscope"))
    assert len(paths) == 2
    by_parent = sorted(paths, key=lambda path: "of the child" in api.heaps(path))
    child = api.heaps(by_parent[1])
    assert (child["forked"]["live_objects"], child["forked"]["live_bytes"]) == (6, 5 * 50 + 7)
    assert (child["of the child"]["live_objects"], child["of the child"]["live_bytes"]) == (1, 9)
    assert child["forked"]["total_objects"] == 1, "what it inherited was allocated by its parent"
    assert "of the child" not in api.heaps(by_parent[0])
    assert api.by(by_parent[1], "type", heap="forked")["inherited"]["live_objects"] == 0
    assert api.by(by_parent[0], "type", heap="forked")["inherited"]["frees"] == 1


# --- what is wrong ---


def test_wrong_calls_are_refused_and_change_nothing(program, record):
    recording = record(program, "bad")
    heaps = api.heaps(recording)
    truth = recording.ledger["good"]
    assert {figure: heaps["good"][key] for figure, key in FIGURES.items()} == truth
    assert heaps["sampled"]["total_bytes"] == 0
    assert heaps["short options"]["total_bytes"] == 6
    cut = "n" * 997 + "..."
    assert heaps[cut]["total_bytes"] == 5
    assert api.by(recording, "type")[cut]["total_bytes"] == 5
    assert api.by(recording, "scope")[cut]["total_bytes"] == 77
    totals = harness.stats(recording)["totals"]
    assert totals["unknown_frees"] == 2 and totals["drops"] == 0


def test_without_the_recorder_every_call_says_that_it_is_absent(build):
    harness.run([build("api_absent.c", "-O1", "-Werror", api.INCLUDE)])
    harness.run([build("api_absent.cpp", "-O1", "-Werror", api.INCLUDE)])


# --- the smallest program ---


@pytest.mark.parametrize("way", ["heap", "malloc"])
def test_pprof_text_of_the_smallest_program(build, record, folder, pprof, way):
    """Five objects, eleven bytes, three stacks; and both pprofs find their functions and lines."""
    flags = ["-DFROM_HEAP"] if way == "heap" else []
    program = build("api_seed.c", "-O0", api.INCLUDE, *flags)
    recording = record(program)
    profile = export_to(folder, recording, "heap")
    lines = profile.read_text().splitlines()
    assert re.sub(r"\s+", " ", lines[0]) == "heap profile: 5: 11 [5: 11] @ heapprofile"
    entries = [re.sub(r"\s+", " ", line) for line in lines[1 : lines.index("")]]
    assert sorted(entry[: entry.index("@")].strip() for entry in entries) == [
        "1: 3 [1: 3]",
        "2: 4 [2: 4]",
        "2: 4 [2: 4]",
    ]
    assert "MAPPED_LIBRARIES:" in lines and any(str(program) in line for line in lines)

    source = PROGRAMS / "api_seed.c"
    at = {name: numbers[0] for name, numbers in site_lines(source).items()}
    for column in ("inuse_space", "alloc_space"):
        total, flat = google_pprof(program, profile, f"--{column}")
        assert total == 11 and flat["b"] == 7 and flat["a"] == 4
        total, flat = google_pprof(program, profile, "--lines", f"--{column}")
        assert {Path(name).name: value for name, value in flat.items() if value} == {
            f"api_seed.c:{at['b']}": 7,
            f"api_seed.c:{at['a']}": 4,
        }
    # In texts where all is live, Go's pprof sees one pair of columns; in its own format always both.
    own = export_to(folder, recording, "pprof")
    for form, column in ((profile, "space"), (own, "inuse_space"), (own, "alloc_space")):
        flat = pprof_top(pprof, form, f"-sample_index={column}", program)
        assert flat["b"] == 7 and flat["a"] == 4 and flat["main"] == 0
        flat = pprof_top(pprof, form, f"-sample_index={column}", "-lines", program)
        assert {Path(name.split()[1]).name: value for name, value in flat.items() if value} == {
            f"api_seed.c:{at['b']}": 7,
            f"api_seed.c:{at['a']}": 4,
        }
    called = {tuple(api.names(stack)[-3:]): stack["live_bytes"] for stack in api.stacks(recording)}
    assert called[("main", "a", "b")] == 4
    assert {names[-2:]: value for names, value in called.items()} == {("a", "b"): 4, ("main", "a"): 4, ("main", "b"): 3}
