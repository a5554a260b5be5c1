"""The table: one row a workload, one column a variant, each row's bars below it; and the same as JSON."""
import os
import statistics
import sys

TITLE, COLUMN = 30, 12  # widths


def spread(values):
    """Half the distance between the quartiles."""
    if len(values) < 2:
        return 0.0
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return (high - low) / 2


def error_of_median(values):
    """By how much the median of so many values scatters, were they drawn from a normal distribution."""
    return 1.86 * spread(values) / len(values) ** 0.5


def number(value, digits, sign=""):
    """Text of a value, with fewer decimals the larger it is."""
    size = abs(value)
    digits = min(digits, 0 if size >= 100 else 1 if size >= 10 else digits)
    return "%{}.{}f".format(sign, digits) % value


class Bar:
    """A limit and what was measured against it."""

    def __init__(self, text, value, shown, passed):
        self.text, self.value, self.shown, self.passed = text, value, shown, passed

    def as_json(self):
        return {"bar": self.text, "value": self.value, "pass": self.passed}


class Row:
    """Values of each variant, one a round, in one unit; shown against the plain program's as `shown_as` says:
    "difference", "ratio", or "value" for what the plain program has none of."""

    def __init__(self, group, name, title, unit, shown_as, digits=2, medians=True):
        self.group, self.name, self.title, self.unit, self.shown_as = group, name, title, unit, shown_as
        self.digits, self.medians = digits, medians
        self.values, self.bars, self.notes = {}, [], []
        self.count = None  # of what the row is about, where that is a number
        self.below = []  # (title, row) of figures that are shown with this one's
        self.over = {}  # variants that were stopped, and the ratio they had then reached, if that is known

    def add(self, key, value):
        self.values.setdefault(key, []).append(value)

    def least(self, key):
        return min(self.values[key]) if self.values.get(key) else None

    def compare(self, value, base):
        return value / base if self.shown_as == "ratio" else value - base if self.shown_as == "difference" else value

    def relative(self, key, baseline="plain"):
        """Round by round, against the baseline's run of the same round."""
        return [self.compare(*pair) for pair in zip(self.values.get(key, []), self.values.get(baseline, []))]

    def of_least(self, key, baseline="plain"):
        """The least value against the baseline's least: what the machine's other work disturbed least."""
        value, base = self.least(key), self.least(baseline)
        if value is None or base is None and self.shown_as != "value":
            return None
        return self.compare(value, base)

    def by_least(self, key, baseline="plain"):
        if key in self.over and key not in self.values and baseline == "plain":
            return "> %.0f×" % self.over[key] if self.shown_as == "ratio" and self.over[key] else "stopped"
        value = self.least("plain") if key == "plain" else self.of_least(key, baseline)
        if value is None:
            return "·"
        if key == "plain":
            return number(value, 1)
        return number(value, self.digits, "+" if self.shown_as == "difference" else "") + \
            ("×" if self.shown_as == "ratio" else "")

    def by_median(self, key):
        values = self.values.get(key, []) if key == "plain" else self.relative(key)
        if len(values) < 2:
            return ""
        digits = 1 if key == "plain" else self.digits
        sign = "+" if self.shown_as == "difference" and key != "plain" else ""
        return number(statistics.median(values), digits, sign) + "±" + number(spread(values), digits)

    def as_json(self):
        return {"group": self.group, "name": self.name, "unit": self.unit, "shown_as": self.shown_as,
                "variants": {key: {"values": values, "min": min(values), "median": statistics.median(values),
                                   "spread": spread(values), "relative_min": self.of_least(key)}
                             for key, values in self.values.items()},
                "count": self.count, "title": self.title, "stopped_at_ratio": self.over,
                "bars": [bar.as_json() for bar in self.bars], "notes": self.notes}


class Table:
    def __init__(self, variants, colour):
        self.variants, self.colour = variants, colour
        self.column = max(COLUMN, *(len(variant.column) + 1 for variant in variants))

    def header(self, group):
        line = "%-*s" % (TITLE, group) + "".join("%*s" % (self.column, variant.column) for variant in self.variants)
        return ["", line, "─" * len(line)]

    def line(self, title, cells):
        return ("%-*s" % (TITLE, title) + "".join("%*s" % (self.column, cell) for cell in cells)).rstrip()

    def lines(self, row):
        lines = [self.line(row.title, ["—" if v.missing else row.by_least(v.key) for v in self.variants])]
        medians = [row.by_median(variant.key) for variant in self.variants]
        if row.medians and any(medians):
            lines.append(self.line("  median ± spread", medians))
        lines += [self.line(title, [other.by_least(v.key) for v in self.variants]) for title, other in row.below]
        own = [row.by_least(v.key, v.baseline) if v.baseline and row.of_least(v.key, v.baseline) is not None else ""
               for v in self.variants]
        if any(own) and row.shown_as != "value":
            lines.append(self.line("  against its own allocator", own))
        return lines + ["    " + self.verdict(bar) for bar in row.bars] + ["    " + note for note in row.notes]

    def verdict(self, bar):
        word = "pass" if bar.passed else "miss"
        if self.colour:
            word = "\033[%dm%s\033[0m" % (32 if bar.passed else 31, word)
        return "%s  %s: %s" % (word, bar.text, bar.shown)


def use_colour():
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
