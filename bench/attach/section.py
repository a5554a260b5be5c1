"""The part ATTACH of the bench: what being attached to costs a program, at four paces, beside other tracers."""
import os
import shutil

import report
from attach.target import Target, attached, processor_time

PACES = {1000: "1 k allocations/s", 10000: "10 k allocations/s", 100000: "100 k allocations/s",
         1000000: "1 M allocations/s"}

# Who is compared with whom: the like of it that memleak can do.
RIVALS = {"attach-512K": "memleak-sampled", "attach-exact": "memleak"}


class Attained(report.Row):
    """Pairs of malloc and free in a second: the best run is the one with the most."""

    def least(self, key):
        return max(self.values[key]) if self.values.get(key) else None


class Attach:
    """Reports by way of the bench's driver."""

    def __init__(self, driver, chosen, program, folder, rounds, milliseconds):
        self.driver, self.tracers, self.program, self.folder = driver, chosen, program, folder
        self.rounds, self.milliseconds = rounds, milliseconds
        self.target = {rate: report.Row("attach", "%d/s" % rate, title, "ns", "difference", digits=0)
                       for rate, title in PACES.items()}
        self.tool = {rate: report.Row("attach: the tracer's own time", "%d/s" % rate, title, "ns", "value", digits=0)
                     for rate, title in PACES.items()}
        self.attained = {rate: Attained("attach: attained", "%d/s" % rate, title, "1000/s", "value", digits=1)
                         for rate, title in PACES.items()}

    def everything(self):
        for tracer in self.tracers:
            self.driver.say("  %-14s %s%s" % (tracer.column, tracer.about,
                                              ": SKIPPED, " + tracer.missing if tracer.missing else ""))
        self.measure_all()
        tables = report.Table(self.tracers, report.use_colour()), report.Table(self.tracers, False)
        for line in tables[0].header("ATTACH, ns: plain, + added"):
            self.driver.say(line)
        for rate, row in self.target.items():
            row.below = [("  % of a processor, added", self.share_of_processor(rate)),
                         ("  the tracer's own time, ns", self.tool[rate]),
                         ("  attained, 1000/s", self.attained[rate])]
            for key, rival in RIVALS.items():
                self.bar(row, key, rival)
            self.driver.show(row, *tables)
            self.driver.rows += [other for _, other in row.below]

    def share_of_processor(self, rate):
        """By how much a program is slowed that makes this many pairs a second and is never idle."""
        row = report.Row("attach: share of a processor", "%d/s" % rate, PACES[rate], "%", "value")
        for tracer in self.tracers[1:]:
            added = self.target[rate].of_least(tracer.key)
            if added is not None:
                row.add(tracer.key, added * rate / 1e7)
        return row

    @staticmethod
    def bar(row, key, rival):
        own, other = row.of_least(key), row.of_least(rival)
        if own is not None and other is not None:
            row.bars.append(report.Bar("%s ≥ 2 × %s" % (rival, key), other / own, "%.1f ×" % (other / own),
                                       other >= 2 * own))

    def measure_all(self):
        broken = set()
        for number in range(self.rounds):
            order = [tracer for tracer in self.tracers if not tracer.missing and tracer.key not in broken]
            for tracer in order if number % 2 == 0 else reversed(order):
                self.driver.progress("attach, round %d of %d, %s" % (number + 1, self.rounds, tracer.key))
                try:
                    self.measure(tracer)
                except (RuntimeError, OSError, ValueError) as problem:
                    broken.add(tracer.key)
                    self.driver.failed("attach", tracer, problem)
        self.driver.progress("")

    def measure(self, tracer):
        """All paces in one session: some tracers take seconds to begin."""
        folder = self.driver.bench.folder()
        target = Target(self.program, self.folder, tracer.preload)
        try:
            with attached(tracer, target, folder, self.driver.bench.environment) as process:
                for rate in PACES:
                    before = processor_time(process.pid) if process else 0
                    pairs, used, passed = target.run(rate, self.milliseconds)
                    self.target[rate].add(tracer.key, used / pairs)
                    self.attained[rate].add(tracer.key, pairs * 1e6 / passed)
                    if process:
                        self.tool[rate].add(tracer.key, (processor_time(process.pid) - before) / pairs)
            target.end()
            lost = tracer.lost(folder)
            if lost:
                self.target[max(PACES)].notes.append("%s lost %d allocations in a round" % (tracer.key, lost))
        finally:
            target.process.kill()
            target.process.wait()
            shutil.rmtree(folder, ignore_errors=True)


def measure(driver, chosen, results, rounds, milliseconds):
    """The whole part; `chosen` are the tracers."""
    folder = os.path.join(results, "attach")
    os.makedirs(folder, exist_ok=True)
    Attach(driver, chosen, os.path.join(driver.bench.workloads, "paced"), folder, rounds, milliseconds).everything()
