#!/usr/bin/env python3
"""The tables of docs/performance.md that come from a run of the bench, written into the page between their markers:

    bench/tables.py [RESULTS.json]        default: docs/bench/results.json
    bench/tables.py --check               changes nothing; ends with 1 if the page is not what it would write

A marker is a line `<!-- table: NAME -->`; its table ends with the next empty line. tests/e2e/test_documents.py has the
page checked, so that no figure in these tables differs from what was measured."""

import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "performance.md"
RESULTS = ROOT / "docs" / "bench" / "results.json"


def marked(text, is_kept):
    return text if is_kept else f"**{text}**"


def row(*cells):
    return "| " + " | ".join(cells) + " |"


def head(*cells):
    """Titles and the line below; titles that begin with > are those of figures."""
    names = [cell.lstrip(">") for cell in cells]
    return [row(*names), "|" + "|".join("---:" if cell.startswith(">") else "---" for cell in cells) + "|"]


class Results:
    def __init__(self, path):
        self.rows = json.loads(path.read_text())["rows"]

    def of(self, group):
        return [row for row in self.rows if row["group"] == group]

    def find(self, group, name):
        return next(row for row in self.of(group) if row["name"] == name)


def is_kept(entry, *words):
    """Whether all bars whose text has these words were kept."""
    return all(bar["pass"] for bar in entry["bars"] if all(word in bar["bar"] for word in words))


def difference(entry, variant):
    value = entry["variants"].get(variant)
    if not value:
        return "·"
    return f"{value['relative_min']:+.2f}" if abs(value["relative_min"]) < 10 else f"{value['relative_min']:+,.0f}"


def ratio(entry, variant, digits=4):
    value = entry["variants"].get(variant)
    return f"{value['relative_min']:.{digits}f}×" if value else "·"


def least(entry, variant="plain"):
    value = entry["variants"][variant]["min"]
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def span(values):
    def text(value):
        return f"{value:,.0f}" if value >= 20 else f"{value:.{digits}f}"
    digits = 3 if all(0.9 < value < 1.3 for value in values) else 1 if max(values) > 3 else 2
    low, high = text(min(values)), text(max(values))
    return low if low == high else f"{low} … {high}"


# ---- the tables ----

PARTS = {
    "loops": "loops of malloc and free", "programs": "programs, time", "memory": "programs, memory added",
    "files": "programs, size of files", "instructions": "programs, instructions", "calls": "one call, instructions",
    "start": "start and reading", "attach": "attach, beside memleak", "python": "Python, processor time",
    "python: instructions": "Python, instructions",
}  # fmt: skip


WORDS = {
    "-sampled": " -s 1000", "attach-512K": "ours at 512 KiB", "attach-exact": "ours, exact",
    "memray-objects-native (native frames too)": "memray --native, objects,",
    "memray-objects (Python's frames alone)": "memray, objects,", "objects-exact": "ours",
    "memray-native (native frames too)": "memray --native", "memray (Python's frames alone)": "memray",
}  # fmt: skip


def in_words(bar):
    for word, words in WORDS.items():
        bar = bar.replace(word, words)
    return bar


def bars(results):
    """Every bar of the bench, gathered by its text: what was measured, and which workloads missed it."""
    lines = head("part", "bar", ">measured", ">kept", "missed by")
    for group, part in PARTS.items():
        gathered = {}
        for entry in results.of(group):
            for bar in entry["bars"]:
                gathered.setdefault(bar["bar"], []).append((entry, bar))
        for text, found in gathered.items():
            values = [bar["value"] for _, bar in found if bar["value"] is not None]
            missed = [entry["name"].removeprefix("python-") for entry, bar in found if not bar["pass"]]
            kept = f"{len(found) - len(missed)} of {len(found)}"
            lines.append(row(part, in_words(text), span(values) if values else "no overhead",
                             marked(kept, not missed), ", ".join(missed[:3]) + (", …" if len(missed) > 3 else "")))
    return lines


def loops(results):
    lines = head("ns for a pair", ">plain", ">pass-through", ">512 KiB", ">64 KiB", ">exact", ">heaptrack")
    for entry in results.of("loops"):
        lines.append(row(entry["title"], least(entry), difference(entry, "pass"),
                         marked(difference(entry, "512K"), is_kept(entry, "512 KiB")), difference(entry, "64K"),
                         marked(difference(entry, "exact"), is_kept(entry, "heaptrack")),
                         difference(entry, "heaptrack")))
    return lines


def instructions(results):
    lines = head("instructions", ">plain, millions", ">pass-through", ">512 KiB", ">64 KiB", ">memory added, 512 KiB")
    for entry in results.of("instructions"):
        memory = results.find("memory", entry["name"])
        lines.append(row(entry["title"], least(entry), ratio(entry, "pass"),
                         marked(ratio(entry, "512K"), is_kept(entry, "512 KiB")),
                         marked(ratio(entry, "64K"), is_kept(entry, "64 KiB")), difference(memory, "512K") + " MiB"))
    return lines


def bar_value(entry, *words):
    bar = next(bar for bar in entry["bars"] if all(word in bar["bar"] for word in words))
    value = bar["value"]
    text = "all" if value is None else f"{value:,.0f} ×" if value >= 20 else f"{value:.1f} ×"
    return marked(text, bar["pass"])


def exact(results):
    lines = head("", ">exact", ">heaptrack", ">overhead, theirs to ours", ">recording, MiB", ">data, theirs to ours",
                 ">and to our archive")
    for entry in results.of("programs"):
        file = results.find("files", entry["name"])
        lines.append(row(entry["title"], ratio(entry, "exact", 2), ratio(entry, "heaptrack", 2),
                         bar_value(entry, "heaptrack"), f"{file['variants']['exact']['min']:.2f}",
                         bar_value(file, "exact's"), bar_value(file, "archive")))
    for entry in results.of("loops"):
        if "heaptrack" in entry["variants"]:
            lines.append(row(entry["title"], difference(entry, "exact") + " ns", difference(entry, "heaptrack") + " ns",
                             bar_value(entry, "heaptrack"), "", "", ""))
    return lines


def growth(results):
    lines = head("live blocks", ">512 KiB", ">exact")
    for entry in results.of("growth, live blocks"):
        lines.append(row(entry["title"], difference(entry, "512K"), difference(entry, "exact")))
    return lines


def stacks(results):
    lines = head("distinct stacks", ">exact", ">each allocation sampled")
    for entry in results.of("growth, stacks"):
        lines.append(row(f"{entry['count']:,}", difference(entry, "exact"), difference(entry, "each")))
    return lines


def attach(results):
    lines = head("pairs a second", ">plain, ns", ">512 KiB", ">memleak -s 1000", ">exact", ">memleak", ">bpftrace")
    for entry in results.of("attach"):
        share = results.find("attach: share of a processor", entry["name"])["variants"]
        cells = [entry["title"].replace(" allocations/s", ""), least(entry)]
        for variant in ("attach-512K", "memleak-sampled", "attach-exact", "memleak", "bpftrace"):
            percent = share[variant]["min"]
            cells.append(f"{difference(entry, variant)} ({percent:.1f} %)" if percent < 10
                         else f"{difference(entry, variant)} ({percent:.0f} %)")
        lines.append(row(*cells))
    return lines


def python_malloc(results):
    lines = head("", ">plain, ms", ">512 KiB", ">instructions", ">exact", ">memray", ">memray, native",
                 ">overhead, theirs to ours")
    for entry in results.of("python"):
        counted = results.find("python: instructions", entry["name"])
        lines.append(row(entry["title"], least(entry), ratio(entry, "512K", 3),
                         marked(ratio(counted, "512K"), is_kept(counted, "512 KiB ≤ 1.01")), ratio(entry, "exact", 2),
                         ratio(entry, "memray", 2), ratio(entry, "memray-native", 2),
                         bar_value(entry, "memray-native", "× exact")))
    return lines


def python_objects(results):
    lines = head("", ">floor", ">objects, 512 KiB", ">exact", ">memray, native", ">overhead, theirs to ours",
                 ">memray, Python's frames", ">overhead")
    for entry in results.of("python"):
        lines.append(row(entry["title"], ratio(entry, "floor", 3),
                         marked(ratio(entry, "objects-512K", 3), is_kept(entry, "objects, 512 KiB")),
                         ratio(entry, "objects-exact", 2), ratio(entry, "memray-objects-native", 2),
                         bar_value(entry, "memray-objects-native"), ratio(entry, "memray-objects", 2),
                         bar_value(entry, "memray-objects (")))
    return lines


TABLES = {table.__name__: table for table in
          (bars, loops, instructions, exact, growth, stacks, attach, python_malloc, python_objects)}  # fmt: skip


def write_into(text, results):
    lines, out, unused = text.split("\n"), [], set(TABLES)
    while lines:
        line = lines.pop(0)
        out.append(line)
        if not line.startswith("<!-- table: "):
            continue
        name = line.split()[2]
        unused.remove(name)
        while lines and lines[0]:
            lines.pop(0)
        out += TABLES[name](results)
    if unused:
        sys.exit(f"tables: {PAGE.name} has no marker for {', '.join(sorted(unused))}")
    return "\n".join(out)


def main():
    arguments = sys.argv[1:]
    is_check = arguments[:1] == ["--check"]
    results = Results(Path(arguments[0]) if arguments and not is_check else RESULTS)
    text = PAGE.read_text()
    made = write_into(text, results)
    if is_check:
        return int(made != text)
    PAGE.write_text(made)
    return 0


if __name__ == "__main__":
    sys.exit(main())
