#!/usr/bin/env python3
"""check_aarch64.py FOLDER IMAGE: are the recordings that init_aarch64 made right? IMAGE is the root folder of that
machine, where the files lie that its addresses are in. Prints a line for each, like the other tests there."""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "e2e"))
from harness import PROGRAMS, malloscope  # noqa: E402
from test_ground_truth import COUNTED, assert_adds_up, assert_ledger  # noqa: E402
from test_stacks import assert_handlers_and_coroutines  # noqa: E402

folder, image = Path(sys.argv[1]), sys.argv[2]


def read(name, *command):
    return json.loads(malloscope(*command, "--sysroot", image, folder / f"{name}.mscope").stdout)


def check_truth(name, source, figures):
    whole = read(name, "report", "--json", "-n", "0")
    assert_ledger(json.loads((folder / f"{name}.txt").read_text()), whole["rows"], PROGRAMS / source, figures)
    assert_adds_up(whole)
    assert whole["health"]["complete"] >= 0.99, f"{whole['health']['complete']:.1%} of the stacks are complete"


def check_handlers():
    assert_handlers_and_coroutines(read("stacks-O0", "export", "--format", "json", "-o", "-"), "/test/stacks-O0")


def check_stacks():
    whole = read("stacks-O2", "report", "--json", "-n", "0")
    assert whole["totals"]["samples"] > 3000 and whole["totals"]["drops"] == 0 and whole["health"]["complete"] >= 0.99


def check_guarded():
    assert (folder / "guarded.txt").read_text() == "guarded\nall functions\n"


def check_integrity():
    totals = read("integrity", "report", "--json", "-n", "0")["totals"]
    assert totals["samples"] > 100 and totals["live_bytes"] <= max(20000, 0.001 * totals["total_bytes"])


CHECKS = {
    "signal handlers and coroutines": check_handlers,
    "complete stacks": check_stacks,
    "entry code under guard": check_guarded,
    "blocks hold what was written": check_integrity,
}
for optimise in ("O0", "O2"):
    for program, source, figures in (
        ("truth", "truth.c", COUNTED + ("peak_bytes",)),
        ("truth_threads", "truth_threads.c", COUNTED + ("peak_bytes",)),
        ("truth_cpp", "truth_cpp.cpp", COUNTED),
    ):
        name = f"{program}-{optimise}"
        CHECKS[f"figures of {name}"] = lambda arguments=(name, source, figures): check_truth(*arguments)

for what, check in CHECKS.items():
    try:
        check()
        print(f"ok {what}")
    except Exception as problem:  # a recording that cannot be read is a failure of that test alone
        print(f"FAIL {what}: {' '.join(str(problem).split())[:500]}")
