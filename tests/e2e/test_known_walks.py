"""A stack that was walked before is known again, and none is taken for another."""

import json

import pytest

from harness import ROOT, malloscope, report

WIDTH = 5


def way_of(names):
    """The number of a way by the functions on the stack, the innermost first; a handler's by what it called."""
    if "interrupted" in names:
        names = names[: names.index("interrupted")]
    way = 0
    for name in reversed(names):
        if name.startswith("step_"):
            way = way * WIDTH + int(name.removeprefix("step_"))
    return way


@pytest.mark.parametrize("pointers", ["-fno-omit-frame-pointer", "-fomit-frame-pointer"])
@pytest.mark.parametrize("threads", [1, 4])
def test_by_the_sizes(build, record, pointers, threads):
    blocks = 120_000
    program = build("known_walks.c", "-O2", "-fno-optimize-sibling-calls", pointers, f"-I{ROOT / 'include'}")
    recording = record(program, threads, blocks)
    whole = json.loads(malloscope("export", recording, "--format", "json").stdout)
    checked = in_handler = 0
    for stack in whole["stacks"]:
        names = [whole["frames"][number]["function"] for number in stack["frames"]]
        if "take" not in names:
            continue
        assert stack["total_bytes"] == stack["total_objects"] * (way_of(names) + 1), names
        checked += stack["total_objects"]
        in_handler += stack["total_objects"] * ("interrupted" in names)
    assert in_handler > 100
    assert checked == int(recording.stdout) + in_handler
    assert whole["totals"]["drops"] == 0


def test_a_stack_that_was_larger_before(build, record):
    recording = record(build("coroutine_below.c", "-O2", "-fno-optimize-sibling-calls"))
    assert recording.stdout == b"both have run\n"
    rows = report(recording, "--filter", "take_blocks")["rows"]
    assert sum(row["total_objects"] for row in rows) == 200
