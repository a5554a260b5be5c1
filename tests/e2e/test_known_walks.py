"""The recorder recognises a stack that it has walked before, and takes no stack for another one."""

import json

import pytest

from harness import ROOT, malloscope, record_command, report, run, stats

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


@pytest.fixture(name="known_walks")
def build_known_walks(build):
    def build_with(*flags):
        return build("known_walks.c", "-O2", "-fno-optimize-sibling-calls", f"-I{ROOT / 'include'}", *flags)

    return build_with


# The last one has 78,125 ways, for which the table of a thread grows several times.
@pytest.mark.parametrize("pointers", ["-fno-omit-frame-pointer", "-fomit-frame-pointer"])
@pytest.mark.parametrize("threads, blocks, depth", [(1, 120_000, 5), (4, 120_000, 5), (2, 300_000, 7)])
def test_by_the_sizes(known_walks, record, pointers, threads, blocks, depth):
    recording = record(known_walks(pointers, f"-DDEPTH={depth}"), threads, blocks)
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


# Where 25 ways are gone, nothing is to grow. What grows asks for large pages, which nobody else here does.
@pytest.mark.parametrize("depth, grows", [(2, False), (7, True)])
def test_grows_by_need(known_walks, folder, depth, grows):
    log = folder / "strace"
    command = record_command(folder / "grows.mscope", [known_walks(f"-DDEPTH={depth}"), 1, 500_000], "exact")
    run(["strace", "-f", "-qq", "-o", log, "-e", "trace=madvise", "-e", "signal=none", *command])
    lines = log.read_text().splitlines()
    sizes = [int(line.split(",")[1]) for line in lines if "MADV_HUGEPAGE" in line]
    assert bool(sizes) == grows, lines
    assert not grows or max(sizes) >= 32_768 * 64  # a line of the cache for each stack, of which there are more


def test_its_memory_is_counted(known_walks, record):
    recording = record(known_walks("-DDEPTH=7"), 1, 500_000)
    status = recording.path.stat()
    in_file = min(status.st_size, status.st_blocks * 512)
    assert 64 << 10 < stats(recording)["totals"]["recorder_bytes"] - in_file <= 48 << 20


def test_a_handler_jumps_out_of_the_recorder(known_walks, record):
    """What was half recorded may be missing, but no later allocation gets a stack that is not its own."""
    recording = record(known_walks("-DDEPTH=7"), 2, 200_000, "anywhere")
    whole = json.loads(malloscope("export", recording, "--format", "json").stdout)
    wrong = checked = 0
    for stack in whole["stacks"]:
        names = [whole["frames"][number]["function"] for number in stack["frames"]]
        if "take" in names:
            checked += stack["total_objects"]
            wrong += stack["total_bytes"] != stack["total_objects"] * (way_of(names) + 1)
    assert checked >= 350_000
    assert wrong <= 10  # objects are counted before bytes: a jump may come in between


def test_a_stack_that_was_larger_before(build, record):
    recording = record(build("coroutine_below.c", "-O2", "-fno-optimize-sibling-calls"))
    assert recording.stdout == b"both have run\n"
    rows = report(recording, "--filter", "take_blocks")["rows"]
    assert sum(row["total_objects"] for row in rows) == 200
