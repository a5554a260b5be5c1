"""Runs one program under many seeds and gathers what the reports say. Used by tests/e2e/test_statistics.py."""

import concurrent.futures
import math
import os

import harness
from harness import figures_of_site

FIGURES = ("live_bytes", "live_objects", "total_bytes", "total_objects")


def run_seed(program, source, rate, seed, folder):
    """The estimates of one run: {place: {figure: value, figure_error: half-width, samples: n}}."""
    path = folder / f"{seed}.mscope"
    result = harness.run(harness.record_command(path, [program], rate), env={"MALLOSCOPE_SEED": str(seed)})
    whole = harness.report(path)
    path.unlink()
    rows = whole["rows"]
    places = {"totals": whole["totals"]}
    for name, lines in harness.site_lines(source).items():
        mine = [row for row in rows if row["line"] in lines and row["file"] and row["file"].endswith(source.name)]
        place = figures_of_site(rows, source, name)
        # Rows are independent: their errors add in squares.
        for error in {key for row in mine for key in row if key.endswith("_error")}:
            place[error] = math.sqrt(sum(row[error] ** 2 for row in mine))
        places[name] = place
    return harness.json.loads(result.stdout), places


def run_seeds(program, source, rate, seeds, folder):
    """All runs, as many at once as there are processors: (what the program said, [places of a run])."""
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        runs = list(pool.map(lambda seed: run_seed(program, source, rate, seed, folder), seeds))
    return runs[0][0], [places for _, places in runs]


def mean_and_error(values):
    """The mean of the runs and its standard error."""
    mean = sum(values) / len(values)
    variance = sum((value - mean) ** 2 for value in values) / (len(values) - 1)
    return mean, math.sqrt(variance / len(values))
