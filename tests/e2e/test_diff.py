"""diff: equal programs show no change, and a planted one is found."""

import json

import pytest

import harness
from harness import MALLOSCOPE, PROGRAMS

RATE = "4K"
COMPARISONS = 100


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    target = tmp_path_factory.mktemp("diff") / "diff_sites"
    harness.run(["gcc", "-g", "-O1", PROGRAMS / "diff_sites.c", "-o", target])
    return target


def record(program, path, *arguments, rate=RATE):
    harness.run([MALLOSCOPE, "run", "-q", "-f", "-o", path, *harness.rate_options(rate), program, *arguments])
    return path


def diff(base, new, *options):
    return json.loads(harness.malloscope("diff", base, new, "--json", *options).stdout)


@pytest.fixture(scope="module")
def recordings(program, tmp_path_factory):
    folder = tmp_path_factory.mktemp("recordings")
    return [record(program, folder / f"{i}.mscope") for i in range(COMPARISONS + 1)]


def test_equal_programs_show_no_change(recordings):
    """In 95 of 100 comparisons at least. A binomial of 5 % exceeds 12 in 100 once in a thousand."""
    alarms = sum(diff(a, b)["significant"] > 0 for a, b in zip(recordings, recordings[1:]))
    assert alarms <= 12


@pytest.mark.parametrize("value", ["live", "peak", "total", "objects"])
def test_errors_cover_the_truth(recordings, value):
    """The truth is no change at all: 95 % of the intervals hold it."""
    rows = [row for a, b in zip(recordings[:40:2], recordings[1:40:2]) for row in diff(a, b, "--value", value)["rows"]
            if row["function"].startswith("site_") and row["change_error"] > 0]
    assert len(rows) > 600
    covered = sum(abs(row["change"]) <= row["change_error"] for row in rows) / len(rows)
    assert 0.91 < covered < 0.99


def test_planted_growth_is_found(program, recordings, tmp_path):
    """10 % at one site in 41, and nothing else in 95 of 100 comparisons."""
    found, others = 0, 0
    for i in range(20):
        grown = record(program, tmp_path / "grown.mscope", "10")
        rows = [row for row in diff(recordings[i], grown)["rows"] if row["significant"]]
        found += any(row["function"] == "site_40" for row in rows)
        others += any(row["function"] != "site_40" for row in rows)
    assert others <= 4
    # 10 % of 4 MB is 2.2 standard deviations at this rate, and 40 lines ask for 3.2: more samples see it.
    grown = record(program, tmp_path / "grown.mscope", "10", rate=256)
    rows = diff(record(program, tmp_path / "base.mscope", rate=256), grown)["rows"]
    marked = [row["function"] for row in rows if row["significant"]]
    assert marked[0] == "site_40" and len(marked) <= 3  # a false alarm in 20 comparisons is as promised
    assert abs(rows[0]["change"] - 400000) < 2.3 * rows[0]["change_error"]


def test_exact_recordings(program, tmp_path):
    base = record(program, tmp_path / "base.mscope", rate="exact")
    again = record(program, tmp_path / "again.mscope", rate="exact")
    grown = record(program, tmp_path / "grown.mscope", "1", rate="exact")
    assert diff(base, again)["significant"] == 0
    result = diff(base, grown)
    rows = [row for row in result["rows"] if row["significant"]]
    assert [(row["function"], row["change_error"]) for row in rows] == [("site_40", 0)]
    assert 39000 <= rows[0]["change"] <= 41000
    assert result["totals"]["change"] == rows[0]["change"]
    text = harness.malloscope("diff", base, grown).stdout.decode()
    assert "1 of 4" in text and "site_40" in text and "site_41" not in text
    assert "no change" in harness.malloscope("diff", base, again).stdout.decode()
    # Backwards, the same with the other sign.
    back = diff(grown, base)
    assert back["totals"]["change"] == -result["totals"]["change"]


def test_moments(tmp_path):
    source = tmp_path / "phases.c"
    source.write_text("""
#include <stdlib.h>
#include <unistd.h>
#include <time.h>
static void *volatile kept[300];
__attribute__((noinline)) static void early(void) { for (int i = 0; i < 100; i++) kept[i] = malloc(1000); }
__attribute__((noinline)) static void late(void) { for (int i = 100; i < 150; i++) kept[i] = malloc(3000); }
__attribute__((noinline)) static void peak(void) { for (int i = 150; i < 300; i++) kept[i] = malloc(5000); }
int main(void) {
    early();
    peak();
    for (int i = 150; i < 300; i++) free(kept[i]);
    nanosleep(&(struct timespec){.tv_sec = 2}, NULL);
    late();
    _exit(0);
}
""")
    harness.run(["gcc", "-g", "-O1", source, "-o", tmp_path / "phases"])
    path = record(tmp_path / "phases", tmp_path / "x.mscope", rate="exact")
    since = {row["function"]: row["change"] for row in diff(f"{path}@1s", path)["rows"] if row["change"]}
    assert since == {"late": 150000}
    down = {row["function"]: row["change"] for row in diff(f"{path}@peak", path)["rows"] if row["change"]}
    assert down == {"late": 150000, "peak": -750000}
    wrong = harness.malloscope("diff", f"{path}@soon", path, expect=2)
    assert b"FILE@peak" in wrong.stderr
    harness.malloscope("diff", tmp_path / "none.mscope", path, expect=3)
    harness.malloscope("diff", path, expect=2)


def test_lines_are_matched_by_name(tmp_path):
    """Other addresses, other lines, another folder."""
    for name, before in (("a", ""), ("b", "int filler(int x) { return x * 3; }\n\n\n")):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "same.c").write_text(
            before + "#include <stdlib.h>\n#include <unistd.h>\nvoid *volatile kept;\n"
            "__attribute__((noinline)) void grow(int n) { while (n--) kept = malloc(100); }\n"
            f"int main(void) {{ grow({100 if name == 'a' else 150}); _exit(0); }}\n"
        )
        harness.run(["gcc", "-g", "-O1", folder / "same.c", "-o", folder / "same"])
        record(folder / "same", tmp_path / f"{name}.mscope", rate="exact")
    result = diff(tmp_path / "a.mscope", tmp_path / "b.mscope")
    assert [(row["function"], row["base"], row["new"]) for row in result["rows"]] == [("grow", 10000, 15000)]
    by_site = diff(tmp_path / "a.mscope", tmp_path / "b.mscope", "--by", "site")
    assert len(by_site["rows"]) == 2


def test_heaps_on_one_side_do_not_split_the_lines(folder):
    """Lines are functions: that one recording also tells of Python's heap of small objects does not matter."""
    script = folder / "holds.py"
    script.write_text("def hold():\n    kept = []\n    for i in range(3000):\n"
                      "        kept.append((bytes(1000), [i]))\n    return kept\nkept = hold()\n")
    paths = [folder / "plain.mscope", folder / "objects.mscope"]
    for path, options in zip(paths, [[], ["--python-objects"]]):
        harness.run([MALLOSCOPE, "run", "-q", "-o", path, "--exact", *options, "/usr/bin/python3", script])
    rows = [row for row in diff(f"{paths[0]}@peak", f"{paths[1]}@peak", "--all")["rows"] if row["function"] == "hold"]
    assert len(rows) == 1 and rows[0]["base"] >= 3_000_000 and rows[0]["new"] >= 3_000_000
    page = folder / "page.html"
    harness.malloscope("diff", *paths, "--html", "-o", page)
    modules = harness.malloscope("report", paths[0], "--by", "module", "--json").stdout
    assert any((row["module"] or "").endswith("holds.py") for row in json.loads(modules)["rows"])
