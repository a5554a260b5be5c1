"""timeline: the heap over time, as a plot and for programs."""

import csv
import io
import json
import re

import pytest

import harness
from harness import malloscope

MIB = 1 << 20


@pytest.fixture
def recording(build, record):
    return record(build("peaks.c", "-O1"))


def test_the_plot_marks_the_peak_and_has_units(recording):
    peak = harness.stats(recording)["totals"]["peak_bytes"]
    text = malloscope("timeline", recording, env={"COLUMNS": "80"}).stdout.decode()
    head, plot = text.split("\n\n", 1)
    lines = plot.splitlines()
    mark = re.search(r"v peak ([\d.]+) MiB at [\d.]+ (?:us|ms)$", lines[0])
    assert abs(float(mark.group(1)) * MIB - peak) < 0.05 * MIB
    column = "".join(line[mark.start() : mark.start() + 1] for line in lines[1:])
    assert "#" in column, "there is no column below the mark"
    assert re.match(r" *[\d.]+ MiB \+", lines[1]) and re.match(r" +0 B \++-", lines[-2]) and "0 ms" in lines[-1]
    assert max(map(len, lines)) <= 80


def test_where_there_is_utf_8_the_plot_is_of_blocks(recording):
    text = malloscope("timeline", recording, env={"LC_ALL": "C.UTF-8", "COLUMNS": "60"}).stdout.decode()
    assert "█" in text and "▼ peak" in text and "└┬" in text and "#" not in text
    assert max(map(len, text.splitlines())) <= 60


def test_csv_and_json_have_the_moments_of_the_export(recording, folder):
    malloscope("export", recording, "--format", "json", "-o", folder / "all.json")
    moments = json.loads((folder / "all.json").read_text())["timeline"]
    found = json.loads(malloscope("timeline", recording, "--json").stdout)
    assert found["timeline"] == moments and len(moments) > 10
    totals = harness.stats(recording)["totals"]
    assert found["peak_bytes"] == totals["peak_bytes"] == max(moment["live_max"] for moment in moments)
    rows = list(csv.DictReader(io.StringIO(malloscope("timeline", recording, "--csv").stdout.decode())))
    assert [{key: float(value) for key, value in row.items()} for row in rows] == moments
    assert rows and sum(float(row["allocated"]) for row in rows) == totals["total_bytes"]


def test_several_recordings_have_no_common_time(recording, folder, record, build):
    record(build("hello.c"))
    result = malloscope("timeline", folder, expect=2)
    assert b"several recordings" in result.stderr and b"name one" in result.stderr
    both = malloscope("timeline", recording, "--csv", "--json", expect=2)
    assert b"exclude each other" in both.stderr
