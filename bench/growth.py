"""The part GROWTH: what an event costs where there are ever more live blocks, or ever more distinct stacks."""
import programs
import report


class Step(programs.Loop):
    """One of a series. `count` is how many there are of what grows."""
    seconds = 300

    def __init__(self, name, about, file, argument, count):
        super().__init__("growth-" + name, about, file, argument)
        self.count = count


class Series:
    def __init__(self, what, variants, steps):
        self.what, self.variants, self.steps = what, variants, steps


def all_series(full):
    """Each from few to many. 10⁸ live blocks take 12 GiB when all are recorded."""
    live = [Step("live-%d" % count, "%s live blocks" % text, "queue", count, count)
            for count, text in ((10**4, "10⁴"), (10**5, "10⁵"), (10**6, "10⁶"), (10**7, "10⁷"), (10**8, "10⁸"))
            if full or count <= 10**6]
    stacks = [Step("stacks-%d" % (1 << bits), "%d stacks" % (1 << bits), "paths", bits, 1 << bits)
              for bits in ((7, 10, 13, 15, 17, 20) if full else (7, 10, 14))]
    return [Series("live blocks", ("plain", "pass", "512K", "exact"), live),
            Series("stacks", ("plain", "pass", "each", "exact"), stacks)]


def names(full):
    return [step.name for series in all_series(full) for step in series.steps]


def measure(driver, settings, full):
    for series in all_series(full):
        steps = [step for step in series.steps if driver.wanted(step.name)]
        participants = [variant for variant in driver.present if variant.key in series.variants]
        if steps:
            driver.header("GROWTH, ns: plain, + added", keys=series.variants)
        for step in steps:
            row = report.Row("growth, " + series.what, step.name, step.about, "ns", "difference")
            row.count = step.count

            def take(variant, run, row=row):
                row.add(variant.key, float(dict(line.split() for line in run.output.splitlines())["ns"]))
            driver.alternate(step.sized(settings.milliseconds), participants, settings.growth_rounds,
                             settings.growth_rounds, row, take)
            driver.show(row)
