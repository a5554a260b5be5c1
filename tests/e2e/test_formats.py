"""Every export is read by the tool it is made for, and that tool must show the right totals, functions and lines."""

import csv
import gzip
import io
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import harness

SOURCE = harness.PROGRAMS / "format_sites.c"
SCHEMA = harness.ROOT / "src" / "format" / "profile.proto"

# What format_sites.c allocates: objects and bytes, live and ever.
SITES = {
    "many_small": {"objects": 64, "bytes": 6400, "total_objects": 64, "total_bytes": 6400},
    "few_large": {"objects": 3, "bytes": 3000000, "total_objects": 3, "total_bytes": 3000000},
    "mixed": {"objects": 64, "bytes": 803000, "total_objects": 64, "total_bytes": 803000},
    "churn": {"objects": 0, "bytes": 0, "total_objects": 500, "total_bytes": 1500000},
    "inner": {"objects": 1, "bytes": 70000, "total_objects": 1, "total_bytes": 70000},
}

SITE_LINES = {name: lines[0] for name, lines in harness.site_lines(SOURCE).items()}


@pytest.fixture(scope="module")
def program(build):
    return build("format_sites.c", "-O2", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls")


@pytest.fixture(scope="module")
def module_folder(session_folder):
    path = session_folder / "formats"
    path.mkdir()
    return path


@pytest.fixture(scope="module")
def exact(program, module_folder):
    path = module_folder / "exact.mscope"
    harness.run(harness.record_command(path, [program], "exact"))
    return path


@pytest.fixture(scope="module")
def sampled(program, module_folder):
    path = module_folder / "sampled.mscope"
    harness.run(harness.record_command(path, [program], 1024), env={"MALLOSCOPE_SEED": "7"})
    return path


def export(recording, form, *options):
    return harness.malloscope("export", recording, "--format", form, *options).stdout


def export_to(folder, recording, form, *options):
    path = folder / f"{Path(recording).stem}.{form}"
    path.write_bytes(export(recording, form, *options))
    return path


# --- google-pprof on the text formats ---


def google_pprof(program, profile, *options):
    """What `google-pprof --text` prints: the total and {name: flat value}."""
    if not shutil.which("google-pprof"):
        pytest.skip("no google-pprof here (Debian: apt install google-perftools)")
    output = harness.run(["google-pprof", "--text", "--show_bytes", *options, program, profile]).stdout.decode()
    total = int(re.search(r"^Total: (\d+) ", output, re.M).group(1))
    flat = {}
    for line in output.splitlines():
        match = re.match(r"\s*(\d+)\s+[\d.]+%\s+[\d.]+%\s+\d+\s+[\d.]+%\s+(.*)", line)
        if match:
            name = match.group(2).replace(" (inline)", "")
            flat[name] = flat.get(name, 0) + int(match.group(1))
    return total, flat


def flat_of_site(flat, name):
    """The value of the line of a site, in the output of --lines."""
    return sum(value for text, value in flat.items() if text.endswith(f"{SOURCE.name}:{SITE_LINES[name]}"))


GOOGLE_COLUMNS = {
    "--inuse_space": ("bytes", "live_bytes"),
    "--inuse_objects": ("objects", "live_objects"),
    "--alloc_space": ("total_bytes", "total_bytes"),
    "--alloc_objects": ("total_objects", "total_objects"),
}


@pytest.mark.parametrize("column", GOOGLE_COLUMNS)
@pytest.mark.parametrize("form", ["heap", "heap_v2"])
def test_google_pprof_shows_exact_figures_by_line(program, exact, folder, form, column):
    site_key, total_key = GOOGLE_COLUMNS[column]
    total, flat = google_pprof(program, export_to(folder, exact, form), "--lines", column)
    assert total == harness.stats(exact)["totals"][total_key]
    for name, truth in SITES.items():
        assert flat_of_site(flat, name) == truth[site_key], name


def test_google_pprof_names_functions(program, exact, folder):
    _, flat = google_pprof(program, export_to(folder, exact, "heap"), "--inuse_space")
    assert flat["few_large"] == 3000000
    assert flat["many_small"] == 6400
    assert flat["inner"] == 70000


@pytest.mark.parametrize("column", GOOGLE_COLUMNS)
@pytest.mark.parametrize("form", ["heap", "heap_v2"])
def test_google_pprof_shows_sampled_estimates(program, sampled, folder, form, column):
    """heap is taken as it is; heap_v2 is rescaled by the reader to the same estimate."""
    total_key = GOOGLE_COLUMNS[column][1]
    total, flat = google_pprof(program, export_to(folder, sampled, form), "--lines", column)
    report = harness.report(sampled)
    slack = 0.05 if (form == "heap_v2" and "objects" in column) else 0.001
    assert total == pytest.approx(report["totals"][total_key], rel=slack, abs=10)
    for name in SITES:
        estimate = harness.figures_of_site(report["rows"], SOURCE, name)[total_key]
        assert flat_of_site(flat, name) == pytest.approx(estimate, rel=slack, abs=10), name


# --- pprof's protobuf ---


def decode(data):
    """`protoc --decode` as nested lists of (name, value)."""
    if not shutil.which("protoc"):
        pytest.skip("no protoc here (Debian: apt install protobuf-compiler)")
    text = harness.run(
        ["protoc", "--decode=pprof.Profile", f"--proto_path={SCHEMA.parent}", SCHEMA.name], input=gzip.decompress(data)
    ).stdout.decode()
    stack = [[]]
    for line in text.splitlines():
        line = line.strip()
        if line.endswith("{"):
            message = []
            stack[-1].append((line[:-1].strip(), message))
            stack.append(message)
        elif line == "}":
            stack.pop()
        else:
            name, value = line.split(": ", 1)
            # Octal escapes are protoc's only ones that JSON does not know; the names here have none.
            stack[-1].append((name, json.loads(value)))
    return stack[0]


def fields(message, name):
    return [value for key, value in message if key == name]


def field(message, name, default=0):
    return (fields(message, name) or [default])[0]


def test_pprof_decodes_with_the_schema(program, exact):
    profile = decode(export(exact, "pprof"))
    strings = fields(profile, "string_table")
    assert strings[0] == ""
    types = [
        (strings[field(value_type, "type")], strings[field(value_type, "unit")])
        for value_type in fields(profile, "sample_type")
    ]
    assert types == [
        ("alloc_objects", "count"),
        ("alloc_space", "bytes"),
        ("inuse_objects", "count"),
        ("inuse_space", "bytes"),
    ]
    assert strings[field(profile, "default_sample_type")] == "inuse_space"
    assert field(profile, "period") == 1
    assert field(profile, "time_nanos") > 1600000000 * 10**9
    assert 0 < field(profile, "duration_nanos") < 3600 * 10**9
    assert any(strings[comment].startswith("malloscope ") for comment in fields(profile, "comment"))

    main = fields(profile, "mapping")[0]
    assert strings[field(main, "filename")] == str(program)
    notes = harness.run(["readelf", "-n", program]).stdout.decode()
    assert strings[field(main, "build_id")] == re.search(r"Build ID: ([0-9a-f]+)", notes).group(1)

    totals = harness.stats(exact)["totals"]
    samples = fields(profile, "sample")
    sums = [sum(values) for values in zip(*(fields(sample, "value") for sample in samples))]
    assert sums == [
        totals["total_objects"],
        totals["total_bytes"],
        totals["live_objects"],
        totals["live_bytes"],
    ]


def test_pprof_mappings_say_what_is_known_of_all_their_locations(exact):
    profile = decode(export(exact, "pprof"))
    functions = {field(function, "id"): function for function in fields(profile, "function")}
    checked = 0
    for mapping in fields(profile, "mapping"):
        lines = [
            line
            for location in fields(profile, "location")
            if field(location, "mapping_id") == field(mapping, "id")
            for line in fields(location, "line")
        ]
        has_files = bool(lines) and all(field(functions[field(line, "function_id")], "filename") for line in lines)
        has_lines = bool(lines) and all(field(line, "line") for line in lines)
        assert field(mapping, "has_filenames", False) == has_files
        assert field(mapping, "has_line_numbers", False) == has_lines
        assert field(mapping, "has_inline_frames", False) == has_lines
        checked += bool(lines)
    assert checked > 0
    assert field(fields(profile, "mapping")[0], "has_functions", False)


def test_a_stripped_program_has_addresses_for_names(build, record, folder):
    program = build("format_sites.c", "-O2", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls", "-s")
    recording = record(program)
    profile = decode(export(recording, "pprof"))
    assert not field(fields(profile, "mapping")[0], "has_functions", False)
    large = [
        stack for stack, value in collapsed(recording).items() if value == SITES["few_large"]["bytes"]
    ]
    assert len(large) == 1
    assert re.search(rf"\[{program.name}\+0x[0-9a-f]+\]$", large[0])
    total, _ = google_pprof(program, export_to(folder, recording, "heap"), "--inuse_space")
    assert total == harness.stats(recording)["totals"]["live_bytes"]


def test_several_processes_are_merged_and_told_apart(program, folder):
    """Recordings of two processes in one export: addresses of one must not be taken for those of the other."""
    place = folder / "two"
    place.mkdir()
    for number in range(2):
        harness.run(harness.record_command(place / f"{number}.mscope", [program], "exact"))
    _, flat = google_pprof(program, export_to(folder, place, "heap"), "--lines", "--inuse_space")
    for name, truth in SITES.items():
        assert flat_of_site(flat, name) == 2 * truth["bytes"], name

    profile = decode(export(place, "pprof"))
    strings = fields(profile, "string_table")
    labels = {strings[field(label, "str")] for sample in fields(profile, "sample") for label in fields(sample, "label")}
    assert len(labels) == 2
    assert all(re.fullmatch(rf"{program.name} \(\d+\)", label) for label in labels)


def test_pprof_has_inlined_calls_innermost_first(exact):
    profile = decode(export(exact, "pprof"))
    strings = fields(profile, "string_table")
    functions = {field(function, "id"): function for function in fields(profile, "function")}
    lines = []
    for location in fields(profile, "location"):
        lines.append(
            [
                (strings[field(functions[field(line, "function_id")], "name")], field(line, "line"))
                for line in fields(location, "line")
            ]
        )
    assert [("inner", SITE_LINES["inner"]), ("outer", SITE_LINES["outer"])] in lines


def pprof_top(pprof, profile, *options):
    """{name: flat} of `pprof -top`, in bytes or objects."""
    output = harness.run(
        [pprof, "-top", "-nodecount=1000", "-nodefraction=0", "-unit=B", *options, profile],
        env={"PPROF_NO_BROWSER": "1", "HOME": str(profile.parent)},
    ).stdout.decode()
    flat = {}
    for line in output.splitlines():
        match = re.match(r"\s*(\d+(?:\.\d+)?(?:e\+\d+)?)B?\s+[\d.]+%\s+[\d.]+%\s+\S+\s+[\d.]+%\s+(.*)", line)
        if match:
            name = match.group(2).removesuffix(" (inline)").removesuffix(" (partial-inline)")
            flat[name] = flat.get(name, 0) + float(match.group(1))
    return flat


@pytest.mark.parametrize(
    "column,key",
    [
        ("inuse_space", "bytes"),
        ("inuse_objects", "objects"),
        ("alloc_space", "total_bytes"),
        ("alloc_objects", "total_objects"),
    ],
)
def test_pprof_prints_the_right_top(pprof, exact, folder, column, key):
    flat = pprof_top(pprof, export_to(folder, exact, "pprof"), f"-sample_index={column}")
    for name, truth in SITES.items():
        assert flat.get(name, 0) == truth[key], name


def test_pprof_prints_the_right_lines(pprof, exact, folder):
    flat = pprof_top(pprof, export_to(folder, exact, "pprof"), "-lines")
    for name, truth in SITES.items():
        if truth["bytes"]:
            text = f"{name} {SOURCE}:{SITE_LINES[name]}"
            assert flat.get(text) == truth["bytes"], flat


def test_pprof_finds_the_same_lines_when_it_symbolises_itself(pprof, program, exact, folder):
    """The addresses are good without our names: this is what a reader with better debug information does."""
    profile = export_to(folder, exact, "pprof")
    flat = pprof_top(pprof, profile, "-symbolize=force", "-lines", program)
    assert any(
        text.startswith("few_large ") and text.endswith(f":{SITE_LINES['few_large']}") and value == 3000000
        for text, value in flat.items()
    ), flat


@pytest.mark.parametrize("form", ["heap", "heap_v2"])
@pytest.mark.parametrize("recording_name", ["exact", "sampled"])
def test_pprof_reads_the_text_formats(pprof, program, folder, request, form, recording_name):
    recording = request.getfixturevalue(recording_name)
    profile = export_to(folder, recording, form)
    report = harness.report(recording)
    for column, figure in (("inuse_space", "live_bytes"), ("alloc_space", "total_bytes")):
        flat = pprof_top(pprof, profile, f"-sample_index={column}", "-lines", program)
        assert sum(flat.values()) == pytest.approx(report["totals"][figure], rel=0.001, abs=50)
        for name in ("few_large", "mixed", "inner"):
            estimate = harness.figures_of_site(report["rows"], SOURCE, name)[figure]
            shown = sum(
                value for text, value in flat.items() if text.endswith(f"{SOURCE.name}:{SITE_LINES[name]}")
            )
            assert shown == pytest.approx(estimate, rel=0.001, abs=10), (name, flat)


# --- speedscope ---


@pytest.fixture(scope="module")
def speedscope(module_folder):
    """speedscope(FILE) is what the importer of the npm package makes of it."""
    if not shutil.which("npm") or not shutil.which("node"):
        pytest.skip("no npm here (Debian: apt install npm)")
    place = module_folder / "npm"
    place.mkdir()
    installed = harness.run(
        ["npm", "install", "--no-audit", "--no-fund", "--prefix", place, "speedscope"], expect=None
    )
    if installed.returncode:
        pytest.skip("speedscope cannot be fetched: " + installed.stderr.decode(errors="replace")[-300:])

    script = Path(__file__).with_name("speedscope_import.js")

    def import_file(path):
        return json.loads(harness.run(["node", script, place / "node_modules" / "speedscope", path]).stdout)

    return import_file


def test_speedscope_imports_all_profiles(speedscope, program, exact, folder):
    group = speedscope(export_to(folder, exact, "speedscope"))
    totals = harness.stats(exact)["totals"]
    assert group["name"] == program.name
    assert group["active"] == 0
    by_name = {profile["name"]: profile for profile in group["profiles"]}
    assert by_name["live bytes"]["total"] == totals["live_bytes"]
    assert by_name["allocated bytes"]["total"] == totals["total_bytes"]
    assert by_name["live objects"]["total"] == totals["live_objects"]
    assert by_name["live bytes at peak"]["total"] == totals["peak_bytes"]
    assert [by_name[name]["unit"] for name in ("live bytes", "live objects")] == ["bytes", "none"]

    for profile_name, key in (("live bytes", "bytes"), ("allocated bytes", "total_bytes"), ("live objects", "objects")):
        frames = by_name[profile_name]["frames"]
        for name, truth in SITES.items():
            mine = [frame for frame in frames if frame["name"] == name and frame["line"] == SITE_LINES[name]]
            assert sum(frame["self"] for frame in mine) == truth[key], (profile_name, name)
            assert all(frame["file"] == str(SOURCE) for frame in mine)
    outer = [frame for frame in by_name["live bytes"]["frames"] if frame["name"] == "outer"]
    assert [(frame["self"], frame["total"]) for frame in outer] == [(0, 70000)]


def test_speedscope_opens_with_the_value_asked_for(speedscope, exact, folder):
    assert speedscope(export_to(folder, exact, "speedscope", "--value", "total"))["active"] == 2


# --- collapsed, json, csv ---


def collapsed(recording, *options):
    lines = {}
    for line in export(recording, "collapsed", *options).decode().splitlines():
        if line.startswith("# "):
            continue
        stack, value = line.rsplit(" ", 1)
        assert stack not in lines, "equal stacks are merged"
        lines[stack] = int(value)
        assert lines[stack] > 0, "zeros are left out"
    return lines


@pytest.mark.parametrize(
    "value,figure",
    [(None, "live_bytes"), ("live", "live_bytes"), ("total", "total_bytes"), ("objects", "live_objects")],
)
def test_collapsed_has_one_line_a_stack(exact, value, figure):
    lines = collapsed(exact, *(["--value", value] if value else []))
    assert sum(lines.values()) == harness.stats(exact)["totals"][figure]
    key = {"live_bytes": "bytes", "total_bytes": "total_bytes", "live_objects": "objects"}[figure]
    for name, truth in SITES.items():
        path = "main;outer;inner" if name == "inner" else f"main;{name}"
        found = sum(number for stack, number in lines.items() if stack == path or stack.endswith(";" + path))
        assert found == truth[key], (name, lines)


def test_collapsed_at_peak_adds_up_to_the_peak(exact):
    assert sum(collapsed(exact, "--value", "peak").values()) == harness.stats(exact)["totals"]["peak_bytes"]


def test_json_holds_totals_processes_and_stacks(program, exact):
    dump = json.loads(export(exact, "json"))
    stats = harness.stats(exact)
    for name in ("live_bytes", "live_objects", "total_bytes", "total_objects", "peak_bytes", "frees", "rate"):
        assert dump["totals"][name] == stats["totals"][name], name
        assert isinstance(dump["totals"][name], int), "exact figures are whole numbers"
    assert dump["health"] == stats["health"]
    assert [process["executable"] for process in dump["processes"]] == [str(program)]
    assert str(program) in [module["path"] for module in dump["modules"]]
    assert sum(stack["live_bytes"] for stack in dump["stacks"]) == dump["totals"]["live_bytes"]
    assert dump["threads"] and dump["timeline"]

    inlined = [stack for stack in dump["stacks"] if dump["frames"][stack["frames"][0]]["function"] == "inner"]
    assert [stack["live_bytes"] for stack in inlined] == [70000]
    frames = [dump["frames"][number] for number in inlined[0]["frames"]]
    assert [frame["function"] for frame in frames[:3]] == ["inner", "outer", "main"]
    assert [frame["inlined"] for frame in frames[:3]] == [True, False, False]
    assert frames[0]["address"] == frames[1]["address"] != frames[2]["address"]
    assert frames[0]["file"] == str(SOURCE) and frames[0]["line"] == SITE_LINES["inner"]


def test_csv_has_the_rows_of_the_report(sampled):
    rows = list(csv.DictReader(io.StringIO(export(sampled, "csv").decode())))
    expected = harness.report(sampled)["rows"]
    assert len(rows) == len(expected) > 0
    for row, wanted in zip(rows, expected):
        assert row["function"] == (wanted["function"] or "")
        assert row["file"] == (wanted["file"] or "")
        for name in ("line", "live_bytes", "live_error", "live_objects", "total_bytes", "samples"):
            assert float(row[name]) == wanted[name], name


def test_names_survive_every_format(build, record):
    program = build("format_names.cpp", "-O1", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls")
    recording = record(program)
    stock = "depot::Shelf<int, double>::stock(int)"
    comma = "depot::Label::operator,(int)"
    call = "depot::Label::operator()(int)"

    leaves = {stack.rsplit(";", 1)[-1]: value for stack, value in collapsed(recording).items()}
    rows = {
        row["function"]: float(row["live_bytes"])
        for row in csv.DictReader(io.StringIO(export(recording, "csv").decode()))
    }
    for name, size in ((stock, 32000), (comma, 5000), (call, 6000)):
        assert leaves.get(name) == size, leaves
        assert rows.get(name) == size, rows

    profile = decode(export(recording, "pprof"))
    strings = fields(profile, "string_table")
    names = {strings[field(f, "name")]: strings[field(f, "system_name")] for f in fields(profile, "function")}
    assert names[stock] == "_ZN5depot5ShelfIidE5stockEi"


def test_unknown_formats_are_refused(exact):
    result = harness.malloscope("export", exact, "--format", "nonsense", expect=2)
    assert "nonsense" in result.stderr.decode()


def test_every_format_is_listed_wherever_formats_are():
    names = list(harness.export_formats())
    assert names
    help_text = harness.malloscope("export", "--help").stdout.decode()
    listed = re.search(r"^formats:\n(.*?)\n\n", help_text, re.S | re.M)[1]
    assert re.findall(r"^  ([\w-]+) ", listed, re.M) == names
    head = harness.FORMAT_TABLE.with_suffix(".h").read_text().split("*/")[0]
    assert re.findall(r"^ \*     ([\w-]+) +\w+\.c ", head, re.M) == names
    overview = (harness.ROOT / "docs" / "features.md").read_text()
    listed = re.search(r"malloscope export FILE\|PID --format NAME \[-o OUT\](.*?)\n +malloscope ", overview, re.S)[1]
    assert re.findall(r"[\w-]+", listed) == names


@pytest.mark.parametrize("name", harness.export_formats())
def test_every_format_writes_something_for_every_value(exact, name):
    for value in ("live", "peak", "total", "objects"):
        assert harness.malloscope("export", exact, "--format", name, "--value", value, "-o", "-").stdout


def test_a_full_disk_is_reported(exact):
    with open("/dev/full", "wb") as full:
        result = subprocess.run(
            [harness.MALLOSCOPE, "export", exact, "--format", "collapsed"],
            stdin=subprocess.DEVNULL,
            stdout=full,
            stderr=subprocess.PIPE,
            env=harness.clean_environment(),
            check=False,
        )
    assert result.returncode == 1
    assert b"No space left on device" in result.stderr


def test_json_lists_the_live_samples_if_asked(exact, sampled):
    for recording in (exact, sampled):
        export = json.loads(harness.malloscope("export", recording, "--format", "json", "--samples").stdout)
        weights, counts = [0] * len(export["stacks"]), [0] * len(export["stacks"])
        for sample in export["samples"]:
            weights[sample["stack"]] += sample["weight"]
            counts[sample["stack"]] += 1
        for stack, weight, count in zip(export["stacks"], weights, counts):
            assert weight == pytest.approx(stack["live_bytes"], abs=1) and count == stack["live_samples"]
    addresses = {sample["address"] for sample in export["samples"]}
    assert len(addresses) == len(export["samples"]), "no two live blocks are at one place"
    assert "samples" not in json.loads(harness.malloscope("export", exact, "--format", "json").stdout)
    refused = harness.malloscope("export", exact, "--format", "csv", "--samples", expect=2)
    assert b"--samples has no place in the format 'csv'" in refused.stderr
