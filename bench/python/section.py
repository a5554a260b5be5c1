"""The part PYTHON of the bench: what profiling costs scripts of several kinds, beside profilers made for Python.

A script tells the processor time of one of its rounds, so that neither the start of the interpreter nor that of a
profiler counts. Its instructions, start and all, are counted by callgrind."""
import os

import programs
import report
from python.profilers import PYTHON

HERE = os.path.dirname(os.path.realpath(__file__))
SCRIPTS = {"documents": "JSON documents", "dicts": "dictionaries", "strings": "text", "arrays": "numpy",
           "tasks": "asyncio", "recursion": "recursion, 500 deep"}
COUNTED = ("plain", "512K", "floor", "objects-512K")

# Who should slow the program three times as much as whom. The first of each two records the same, native frames
# among Python's; the second, which is what memray does unless it is asked for them, Python's frames alone.
RIVALS = {"exact": {"memray-native": "native frames too", "memray": "Python's frames alone"},
          "objects-exact": {"memray-objects-native": "native frames too", "memray-objects": "Python's frames alone"}}


def names():
    return ["python-" + script for script in SCRIPTS]


class Script(programs.Program):
    seconds = 60

    def __init__(self, name, about):
        path = os.path.join(HERE, "workloads", name + ".py")
        super().__init__("python-" + name, about, PYTHON, "python3", lambda bench, rounds: [path, str(rounds)])


class Python:
    """Reports by way of the bench's driver."""

    def __init__(self, driver, profilers, settings):
        self.driver, self.profilers, self.settings = driver, profilers, settings
        self.tables = report.Table(profilers, report.use_colour()), report.Table(profilers, False)
        self.scripts = [script for script in (Script(*item) for item in SCRIPTS.items()) if driver.wanted(script.name)]

    def everything(self):
        for profiler in self.profilers:
            self.driver.say("  %-14s %s%s" % (profiler.column, profiler.about,
                                              ": SKIPPED, " + profiler.missing if profiler.missing else ""))
        self.header("PYTHON, ms a round: ratios")
        memory = [self.time(script.sized(self.settings.python_sizes[0])) for script in self.scripts]
        self.header("PEAK MEMORY, MiB: + added")
        for row in memory:
            self.driver.show(row, *self.tables)
        if not self.driver.counter.missing:
            self.header("INSTRUCTIONS, 10⁶: ratios")
            self.count([script.sized(self.settings.python_sizes[1]) for script in self.scripts])

    def header(self, text):
        for line in self.tables[0].header(text):
            self.driver.say(line)

    def time(self, script):
        time = report.Row("python", script.name, script.about, "ms", "ratio", digits=3)
        memory = report.Row("python: memory", script.name, script.about, "MiB", "difference", digits=1, medians=False)
        results = {}

        def take(variant, run):
            figures = dict(line.split() for line in run.output.splitlines() if line.startswith(("result ", "ns ")))
            if results.setdefault("plain", figures["result"]) != figures["result"]:
                raise RuntimeError("its result differs from the plain script's")
            time.add(variant.key, float(figures["ns"]) / 1e6)
            memory.add(variant.key, run.peak / 2**20)

        present = [profiler for profiler in self.profilers if not profiler.missing]
        self.driver.alternate(script, present, self.settings.python_rounds, self.settings.python_peer_rounds, time,
                              take)
        self.driver.bar(time, "objects-512K", "objects, 512 KiB ≤ 1.10×", lambda ratio: ratio <= 1.10, "%.3f×")
        for own, rivals in RIVALS.items():
            for rival, frames in rivals.items():
                self.rival_bar(time, own, rival, frames)
        self.driver.show(time, *self.tables)
        return memory

    @staticmethod
    def rival_bar(row, own, rival, frames):
        plain, ours, theirs = (row.least(key) for key in ("plain", own, rival))
        if None in (plain, ours, theirs):
            return
        times = (theirs - plain) / (ours - plain) if ours > plain else None
        row.bars.append(report.Bar("%s (%s) ≥ 3 × %s" % (rival, frames, own), times,
                                   "within noise" if times is None else "%.1f ×" % times, times is None or times >= 3))

    def count(self, scripts):
        rows = {script.name: report.Row("python: instructions", script.name, script.about, "million", "ratio", digits=4,
                                        medians=False) for script in scripts}

        def done(job, result):
            variant, script, _ = job
            if isinstance(result, Exception):
                self.driver.failed("callgrind, " + script.name, variant, result)
            else:
                rows[script.name].add(variant.key, result[0] / 1e6)
            self.driver.progress("callgrind: %s, %s" % (script.name, variant.key))

        counted = [profiler for profiler in self.profilers if profiler.key in COUNTED and not profiler.missing]
        runs = [(profiler, script, script.name) for script in scripts for profiler in counted]
        self.driver.counter.count_all(runs, done)
        self.driver.progress("")
        for row in rows.values():
            self.driver.bar(row, "512K", "512 KiB ≤ 1.01×", lambda ratio: ratio <= 1.01, "%.4f×")
            self.driver.bar(row, "objects-512K", "objects, 512 KiB ≤ 1.10×", lambda ratio: ratio <= 1.10, "%.4f×")
            self.driver.show(row, *self.tables)


def measure(driver, profilers, settings):
    """The whole part."""
    Python(driver, profilers, settings).everything()
