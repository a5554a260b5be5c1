"""The part START: what the recorder adds to the shortest of programs, and how soon the tool shows something."""
import os
import subprocess
import time

import programs
import report
from variants import Variant

MOST_ADDED = 2            # ms
MOST_TO_FIRST_ROW = 300   # ms, of a recording of 100 MiB whose names are in the cache
LEVELS = 9                # of calls: 4^9 stacks, 224 MiB


def names():
    return ["start"]


class Preloaded(Variant):
    """The recorder without the command that starts it."""
    column, about = "preload", "malloscope, one sample per 512 KiB, by LD_PRELOAD alone"

    def __init__(self, key, malloscope):
        super().__init__(key)
        self.malloscope, self.missing = malloscope, malloscope.missing

    def command(self, argv, folder):
        return self.malloscope.preload(folder), argv


class Nothing(programs.Program):
    seconds = 10

    def __init__(self):
        super().__init__("start", "true", "true", "coreutils", lambda bench, size: [])


def measure(driver, settings):
    by_key = {variant.key: variant for variant in driver.present}
    if "512K" not in by_key:
        return
    chosen = [by_key[key] for key in ("plain", "pass", "512K", "exact") if key in by_key]
    chosen.insert(-1, Preloaded("preload", by_key["512K"]))
    tables = [report.Table(chosen, table.colour) for table in (driver.table, driver.plain_table)]
    for line in tables[0].header("START, ms: + added"):
        driver.say(line)
    row = report.Row("start", "start", "true", "ms", "difference")
    driver.alternate(Nothing(), chosen, settings.start_rounds, settings.start_rounds, row,
                     lambda variant, run: row.add(variant.key, run.wall / 1e6))
    driver.bar(row, "512K", "malloscope run ≤ +%d ms" % MOST_ADDED, lambda added: added <= MOST_ADDED, "%+.2f")
    driver.show(row, *tables)
    first_row(driver, by_key["512K"].tool)


def first_row(driver, tool):
    folder = driver.bench.folder()
    recording, times = os.path.join(folder, "many.mscope"), []
    program = os.path.join(driver.bench.workloads, "many_stacks")
    subprocess.run([tool, "run", "-q", "--exact", "-o", recording, "--", program, str(LEVELS)], check=True,
                   stdout=subprocess.DEVNULL, env=driver.bench.environment)
    for _ in range(6):  # the first fills the caches
        begin = time.monotonic_ns()
        subprocess.run([tool, "report", recording], check=True, stdout=subprocess.DEVNULL, env=driver.bench.environment)
        times.append((time.monotonic_ns() - begin) / 1e6)
    row = report.Row("start", "first-row", "a report of %d MiB" % (os.path.getsize(recording) >> 20), "ms", "value")
    row.values["512K"] = times[1:]
    driver.bar(row, "512K", "report ≤ %d ms" % MOST_TO_FIRST_ROW, lambda ms: ms <= MOST_TO_FIRST_ROW, "%.0f")
    driver.show(row, *[report.Table([variant for variant in driver.everyone if variant.key == "512K"], table.colour)
                       for table in (driver.table, driver.plain_table)])
