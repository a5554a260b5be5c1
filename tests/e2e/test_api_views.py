"""Heaps, types and scopes that a program names are frames, columns and labels wherever its memory is shown."""

import csv
import io
import json
import re

import pytest

import harness
from harness import PROGRAMS, malloscope, report, site_lines
from test_formats import decode, field, fields, google_pprof

SOURCE = PROGRAMS / "api_views.c"
INCLUDE = harness.ROOT / "include"

# What api_views.c keeps: bytes by site, heap, type and innermost scope.
KEPT = {
    ("plain", "malloc", None, None): 1000,
    ("account", "malloc", "Account", "load"): 1280,
    ("parse", "malloc", None, "parse"): 960,
    ("texture", "textures", "Pixel", "load"): 20480,
    ("texture", "textures", None, "request; 1"): 3000,
}


@pytest.fixture(scope="module")
def module_folder(session_folder):
    path = session_folder / "api_views"
    path.mkdir(exist_ok=True)
    return path


@pytest.fixture(scope="module")
def program(build):
    return build("api_views.c", "-O1", f"-I{INCLUDE}")


@pytest.fixture(scope="module")
def recordings(program, module_folder):
    """Recordings of one program, by what its stacks consist of."""
    made = {}
    for stacks in ("both", "scopes", "native"):
        made[stacks] = module_folder / f"{stacks}.mscope"
        environment = {"MALLOSCOPE_STACKS": stacks, "MALLOSCOPE_THREAD_FRAMES": "1"}
        harness.run(harness.record_command(made[stacks], [program], "exact"), env=environment)
    return made


def text_of(*arguments):
    return malloscope(*arguments).stdout.decode()


def sums(rows, *names):
    """Live bytes by these fields, without what the C library allocates for a thread."""
    result = {}
    for row in rows:
        if row["function"] and "dtv" in row["function"]:
            continue
        key = tuple(row[name] for name in names)
        key = key[0] if len(key) == 1 else key
        result[key] = result.get(key, 0) + row["live_bytes"]
    return result


def expected(*parts):
    result = {}
    for key, size in KEPT.items():
        part = tuple(key[index] for index in parts)
        part = part[0] if len(part) == 1 else part
        result[part] = result.get(part, 0) + size
    return result


def of_thread(recording):
    """What the C library allocates for a thread itself, below no function of the program."""
    return sum(row["live_bytes"] for row in report(recording)["rows"] if row["function"] and "dtv" in row["function"])


def test_a_site_has_a_row_for_each_heap_and_type(recordings):
    rows = report(recordings["both"])["rows"]
    lines = {numbers[0]: name for name, numbers in site_lines(SOURCE).items()}
    found = {}
    for row in rows:
        if row["file"] and row["file"].endswith("api_views.c"):
            key = (lines[row["line"]], row["heap"], row["type"], row["scope"])
            assert key not in found
            found[key] = row["live_bytes"]
    assert found == KEPT


@pytest.mark.parametrize("by, part, nothing", [("heap", 1, None), ("type", 2, "[unknown]"), ("scope", 3, "[no scope]")])
def test_rows_by_heap_type_and_scope(recordings, by, part, nothing):
    wanted = {name or nothing: size for name, size in expected(part).items()}
    wanted[nothing or "malloc"] += of_thread(recordings["both"])
    assert sums(report(recordings["both"], "--by", by)["rows"], by) == wanted
    table = text_of("report", recordings["both"], "--by", by).splitlines()
    title = next(number for number, line in enumerate(table) if line.startswith("    LIVE"))
    assert table[title].endswith(by.upper()) and len(table[title + 1 :]) == len(wanted)
    assert all(any(line.endswith("  " + name) for line in table[title + 1 :]) for name in wanted)
    read = csv.DictReader(io.StringIO(text_of("report", recordings["both"], "--by", by, "--csv")))
    assert {row[by]: float(row["live_bytes"]) for row in read} == wanted


def test_other_groupings_say_where_their_stacks_differ(recordings):
    (texture,) = [row for row in report(recordings["both"], "--by", "function")["rows"] if row["function"] == "texture"]
    assert texture["heap"] == "textures" and texture["type"] == texture["scope"] == "[several]"
    for by in ("line", "file", "module", "stack", "thread"):
        rows = report(recordings["both"], "--by", by)["rows"]
        assert rows and text_of("report", recordings["both"], "--by", by)


def test_the_table_has_columns_for_what_there_is(recordings, build, record):
    title = re.search(r"^ +LIVE.*$", text_of("report", recordings["both"]), re.M).group().split()
    assert title == "LIVE PEAK TOTAL COUNT TEMP HEAP TYPE SCOPE SITE".split()
    title = re.search(r"^ +LIVE.*$", text_of("report", recordings["native"]), re.M).group().split()
    assert title == "LIVE PEAK TOTAL COUNT TEMP HEAP TYPE SITE".split()
    plain = record(build("views.c", "-O0"), 10)
    title = re.search(r"^ +LIVE.*$", text_of("report", plain), re.M).group().split()
    assert title == "LIVE PEAK TOTAL COUNT TEMP SITE".split()
    for view in ("report", "tree", "leaks", "info", "stats"):
        assert "heap malloc" not in text_of(view, plain) and "heaps" not in text_of(view, plain)


@pytest.mark.parametrize("expression, size", [("^Pixel$", 20480), ("^textures$", 23480), ("^load$", 22720),
                                              (r"\[scope load\]", 22720), ("request; 1", 3000), ("^server$", 3000)])
def test_filters_know_the_names(recordings, expression, size):
    rows = report(recordings["both"], "--filter", expression)["rows"]
    assert sum(row["live_bytes"] for row in rows) == size


def test_the_total_is_that_of_all_heaps(recordings):
    live, total = re.search(r"live ([\d.]+ KiB).*total ([\d.]+ KiB)", text_of("report", recordings["both"])).groups()
    assert live == total
    data = harness.stats(recordings["both"])
    assert {heap["name"]: heap["live_bytes"] for heap in data["heaps"]} == {
        "malloc": 3240 + of_thread(recordings["both"]), "textures": 23480}
    assert all(heap["rate"] == 1 for heap in data["heaps"])
    assert sum(heap["total_bytes"] for heap in data["heaps"]) == data["totals"]["total_bytes"]
    assert report(recordings["both"])["heaps"] == data["heaps"]


def test_info_and_stats_list_the_heaps(recordings):
    for view in ("info", "stats"):
        assert re.search(r"^  textures  22\.9 KiB live in 8 objects, total 22\.9 KiB in 8, exact$",
                         text_of(view, recordings["both"]), re.M)
    assert "2 in use as types, 3 as scopes, 2 as threads" in text_of("info", recordings["both"])


def test_a_heap_has_a_rate_of_its_own(program, folder):
    path = folder / "sampled.mscope"
    harness.run(harness.record_command(path, [program], 512), env={"MALLOSCOPE_SEED": "7"})
    data = report(path, "--by", "heap")
    assert all(heap["rate"] == 512 for heap in data["heaps"])
    for heap in data["heaps"]:
        if heap["samples"]:
            assert heap["live_error"] > 0
    (textures,) = [heap for heap in data["heaps"] if heap["name"] == "textures"]
    assert abs(textures["live_bytes"] - 23480) <= 2 * textures["live_error"]


# --- frames ---


def collapsed(recording):
    lines = text_of("export", recording, "--format", "collapsed").splitlines()
    split = [line.rsplit(" ", 1) for line in lines if "dtv" not in line and not line.startswith("#")]
    return {tuple(names.split(";")): int(value) for names, value in split}


def without(stack, *names):
    return tuple(name for name in stack if name not in names and not name.startswith("_"))


def test_scopes_stand_where_they_were_entered(recordings, program):
    main = f"[thread {program.name}]"
    assert {without(stack): size for stack, size in collapsed(recordings["both"]).items()} == {
        ("[heap malloc]", main, "main", "plain"): 1000,
        ("[heap malloc]", main, "main", "load", "[scope load]", "[type Account]"): 1280,
        ("[heap malloc]", main, "main", "load", "[scope load]", "parse", "[scope parse]"): 960,
        ("[heap textures]", main, "main", "load", "[scope load]", "texture", "[type Pixel]"): 20480,
        ("[heap textures]", "[thread server]", "clone3", "start_thread", "serve", "[scope request: 1]", "texture"):
            3000,
    }


def test_scopes_alone_are_a_stack(recordings, program):
    main = f"[thread {program.name}]"
    stacks = collapsed(recordings["scopes"])
    assert stacks[("[heap textures]", main, "[scope load]", "[type Pixel]")] == 20480
    assert stacks[("[heap malloc]", main, "[scope load]", "[scope parse]")] == 960
    assert stacks[("[heap textures]", "[thread server]", "[scope request: 1]")] == 3000
    rows = sums(report(recordings["scopes"])["rows"], "function", "type")
    assert rows[("[scope load]", "Pixel")] == 20480 and rows[("[scope parse]", None)] == 960
    for by in ("function", "line", "file", "module"):
        assert sums(report(recordings["scopes"], "--by", by)["rows"], "function")["[scope request; 1]"] == 3000


def test_trees_and_leaks_show_them(recordings):
    tree = [line.split("  ")[-1].strip(" `|+-") for line in text_of("tree", recordings["scopes"]).splitlines()]
    names = [name for name in tree if name.startswith("[")]
    assert names[0] == "[all]" and names[1] == "[heap textures]"
    assert names[names.index("[scope load]") + 1] == "[type Pixel]"
    leaks = text_of("leaks", recordings["both"], "-n", "1", "--filter", "Pixel")  # so short a run may be all start-up
    stack = [line.strip().split("  ")[0] for line in leaks.splitlines() if line.startswith("    ")]
    assert stack[:4] == ["[type Pixel]", "texture", "[scope load]", "load"] and stack[-1] == "[heap textures]"
    by_type = text_of("leaks", recordings["both"], "--by", "type")
    assert "| type Pixel" in by_type and "| type [unknown]" in by_type


def test_speedscope_and_json_have_them(recordings):
    speedscope = json.loads(text_of("export", recordings["both"], "--format", "speedscope"))
    names = {frame["name"] for frame in speedscope["shared"]["frames"]}
    assert {"[heap textures]", "[type Pixel]", "[scope request; 1]", "[thread server]"} <= names
    dump = json.loads(text_of("export", recordings["both"], "--format", "json"))
    frames = dump["frames"]
    found = {(stack["heap"], stack["type"], stack["scope"]) for stack in dump["stacks"]}
    assert found == {key[1:] for key in KEPT}
    for stack in dump["stacks"]:
        scopes = [frames[number]["name"] for number in stack["frames"] if frames[number].get("kind") == "scope"]
        assert (scopes[0] if scopes else None) == stack["scope"]
        assert frames[stack["frames"][-1]]["kind"] == "thread"


def test_an_archive_keeps_the_names(recordings, folder):
    archive = folder / "all.mscar"
    malloscope("archive", recordings["both"], "-o", archive)
    for view in (["tree"], ["report", "--by", "scope"], ["export", "--format", "collapsed"]):
        assert text_of(*view, archive) == text_of(*view, recordings["both"])


def test_figures_of_two_recordings_are_added_up_by_name(recordings, program, folder):
    other = folder / "other.mscope"
    harness.run(harness.record_command(other, [program], "exact"))
    rows = sums(report(recordings["both"], str(other), "--by", "heap")["rows"], "heap")
    assert rows["textures"] == 2 * 23480
    assert sums(report(recordings["both"], str(other), "--by", "scope")["rows"], "scope")["parse"] == 2 * 960


# --- pprof ---


def test_pprof_keeps_apart_what_differs_in_labels(recordings):
    profile = decode(malloscope("export", recordings["scopes"], "--format", "pprof").stdout)
    strings = fields(profile, "string_table")
    found = {}
    for sample in fields(profile, "sample"):
        labels = {strings[field(label, "key")]: strings[field(label, "str")] for label in fields(sample, "label")}
        key = (labels["heap"], labels.get("type"), labels.get("scope"))
        found[key] = found.get(key, 0) + fields(sample, "value")[3]
    wanted = expected(1, 2, 3)
    wanted["malloc", None, None] += of_thread(recordings["both"])
    assert found == wanted


def tags(pprof, profile):
    """What `pprof -tags` prints: {key: {value: share of all in percent}}."""
    result, key = {}, None
    for line in harness.run([pprof, "-tags", profile]).stdout.decode().splitlines():
        if match := re.match(r" *(\w+): Total", line):
            key = match.group(1)
            result[key] = {}
        elif match := re.match(r" *\S+ \( *([\d.]+)%\): (.*)", line):
            result[key][match.group(2)] = float(match.group(1))
    return result


def test_pprof_sums_up_labels(pprof, recordings, folder, program):
    path = folder / "labels.pb.gz"
    malloscope("export", recordings["both"], "--format", "pprof", "-o", path)
    whole = harness.stats(recordings["both"])["totals"]["live_bytes"]
    found = tags(pprof, path)
    assert set(found) == {"heap", "type", "scope", "thread"}
    for key, part in (("type", 2), ("scope", 3)):
        wanted = {name: 100 * size / whole for name, size in expected(part).items() if name}
        assert found[key] == pytest.approx(wanted, abs=0.01)
    assert found["heap"]["textures"] == pytest.approx(100 * 23480 / whole, abs=0.01)
    assert found["thread"]["server"] == pytest.approx(100 * 3000 / whole, abs=0.01)


def test_code_allocates_in_pprof_and_scopes_hold_it(pprof, recordings, folder):
    path = folder / "code.pb.gz"
    malloscope("export", recordings["both"], "--format", "pprof", "-o", path)
    top = harness.run([pprof, "-top", "-unit=B", "-nodecount=100", "-nodefraction=0", path]).stdout.decode()
    rows = {line[5]: (line[0], line[3]) for line in (row.split(None, 5) for row in top.splitlines()) if len(line) == 6}
    assert rows["texture"] == ("23480B", "23480B") and rows["parse"] == ("960B", "960B")
    assert rows["[scope load]"] == ("0", "22720B") and rows["[scope parse]"] == ("0", "960B")


def test_the_text_formats_have_what_has_an_address(program, recordings, folder):
    path = folder / "both.heap"
    malloscope("export", recordings["both"], "--format", "heap", "-o", path)
    total, flat = google_pprof(program, path, "--inuse_space")
    assert total == harness.stats(recordings["both"])["totals"]["live_bytes"]
    assert flat["texture"] == 23480 and flat["parse"] == 960
    assert "scope" not in path.read_text().split("MAPPED_LIBRARIES")[0]
    lines = text_of("export", recordings["scopes"], "--format", "heap").splitlines()
    assert len(lines[: lines.index("")]) == 2, "without scopes all stacks are equal"
