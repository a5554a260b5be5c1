"""The recorder on aarch64: made by Debian's cross compiler, run by QEMU's user emulation; this machine's tool reads
what it wrote. Programs are started with the library preloaded, as `malloscope run` does it: the tool itself is not
emulated."""

import collections
import json
import os
import shutil
import signal
from pathlib import Path

import pytest

import harness
from harness import PROGRAMS, assert_same_outcome, figures_of_site, malloscope, report, stats
from test_ground_truth import COUNTED, assert_adds_up, assert_ledger
from test_lifecycle import SOURCE as LIFECYCLE, sites
from test_stacks import Image, assert_handlers_and_coroutines, dump

MACHINE = "aarch64-linux-gnu"
SYSROOT = Path("/usr") / MACHINE
BUILD = Path(os.environ.get("MALLOSCOPE_AARCH64_BUILD", harness.ROOT / "build-aarch64")).resolve()
LIBRARY = BUILD / "libmalloscope.so"

for needed in (f"{MACHINE}-gcc", f"{MACHINE}-g++", "qemu-aarch64"):
    if not shutil.which(needed):
        pytest.skip(f"{needed} is not installed: './dev check --aarch64' installs it", allow_module_level=True)
if not LIBRARY.exists():
    pytest.skip(f"{LIBRARY} does not exist: './dev check --aarch64' builds it", allow_module_level=True)

FRAME_POINTERS = ["-fno-omit-frame-pointer", "-fomit-frame-pointer"]
SIGNED = "-mbranch-protection=standard"  # return addresses on the stack carry a signature
RATES = ["exact", "64", "512K"]


def emulated(program, *arguments, env=None, processor="max"):
    variables = [part for name, value in (env or {}).items() for part in ("-E", f"{name}={value}")]
    return ["qemu-aarch64", "-cpu", processor, "-L", SYSROOT, *variables, program, *arguments]


@pytest.fixture
def cross(build):
    """cross("truth.c", "-O2", …) compiles a program for aarch64."""
    return lambda name, *flags, **options: build(name, *flags, machine=MACHINE, **options)


@pytest.fixture
def run(folder):
    """run(program, argument, …) runs it without the recorder."""
    return lambda *command, **options: harness.run(emulated(*command, **options), expect=None, cwd=folder)


def preload(output, rate, env=None):
    rate = {"exact": 1, "512K": 512 << 10}.get(rate, rate)
    return {"LD_PRELOAD": LIBRARY, "MALLOSCOPE_OUTPUT": output, "MALLOSCOPE_RATE": rate, **(env or {})}


@pytest.fixture
def record(folder):
    """record(program, argument, …, rate=…) runs it with the recorder and returns the Recording."""
    count = 0

    def record_program(program, *arguments, rate="exact", env=None, processor="max", expect=0):
        nonlocal count
        count += 1
        path = folder / f"{count}.mscope"
        command = emulated(program, *arguments, env=preload(path, rate, env), processor=processor)
        result = harness.run(command, expect=expect, cwd=folder)
        assert path.exists(), f"no recording was made; stderr: {result.stderr.decode(errors='replace')}"
        return harness.Recording(path, result)

    return record_program


@pytest.fixture
def record_all(folder):
    """The same for a program that forks: what it printed, and all recordings."""

    def record_processes(program, *arguments, rate="exact"):
        place = folder / "recordings"
        place.mkdir(exist_ok=True)
        command = emulated(program, *arguments, env=preload(place / "%p.%n.mscope", rate))
        return harness.run(command, expect=None, cwd=folder), sorted(place.glob("*.mscope"))

    return record_processes


# ---- figures ----


def assert_truth(recording, source, figures=COUNTED + ("own_peak_at_most",)):
    whole = report(recording)
    assert_ledger(recording.ledger, whole["rows"], PROGRAMS / source, figures)
    assert_adds_up(whole)
    assert whole["health"]["complete"] >= 0.99


@pytest.mark.parametrize("protection", ["-mbranch-protection=none", SIGNED])
@pytest.mark.parametrize("pointers", FRAME_POINTERS)
@pytest.mark.parametrize("optimise", ["-O0", "-O2"])
def test_every_function_of_the_malloc_family(cross, run, record, optimise, pointers, protection):
    program = cross("truth.c", optimise, pointers, protection)
    recording = record(program)
    assert recording.stdout == run(program).stdout
    assert recording.ledger["notes"]["realloc_same"] > 0 and recording.ledger["notes"]["realloc_moved"] > 0
    assert_truth(recording, "truth.c")


@pytest.mark.parametrize("processor", ["cortex-a57", "neoverse-n1"])
def test_processors_without_signatures_and_vectors(cross, record, processor):
    assert_truth(record(cross("truth.c", "-O2", SIGNED), processor=processor), "truth.c")


def test_a_heap_with_tags(cross, run, record):
    """The C library gives out pointers with a tag, and the processor stops who reads in front of a block with it. (With
    several threads this emulator stops the C library itself.)"""
    tags = {"GLIBC_TUNABLES": "glibc.mem.tagging=3"}
    assert_truth(record(cross("truth_cpp.cpp", "-std=c++17", "-O2"), env=tags), "truth_cpp.cpp", COUNTED)
    program = cross("integrity.c", "-O1")
    expected = run(program, 1, 300, 1, env=tags).stdout
    for rate in ("exact", "200", "512K"):
        recording = record(program, 1, 300, 1, rate=rate, env=tags)
        assert recording.stdout == expected and stats(recording)["totals"]["drops"] == 0


@pytest.mark.parametrize("optimise", ["-O0", "-O2"])
def test_threads_and_blocks_freed_elsewhere(cross, record, optimise):
    assert_truth(record(cross("truth_threads.c", optimise, SIGNED)), "truth_threads.c")


@pytest.mark.parametrize("optimise", ["-O0", "-O2"])
def test_cpp(cross, record, optimise):
    assert_truth(record(cross("truth_cpp.cpp", "-std=c++17", optimise, SIGNED)), "truth_cpp.cpp", COUNTED)


def test_sampled_figures(cross, record):
    """One in about 64 KiB: the exact sums are exact, and what is estimated lies within four times the 95 % interval."""
    program = cross(str(harness.ROOT / "tests" / "stats" / "mix.c"), "-O1")
    truth = stats(record(program))["totals"]
    for seed in (1, 2):
        sampled = stats(record(program, rate=65536, env={"MALLOSCOPE_SEED": seed}))["totals"]
        assert 0.001 * truth["samples"] < sampled["samples"] < 0.1 * truth["samples"]
        assert sampled["exact_total_bytes"] == truth["total_bytes"]
        for figure, error in (("live_bytes", "live_error"), ("total_bytes", "total_error")):
            assert 0 < sampled[error] < 0.1 * truth[figure]
            assert abs(sampled[figure] - truth[figure]) < 4 * sampled[error], f"seed {seed}: {figure}"


@pytest.mark.parametrize("rate", ["1", "64", "4096"])
def test_blocks_hold_what_was_written(cross, run, record, rate):
    program = cross("integrity.c", "-O1")
    for threads, operations in ((1, 3000), (8, 400)):
        recording = record(program, threads, operations, 1, rate=rate)
        assert recording.stdout == run(program, threads, operations, 1).stdout
        totals = stats(recording)["totals"]
        assert totals["samples"] > 0
        assert totals["live_bytes"] <= max(20000, 0.001 * totals["total_bytes"]), "a free was missed"


# ---- stacks ----


def start_of_thread(whole, clone, frame):
    """What kind of start a root frame is. The C library is stripped: the code before it tells a thread's start."""
    address = int(frame["address"], 16) - 1
    for module in whole["modules"]:
        if module["path"] == frame["module"] and int(module["start"], 16) <= address < int(module["end"], 16):
            offset = address - int(module["start"], 16) + int(module["file_offset"], 16)
            if Path(module["path"]).name == "libc.so.6":
                return "thread" if 0 <= offset - clone < 128 else "coroutine"
            return "process" if 0 <= offset - Image(module["path"]).entry < 64 else None
    return None


@pytest.mark.parametrize("pointers", FRAME_POINTERS)
@pytest.mark.parametrize("optimise", ["-O0", "-O2", "-O3"])
def test_stacks_reach_the_start_of_their_thread(cross, record, optimise, pointers):
    rounds = 40
    recording = record(cross("stacks.c", optimise, pointers, SIGNED), rounds)
    symbols = harness.run([f"{MACHINE}-nm", "-D", SYSROOT / "lib" / "libc.so.6"]).stdout.decode().splitlines()
    clone = next(int(line.split()[0], 16) for line in symbols if line.split()[-1].split("@")[0] == "clone")

    whole, kinds, complete = dump(recording), collections.Counter(), 0
    for stack in whole["stacks"]:
        start = start_of_thread(whole, clone, whole["frames"][stack["frames"][-1]]) if stack["samples"] else ""
        kinds[start] += stack["samples"]
        complete += stack["complete"] * stack["samples"]
    total = whole["totals"]["samples"]
    assert sum(kinds.values()) == total >= 1000 and whole["totals"]["drops"] == 0
    assert complete >= 0.99 * total and kinds[None] <= 0.01 * total
    assert kinds["coroutine"] == 5 * rounds, "five allocations a round are made in coroutines"
    assert kinds["thread"] > 100 and kinds["process"] > 100


def test_signal_handlers_and_coroutines(cross, record):
    program = cross("stacks.c", "-O0", SIGNED)
    assert_handlers_and_coroutines(dump(record(program, 1)), program)


# ---- processes, libraries and operators ----


@pytest.fixture
def lifecycle(cross):
    program = cross("lifecycle.c", "-O1", "-ldl")
    if not (program.parent / "libplugin.so").exists():
        plugin = cross("plugin.c", "-shared", "-fPIC", target="libplugin.so")
        (program.parent / "libplugin.so").symlink_to(plugin)
    return program


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("mode", [
    "fork", "fork-deep", "plugin", "deep-bind", "_exit", "abort", "segfault", "signal", "thread-exit", "exit-in-thread",
    "main-ends-first", "other-stack",
])
def test_same_output_and_status(lifecycle, run, record_all, mode, rate):
    result, recordings = record_all(lifecycle, mode, rate=rate)
    assert_same_outcome(run(lifecycle, mode), result, f"lifecycle {mode} at {rate}")
    assert recordings and all(stats(path)["health"]["complete"] >= 0.99 for path in recordings)


def test_fork_gives_the_child_a_recording_with_what_it_inherited(lifecycle, record_all):
    _, recordings = record_all(lifecycle, "fork")
    parent, child = sorted((sites(path) for path in recordings), key=lambda site: -site["before"]["frees"])
    assert (parent["before"]["total_objects"], parent["before"]["live_objects"]) == (10, 0)
    assert (child["before"]["live_objects"], child["before"]["live_bytes"]) == (7, 7000)
    assert (child["after"]["total_objects"], child["after"]["live_bytes"]) == (5, 10000)


def test_a_library_that_was_closed_is_still_known(lifecycle, record_all):
    _, recordings = record_all(lifecycle, "plugin")
    found = figures_of_site(report(recordings[0])["rows"], PROGRAMS / "plugin.c", "plugin")
    assert (found["total_objects"], found["live_objects"], found["live_bytes"]) == (20, 10, 6000)


def test_deep_stacks_are_cut_in_the_middle_and_say_so(lifecycle, record_all):
    _, recordings = record_all(lifecycle, "deep")
    assert figures_of_site(report(recordings[0])["rows"], LIFECYCLE, "before")["live_bytes"] == 10 * 4321
    lines = malloscope("export", recordings[0], "--format", "collapsed").stdout.decode().splitlines()
    deep = [line for line in lines if ";recurse;" in line]
    assert len(deep) == 1 and "[cut]" in deep[0] and deep[0].endswith(";recurse;allocate_before 43210")


@pytest.mark.parametrize("rate", ["exact", "64"])
def test_libraries_bound_deeply_free_the_programs_blocks(cross, run, record, rate):
    """Without threads, which take turns here (test_deep_binding.py)."""
    host = cross("deep_host.c", "-O1", "-pthread", "-rdynamic")
    shared = ["-shared", "-fPIC", "-O1", "-fno-builtin"]
    for binding in ("lazy", "now"):
        library = cross("deep_library.c", *shared, f"-Wl,-z,{binding}", target="deep.so")
        recording = record(host, library, rate=rate)
        assert recording.stdout == run(host, library).stdout == b'{"freed": 10000}\n'
        handed = figures_of_site(report(recording)["rows"], PROGRAMS / "deep_host.c", "handed")
        assert handed["live_objects"] == 0 and (rate != "exact" or handed["frees"] == 10000)


@pytest.mark.parametrize("rate", ["exact", "200"])
def test_a_handler_forks_in_the_middle_of_the_recorder(cross, record_all, rate):
    result, recordings = record_all(cross("fork_in_storm.c", "-O1", "-pthread"), 1, 40, rate=rate)
    told = json.loads(result.stdout)
    assert told["failures"] == 0 and told["children"] == 40
    parent = next(path for path in recordings if path.name.startswith(f"{told['pid']}."))
    whole = report(parent)
    storm = figures_of_site(whole["rows"], PROGRAMS / "fork_in_storm.c", "storm")
    assert storm["live_objects"] == 0
    assert rate != "exact" or storm["total_objects"] == storm["frees"] == told["allocated"]


@pytest.mark.parametrize("rate", RATES)
def test_operators_of_the_programs_own(cross, run, record, rate):
    program = cross("some_operators.cpp", "-std=c++17", "-O1")
    assert record(program, rate=rate).stdout == run(program).stdout
    host = cross("plugin_host.c", "-ldl")
    plugin = cross("plugin_operators.cpp", "-std=c++17", "-O1", "-shared", "-fPIC", "-Wl,-Bsymbolic")
    assert record(host, plugin, rate=rate).stdout == run(host, plugin).stdout


@pytest.mark.parametrize("rate", ["exact", "100"])
def test_entry_code_under_the_guard_of_indirect_jumps(cross, record, rate):
    program = cross("guarded.cpp", "-std=c++17", "-O1")
    assert record(program, rate=rate).stdout == b"guarded\nall functions\n"
    assert record(program, "inside", expect=-signal.SIGILL).stdout == b"guarded\n", "the guard is not in force"


def test_opened_late(cross, run, folder):
    """Without a preload: calls are taken over at the start and given back at the end (test_takeover.py)."""
    program = cross("takeover.c", f"-I{harness.ROOT / 'include'}", "-fno-builtin")
    plugin = cross("plugin.c", "-shared", "-fPIC", target="plugin_aarch64.so")
    other = cross("plugin.c", "-shared", "-fPIC", "-Wl,-z,relro,-z,now", target="other_plugin_aarch64.so")
    path = folder / "late.mscope"
    result = run(program, LIBRARY, path, plugin, 20, other, env={"LD_BIND_NOW": 1})
    assert result.returncode == 0, result.stderr.decode(errors="replace")
    told = harness.Recording(path, result).ledger
    assert told["result"] == 0 and told["by_init"] == 0 and told["by_start"] > 10 and told["by_shutdown"] == 0
    assert figures_of_site(report(path)["rows"], PROGRAMS / "takeover.c", "kept")["total_objects"] == 50
