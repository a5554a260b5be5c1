"""Processes come and go: fork, exec, vfork, spawn, daemons, libraries that are closed, every way to end."""

import json

import pytest

import harness
from harness import PROGRAMS, assert_same_outcome, figures_of_site, malloscope, record_command, report, stats

SOURCE = PROGRAMS / "lifecycle.c"
MODES = [
    "fork", "fork-deep", "fork-threads", "exec", "child", "daemon", "vfork", "spawn", "plugin", "deep-bind", "_exit",
    "abort", "segfault", "signal", "thread-exit", "exit-in-thread", "main-ends-first", "many-threads", "limit",
    "atexit", "other-stack", "deep",
]


@pytest.fixture
def program(build):
    made = build("lifecycle.c", "-O1", "-ldl")
    if not (made.parent / "libplugin.so").exists():
        harness.run(["gcc", "-shared", "-fPIC", "-g", PROGRAMS / "plugin.c", "-o", made.parent / "libplugin.so"])
    return made


def record_all(program, mode, folder, rate):
    """The result of the run, and the recordings of all processes by pid and number."""
    place = folder / "recordings"
    place.mkdir(exist_ok=True)
    result = harness.run(record_command(place / "%e.%p.%n.mscope", [program, mode], rate), expect=None)
    return result, sorted(place.glob("*.mscope"))


@pytest.mark.parametrize("rate", ["exact", "64", "512K"])
@pytest.mark.parametrize("mode", MODES)
def test_same_output_and_status(program, folder, mode, rate):
    plain = harness.run_plain([program, mode])
    result, recordings = record_all(program, mode, folder, rate)
    assert_same_outcome(plain, result, f"lifecycle {mode} at {rate}")
    assert recordings
    for path in recordings:
        whole = report(path)
        inherited = whole["totals"]["inherited_bytes"]  # what a forked child took over counts as live alone
        assert whole["totals"]["live_bytes"] <= (whole["totals"]["total_bytes"] + inherited) * (1 + 1e-9) + 1


def sites(path):
    rows = report(path)["rows"]
    return {name: figures_of_site(rows, SOURCE, name) for name in ("before", "after")}


def test_fork_gives_the_child_a_recording_with_what_it_inherited(program, folder):
    _, recordings = record_all(program, "fork", folder, "exact")
    assert len(recordings) == 2
    parent, child = sorted((sites(path) for path in recordings), key=lambda site: -site["before"]["frees"])
    assert (parent["before"]["total_objects"], parent["before"]["live_objects"]) == (10, 0)
    assert (parent["after"]["total_objects"], parent["after"]["live_bytes"]) == (2, 6000)
    assert (child["before"]["live_objects"], child["before"]["live_bytes"]) == (7, 7000)
    assert child["before"]["total_objects"] == 0, "what was inherited was not allocated by the child"
    assert (child["after"]["total_objects"], child["after"]["live_bytes"]) == (5, 10000)


@pytest.mark.parametrize("rate", ["exact", "100"])
@pytest.mark.parametrize("stacks", [100, 60000])
def test_child_frees_what_it_inherited(build, folder, stacks, rate):
    """Marks of inherited blocks hold the parent's stack numbers; in the child's recording these mean other stacks."""
    result, recordings = record_all(build("fork_frees.c", "-O1"), str(stacks), folder, rate)
    assert result.stdout == b"child 0\n"
    rows = [report(path)["rows"] for path in recordings]
    source = PROGRAMS / "fork_frees.c"
    child, parent = sorted(([figures_of_site(row, source, name) for name in ("kept", "child", "path")] for row in rows),
                           key=lambda site: site[0]["live_bytes"])
    assert child[0]["live_bytes"] == 0 and child[0]["live_objects"] == 0
    assert child[2]["live_bytes"] == 0
    if rate == "exact":
        assert (child[0]["frees"], child[0]["total_objects"]) == (16, 0)
        assert (child[1]["live_bytes"], child[1]["total_objects"]) == (1500, 3)
        assert (parent[0]["live_bytes"], parent[1]["live_bytes"]) == (16000, 0)


def test_every_generation_has_its_recording(program, folder):
    _, recordings = record_all(program, "fork-deep", folder, "exact")
    assert sorted(sites(path)["before"]["live_objects"] for path in recordings) == [1, 2, 3, 4, 5]


def test_exec_keeps_both_recordings(program, folder):
    _, recordings = record_all(program, "exec", folder, "exact")
    both = [sites(path) for path in recordings]
    assert sorted(site["before"]["live_bytes"] for site in both) == [0, 5000]
    assert sorted(site["after"]["live_bytes"] for site in both) == [0, 2800]


def test_a_plain_name_is_that_of_what_the_program_became(program, folder):
    harness.run(record_command(folder / "name.mscope", [program, "exec"], "exact"), expect=5)
    named, (first,) = folder / "name.mscope", list(folder.glob("name.*.mscope"))
    assert sites(named)["after"]["live_bytes"] == 2800
    assert sites(first)["before"]["live_bytes"] == 5000


def test_vfork_leaves_the_parent_alone(program, folder):
    _, recordings = record_all(program, "vfork", folder, "exact")
    both = [sites(path) for path in recordings]
    assert sorted(site["before"]["live_objects"] for site in both) == [0, 3]
    assert sorted(site["after"]["live_bytes"] for site in both) == [600, 2800]


def test_spawned_programs_are_followed(program, folder):
    _, recordings = record_all(program, "spawn", folder, "exact")
    names = [path.name.split(".")[0] for path in recordings]
    assert names.count("lifecycle") == 2
    assert len(names) >= 4, "the shells of system and popen"


def test_daemon_has_a_recording(program, folder):
    _, recordings = record_all(program, "daemon", folder, "exact")
    # The process in between does nothing but fork, and leaves no file.
    assert sorted(sites(path)["after"]["live_bytes"] for path in recordings) == [0, 2400]


@pytest.mark.parametrize("mode", ["_exit", "abort", "segfault", "signal"])
def test_nothing_is_lost_at_a_sudden_end(program, folder, mode):
    _, recordings = record_all(program, mode, folder, "exact")
    assert len(recordings) == 1
    assert sites(recordings[0])["before"]["live_bytes"] == 5000


def test_what_happens_at_exit_is_recorded(program, folder):
    _, recordings = record_all(program, "atexit", folder, "exact")
    found = sites(recordings[0])
    assert (found["before"]["total_objects"], found["before"]["live_objects"]) == (200000, 0)
    assert found["after"]["live_bytes"] == 2000


def test_a_library_that_was_closed_is_still_known(program, folder):
    _, recordings = record_all(program, "plugin", folder, "exact")
    found = figures_of_site(report(recordings[0])["rows"], PROGRAMS / "plugin.c", "plugin")
    assert (found["total_objects"], found["live_objects"], found["live_bytes"]) == (20, 10, 6000)


def test_many_short_threads(program, folder):
    _, recordings = record_all(program, "many-threads", folder, "exact")
    found, totals = sites(recordings[0])["before"], stats(recordings[0])["totals"]
    assert (found["total_objects"], found["live_objects"]) == (5000, 1250)
    assert totals["drops"] == 0
    assert totals["exact_total_bytes"] == totals["total_bytes"]


def test_deep_stacks_are_cut_in_the_middle_and_say_so(program, folder):
    _, recordings = record_all(program, "deep", folder, "exact")
    whole = report(recordings[0])
    assert figures_of_site(whole["rows"], SOURCE, "before")["live_bytes"] == 10 * 4321
    assert whole["health"]["mean_depth"] <= 256
    lines = malloscope("export", recordings[0], "--format", "collapsed").stdout.decode().splitlines()
    deep = [line for line in lines if ";recurse;" in line]
    assert len(deep) == 1 and "[cut]" in deep[0]
    assert ";main;mode_deep;recurse;" in deep[0] and deep[0].endswith(";recurse;allocate_before 43210")


def test_failed_allocations_count_nothing(program, folder):
    """Under a limit on address space, what malloc refused is not in the figures."""
    _, recordings = record_all(program, "limit", folder, "exact")
    found = sites(recordings[0])
    assert found["before"]["live_bytes"] == 64 << 20
    assert found["after"]["live_bytes"] < 1 << 30


@pytest.mark.parametrize("kib", [300_000, 60_000])
def test_limited_address_space_from_the_start(program, folder, kib):
    """Where there is no room for the recorder, the program runs without it and the reason is said once."""
    place = folder / "limited.mscope"
    command = " ".join(str(part) for part in record_command(place, [program, "child"], "4K"))
    result = harness.run(["bash", "-c", f"ulimit -v {kib}; exec {command}"], expect=5)
    assert result.stdout == b"in the new program\n"
    if not place.exists():
        assert result.stderr.count(b"malloscope") == 1, result.stderr.decode()


def test_exit_status_is_passed_on(build, folder):
    program = build("hello.c", "-O1")
    for status in (0, 1, 2, 3, 4, 5, 6, 77, 255):
        result = malloscope("run", "-q", "-f", "-o", folder / "x.mscope", "--", program, status, expect=status)
        assert result.stdout == b"hello\n" and result.stderr == b""


@pytest.mark.parametrize("rate", ["exact", "1000", "512K"])
def test_memory_that_is_there_is_given(build, folder, rate):
    """The recorder asks for a little more than the program. Where only that fails, the program gets a plain block."""
    result, recordings = record_all(build("little_memory.c", "-O1"), "", folder, rate)
    assert (result.returncode, result.stdout) == (0, b"0\n")
    assert recordings


@pytest.mark.parametrize("rate", ["exact", "100"])
def test_timeline_keeps_its_level_while_nothing_happens(build, folder, rate):
    _, recordings = record_all(build("then_idle.c", "-O1"), "", folder, rate)
    whole = json.loads(malloscope("export", "--format", "json", recordings[0], "-o", "-").stdout)
    levels = [moment["live_last"] for moment in whole["timeline"] if moment["seconds"] > 0.15]
    assert levels and all(level == pytest.approx(50e6, rel=0.01) for level in levels)
