"""A signal handler forks in the middle of the recorder's work, and its child returns into that work: at every
instruction of an operation (MALLOSCOPE_ALL_FORKS=1), or at a part of them."""

import json
import os
import platform

import pytest

import harness
from harness import PROGRAMS, figures_of_site, malloscope, record_command, report

SOURCE = PROGRAMS / "fork_anywhere.c"
STORM = PROGRAMS / "fork_in_storm.c"
ALL = "MALLOSCOPE_ALL_FORKS" in os.environ
has_trap_flag = pytest.mark.skipif(platform.machine() != "x86_64", reason="the trap flag is one of x86-64")

# How many instructions from one fork to the next. An operation whose stack is known from before takes about 700, one
# whose stack is walked 20,000.
STRIDE_KNOWN, STRIDE_WALKED = 17, 197


def strike(build, folder, operation, how, rate):
    """What the program told, and the recordings of the program and of its children."""
    program = build("fork_anywhere.c", "-O1")
    walks = operation == "new-stack" or rate != "exact"
    command = [program, operation, how, 1, 1 if ALL else STRIDE_WALKED if walks else STRIDE_KNOWN]
    result = harness.run(record_command(folder / "%p.mscope", command, rate))
    told = json.loads(result.stdout)
    assert told["failed"] == 0, f"{told['failed']} of {told['struck']} children failed: {result.stderr[-500:].decode()}"
    assert told["struck"] > (25 if rate == "exact" else 5)
    parent = folder / f"{told['pid']}.mscope"
    return told, parent, [path for path in folder.glob("*.mscope") if path != parent]


def sites(*paths):
    whole = json.loads(malloscope("report", *paths, "--json", "-n", "0").stdout)
    names = ("operation", "kept", "child", "taken")
    return whole, {name: figures_of_site(whole["rows"], SOURCE, name) for name in names}


@has_trap_flag
@pytest.mark.parametrize("how", ["fork", "_Fork", "syscall"])
@pytest.mark.parametrize(
    "operation", ["malloc", "free", "realloc", "calloc", "aligned", "resize-failing", "new-stack"]
)
def test_at_any_instruction_of_an_exact_recording(build, folder, operation, how):
    if how != "fork" and operation not in ("malloc", "free", "realloc") and not ALL:
        pytest.skip("a part of these is enough each time")
    told, parent, children = strike(build, folder, operation, how, "exact")
    whole, found = sites(parent)
    allocates = operation not in ("free", "resize-failing")
    assert found["operation"]["total_objects"] == (told["allocated"] if allocates else 0)
    assert found["operation"]["live_objects"] == found["taken"]["live_objects"] == 0
    assert found["kept"]["live_objects"] == 5 and found["child"]["total_objects"] == 0
    assert len(children) == told["struck"]
    whole, found = sites(*children)
    assert found["child"]["total_objects"] == 3 * told["struck"] and found["child"]["frees"] == told["struck"]
    assert found["kept"]["live_objects"] == 3 * told["struck"], "the child inherits five and frees two"
    assert found["operation"]["live_objects"] == found["taken"]["live_objects"] == 0


@has_trap_flag
@pytest.mark.parametrize("operation", ["malloc", "free", "realloc", "new-stack"])
def test_at_any_instruction_of_a_sampled_recording(build, folder, operation):
    told, parent, children = strike(build, folder, operation, "fork", "100")
    whole, found = sites(parent)
    assert found["operation"]["live_objects"] == 0 and found["child"]["total_objects"] == 0
    whole, found = sites(*children)
    assert found["operation"]["live_objects"] == found["taken"]["live_objects"] == 0


@has_trap_flag
@pytest.mark.parametrize("operation", ["malloc", "free", "realloc"])
def test_where_there_is_no_memory_for_a_copy(build, folder, operation):
    told, parent, _ = strike(build, folder, operation, "tight", "exact")
    _, found = sites(parent)
    assert found["operation"]["total_objects"] == (0 if operation == "free" else told["allocated"])
    assert found["operation"]["live_objects"] == found["taken"]["live_objects"] == 0
    assert found["kept"]["live_objects"] == 5 and found["child"]["total_objects"] == 0


@has_trap_flag
def test_after_a_jump_out_of_the_recorder(build, folder):
    """The program is in no handler when it forks, so its children begin their recordings at once."""
    told, _, children = strike(build, folder, "malloc", "jump", "exact")
    _, found = sites(*children)
    assert found["child"]["total_objects"] == 3 * told["struck"] and found["child"]["frees"] == told["struck"]


@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.parametrize("rate", ["exact", "200"])
def test_while_threads_allocate(build, folder, threads, rate):
    """The copy is made while other threads change the tables."""
    program = build("fork_in_storm.c", "-O1", "-pthread")
    result = harness.run(record_command(folder / "%p.mscope", [program, threads, 100], rate))
    told = json.loads(result.stdout)
    assert told["failures"] == 0 and told["children"] >= 100
    whole = report(folder / f"{told['pid']}.mscope")
    storm = figures_of_site(whole["rows"], STORM, "storm")
    assert storm["live_objects"] == 0
    if rate == "exact":
        assert storm["total_objects"] == storm["frees"] == told["allocated"] and whole["totals"]["drops"] == 0
    malloscope("report", *folder.glob("*.mscope"))
