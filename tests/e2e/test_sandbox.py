"""Programs that forbid themselves system calls: they are never killed for one of the recorder's."""

import platform

import pytest

import harness
from harness import PROGRAMS, assert_same_outcome, figures_of_site, malloscope, record_command, report

SOURCE = PROGRAMS / "sandbox.c"


def of_function(rows, name):
    return next(row for row in rows if row["function"] == name)


@pytest.mark.parametrize("rate", ["exact", "4K", "512K"])
@pytest.mark.parametrize("how", ["kill", "libc-kill", "errno", "few", "strict"])
def test_same_outcome(build, folder, how, rate):
    program = build("sandbox.c", "-O1")
    plain = harness.run([program, how], expect=3)
    recording = folder / "r.mscope"
    result = harness.run(record_command(recording, [program, how], rate), expect=None)
    assert_same_outcome(plain, result, f"sandbox {how} at {rate}")
    whole = report(recording)
    assert b"finished after" in malloscope("report", recording).stdout
    if how not in ("strict", "few") and rate == "exact":
        kept = of_function(whole["rows"], "kept")
        assert (kept["live_objects"], kept["live_bytes"]) == (5100, 100 * 1000 + 5000 * 2000)
        assert of_function(whole["rows"], "churn")["total_objects"] == 301000, "also what threads do in the sandbox"
        assert whole["totals"]["drops"] == 0
        assert whole["totals"]["drops_by_kind"]["child"] == 1, "it cannot have a recording in the sandbox"


def test_stacks_are_whole_in_a_sandbox(build, folder):
    """The recorder asks the kernel before the sandbox begins whether it can read stacks: inside it may not ask."""
    recording = folder / "r.mscope"
    harness.run(record_command(recording, [build("sandbox.c", "-O1"), "few"], "exact"), expect=3)
    whole = report(recording)
    assert of_function(whole["rows"], "churn")["total_objects"] == 100000
    assert whole["health"]["complete"] == 1


def test_the_strict_sandbox_ends_the_recording(build, folder):
    recording = folder / "r.mscope"
    harness.run(record_command(recording, [build("sandbox.c", "-O1"), "strict"], "exact"), expect=3)
    whole = report(recording)
    assert of_function(whole["rows"], "kept")["live_objects"] == 101
    assert not any(row["function"] == "churn" for row in whole["rows"]), "that was in the sandbox"


@pytest.mark.parametrize("rate", ["exact", "512K"])
def test_the_sandbox_of_a_child_in_its_parents_memory(build, folder, rate):
    """The recorder's calls kill neither parent nor child, and the recording goes on when the child ends."""
    program = build("sandbox.c", "-O1")
    plain = harness.run([program, "vfork"], expect=3)
    recording = folder / "r.mscope"
    result = harness.run(record_command(recording, [program, "vfork"], rate), expect=None)
    assert_same_outcome(plain, result, f"sandbox vfork at {rate}")
    assert b"finished after" in malloscope("report", recording).stdout
    if rate == "exact":
        assert of_function(report(recording)["rows"], "kept")["live_objects"] == 5100


def test_what_does_not_fit_is_dropped_and_said(build, folder):
    recording = folder / "r.mscope"
    command = record_command(recording, [build("sandbox.c", "-O1"), "much"], "exact")
    harness.run(command, expect=3)
    whole = report(recording)
    assert whole["totals"]["drops"] > 0
    assert b"forbade itself system calls" in b" ".join(malloscope("report", recording).stdout.split())


def confined(build, folder, how, rate):
    """What the recordings of the program and of its child say; the program itself notices nothing."""
    program, place = build("confined.c", "-O1", "-D_GNU_SOURCE", "-pthread"), folder / "recordings"
    place.mkdir()
    plain = harness.run([program, how, place], expect=None)
    if plain.returncode == 77:
        pytest.skip(f"the kernel does not let this user confine itself: {how}")
    result = harness.run(record_command(place / "%p.mscope", [program, how, place], rate), expect=None)
    assert_same_outcome(plain, result, f"confined {how} at {rate}")
    return sorted(map(report, place.glob("*.mscope")), key=lambda whole: whole["totals"]["live_objects"])


@pytest.mark.parametrize("rate", ["exact", "4K", "512K"])
@pytest.mark.parametrize("how", ["landlock", "pivot", "hide", "child"])
def test_files_out_of_reach(build, folder, how, rate):
    """By the rules of Landlock, or in a namespace in which the recording's folder is not there."""
    whole, *others = confined(build, folder, how, rate)
    # At 512K the forked child samples something in one run of 14. If it does not, it makes no recording.
    counts = len(others), whole["totals"]["drops_by_kind"]["child"]
    assert counts == ((1, 0) if how == "child" else (0, 1)) or (rate == "512K" and counts == (0, 0))
    assert whole["totals"]["drops"] == 0
    if rate == "exact":
        kept = figures_of_site(whole["rows"], PROGRAMS / "confined.c", "kept")
        assert (kept["live_objects"], kept["live_bytes"]) == (600001, 600001 * 40)
        assert whole["health"]["complete"] == 1


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the program has an instruction of that processor alone")
def test_what_is_lost_where_files_go_out_of_reach_unforeseen(build, folder):
    """The blocks that are lost are counted, every one."""
    (whole,) = confined(build, folder, "unseen", "exact")
    kept = figures_of_site(whole["rows"], PROGRAMS / "confined.c", "kept")
    assert whole["totals"]["drops"] > 0
    assert 600001 <= kept["live_objects"] + whole["totals"]["drops"] < 600001 + 100, "and a few of the C library's"
    assert whole["totals"]["drops_by_kind"]["child"] == 1
