"""The peak of the heap in sampled recordings: a maximum of estimates is too large, so it is estimated in another way
(docs/sampling.md, section 4). The seeds are fixed; the bounds hold for any seeds with the chances that are stated."""

import concurrent.futures
import json
import os
import re

import pytest

import harness

RATE = 16384
RUNS = 150
SHAPES = ("steady", "hump", "spike", "growth")


@pytest.fixture(scope="module")
def program(build):
    return build("peak_shapes.c", "-O1")


def run_seed(program, folder, shape, seed):
    """What the program says, and the report of its recording."""
    path = folder / f"{shape}.{seed}.mscope"
    command = harness.record_command(path, [program, shape], RATE)
    told = json.loads(harness.run(command, env={"MALLOSCOPE_SEED": str(seed)}).stdout)
    whole = harness.report(path)
    path.unlink()
    return told, whole


@pytest.fixture(scope="module")
def runs(program, session_folder):
    """By shape: the true peak, and the reports of all runs."""
    by_shape = {}
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for shape in SHAPES:
            done = list(pool.map(lambda seed: run_seed(program, session_folder, shape, seed), range(1, RUNS + 1)))
            by_shape[shape] = done[0][0]["peak"], [whole for _, whole in done]
    return by_shape


def test_the_peak_of_a_steady_heap_is_not_too_large(runs):
    """The maximum is 1.8 times the truth here. The estimate has a standard deviation of a quarter of the truth."""
    true, reports = runs["steady"]
    found = [whole["totals"]["peak_bytes"] for whole in reports]
    assert sum(found) / RUNS == pytest.approx(true, rel=0.08)


@pytest.mark.parametrize("shape", SHAPES)
def test_the_peak_is_not_above_the_truth_on_average(runs, shape):
    """Four standard errors: √RUNS × a quarter of the truth."""
    true, reports = runs[shape]
    found = [whole["totals"]["peak_bytes"] for whole in reports]
    assert sum(found) / RUNS <= true * (1 + 4 * 0.27 / RUNS**0.5)
    assert sum(found) / RUNS >= 0.7 * true


@pytest.mark.parametrize("shape", SHAPES)
def test_the_peak_lies_between_its_bounds(runs, shape):
    """In at least 91 % of the runs, which is two standard errors below 95 %."""
    true, reports = runs[shape]
    totals = [whole["totals"] for whole in reports]
    covered = sum(one["peak_bytes"] - one["peak_error"] <= true <= one["peak_at_most"] for one in totals)
    assert covered / RUNS >= 0.91, f"{covered} of {RUNS} hold {true}"


@pytest.mark.parametrize("shape", ["steady", "growth"])
def test_the_error_of_the_peak_covers_where_the_moment_does_not_matter(runs, shape):
    true, reports = runs[shape]
    totals = [whole["totals"] for whole in reports]
    covered = sum(abs(one["peak_bytes"] - true) <= one["peak_error"] for one in totals)
    assert covered / RUNS >= 0.89, f"{covered} of {RUNS} intervals hold {true}"


@pytest.mark.parametrize("shape", SHAPES)
def test_rows_add_up_to_the_peak_and_nothing_contradicts_it(runs, shape):
    for whole in runs[shape][1]:
        totals = whole["totals"]
        for figure in ("peak_bytes", "at_peak_bytes"):
            assert sum(row[figure] for row in whole["rows"]) == pytest.approx(totals["peak_bytes"], rel=1e-6)
        assert all(row["peak_bytes"] >= 0 for row in whole["rows"])
        assert totals["live_bytes"] <= totals["peak_bytes"] + 1e-6
        most = max(totals["exact_total_bytes"], totals["live_bytes"])  # what is live is an estimate itself
        assert totals["peak_bytes"] <= totals["peak_at_most"] <= most + 1e-6


def test_exact_recordings_know_their_peak(program, record):
    recording = record(program, "steady", rate="exact")
    totals = harness.stats(recording)["totals"]
    assert totals["peak_error"] == 0 and totals["peak_at_most"] == totals["peak_bytes"]
    true = json.loads(recording.stdout)["peak"]
    assert true <= totals["peak_bytes"] < true + 10000, "libc has some of its own"


def test_the_peak_has_its_error_in_every_text(program, record):
    recording = record(program, "steady", rate=RATE)
    peak = harness.report(recording)["totals"]
    error = peak["peak_error"]
    assert error > 0
    for command in (["report"], ["tree"], ["leaks"], ["stats"], ["timeline"]):
        text = harness.malloscope(*command, recording).stdout.decode()
        assert re.search(r"peak +[\d.]+ \w+ (±|\+-) ", text), (command, text)
    timeline = json.loads(harness.malloscope("timeline", "--json", recording).stdout)
    assert timeline["peak_error"] == error and timeline["peak_at_most"] == peak["peak_at_most"]
