"""What the views for people say, and what they leave out on purpose."""

import csv
import io
import json
import re

import pytest

import harness
from harness import PROGRAMS, malloscope, site_lines

SOURCE = PROGRAMS / "views.c"
PEAK = "9.54 MiB"  # 100 blocks of 100000 bytes


@pytest.fixture
def views(build):
    return build("views.c", "-O0")


def text_of(*arguments):
    return malloscope(*arguments).stdout.decode()


def line_of(name):
    return f"views.c:{site_lines(SOURCE)[name][0]}"


def test_a_program_that_freed_all_is_shown_at_its_peak(views, record):
    recording = record(views, 0)
    report = text_of("report", recording)
    assert f"peak {PEAK}" in report and "note: nearly nothing was live" in report
    first = report.split("SITE\n")[1].splitlines()[0]
    assert first.split()[:4] == ["0", "B", *PEAK.split()] and first.endswith(line_of("large"))
    assert re.search(rf"100\.0% +{PEAK}  \[all\]", text_of("tree", recording))
    assert "nearly nothing" not in text_of("report", recording, "--sort", "live")


def test_a_program_that_keeps_much_is_shown_as_it_ended(views, record):
    recording = record(views, 100000)
    report = text_of("report", recording)
    assert "nearly nothing" not in report
    assert report.split("SITE\n")[1].splitlines()[0].endswith(line_of("bottom"))


def test_the_tree_at_the_peak_adds_up_to_the_peak(build, record):
    recording = record(build("peaks.c", "-O1"))
    peak = harness.stats(recording)["totals"]["peak_bytes"]
    whole = harness.report(recording, "--sort", "peak")
    assert sum(row["at_peak_bytes"] for row in whole["rows"]) == peak
    header = re.search(r"peak ([\d.]+ \w+)", text_of("tree", recording, "--sort", "peak")).group(1)
    assert re.search(rf"100\.0% +{re.escape(header)}  \[all\]", text_of("tree", recording, "--sort", "peak"))


def test_the_summary_of_run_says_where_to_go_on(views, folder):
    errors = {}
    for keep in (0, 100000):
        path = folder / f"{keep}.mscope"
        errors[keep] = malloscope("run", "--exact", "-o", path, "--", views, keep).stderr.decode()
    assert "malloscope tree" in errors[0] and "malloscope leaks" not in errors[0]
    assert "malloscope leaks" in errors[100000]


def test_an_exact_recording_with_drops_does_not_claim_to_be_complete(views, folder):
    path = folder / "small.mscope"
    result = malloscope("run", "--exact", "--max-size", "16M", "-o", path, "--", views, 3000000)
    totals = harness.stats(path)["totals"]
    missing = 1 - totals["total_bytes"] / totals["exact_total_bytes"]
    assert totals["drops"] > 0 and missing > 0.1
    for text in (result.stderr.decode(), text_of("report", path), text_of("tree", path), text_of("leaks", path),
                 text_of("info", path), text_of("stats", path)):
        assert f"INCOMPLETE: {100 * missing:.0f}% of the bytes allocated are missing" in text, text
        assert "--max-size" in text
        assert "every allocation" not in text and ", exact" not in text, text


def test_nothing_live_is_one_sentence(views, record):
    text = text_of("leaks", record(views, 0))
    assert text.splitlines()[-1] == "nothing is still allocated at exit"
    assert "0 objects" not in text


def test_recursion_is_folded(views, record):
    text = text_of("leaks", record(views, 1))
    stack = [line.strip() for line in text.splitlines() if line.startswith("    ")]
    assert stack[0].endswith(line_of("bottom")), "the wrapper of malloc is not the site"
    assert re.fullmatch(rf"descend  .*{line_of('descend')}  x 40", stack[1])
    assert stack[2].startswith("main")
    assert "1 object |" in text


@pytest.mark.parametrize("reader", ["report", "tree", "leaks", "info", "stats", "export"])
def test_several_files_are_added_up_like_a_folder(views, folder, reader):
    place = folder / "all"
    place.mkdir()
    paths = [place / f"{number}.mscope" for number in range(2)]
    for number, path in enumerate(paths):
        harness.run(harness.record_command(path, [views, 1000 * (number + 1)], "exact"))
    options = ["--format", "csv"] if reader == "export" else []
    assert text_of(reader, *paths, *options) == text_of(reader, place, *options)
    assert text_of(reader, *paths, *options) != text_of(reader, paths[0], *options)
    assert text_of(reader, *paths, paths[0], place, *options) == text_of(reader, place, *options), "each counts once"


def test_one_of_several_files_is_bad(views, record, folder):
    good, other = record(views, 10), folder / "other.mscope"
    other.write_bytes(b"hello world\n" * 1000)
    result = malloscope("report", "--json", good, other, expect=5)
    assert json.loads(result.stdout)["totals"] == harness.stats(good)["totals"]
    assert b"other.mscope" in result.stderr and b"left out" in result.stderr
    missing = malloscope("report", "--json", good, folder / "nowhere.mscope", expect=3)
    assert missing.stdout == b"" and b"nowhere.mscope" in missing.stderr


def test_threads_as_csv_leave_empty_what_is_not_known(views, record):
    recording = record(views, 10)
    (row,) = csv.DictReader(io.StringIO(text_of("report", recording, "--by", "thread", "--csv")))
    assert row["thread"].startswith("views (thread ")
    assert int(row["total_bytes"]) == 100 * 100000 + 10 * 200
    assert row["samples"] == "110"
    known = {"thread", "total_bytes", "samples", "recorder_bytes"}
    assert {name for name, value in row.items() if value} == known


def test_a_full_disk_is_reported_once(views, record):
    recording = record(views, 10)
    for command in ("report", "export --format json", "export --format csv", "tree", "help"):
        name = "" if command == "help" else recording
        result = harness.run(["bash", "-c", f"{harness.MALLOSCOPE} {command} {name} > /dev/full"], expect=1)
        assert result.stderr.count(b"malloscope: ") == 1, result.stderr.decode()


def test_advice_about_missing_symbols(build, record):
    stripped = build("views.c", "-O0", "-s")
    assert "note: no symbols for views: build with -g" in text_of("report", record(stripped, 100))
    assert "no symbols" not in text_of("report", record(build("views.c", "-O0"), 100))
