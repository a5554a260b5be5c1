"""`malloscope attach`: a running program's heap, with exactly the right figures, and the program as before."""

import json
import re
import shutil
import subprocess

import pytest

import attaching
import harness
from attaching import GATE, Attached, Gated, record_gated
from harness import PROGRAMS, figures_of_site, report
from test_ground_truth import COUNTED, assert_adds_up, assert_ledger

pytestmark = pytest.mark.probes


@pytest.fixture(autouse=True, scope="module")
def probes():
    if attaching.why_not():
        pytest.skip(attaching.why_not())


def assert_all_freed(whole, source):
    """Nothing but what the program's own runtime keeps is live: no phantom leaks."""
    live = [row for row in whole["rows"] if row["live_objects"] and row["file"] and row["file"].endswith(source)]
    assert not live, live


# ---- exact figures: C and C++ ----


@pytest.mark.parametrize("flags", [("-O0",), ("-O2",), ("-O1", "-static")], ids=["O0", "O2", "static"])
def test_every_function_of_the_malloc_family(build, start, folder, flags):
    recording, output = record_gated(start, folder, [build("truth.c", *flags, str(GATE))])
    whole = report(recording)
    assert_ledger(json.loads(output), whole["rows"], PROGRAMS / "truth.c", COUNTED + ("own_peak_at_most",))
    assert_adds_up(whole)


@pytest.mark.parametrize("flags", [("-O1",), ("-O2", "-static")], ids=["dynamic", "static"])
def test_threads_that_free_each_other_s_blocks(build, start, folder, flags):
    recording, output = record_gated(start, folder, [build("attach_exchange.c", *flags, str(GATE))])
    ledger, whole = json.loads(output), report(recording)
    assert all(site["live_objects"] == 0 and site["frees"] > 1000 for site in ledger["sites"].values())
    assert_ledger(ledger, whole["rows"], PROGRAMS / "attach_exchange.c")
    assert_adds_up(whole)
    assert_all_freed(whole, "attach_exchange.c")


def test_no_phantom_leaks_when_the_table_of_blocks_is_full(build, start, folder):
    program, source = build("attach_exchange.c", "-O1", str(GATE)), PROGRAMS / "attach_exchange.c"
    recording, output = record_gated(start, folder, [program], "--exact", "--blocks", "20")
    ledger, whole = json.loads(output), report(recording)
    assert whole["totals"]["drops_by_kind"]["tracked"] > 0
    assert_all_freed(whole, "attach_exchange.c")
    found = sum(figures_of_site(whole["rows"], source, name)["total_objects"] for name in ledger["sites"])
    assert found < sum(site["total_objects"] for site in ledger["sites"].values())


@pytest.mark.parametrize("flags", [("-O0",), ("-O2",), ("-O1", "-static")], ids=["O0", "O2", "static"])
def test_cpp(build, start, folder, flags):
    recording, output = record_gated(start, folder, [build("truth_cpp.cpp", "-std=c++17", *flags, str(GATE))])
    ledger, whole = json.loads(output), report(recording)
    nothing = ledger["sites"]["new_zero"]  # its operator asks malloc, where the probe is, for one byte
    nothing["total_bytes"] = nothing["live_bytes"] = nothing["total_objects"]
    assert_ledger(ledger, whole["rows"], PROGRAMS / "truth_cpp.cpp")
    assert_adds_up(whole)


@pytest.mark.parametrize("flags", [(), ("-static",)], ids=["dynamic", "static"])
def test_musl(start, folder, flags):
    """Another C library. Its start has no unwind information, so stacks end there."""
    if not shutil.which("musl-gcc"):
        pytest.skip("no musl-gcc here (Debian: apt install musl-tools)")
    program = folder / "known"
    harness.run(["musl-gcc", "-g", "-O1", *flags, "-o", program, PROGRAMS / "attach_known.c"])
    process = start([program, folder / "go", folder / "done"], stdout=subprocess.PIPE)
    allocated, live = (int(word) for word in process.stdout.readline().split())
    attached = Attached(start, folder, process.pid, "--exact")
    (folder / "go").touch()
    harness.wait_until((folder / "done").is_symlink, process)
    whole = report(attached.stop())
    assert (whole["totals"]["total_bytes"], whole["totals"]["live_bytes"]) == (allocated, live)
    assert {row["function"] for row in whole["rows"]} >= {"by_malloc", "by_calloc", "by_realloc", "by_memalign"}
    assert "musl (" in harness.malloscope("info", attached.recording).stdout.decode()


# ---- exact figures: Rust ----

RUST = {
    "debug": (),
    "release": ("-O",),
    "fat-lto": ("-O", "-C", "lto=fat", "-C", "codegen-units=1", "-C", "panic=abort"),
    "thin-lto": ("-O", "-C", "lto=thin"),
}


@pytest.fixture
def rust(build):
    """rust(source, flag, …) builds a Rust program that waits at the gate."""

    def build_gated(source, *flags):
        gate = build("attach_gate.c", "-c", target="attach_gate.o")
        return build(source, *flags, "-C", f"link-arg={gate}")

    return build_gated


@pytest.fixture
def rust_truth(build):
    """What the program allocates, in every build of it."""
    return json.loads(harness.run([build("truth_rust.rs", "--cfg", "ledger")]).stdout)


@pytest.mark.parametrize("kind", RUST)
def test_rust(rust, rust_truth, start, folder, kind):
    recording, _ = record_gated(start, folder, [rust("truth_rust.rs", *RUST[kind])])
    whole = report(recording)
    assert_ledger(rust_truth, whole["rows"], PROGRAMS / "truth_rust.rs")
    assert_adds_up(whole)
    # Down to the site, through what was put inline on the way: the closure, and all between it and the allocator.
    stacks = harness.malloscope("export", recording, "--format", "collapsed").stdout.decode().splitlines()
    chain = r"truth_rust::main;truth_rust::at[^;]*;truth_rust::main::\{[^;]*\};[^;]*from_elem.*zeroed.* 123456$"
    assert [stack for stack in stacks if re.search(chain, stack)], stacks


@pytest.mark.parametrize("kind", ["debug", "release", "fat-lto"])
def test_stripped_rust_has_the_same_figures(rust, start, folder, kind):
    program = rust("truth_rust.rs", *RUST[kind])
    stripped = folder / "truth_rust_stripped"
    harness.run(["strip", "-o", stripped, program])
    wanted, found = (
        report(record_gated(start, folder, [command])[0])["totals"] for command in (program, stripped)
    )
    assert {figure: found[figure] for figure in COUNTED} == {figure: wanted[figure] for figure in COUNTED}
    assert found["drops"] == 0


@pytest.mark.parametrize("kind, how", [("debug", "linked"), ("release", "preloaded"), ("fat-lto", "preloaded")])
def test_rust_with_jemalloc(rust, rust_truth, start, folder, kind, how):
    library = "/usr/lib/x86_64-linux-gnu/libjemalloc.so.2"
    if not harness.Path(library).exists():
        pytest.skip("no libjemalloc here (Debian: apt install libjemalloc-dev)")
    flags = RUST[kind] if how == "preloaded" else (*RUST[kind], "-C", f"link-args=-Wl,--no-as-needed {library}")
    environment = {"LD_PRELOAD": library} if how == "preloaded" else None
    recording, _ = record_gated(start, folder, [rust("truth_rust.rs", *flags)], env=environment)
    whole = report(recording)
    assert_ledger(rust_truth, whole["rows"], PROGRAMS / "truth_rust.rs")
    assert_adds_up(whole)
    assert "jemalloc" in harness.malloscope("info", recording).stdout.decode()


OWN = PROGRAMS / "attach_own_allocator.rs"
OWN_SITES = {  # objects, bytes, and of these live
    "kept": (100, 20000, 100, 20000),
    "dropped": (100, 30000, 0, 0),
    "zeroed": (10, 10000, 10, 10000),
    "made": (1, 80, 0, 0),
    "grown": (3, 8 * (20 + 60 + 180), 1, 8 * 180),
}


def figures_of_own_allocator(recording):
    rows = report(recording)["rows"]
    sites = {name: figures_of_site(rows, OWN, name) for name in OWN_SITES}
    figures = ("total_objects", "total_bytes", "live_objects", "live_bytes")
    return {name: tuple(site[figure] for figure in figures) for name, site in sites.items()}


NEW_NAMES = {"new-names": ("-O", "-C", "symbol-mangling-version=v0")}


@pytest.mark.parametrize("kind", [*RUST, *NEW_NAMES])
def test_rust_with_an_allocator_of_its_own(rust, start, folder, kind):
    """It calls no malloc that a probe could see, and the compiler has changed the arguments of its functions."""
    target = Gated(start, folder, [rust("attach_own_allocator.rs", *{**RUST, **NEW_NAMES}[kind])])
    attached = Attached(start, folder, target.pid, "--exact")
    target.let_go()
    target.wait()
    assert figures_of_own_allocator(attached.wait()) == OWN_SITES
    assert "not all allocations are seen" not in attached.said


@pytest.mark.parametrize("kind", RUST)
def test_rust_with_an_allocator_of_its_own_and_without_debug_information(rust, start, folder, kind):
    """Where its arguments are follows from the code that calls it."""
    program = rust("attach_own_allocator.rs", *RUST[kind])
    bare = folder / "bare"
    harness.run(["strip", "--strip-debug", "-o", bare, program])
    wanted, found = (report(record_gated(start, folder, [command])[0])["totals"] for command in (program, bare))
    assert {figure: found[figure] for figure in COUNTED} == {figure: wanted[figure] for figure in COUNTED}
    assert found["total_objects"] >= sum(site[0] for site in OWN_SITES.values())


@pytest.mark.parametrize("kind", RUST)
@pytest.mark.parametrize("inlining", ["free", "always"])
def test_rust_with_an_allocator_put_inline(rust, start, folder, kind, inlining):
    """Either it is seen, with the right figures, or it is said that it is not, and what to do."""
    program = rust("attach_own_allocator.rs", "--cfg", inlining, *RUST[kind])
    target = Gated(start, folder, [program])
    plan = harness.malloscope("attach", "--plan", target.pid).stdout.decode()
    attached = Attached(start, folder, target.pid, "--exact")
    target.let_go()
    target.wait()
    is_right = figures_of_own_allocator(attached.wait()) == OWN_SITES
    assert is_right == (kind == "debug")  # there Rust's own functions call it, which are not put inline
    for said in (plan[plan.find("not seen") :], attached.said):
        assert is_right or ("inline" in said and "#[inline(never)]" in said)
    shown = harness.malloscope("report", attached.recording).stdout.decode()
    marks = ((attached.said, "not all allocations are seen"), (attached.said, "INCOMPLETE"), (shown, "INCOMPLETE"))
    for said, mark in marks:
        assert (mark in said) == (not is_right)
    assert ("exact, every allocation" in shown) == is_right


def test_a_program_whose_libraries_allocate_is_seen_whole(build, start, folder):
    """The program calls no allocator itself: the plan says so in a line, and the summary does not warn."""
    library = build("plugin.c", "-shared", "-fPIC", target="plugin.so")
    target = Gated(start, folder, [build("attach_indirect.c", "-Wl,--no-as-needed", str(GATE), str(library))])
    assert "calls none of these allocators itself" in harness.malloscope("attach", "--plan", target.pid).stdout.decode()
    attached = Attached(start, folder, target.pid, "--exact")
    target.let_go()
    target.wait()
    found = figures_of_site(report(attached.wait())["rows"], PROGRAMS / "plugin.c", "plugin")
    assert (found["total_objects"], found["total_bytes"]) == (10, 10 * 321)
    assert "not all allocations" not in attached.said and "INCOMPLETE" not in attached.said
