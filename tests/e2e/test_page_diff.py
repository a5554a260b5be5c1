"""The page of a comparison, in a real browser: the numbers of `diff --json`, colours for what is not chance."""

import json
import re

import pytest

import harness
import web_page
from harness import PROGRAMS, malloscope
from test_page import (  # pylint: disable=unused-import
    PICTURES,
    assert_quiet,
    browser,
    bytes_text,
    crumbs,
    data_of,
    frame_at,
    shown_sites,
)

pytestmark = pytest.mark.skipif(not web_page.find(), reason="no chromium here (Debian: apt install chromium)")

VALUES = {("live", "bytes"): "live", ("peak", "bytes"): "peak", ("total", "bytes"): "total",
          ("live", "objects"): "objects", ("peak", "objects"): "peak-objects", ("total", "objects"): "allocs"}
# What grew, shrank, came and went, below the same callers.
SOURCE = """
#include <stdlib.h>
#include <unistd.h>
static void *volatile kept;
#define SITE(name, count, size) \
    __attribute__((noinline)) static void name(void) { for (int i = 0; i < count; i++) kept = malloc(size); }
SITE(grows, 100 * GROWTH, 1000)
SITE(shrinks, 400 / GROWTH, 500)
SITE(stays, 300, 700)
SITE(appears, 50 * (GROWTH - 1), 3000)
SITE(vanishes, 50 * (2 - GROWTH), 2000)
__attribute__((noinline)) static void work(void)
{
    grows(); shrinks(); stays(); appears(); vanishes(); __asm__ volatile("");
}
int main(void) { work(); _exit(0); }
"""


def make(base, new, path, *options):
    malloscope("diff", base, new, "--html", "-q", "-f", "-o", path, *options)
    return path


def diff(base, new, *options):
    return json.loads(malloscope("diff", base, new, "--json", *options).stdout)


@pytest.fixture(scope="module")
def changed(tmp_path_factory):
    """Recordings of two builds in two folders, exact."""
    folder, paths = tmp_path_factory.mktemp("changed"), []
    for growth in (1, 2):
        place = folder / str(growth)
        place.mkdir()
        (place / "work.c").write_text("\n" * growth + SOURCE)
        harness.run(["gcc", "-g", "-O1", f"-DGROWTH={growth}", place / "work.c", "-o", place / "work"])
        paths.append(place / "work.mscope")
        harness.run(harness.record_command(paths[-1], [place / "work", "secret-argument"], "exact"))
    return paths


@pytest.fixture(scope="module")
def sampled(tmp_path_factory):
    """Forty sites, of which one is half as large again in the second."""
    folder = tmp_path_factory.mktemp("sampled")
    harness.run(["gcc", "-g", "-O1", PROGRAMS / "diff_sites.c", "-o", folder / "sites"])
    paths = [folder / "base.mscope", folder / "new.mscope"]
    for path, growth in zip(paths, ("0", "50")):
        harness.run(harness.record_command(path, [folder / "sites", growth], "512"))
    return paths


@pytest.fixture
def page(browser, changed, tmp_path):
    return browser.open_page(make(*changed, tmp_path / "page.html"))


def calls(page):
    """Each call of the graph by its name, with its change."""
    return page.evaluate("""(() => {
        const {tree, report, changes, colours} = malloscope, found = [], waiting = [tree.root];
        while (waiting.length) {
            const node = waiting.pop(), frame = report.frames[tree.frame(node)];
            waiting.push(...tree.children(node));
            found.push({name: frame ? frame.name : '', fill: colours.fillOf(tree, node),
                        sign: colours.signOf(tree, node), ...changes.of(tree, node)});
        }
        return found;
    })()""")


# --- numbers ---


@pytest.mark.parametrize("which", ["changed", "sampled"])
def test_the_table_has_the_numbers_of_the_diff(browser, which, request, tmp_path):
    pair = request.getfixturevalue(which)
    page = browser.open_page(make(*pair, tmp_path / "page.html"))
    for (metric, unit), value in VALUES.items():
        expected = diff(*pair, "--value", value)
        page.evaluate(f"malloscope.change({{metric: '{metric}', unit: '{unit}', at: ''}})")
        lines = page.evaluate("malloscope.tables.lines")
        assert (lines["count"], lines["significant"]) == (expected["lines"], expected["significant"])
        keys = {"name": "function", "base": "base", "new": "new", "change": "change", "error": "change_error",
                "significant": "significant"}
        rows = [[row[key] for key in keys.values()] for row in expected["rows"]]
        assert [[site[key] for key in keys] for site in lines["sites"]] == rows
        for key in ("base", "new", "change", "error", "significant"):
            assert lines["total"][key] == expected["totals"][keys[key]]
        # The graph adds up to the same: the root, and in the graph of callers each site.
        root = page.evaluate("malloscope.changes.of(malloscope.tree, 0)")
        assert (root["base"], root["new"]) == (expected["totals"]["base"], expected["totals"]["new"])
        assert root["error"] == pytest.approx(expected["totals"]["change_error"], rel=1e-4)
        page.evaluate("malloscope.change({view: 'callers', at: ''})")
        sites = page.evaluate(
            "malloscope.tree.children(0).map((node) => [malloscope.report.frames[malloscope.tree.frame(node)].name,"
            " malloscope.changes.of(malloscope.tree, node)])"
        )
        rows = {row["function"]: row for row in expected["rows"]}
        assert {name for name, _ in sites} == set(rows) and len(sites) == len(rows)
        for name, change in sites:
            assert (change["base"], change["new"]) == (rows[name]["base"], rows[name]["new"])
            assert change["error"] == pytest.approx(rows[name]["change_error"], rel=1e-4)
        page.evaluate("malloscope.change({view: 'calls', at: ''})")
    assert_quiet(page)


def test_a_planted_growth_is_red_and_nothing_else_is(browser, sampled, tmp_path):
    page = browser.open_page(make(*sampled, tmp_path / "page.html"))
    marked = [row["function"] for row in diff(*sampled)["rows"] if row["significant"]]
    assert marked[0] == "site_40" and len(marked) <= 3  # a false alarm in 20 comparisons is as promised
    shown = shown_sites(page, "significant")
    assert shown[0] == "significant" and shown.count("significant") == len(marked)
    page.evaluate("malloscope.change({at: ''})")
    grey, red = page.evaluate("[malloscope.colours.neutral, malloscope.colours.grew]")
    found = {call["name"]: call for call in calls(page)}
    assert found["site_40"]["fill"] in red and found["site_40"]["sign"] == "+ "
    others = [call for name, call in found.items() if name.startswith("site_") and name not in marked]
    assert len(others) >= 37 and all(call["fill"] == grey and call["sign"] == "" for call in others)
    # On the screen as well: there is the colour, in the middle of the box.
    x, y = frame_at(page, "site_40")
    pixel = page.evaluate(f"(() => {{ const c = malloscope.flame.canvas, b = c.getBoundingClientRect();"
                          f" return [...c.getContext('2d').getImageData({x} - b.x, {y} - b.y - 7, 1, 1).data]; }})()")
    assert pixel[0] > pixel[2] + 40


def test_colours_and_signs_tell_directions(page, changed):
    expected = {row["function"]: row for row in diff(*changed)["rows"]}
    assert expected["appears"]["base"] == 0 and expected["vanishes"]["new"] == 0
    grey, red, blue = page.evaluate("[malloscope.colours.neutral, malloscope.colours.grew, malloscope.colours.shrank]")
    found = {call["name"]: call for call in calls(page)}
    for name in ("grows", "appears", "work", "main", ""):
        assert found[name]["fill"] in red and found[name]["sign"] == "+ "
    for name in ("shrinks", "vanishes"):
        assert found[name]["fill"] in blue and found[name]["sign"] == "− "
    assert found["stays"]["fill"] == grey and found["stays"]["sign"] == ""
    # A box is as wide as the larger of both, so the callees of a call fit below it.
    assert page.evaluate("malloscope.tree.value(0)") == sum(max(row["base"], row["new"]) for row in expected.values())
    legend = page.evaluate("[...document.querySelectorAll('#legend li')].map((item) => item.textContent)")
    assert any("grew" in text for text in legend) and any("shrank" in text for text in legend)
    assert "no significant change" in legend
    page.click("#colour [data-value=module]")
    assert "work" in page.text("#legend")
    assert_quiet(page)


def test_builds_are_matched_by_name(page):
    """Other folders, other lines: each function is there once."""
    names = page.evaluate("malloscope.report.frames.map((frame) => frame.name)")
    assert {"grows", "vanishes", "appears", "main"} <= set(names) and len(names) == len(set(names))


def test_sites_can_be_told_apart_by_line(browser, changed, tmp_path):
    page = browser.open_page(make(*changed, tmp_path / "lines.html", "--by", "site"))
    names = page.evaluate("malloscope.report.frames.map((frame) => frame.name)")
    assert names.count("main") == 2, "it has moved by a line"
    expected = diff(*changed, "--by", "site")
    assert page.evaluate("malloscope.tables.lines.count") == expected["lines"]
    page.evaluate("[...document.querySelectorAll('#sites .link')].find((e) => e.textContent === 'appears').click()")
    assert "SITE(appears" in page.text("#details .source .here")
    modules = browser.open_page(make(*changed, tmp_path / "modules.html", "--by", "module"))
    expected = bytes_text(diff(*changed, "--by", "module")["rows"][0]["base"])
    assert [text.split("work")[0] for text in shown_sites(modules, "base")] == [expected]
    assert_quiet(modules)


# --- controls ---


def test_cards_tooltip_details_and_table_tell_the_change(page, changed):
    totals = diff(*changed)["totals"]
    assert page.text("[data-metric=live] .whole") == "+" + bytes_text(totals["change"])
    assert f"{bytes_text(totals['base'])} → {bytes_text(totals['new'])}" in page.text("[data-metric=live]")
    assert page.evaluate("document.querySelectorAll('.card').length") == 3
    page.mouse("mouseMoved", *frame_at(page, "shrinks"))
    page.settle()
    text = page.text("#tooltip")
    for part in ("shrinks", "work.c", "−97.7 KiB", "significant", "195 KiB → 97.7 KiB", "−50 %"):
        assert part in text
    page.click_at(*frame_at(page, "shrinks"))
    assert crumbs(page)[-1] == "shrinks"
    rows = page.evaluate("[...document.querySelectorAll('#details .figures tbody tr')]"
                         ".map((row) => [...row.children].map((cell) => cell.textContent))")
    assert ["Live objects", "400", "200", "−200", "significant"] in rows and len(rows) == 6
    page.click("#as-table")
    here = page.evaluate("[...document.querySelectorAll('#calls .here td')].map((cell) => cell.textContent)")
    assert here == ["−97.7 KiB", "", "significant", "195 KiB", "97.7 KiB"]
    assert_quiet(page)


def test_controls_work_as_on_the_other_page(browser, page, changed):
    page.key("3")
    page.key("b")
    page.key("i")
    state = page.evaluate("malloscope.state")
    assert (state["metric"], state["unit"], state["view"]) == ("total", "objects", "callers")
    page.key("4")
    assert page.evaluate("malloscope.state.metric") == "total", "there is no temporary here"
    page.key("c")
    assert page.evaluate("malloscope.state.colour") == "module"
    page.evaluate("document.querySelector('#flame').focus()")
    page.key("ArrowDown")
    first = page.text("#spoken")
    assert re.search(r"(significant|no change), [\d,]+ → [\d,]+", first)
    page.key("Enter")
    assert len(crumbs(page)) == 2
    page.key("Escape")
    page.key("Backspace")
    page.wait("document.querySelectorAll('#crumbs .link').length === 2")
    page.key("/")
    page.type("grows|vanishes")
    expected = {row["function"]: row for row in diff(*changed, "--value", "allocs")["rows"]}
    matched = page.evaluate("({...document.querySelector('#matched').dataset})")
    for side in ("base", "new"):
        assert float(matched[side]) == expected["grows"][side] + expected["vanishes"][side]
    assert page.evaluate("document.querySelectorAll('#sites tbody tr').length") == 2
    page.click("[data-sort=base]")
    assert shown_sites(page, "base") == ["100", "50"]
    link = page.evaluate("location.href")
    other = browser.open_page(page.address[len("file://"):], "#" + link.split("#")[1])
    assert other.evaluate("JSON.stringify(malloscope.state)") == page.evaluate("JSON.stringify(malloscope.state)")
    assert_quiet(page)
    assert_quiet(other)


def test_moments_can_be_compared(browser, changed, tmp_path):
    path = make(f"{changed[0]}@peak", f"{changed[1]}@1h", tmp_path / "moments.html")
    page = browser.open_page(path)
    assert "at its peak" in page.text("#run") and "first" in page.text("#run")
    expected = diff(f"{changed[0]}@peak", f"{changed[1]}@1h")["totals"]
    assert page.evaluate("malloscope.report.lines.live_bytes.total.base") == expected["base"]
    assert_quiet(page)


# --- what must not be ---


def test_names_do_no_harm_here_either(browser, folder):
    bad = "</script><img src=x onerror='document.title=1'>"
    (folder / "bad.c").write_text((PROGRAMS / "hostile_names.c").read_text().replace("HOSTILE_FUNCTION", "stand_in")
                                  .replace("HOSTILE_FILE", f'"/tmp/<b>{bad}.c"'))
    harness.run(["gcc", "-g", "-O1", "-S", folder / "bad.c", "-o", folder / "bad.s"])
    assembler = (folder / "bad.s").read_text()
    (folder / "bad.s").write_text(re.sub(r'(\.(?:string|ascii)\s+")stand_in\b', lambda m: m[1] + bad, assembler))
    program, recording = folder / "<i onclick=x>&amp;", folder / "<img src=y>.mscope"
    harness.run(["gcc", folder / "bad.s", "-o", program])
    harness.run(harness.record_command(recording, [program], "exact"))
    page = browser.open_page(make(recording, recording, folder / "bad.html", "--raw-site", "--value", "total"))
    assert page.evaluate("document.querySelectorAll('img, i, b').length") == 0
    assert page.text("#program") == program.name and recording.name in page.text("#run") and bad in page.text("#sites")
    page.click_at(*frame_at(page, bad))
    page.click("#as-table")
    page.settle()
    assert bad in page.text("#details-title") and bad in page.text("#calls")
    assert "malloscope" in page.evaluate("document.title")
    assert page.evaluate("document.querySelectorAll('img, i, b').length") == 0
    assert_quiet(page)


def test_the_page_tells_no_more_than_it_must(changed, tmp_path):
    text = json.dumps({**data_of(make(*changed, tmp_path / "page.html")), "sources": []})
    private = ["secret-argument", str(changed[0].parent)]
    assert not [word for word in private if word in text]
    full = json.dumps(data_of(make(*changed, tmp_path / "full.html", "--full")))
    assert not [word for word in private if word not in full]


def test_wrong_wishes_are_told(changed, tmp_path):
    assert b"exclude each other" in malloscope("diff", *changed, "--html", "--json", expect=2).stderr
    assert b"--html" in malloscope("diff", *changed, "-o", tmp_path / "x", expect=2).stderr
    malloscope("diff", *changed, "--html", "-q", "-o", tmp_path / "page.html")
    assert b"-f" in malloscope("diff", *changed, "--html", "-o", tmp_path / "page.html", expect=1).stderr
    assert malloscope("diff", *changed, "--html").stdout == (tmp_path / "page.html").read_bytes(), "to a pipe"


def test_what_is_small_is_merged_in_both(browser, build, record, folder):
    recordings = [record(build("many_stacks.c", "-O1"), levels) for levels in (4, 5)]
    page = browser.open_page(make(*recordings, folder / "small.html", "--nodes", "300", "--value", "total"))
    expected = diff(*recordings, "--value", "total")["totals"]
    root = page.evaluate("malloscope.changes.of(malloscope.tree, 0)")
    assert (root["base"], root["new"]) == (expected["base"], expected["new"])
    assert page.evaluate("malloscope.report.raw.merged_calls") > 0 and "merged" in page.text("#merged")
    assert_quiet(page)


def test_light_and_dark_differences(browser, changed, tmp_path):
    path, colour = make(*changed, tmp_path / "page.html"), "getComputedStyle(document.body).backgroundColor"
    shown = {name: browser.open_page(path, dark=name == "dark") for name in ("light", "dark")}
    for name, page in shown.items():
        page.mouse("mouseMoved", *frame_at(page, "shrinks"))
        page.settle()
        page.screenshot(PICTURES / f"diff-{name}.png")
        assert_quiet(page)
    assert shown["light"].evaluate(colour) != shown["dark"].evaluate(colour)
    contrast = """(() => { /* WCAG: of the text on each fill */
        const {colours, flame} = malloscope, context = document.createElement('canvas').getContext('2d');
        const light = (fill) => { context.fillStyle = fill; context.fillRect(0, 0, 1, 1);
            const [r, g, b] = [...context.getImageData(0, 0, 1, 1).data].map((v) => v / 255)
                .map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
            return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
        const text = light(flame.theme.text);
        return [...colours.grew, ...colours.shrank, colours.neutral].map(light)
            .map((l) => (Math.max(l, text) + 0.05) / (Math.min(l, text) + 0.05));
    })()"""
    for page in shown.values():
        assert min(page.evaluate(contrast)) >= 4.5
    narrow = browser.open_page(path, width=400, height=800)
    narrow.screenshot(PICTURES / "diff-narrow.png", whole=True)
    assert narrow.evaluate("document.documentElement.scrollWidth") <= 400, "nothing sticks out"
