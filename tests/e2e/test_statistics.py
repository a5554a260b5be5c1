"""Sampled mode as a statistical test: no bias, and error bars that mean what they say.

The seeds are fixed, so that a run of this test is repeatable; the bounds hold for any seeds with the chances
that the comments state.
"""

import json
import sys

import pytest

import harness

sys.path.insert(0, str(harness.ROOT / "tests" / "stats"))
import seeds as harness_of_seeds  # noqa: E402
from seeds import FIGURES, mean_and_error, run_seeds  # noqa: E402

SOURCE = harness.ROOT / "tests" / "stats" / "mix.c"
RUNS = 400
RATE = 65536


@pytest.fixture(scope="module")
def runs(build, session_folder):
    program = build(str(SOURCE), "-O1")
    return run_seeds(program, SOURCE, RATE, range(1, RUNS + 1), session_folder)


@pytest.fixture(scope="module")
def truth(runs, build, session_folder):
    """What the program did, per site as it says itself, in total as exact mode says (libc allocates too)."""
    ledger, _ = runs
    _, places = harness_of_seeds.run_seed(build(str(SOURCE), "-O1"), SOURCE, "exact", 0, session_folder)
    truth = {name: {figure: site[figure] for figure in FIGURES} for name, site in ledger["sites"].items()}
    for name, site in truth.items():
        assert {figure: places[name][figure] for figure in FIGURES} == site, f"exact mode is wrong about {name}"
    truth["totals"] = {figure: places["totals"][figure] for figure in FIGURES}
    return truth


def test_estimates_are_not_biased(runs, truth):
    """The mean over all runs lies within three standard errors of the truth (a chance of 0.3 % each to fail)."""
    wrong, checked = [], 0
    for place, figures in truth.items():
        for figure, true in figures.items():
            mean, error = mean_and_error([run[place][figure] for run in runs[1]])
            checked += 1
            if abs(mean - true) > max(3 * error, 1e-6 * true):
                wrong.append(f"{place} {figure}: mean {mean:.1f} ± {error:.1f}, truth {true}")
    assert checked == 4 * 8
    assert not wrong, "\n".join(wrong)


def test_exact_bytes_are_exact_beside_sampled_stacks(runs, truth):
    for run in runs[1]:
        assert run["totals"]["exact_total_bytes"] == truth["totals"]["total_bytes"]


def test_intervals_cover_the_truth(runs, truth):
    """value ± error holds the truth in 92 to 98 % of the runs, for each figure that rests on enough samples."""
    wrong, checked = [], set()
    for place, figures in truth.items():
        for figure, true in figures.items():
            error = figure.split("_")[0] + "_error" if figure.endswith("bytes") else figure + "_error"
            measured = [run[place] for run in runs[1] if error in run[place]]
            if not measured or sum(one["samples"] for one in measured) / RUNS < 100:
                continue
            if sum(one[error] for one in measured) / len(measured) < 0.001 * true:
                continue  # all but certain: sizes far above the rate are always sampled
            covered = sum(abs(one[figure] - true) <= one[error] for one in measured) / len(measured)
            checked.add((place, figure))
            if not 0.92 <= covered <= 0.98:
                wrong.append(f"{place} {figure}: {100 * covered:.1f} % of {len(measured)} intervals hold {true}")
    assert {(place, "live_bytes") for place in ("totals", "tiny", "small", "medium", "pages")} <= checked
    assert not wrong, "\n".join(wrong)


def test_sizes_far_above_the_rate_are_certain(runs, truth):
    for run in runs[1]:
        assert run["huge"]["live_bytes"] == pytest.approx(truth["huge"]["live_bytes"], rel=1e-9)
        assert run["huge"]["live_objects"] == pytest.approx(truth["huge"]["live_objects"], rel=1e-9)


def test_runs_differ_and_samples_follow_the_rate(runs, truth):
    totals = [run["totals"] for run in runs[1]]
    assert len({total["live_bytes"] for total in totals}) > RUNS * 0.9
    assert all(total["rate"] == RATE and total["drops"] == 0 for total in totals)


def test_short_threads_are_seen_with_a_seed(build, record):
    """Each thread allocates less than there is between two samples, and its record is used again by the next: with a
    seed they must not all draw the same. Nearly all lie within 5 standard errors."""
    recording = record(build("short_threads.c"), rate=RATE, env={"MALLOSCOPE_SEED": "1"})
    totals = harness.report(recording)["totals"]
    assert totals["total_bytes"] > 0.5 * json.loads(recording.stdout)["total_bytes"]
    assert abs(totals["total_bytes"] - totals["exact_total_bytes"]) < 2.5 * totals["total_error"]
