#!/usr/bin/env python3
"""What the tests have run of the recorder and the model, by line, after a build with -Db_coverage=true was used.

    tests/coverage.py build-coverage

Prints each file, and the folders that are to be run to at least 90 %; writes the same to coverage.txt in the build
folder. Ends with 1 if a folder is below that."""

import collections
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
FOLDERS = ["platform", "core", "unwind", "record", "model"]
LEAST = 90.0  # percent of the lines of each folder


def measure(build):
    """gcovr's table of files, and its figures. A line counts as run if any program that it is part of ran it."""
    table, figures = build / "coverage.txt", build / "coverage.json"
    chosen = [option for name in FOLDERS for option in ("--filter", f"src/{name}/")]
    # Counts of branches are left out: threads that run on while a program ends may leave negative ones.
    odd = ["--gcov-ignore-parse-errors"]
    result = subprocess.run(
        ["gcovr", "--root", ROOT, "--object-directory", build, *chosen, *odd, "--txt", table,
         "--json-summary", figures],
        cwd=ROOT, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    if result.returncode:
        sys.exit(f"coverage: gcovr failed:\n{result.stderr[-2000:]}")
    return table, json.loads(figures.read_text())["files"]


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    table, files = measure(build)
    lines = collections.Counter()
    for file in files:
        folder = pathlib.Path(file["filename"]).parts[1]
        lines[folder, "all"] += file["line_total"]
        lines[folder, "run"] += file["line_covered"]
    summary, is_low = [], False
    for folder in FOLDERS:
        run, total = lines[folder, "run"], lines[folder, "all"]
        percent = 100 * run / total if total else 0.0
        is_low |= percent < LEAST
        summary.append(f"src/{folder:<8} {run:5} of {total:5} lines  {percent:5.1f} %")
    with open(table, "a") as out:
        print(*summary, sep="\n", file=out)
    print(table.read_text(), end="")
    if is_low:
        print(f"coverage: a folder is below {LEAST:.0f} %", file=sys.stderr)
    return int(is_low)


if __name__ == "__main__":
    sys.exit(main())
