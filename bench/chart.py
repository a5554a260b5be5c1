#!/usr/bin/python3
"""Draws what the bench has measured: docs/bench/*.svg from a results.json.

    bench/chart.py [RESULTS]        default: docs/bench/results.json
"""
import json
import math
import os
import sys
from xml.sax.saxutils import escape

HERE = os.path.dirname(os.path.realpath(__file__))
FOLDER = os.path.join(HERE, "..", "docs", "bench")

# Key, what the legend calls it, colour, mark. Malloscope's own are blue and filled.
NATIVE = [
    ("pass", "a library that only jumps on", "#888", "tick"),
    ("512K", "malloscope, 512 KiB", "#0b5cd5", "dot"),
    ("64K", "malloscope, 64 KiB", "#4f9bff", "dot"),
    ("exact", "malloscope, exact", "#0a2f6b", "dot"),
    ("heaptrack", "heaptrack", "#e06c00", "ring"),
    ("tcmalloc-prof", "tcmalloc's profiler*", "#2a8f3c", "ring"),
    ("tcmalloc-sampler", "tcmalloc's samples*", "#7cc48a", "ring"),
    ("jemalloc-prof", "jemalloc's profiler*", "#8d3bbd", "ring"),
    ("massif", "massif", "#b5121b", "ring"),
    ("dhat", "DHAT", "#e88", "ring"),
]
PYTHON = [
    ("512K", "malloscope, 512 KiB", "#0b5cd5", "dot"),
    ("objects-512K", "with objects, 512 KiB", "#4f9bff", "dot"),
    ("exact", "malloscope, exact", "#0a2f6b", "dot"),
    ("objects-exact", "exact, with objects", "#6b7fa8", "dot"),
    ("memray", "memray", "#e06c00", "ring"),
    ("memray-objects", "memray, with objects", "#ffb066", "ring"),
    ("memray-objects-native", "memray, objects, native frames", "#b5121b", "ring"),
    ("tracemalloc", "tracemalloc", "#2a8f3c", "ring"),
    ("scalene", "Scalene", "#8d3bbd", "ring"),
]
GROWTH = [
    ("512K", "malloscope, 512 KiB", "#0b5cd5", "dot"),
    ("each", "malloscope, each one a sample", "#4f9bff", "dot"),
    ("exact", "malloscope, exact", "#0a2f6b", "dot"),
]
# A profiler that is part of an allocator is compared with a run on that allocator without profiling.
BASELINE = {"tcmalloc-prof": "tcmalloc", "tcmalloc-sampler": "tcmalloc", "jemalloc-prof": "jemalloc"}
LEFT, TOP, WIDTH, ROW = 225, 46, 560, 26
MARGIN = 20
COLUMNS, COLUMN = 3, 260  # of the legend


class Drawing:
    def __init__(self, width, height):
        self.size, self.parts = (width, height), []

    def add(self, part, *values):
        self.parts.append(part % values)

    def line(self, x1, y1, x2, y2, colour="#ddd", width=1.0):
        self.add('<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s" stroke-width="%.1f"/>', x1, y1, x2, y2,
                 colour, width)

    def text(self, x, y, text, anchor="start", colour="#333", weight="normal"):
        self.add('<text x="%.1f" y="%.1f" text-anchor="%s" fill="%s" font-weight="%s">%s</text>', x, y, anchor, colour,
                 weight, escape(text))

    def mark(self, kind, x, y, colour, title):
        shape = {"dot": '<circle cx="%.1f" cy="%.1f" r="4.5" fill="%s"><title>%s</title></circle>',
                 "ring": '<circle cx="%.1f" cy="%.1f" r="4" fill="none" stroke-width="2" stroke="%s">'
                         '<title>%s</title></circle>',
                 "tick": '<rect x="%.1f" y="%.1f" width="2" height="12" transform="translate(-1,-6)" fill="%s">'
                         '<title>%s</title></rect>'}
        self.add(shape[kind], x, y, colour, escape(title))

    def legend(self, entries, y):
        for i, (_, title, colour, kind) in enumerate(entries):
            x, place = MARGIN + i % COLUMNS * COLUMN, y + i // COLUMNS * 20
            self.mark(kind, x, place, colour, title)
            self.text(x + 10, place + 4, title)

    def write(self, name):
        path = os.path.join(FOLDER, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write('<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" '
                       'font-family="DejaVu Sans, sans-serif" font-size="12">\n' % (self.size * 2))
            file.write('<rect width="100%" height="100%" fill="white"/>\n' + "\n".join(self.parts) + "\n</svg>\n")
        print(os.path.relpath(path))


def ratio_of(row, key):
    """None if it was not measured."""
    baseline = row["variants"].get(BASELINE.get(key, "plain"))
    return row["variants"][key]["min"] / baseline["min"] if key in row["variants"] and baseline else None


def ratio_text(ratio):
    return "%.3f×" % ratio if ratio < 1.1 else "%.2f×" % ratio if ratio < 10 else "%.0f×" % ratio


def ratios(rows, name, title, known):
    """One line a program, on a scale of ratios to the plain run."""
    entries = [entry for entry in known if any(entry[0] in row["variants"] for row in rows)]
    if not rows:
        return
    legend = TOP + ROW * len(rows) + 52
    drawing = Drawing(LEFT + WIDTH + 40, legend + 20 * math.ceil(len(entries) / COLUMNS) + 16)
    most = max(filter(None, (ratio_of(row, key) for row in rows for key, *_ in entries)))
    low, high = math.log(0.9), math.log(max(most * 1.1, 2))
    place = lambda ratio: LEFT + WIDTH * (math.log(max(ratio, 0.9)) - low) / (high - low)
    drawing.text(MARGIN, 22, title, weight="bold")
    bottom = TOP + ROW * len(rows)
    for ratio in (1, 1.5, 2, 3, 5, 10, 20, 50, 100):
        if ratio <= most * 1.1:
            drawing.line(place(ratio), TOP - 6, place(ratio), bottom, "#999" if ratio == 1 else "#ddd")
            drawing.text(place(ratio), bottom + 16, "%g×" % ratio, "middle", "#666")
    for i, row in enumerate(rows):
        y = TOP + ROW * i + ROW / 2
        drawing.line(LEFT, y, LEFT + WIDTH, y, "#eee")
        drawing.text(LEFT - 10, y + 4, row["title"], "end")
        for key, label, colour, kind in reversed(entries):
            ratio = ratio_of(row, key)
            if ratio:
                drawing.mark(kind, place(ratio), y, colour, "%s, %s: %s" % (row["title"], label, ratio_text(ratio)))
    drawing.legend(entries, legend)
    notes = ["* against its own allocator, not profiled"] if any(key in BASELINE for key, *_ in entries) else []
    stopped = sorted({title for row in rows for key, title, *_ in known if key in row["stopped_at_ratio"] and
                      key not in row["variants"]})
    if stopped:
        notes.append("beyond the right edge, stopped: " + ", ".join(stopped))
    drawing.text(MARGIN, drawing.size[1] - 8, "; ".join(notes), colour="#666")
    drawing.write(name)


def growth(rows, name, title, of_what):
    """Added nanoseconds against a count, both on logarithmic scales."""
    entries = [entry for entry in GROWTH if any(entry[0] in row["variants"] for row in rows)]
    if len(rows) < 2:
        return
    height, legend = 260, TOP + 260 + 64
    drawing = Drawing(LEFT + WIDTH + 40, legend + 16)
    x_of = scale([row["count"] for row in rows], LEFT, LEFT + WIDTH)
    added = [max(row["variants"][key]["relative_min"], 0.5)
             for row in rows for key, *_ in entries if key in row["variants"]]
    y_of = scale([0.5, *added, 1000], TOP + height, TOP)
    drawing.text(MARGIN, 22, title, weight="bold")
    for power in range(0, 5):
        if 10**power <= max(added + [1000]) * 1.01:
            drawing.line(LEFT, y_of(10**power), LEFT + WIDTH, y_of(10**power))
            drawing.text(LEFT - 10, y_of(10**power) + 4, "%d ns" % 10**power, "end", "#666")
    for row in rows:
        drawing.line(x_of(row["count"]), TOP, x_of(row["count"]), TOP + height, "#eee")
        drawing.text(x_of(row["count"]), TOP + height + 16, "{:,}".format(row["count"]), "middle", "#666")
    drawing.text(LEFT + WIDTH / 2, TOP + height + 34, of_what, "middle")
    for key, label, colour, kind in entries:
        points = [(x_of(row["count"]), y_of(max(row["variants"][key]["relative_min"], 0.5)), row) for row in rows
                  if key in row["variants"]]
        drawing.add('<polyline fill="none" stroke="%s" stroke-width="1.5" points="%s"/>', colour,
                    " ".join("%.1f,%.1f" % point[:2] for point in points))
        for x, y, row in points:
            drawing.mark(kind, x, y, colour,
                         "%s, %s: %+.2f ns" % (row["title"], label, row["variants"][key]["relative_min"]))
    drawing.legend(entries, legend)
    drawing.write(name)


def scale(values, low, high):
    least, most = math.log(min(values)), math.log(max(values))
    return lambda value: low + (high - low) * (math.log(value) - least) / (most - least)


def main():
    path = sys.argv[1] if len(sys.argv) > 1 else os.path.join(FOLDER, "results.json")
    with open(path, encoding="utf-8") as file:
        rows = json.load(file)["rows"]
    of = lambda group: [row for row in rows if row["group"] == group]
    ratios(of("programs"), "programs.svg", "Time of real programs, against the plain run (log scale)", NATIVE)
    ratios(of("python"), "python.svg", "Processor time of Python scripts, against the plain run (log scale)", PYTHON)
    growth(of("growth, live blocks"), "growth-live.svg",
           "What a free and a malloc cost more, with ever more live blocks", "live blocks")
    growth(of("growth, stacks"), "growth-stacks.svg",
           "What a malloc and a free cost more, from ever more stacks, 24 calls deep", "distinct stacks")


if __name__ == "__main__":
    main()
