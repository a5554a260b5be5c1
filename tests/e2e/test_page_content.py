"""What is in the HTML page and what is not, and that a page of very many calls is small and smooth."""

import json
import os
import re
import subprocess
import time

import pytest

import harness
import web_page
from harness import PROGRAMS, malloscope
from test_page import (  # pylint: disable=unused-import
    assert_quiet,
    browser,
    bytes_text,
    data_of,
    frame_at,
    make,
    pages,
    recordings,
)

pytestmark = pytest.mark.skipif(not web_page.find(), reason="no chromium here (Debian: apt install chromium)")


def test_names_do_no_harm(browser, folder):
    """A name of a function, file, module or program is shown as text, never read as HTML."""
    bad = "</script><img src=x onerror='document.title=1'>"
    source = (PROGRAMS / "hostile_names.c").read_text()
    source = source.replace("HOSTILE_FUNCTION", "stand_in").replace("HOSTILE_FILE", f'"/tmp/<b>{bad}.c"')
    (folder / "bad.c").write_text(source)
    harness.run(["gcc", "-g", "-O1", "-S", folder / "bad.c", "-o", folder / "bad.s"])
    assembler = (folder / "bad.s").read_text()
    (folder / "bad.s").write_text(re.sub(r'(\.(?:string|ascii)\s+")stand_in\b', lambda m: m[1] + bad, assembler))
    program = folder / "<i onclick=x>&amp;"
    harness.run(["gcc", folder / "bad.s", "-o", program])
    harness.run(harness.record_command(folder / "bad.mscope", [program], "exact"))
    shown = make(folder / "bad.mscope", folder / "bad.html", "--raw-site")
    page = browser.open_page(shown, "#search=" + "%3Cimg%20src")
    found = f"malloscope.report.frames.some((frame) => frame.name === {json.dumps(bad)})"
    assert page.evaluate(found), "the name did not come through"
    assert page.evaluate("document.querySelectorAll('img, i, b').length") == 0
    assert page.text("#program") == program.name and bad in page.text("#sites")
    page.mouse("mouseMoved", *frame_at(page, bad))
    page.click_at(*frame_at(page, bad))
    page.click("#as-table")
    page.settle()
    assert bad in page.text("#details-title") and bad in page.text("#calls")
    assert page.evaluate("document.title") == f"{program.name} · malloscope"
    assert_quiet(page)


def test_the_page_runs_no_other_script(browser, pages):
    page = browser.open_page(pages["exact"])
    page.evaluate("document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"document.title=1\">')")
    page.evaluate("(() => { const s = document.createElement('script'); s.textContent = 'document.title = 2';"
                  " document.body.append(s); })()")
    page.settle()
    assert page.evaluate("document.title").endswith("malloscope")
    assert any("Content Security Policy" in text for text in page.complaints)


def test_a_page_tells_no_more_than_it_must(recordings, pages, build, folder):
    text = json.dumps({**data_of(pages["exact"]), "sources": []})
    private = ["secret-argument", str(build("page.c", "-O1")), str(PROGRAMS), str(recordings["exact"])]
    assert not [word for word in private if word in text]
    full = json.dumps(data_of(make(recordings["exact"], folder / "full.html", "--full")))
    assert not [word for word in private if word not in full]
    for name, value in os.environ.items():
        assert len(value) < 12 or value in ("C.UTF-8",) or value not in text, name


def test_source_can_be_left_out(browser, recordings, folder):
    path = make(recordings["exact"], folder / "bare.html", "--no-source")
    assert "@site leak" not in json.dumps(data_of(path))
    page = browser.open_page(path)
    page.evaluate("[...document.querySelectorAll('#sites .link')].find((e) => e.textContent === 'leak').click()")
    assert "without source lines" in page.text("#details")


def test_only_source_files_are_quoted(folder):
    """Debug information may name any file: one that is not named like source code is not shown."""
    secret = folder / "id_rsa"
    secret.write_text("first\nPRIVATE KEY\nthird\n" * 5)
    source = (PROGRAMS / "hostile_names.c").read_text()
    (folder / "odd.c").write_text(source.replace("HOSTILE_FUNCTION", "odd").replace("HOSTILE_FILE", f'"{secret}"'))
    harness.run(["gcc", "-g", "-O1", folder / "odd.c", "-o", folder / "odd"])
    harness.run(harness.record_command(folder / "odd.mscope", [folder / "odd"], "exact"))
    data = data_of(make(folder / "odd.mscope", folder / "odd.html"))
    assert any(name.endswith("id_rsa") for name in data["files"]) and "PRIVATE KEY" not in json.dumps(data)


def test_what_is_small_is_merged_and_said(browser, build, record, folder):
    recording = record(build("many_stacks.c", "-O1"), 5)
    whole = data_of(make(recording, folder / "whole.html"))
    assert whole["merged_calls"] == 0
    nodes = len(whole["nodes"]) // 3
    page = browser.open_page(make(recording, folder / "small.html", "--nodes", "500"))
    kept, merged = page.evaluate("[malloscope.report.nodeCount, malloscope.report.raw.merged_calls]")
    held = page.evaluate("malloscope.report.merged.filter((count) => count > 0).length")
    assert kept - held <= 501 and kept - 1 - held + merged == nodes
    assert f"{merged:,} calls" in page.text("#merged") and "merged" in page.text("#merged")
    totals = harness.stats(recording)["totals"]
    assert page.evaluate("malloscope.tree.value(0)") == totals["live_bytes"]
    assert sum(row["total_bytes"] for row in harness.report(recording)["rows"]) == totals["total_bytes"]
    assert_quiet(page)


def test_report_and_export_write_the_same_page(recordings, pages, folder):
    malloscope("report", recordings["exact"], "--html", "-q", "-o", folder / "report.html")
    malloscope("export", recordings["exact"], "--format", "html", "-q", "-o", folder / "export.html")
    assert (folder / "report.html").read_bytes() == pages["exact"].read_bytes() == (folder / "export.html").read_bytes()
    filtered = data_of(make(recordings["exact"], folder / "some.html", "--filter", "burst"))
    assert len(filtered["sites"]["frames"]) == 1 and filtered["filter"] == "burst"
    again = malloscope("flame", recordings["exact"], "-o", folder / "report.html", expect=1)
    assert b"report.html" in again.stderr and b"-f" in again.stderr
    wrong = malloscope("report", recordings["exact"], "--html", "--json", expect=2)
    assert b"exclude each other" in wrong.stderr
    assert malloscope("flame", recordings["exact"]).stdout == pages["exact"].read_bytes(), "to a pipe"


def test_the_page_of_several_processes_has_no_timeline(browser, recordings, folder):
    page = browser.open_page(make(recordings["exact"], folder / "two.html", recordings["2000"]))
    assert page.evaluate("document.querySelector('#time').hidden") and page.text("#program") == "2 processes"
    expected = json.loads(malloscope("report", "--json", *recordings.values()).stdout)["totals"]
    assert page.text("[data-metric=live] .whole") == bytes_text(expected["live_bytes"])
    assert_quiet(page)


def test_a_running_program_has_a_page(browser, build, folder, start):
    program = start([harness.MALLOSCOPE, "run", "-q", "-o", folder / "run.mscope", "--exact",
                     "--", build("waiting.c"), folder / "go"], stdout=subprocess.DEVNULL)
    child = harness.child_of(program.pid, "waiting")
    deadline = time.monotonic() + harness.PATIENCE
    while malloscope("stats", child, expect=None).returncode != 0:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    page = browser.open_page(make(child, folder / "now.html"))
    assert "running for" in page.text("#run")
    assert_quiet(page)


def test_nothing_recorded_is_a_page_too(browser, build, record, folder):
    page = browser.open_page(make(record(build("hello.c"), rate="1G"), folder / "none.html"))
    assert "nothing was sampled" in page.text("#notes") and "nothing" in page.text("#merged").lower()
    for key in "1234bic":
        page.key(key)
    assert_quiet(page)


# --- speed ---


def thread_seconds(page):
    """The processor time that the page's own thread has taken so far."""
    metrics = page.send("Performance.getMetrics")["metrics"]
    return next(metric["value"] for metric in metrics if metric["name"] == "ThreadTime")


@pytest.mark.quiet
def test_a_hundred_thousand_calls_are_moved_smoothly(browser, build, record, folder):
    recording = record(build("many_stacks.c", "-O1"), 8)
    page = browser.open_page(make(recording, folder / "many.html", "--nodes", "0"), "#metric=total")
    assert page.evaluate("malloscope.report.nodeCount") >= 100000
    measure = """new Promise((done) => {
        const {flame} = malloscope, times = [];
        flame.setWindow(0.2, 0.6, 0);
        const step = (now) => {
            times.push(now);
            flame.pan(times.length % 60 < 30 ? -9 : 9, 0);
            if (times.length <= 90) requestAnimationFrame(step);
            else done(times.slice(1).map((time, i) => time - times[i]).sort((a, b) => a - b));
        };
        requestAnimationFrame(step);
    })"""
    page.send("Performance.enable")
    before = thread_seconds(page)
    intervals = page.evaluate(measure)
    rate = 1000 * len(intervals) / sum(intervals)
    if rate < 30 and os.getloadavg()[0] > os.cpu_count():
        # Others use the machine: what counts is how many frames the page could draw with a processor of its own.
        rate = len(intervals) / (thread_seconds(page) - before)
    print(f"{rate:.0f} frames a second, {page.evaluate('malloscope.flame.boxes')} boxes drawn")
    assert rate >= 30
    assert page.evaluate("malloscope.flame.boxes") > 1000
    page.evaluate("malloscope.change({view: 'callers', at: ''})")
    assert_quiet(page)


def test_the_page_of_very_many_stacks_is_small(build, record, folder):
    recording = record(build("many_stacks.c", "-O1"), 9, rate="500")
    path = make(recording, folder / "many.html")
    data = data_of(path)
    assert data["merged_calls"] > 0 and path.stat().st_size < 10 << 20
