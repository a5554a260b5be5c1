"""The HTML page, in a real browser: what it shows, that its controls do what they say, and what it must not do."""

import base64
import gzip
import json
import re
import tempfile
from pathlib import Path

import pytest

import harness
import web_page
from harness import PROGRAMS, malloscope, site_lines

pytestmark = pytest.mark.skipif(not web_page.find(), reason="no chromium here (Debian: apt install chromium)")

SOURCE = PROGRAMS / "page.c"
PICTURES = harness.BUILD / "page-pictures"
# The page's table of sites, with the names of their frames and without their long arrays of births.
SITES = "malloscope.report.sites.map((site) => ({...malloscope.report.frames[site.frame], ...site, births: 0}))"


@pytest.fixture(scope="module")
def browser():
    with web_page.Browser() as running:
        yield running


@pytest.fixture(scope="module")
def recordings(build, session_folder):
    """The same program, exact and sampled."""
    program = build("page.c", "-O1")
    place, paths = Path(tempfile.mkdtemp(dir=session_folder)), {}
    for rate in ("exact", "2000"):
        paths[rate] = place / f"page-{rate}.mscope"
        harness.run(harness.record_command(paths[rate], [program, "secret-argument"], rate))
    return paths


def make(source, path, *options):
    malloscope("flame", source, "-o", path, "-f", "-q", *options)
    return path


def data_of(path):
    """What the page knows, without a browser."""
    packed = re.search(r'id="data">([^<]*)<', Path(path).read_text())[1]
    return json.loads(gzip.decompress(base64.b64decode(packed)))


@pytest.fixture(scope="module")
def pages(recordings):
    return {rate: make(path, path.with_suffix(".html")) for rate, path in recordings.items()}


@pytest.fixture
def page(browser, pages):
    return browser.open_page(pages["exact"])


def assert_quiet(page):
    assert page.complaints == [] and page.requests == [page.address.split("#")[0]], (page.complaints, page.requests)


def bytes_text(value):
    """As the page writes sizes."""
    names = ["B", "KiB", "MiB", "GiB", "TiB"]
    size, power = value, 0
    while size >= 1023.5:
        size, power = size / 1024, power + 1
    if power == 0:
        return f"{int(size + 0.5)} B"
    digits = 0 if size >= 99.95 else 1 if size >= 9.995 else 2
    return f"{size:.{digits}f} {names[power]}"


def frame_at(page, name):
    """The middle of the widest box of a function, on the screen."""
    return page.evaluate(f"""(() => {{
        const flame = malloscope.flame, tree = flame.tree, found = [];
        flame.canvas.scrollIntoView({{block: 'center'}});
        const box = flame.canvas.getBoundingClientRect();
        const visit = (node) => {{
            const frame = malloscope.report.frames[tree.frame(node)];
            if (frame && frame.name === {json.dumps(name)}) found.push(node);
            tree.children(node).forEach(visit);
        }};
        visit(tree.root);
        found.sort((a, b) => tree.value(b) - tree.value(a));
        const middle = tree.start(found[0]) + tree.value(found[0]) / 2;
        return [box.x + (middle - flame.origin) * flame.scale, box.y + (tree.depth(found[0]) + 0.5) * 20 - flame.top];
    }})()""")


def crumbs(page):
    return page.evaluate("[...document.querySelectorAll('#crumbs .link')].map((crumb) => crumb.textContent)")


def shown_sites(page, column):
    return page.evaluate(
        f"[...document.querySelectorAll('#sites tbody [data-key={column}]')].map((cell) => cell.textContent)")


# --- numbers ---


@pytest.mark.parametrize("rate", ["exact", "2000"])
def test_the_page_loads_in_silence_and_shows_what_the_report_says(browser, pages, recordings, rate):
    page = browser.open_page(pages[rate])
    report = harness.report(recordings[rate])
    assert page.evaluate("malloscope.report.raw.totals") == report["totals"]
    assert page.evaluate("malloscope.report.raw.health") == report["health"]
    for metric in ("live", "peak", "total", "temporary"):
        assert page.text(f"[data-metric={metric}] .whole") == bytes_text(report["totals"][f"{metric}_bytes"])

    rows = {(row["function"], row["line"]): row for row in report["rows"]}
    sites = page.evaluate(SITES)
    assert len(sites) == len(rows) == len(report["rows"])
    for site in sites:
        row = rows[site["name"], site["line"]]
        same = [key for key in row if key in site and key not in ("file", "module", "heap", "lifetime")]
        assert len(same) >= 19 and all(site[key] == row[key] for key in same)
    page.click("[data-sort=live_bytes]")  # it is sorted by that, so this turns the order round
    page.click("[data-sort=live_bytes]")
    live = [bytes_text(row["live_bytes"]) for row in report["rows"]]
    assert [text.split(" ±")[0] for text in shown_sites(page, "live_bytes")] == live
    assert any("±" in text for text in shown_sites(page, "live_bytes")) == (rate != "exact")
    assert_quiet(page)


@pytest.mark.parametrize("rate", ["exact", "2000"])
def test_both_graphs_add_up_to_the_report(browser, pages, recordings, rate):
    page = browser.open_page(pages[rate])
    report = harness.report(recordings[rate])
    names = {"live": "live", "peak": "at_peak", "total": "total", "temporary": "temporary"}
    for view in ("calls", "callers"):
        for metric, name in names.items():
            for unit in ("bytes", "objects"):
                page.evaluate(f"malloscope.change({{metric: '{metric}', unit: '{unit}', view: '{view}', at: ''}})")
                whole = page.evaluate("malloscope.tree.value(malloscope.tree.root)")
                assert whole == sum(row[f"{name}_{unit}"] for row in report["rows"])
    # In the graph of callers the first row is the sites.
    page.evaluate("malloscope.change({metric: 'total', unit: 'bytes', view: 'callers', at: ''})")
    found = page.evaluate("malloscope.tree.children(0).map((node) => "
                          "[malloscope.report.frames[malloscope.tree.frame(node)].name, malloscope.tree.value(node)])")
    expected = [[row["function"], row["total_bytes"]] for row in report["rows"] if row["total_bytes"] > 0]
    assert sorted(found) == sorted(expected)


def test_errors_of_calls_are_those_of_the_report(browser, pages, recordings):
    page = browser.open_page(pages["2000"], "#view=callers")
    row = next(row for row in harness.report(recordings["2000"])["rows"] if row["function"] == "leak")
    error = page.evaluate("""(() => { const {tree, report} = malloscope;
        const node = tree.children(0).find((child) => report.frames[tree.frame(child)].name === 'leak');
        const sum = Figures.sum(report, tree.rows(node));
        return Figures.error(report, sum.live_bytes, sum.live_bytes_variance, 'bytes'); })()""")
    assert error == pytest.approx(row["live_error"], rel=1e-4) and error > 0


def test_heaps_types_and_scopes_are_told_apart(browser, build, record, folder):
    recording = record(build("api_views.c", "-O1", f"-I{harness.ROOT / 'include'}"))
    page = browser.open_page(make(recording, folder / "named.html"), "#metric=live")
    rows = harness.report(recording)["rows"]
    key = ["name", "line", "heap", "type", "live_bytes"]
    sites = page.evaluate(SITES)
    expected = [[row["function"], row["line"], row["heap"], row["type"], row["live_bytes"]] for row in rows]
    assert sorted(map(str, ([site[name] for name in key] for site in sites))) == sorted(map(str, expected))
    assert "heap textures · type Pixel" in page.text("#sites")
    names = page.evaluate("malloscope.report.frames.filter((frame) => frame.given).map((frame) => frame.name)")
    assert {"[heap textures]", "[type Account]", "[scope load]", "[scope parse]"} <= set(names)
    assert "[named by the program]" in page.text("#legend")
    # The births of each site are its own.
    live = page.evaluate("malloscope.report.sites.map((site) =>"
                         " [site.births ? site.births.reduce((a, b) => a + b, 0) : 0, site.live_bytes])")
    assert all(born == bytes for born, bytes in live)
    page.evaluate("[...document.querySelectorAll('#sites .link')].find((e) => e.textContent === 'texture').click()")
    assert crumbs(page)[-1] == "texture", "behind its type"
    assert_quiet(page)


def test_python_frames_stand_in_both_graphs(browser, record, folder):
    script = "def build(n):\n    return [bytearray(2000) for _ in range(n)]\n\nkept = build(500)\n"
    (folder / "work.py").write_text(script)
    recording = record("/usr/bin/python3", folder / "work.py")
    page = browser.open_page(make(recording, folder / "python.html"), "#metric=total&view=callers&colour=language")
    row = max((row for row in harness.report(recording)["rows"] if row["file"]), key=lambda row: row["total_bytes"])
    assert row["file"].endswith("work.py") and row["line"] == 2 and row["total_objects"] >= 500
    # A site may stand in several rows, by heap; the graph has it once.
    first = page.evaluate(
        "(() => { const {tree, report} = malloscope; const node = tree.widest(report.frames.findIndex("
        f"(frame) => frame.interpreted && frame.name === {json.dumps(row['function'])} && frame.line === 2));"
        " return [tree.value(node), tree.depth(node)]; })()"
    )
    assert first[0] >= row["total_bytes"] >= 500 * 2000 and first[1] == 1
    assert "Python" in page.evaluate("[...document.querySelectorAll('#legend li')].map((item) => item.textContent)")
    assert_quiet(page)


# --- controls ---


def test_the_figure_is_switched(page, recordings):
    graph = {}
    for metric in ("peak", "total", "temporary", "live"):
        page.click(f"[data-metric={metric}]")
        assert page.evaluate("document.querySelector('[aria-checked=true].card').dataset.metric") == metric
        graph[metric] = page.evaluate("malloscope.flame.tree.value(0)")
    totals = harness.stats(recordings["exact"])["totals"]
    assert graph == {metric: totals[f"{metric}_bytes"] for metric in graph}
    page.click("[data-value=objects]")
    assert page.evaluate("malloscope.flame.tree.value(0)") == totals["live_objects"]
    page.click("[data-value=bytes]")
    assert page.evaluate("malloscope.flame.tree.value(0)") == totals["live_bytes"]
    assert_quiet(page)


def test_click_zooms_and_back_and_crumbs_lead_out(page):
    page.click("[data-metric=total]")
    page.click_at(*frame_at(page, "serve"))
    page.settle()
    # It calls from several lines, so the line is told.
    serve = crumbs(page)[-1]
    assert re.fullmatch(r"serve:\d+", serve) and any(crumb.startswith("main:") for crumb in crumbs(page))
    left, right = page.evaluate("[malloscope.flame.left, malloscope.flame.right]")
    assert right - left < 0.99
    assert page.text("#details-title") == "serve"
    page.click_at(*frame_at(page, "burst"))
    assert crumbs(page)[-1] == "burst"
    page.click("#back")
    page.wait(f"[...document.querySelectorAll('#crumbs .link')].at(-1).textContent === '{serve}'")
    page.click("#crumbs .link")
    assert crumbs(page) == ["all"] and page.evaluate("malloscope.flame.right - malloscope.flame.left") == 1
    assert_quiet(page)


def test_drag_pans_and_the_wheel_zooms(page):
    page.click("[data-metric=total]")
    x, y = frame_at(page, "serve")
    page.mouse("mouseWheel", x, y, deltaX=0, deltaY=-300, modifiers=2)
    page.settle()
    before = page.evaluate("[malloscope.flame.left, malloscope.flame.right]")
    assert before[1] - before[0] < 0.5
    page.drag((x, y), (x - 100, y))
    page.settle()
    after = page.evaluate("[malloscope.flame.left, malloscope.flame.right]")
    assert after[0] > before[0] and after[1] - after[0] == pytest.approx(before[1] - before[0])
    assert crumbs(page) == ["all"], "a drag is no click"


def test_search_tells_what_matches_hold(page, recordings):
    page.click("[data-metric=total]")
    page.key("/")
    page.type("qsort|bur")
    expected = harness.report(recordings["exact"], "--filter", "qsort|bur")["rows"]
    total = sum(row["total_bytes"] for row in expected)
    assert float(page.evaluate("document.querySelector('#matched').dataset.value")) == total
    assert bytes_text(total) in page.text("#matched")
    assert page.evaluate("[...document.querySelectorAll('#sites tbody .link')].map((e) => e.textContent)") == ["burst"]
    page.type("(")
    assert "regular expression" in page.text("#matched")
    assert page.evaluate("document.querySelector('#search').ariaInvalid") == "true"
    page.key("Escape")
    assert page.evaluate("document.querySelector('#matched').hidden && document.querySelector('#search').value === ''")
    assert_quiet(page)


def test_everything_can_be_done_with_keys(page):
    page.key("3")
    assert page.evaluate("malloscope.state.metric") == "total"
    page.key("b")
    assert page.evaluate("malloscope.state.unit") == "objects"
    page.key("i")
    assert page.evaluate("malloscope.state.view") == "callers"
    page.key("c")
    assert page.evaluate("malloscope.state.colour") == "language"
    page.evaluate("document.querySelector('#flame').focus()")
    page.key("ArrowDown")
    first = page.text("#spoken")
    assert first.startswith("churn, ") and page.text("#details-title") == "churn"
    page.key("ArrowRight")
    second = page.text("#spoken")
    assert second != first
    page.key("ArrowLeft")
    page.key("ArrowDown")
    page.key("Enter")
    assert len(crumbs(page)) == 3 and crumbs(page)[1] == "churn"
    page.key("Escape")
    assert crumbs(page) == ["all"]
    page.key("Backspace")
    page.wait("document.querySelectorAll('#crumbs .link').length === 3")
    page.key("?")
    assert page.evaluate("document.querySelector('#help').open")
    page.key("Escape")
    page.wait("!document.querySelector('#help').open")
    page.evaluate("document.querySelector('.card[aria-checked=true]').focus()")
    page.key("ArrowRight")
    assert page.evaluate("malloscope.state.metric") == "temporary"
    assert_quiet(page)


def test_every_element_of_use_has_a_name(page):
    nameless = page.evaluate("""[...document.querySelectorAll('button, input, canvas, [role]')].filter((element) =>
        !(element.ariaLabel || element.textContent.trim() || element.labels?.length
          || element.getAttribute('aria-labelledby') || element.id === 'tooltip'
          || element.getAttribute('role') === 'status')).map((element) => element.outerHTML)""")
    assert nameless == []


def test_colours_are_those_of_modules_or_languages(page):
    legend = "[...document.querySelectorAll('#legend li')].map((item) => item.textContent)"
    assert {"page", "libc.so.6"} <= set(page.evaluate(legend))
    fills = page.evaluate("malloscope.colours.fill.join()")
    page.click("[data-value=language]")
    assert "C" in page.evaluate(legend) and "page" not in page.evaluate(legend)
    assert page.evaluate("malloscope.colours.fill.join()") != fills


@pytest.mark.parametrize("rate", ["exact", "2000"])
def test_the_tooltip_tells_all_about_a_call(browser, pages, rate):
    page = browser.open_page(pages[rate], "#metric=total")
    page.mouse("mouseMoved", *frame_at(page, "serve"))
    page.settle()
    text = page.text("#tooltip")
    assert "serve" in text and "programs/page.c:" in text and "on average" in text and "objects" in text
    assert ("±" in text) == (rate != "exact")
    bars = "[...document.querySelectorAll('#tooltip .bar')]"
    heights = page.evaluate(f"{bars}.map((bar) => bar.getBoundingClientRect().height)")
    assert len(heights) == 16 and sum(height > 0 for height in heights) >= 1
    x, y = frame_at(page, "serve")
    page.mouse("mouseMoved", x, y - 400)
    assert page.evaluate("document.querySelector('#tooltip').hidden")


def test_few_samples_are_warned_of(browser, folder, build, record):
    recording = record(build("page.c", "-O1"), rate=100000)
    page = browser.open_page(make(recording, folder / "few.html"))
    samples = harness.stats(recording)["totals"]["samples"]
    assert 0 < samples < 100
    assert f"on only {samples} samples" in page.text("#notes")
    assert f"rests on {samples} sample" in page.text("[data-metric=total]")
    page.mouse("mouseMoved", *frame_at(page, "main"))
    assert "take it as rough" in page.text("#tooltip")
    assert_quiet(page)


def test_sites_are_sorted_by_every_column(page):
    sites = "malloscope.report.sites"
    columns = "[...document.querySelectorAll('#sites [data-sort]')].map((button) => button.dataset.sort)"
    for column in page.evaluate(columns):
        for _ in range(2):
            page.click(f"[data-sort={column}]")
            order = page.evaluate("[...document.querySelectorAll('#sites tbody tr')]"
                                  f".map((row) => {sites}[row.dataset.site].{column})")
            direction = page.evaluate(f"document.querySelector('[data-sort={column}]').parentElement.ariaSort")
            if column == "site":
                order = [name.lower().lstrip("_") for name in order]
            assert order == sorted(order, reverse=direction == "descending"), column
    assert_quiet(page)


def test_more_sites_are_shown_when_asked_for(browser, folder):
    lines = "\n".join(f"    kept = malloc({1000 + i});" for i in range(120))
    (folder / "sites.c").write_text(f"#include <stdlib.h>\nvoid *volatile kept;\nint main(void) {{\n{lines}\n}}\n")
    harness.run(["gcc", "-g", "-O1", folder / "sites.c", "-o", folder / "sites"])
    harness.run(harness.record_command(folder / "sites.mscope", [folder / "sites"], "exact"))
    page = browser.open_page(make(folder / "sites.mscope", folder / "sites.html"))
    rows = "document.querySelectorAll('#sites tbody tr').length"
    assert page.evaluate(rows) == 50
    assert "70 are left" in page.text("#sites-more") and "120 sites" in page.text("#sites-text")
    page.click("#sites-more")
    assert page.evaluate(rows) == 120 and page.evaluate("document.querySelector('#sites-more').hidden")
    assert_quiet(page)


def test_growth_tells_a_leak_from_a_table(page):
    shown = page.evaluate("malloscope.report.sites.map(({site, growth}) => ({site, growth}))")
    sites = {site["site"]: site for site in shown}
    duration = page.evaluate("malloscope.report.duration")
    assert sites["start_up"]["growth"] == 0
    # Of the 40 steps of 10,000 bytes about half fall into the second half of the time.
    grown = sites["leak"]["growth"] * duration / 2
    assert 50000 <= grown <= 390000 and grown == pytest.approx(round(grown, -3))
    assert "/s" in page.text("#sites")


def test_a_site_leads_to_its_callers_and_its_source(page):
    page.evaluate("[...document.querySelectorAll('#sites .link')].find((e) => e.textContent === 'leak').click()")
    assert crumbs(page) == ["all", "leak"] and page.evaluate("malloscope.state.view") == "callers"
    line = site_lines(SOURCE)["leak"][0]
    text = SOURCE.read_text().splitlines()
    assert page.text("#details .source .here").strip() == f"{line} {text[line - 1]}".replace("\t", "    ").strip()
    assert text[line - 2].strip() in page.text("#details .source")
    assert page.text("#details .figures").count("B") >= 4


def test_the_timeline_marks_the_peak_and_a_period_can_be_chosen(page):
    duration = page.evaluate("malloscope.report.duration")
    peak = page.evaluate("malloscope.report.raw.processes[0].peak_seconds")
    assert 0.3 < peak / duration < 0.7, "the burst is in the middle"
    assert "Peak 2." in page.evaluate("document.querySelector('#timeline').ariaLabel")
    x, y, width, height = page.evaluate(
        "(() => { const c = document.querySelector('#timeline'); c.scrollIntoView({block: 'center'});"
        " const b = c.getBoundingClientRect(); return [b.x, b.y, b.width, b.height]; })()"
    )
    page.drag((x + 0.75 * width, y + 50), (x + width - 2, y + 50))
    start, end = page.evaluate("malloscope.state.range")
    assert start == pytest.approx(0.75 * duration, rel=0.05) and end == pytest.approx(duration, rel=0.05)
    # What is live and was allocated then: about ten of the leak's forty steps, nothing of the table.
    live = page.evaluate("malloscope.tree.value(0)")
    assert 30000 <= live <= 250000 and live % 1000 == 0
    before = page.evaluate("(() => { const p = malloscope.period(); malloscope.change({range: [0, p.from]});"
                           " const value = malloscope.tree.value(0); history.back(); return value; })()")
    assert before + live == 300000 + 40 * 10000
    page.wait("malloscope.state.range[0] > 0")
    page.evaluate("malloscope.change({view: 'callers', at: ''})")
    names = page.evaluate("malloscope.tree.children(0)"
                          ".map((node) => malloscope.report.frames[malloscope.tree.frame(node)].name)")
    assert names == ["leak"]
    page.click("[data-metric=total]")
    assert "whole run" in page.text("#period")
    page.click("#time-zoom")
    assert page.evaluate("malloscope.timeline.shown") == page.evaluate("malloscope.timeline.range")
    page.click("#time-clear")
    assert page.evaluate("malloscope.state.range") is None and page.evaluate("malloscope.timeline.shown[0]") == 0
    page.evaluate("document.querySelector('#time-from').focus()")
    page.key("ArrowRight")
    assert page.evaluate("malloscope.state.range[0]") > 0, "the brush works with keys"
    assert_quiet(page)


def test_a_link_leads_to_the_same_view(browser, page):
    page.click("[data-metric=total]")
    page.click("[data-value=callers]")
    page.click("[data-value=language]")
    page.key("/")
    page.type("main")
    page.click_at(*frame_at(page, "churn"))
    browser.call("Browser.grantPermissions", permissions=["clipboardReadWrite", "clipboardSanitizedWrite"])
    page.click("#copy")
    page.wait("document.querySelector('#copy').textContent === 'Copied'")
    link = page.evaluate("navigator.clipboard.readText()")
    assert link == page.evaluate("location.href") and "#" in link
    other = browser.open_page(link.split("#")[0][len("file://"):], "#" + link.split("#")[1])
    keys = "JSON.stringify(malloscope.state)"
    assert other.evaluate(keys) == page.evaluate(keys)
    assert crumbs(other) == crumbs(page) == ["all", "churn"]
    assert_quiet(other)


def test_the_graph_is_there_as_a_table(page):
    page.click("[data-metric=total]")
    page.click("#as-table")
    assert page.evaluate("document.querySelector('#graph').hidden && !document.querySelector('#calls').hidden")
    while not crumbs(page)[-1].startswith("serve"):  # the largest callee is the first row after the call itself
        page.evaluate("document.querySelector('#calls .here').nextSibling.querySelector('button').click()")
    rows = page.evaluate("[...document.querySelectorAll('#calls tbody tr')]"
                         ".map((row) => [...row.children].map((cell) => cell.textContent))")
    assert rows[len(crumbs(page)) - 1][1] == bytes_text(100 * 20000) and rows[len(crumbs(page)) - 1][4] == "100"
    assert rows[len(crumbs(page))][0].startswith("burst") and len(rows) == len(crumbs(page)) + 1


def test_light_and_dark(browser, pages, page):
    colour = "getComputedStyle(document.body).backgroundColor"
    light, dark = page, browser.open_page(pages["2000"], "#metric=total", dark=True)
    for name, shown in (("light", light), ("dark", dark)):
        shown.mouse("mouseMoved", *frame_at(shown, "serve"))
        shown.settle()
        shown.screenshot(PICTURES / f"{name}.png")
        assert_quiet(shown)
    narrow = browser.open_page(pages["2000"], width=400, height=800)
    narrow.evaluate("[...document.querySelectorAll('#sites .link')].find((e) => e.textContent === 'leak').click()")
    assert "@site leak" in narrow.text("#details .source")
    narrow.screenshot(PICTURES / "narrow.png", whole=True)
    assert narrow.evaluate("document.documentElement.scrollWidth") <= 400, "nothing sticks out"
    was = light.evaluate(colour)
    assert was != dark.evaluate(colour)
    pixel = "malloscope.flame.context.getImageData(3, 3, 1, 1).data.join()"
    canvas = light.evaluate(pixel)
    light.click("#theme")
    light.settle()
    assert light.evaluate(colour) == dark.evaluate(colour)
    assert light.evaluate(pixel) != canvas
    light.key("t")
    assert light.evaluate(colour) == was
