"""Whole stacks from any binary: they reach the start of their thread, and are those that gdb shows."""

import collections
import json
from pathlib import Path

import pytest

import harness
from harness import malloscope, stats
from stack_programs import C_ROUNDS, PROGRAMS, need, play

SAMPLES = 1000  # that each program must have, for a share of 99 % to mean something


def dump(recording):
    return json.loads(malloscope("export", recording, "--format", "json", "-o", "-").stdout)


class Image:
    """What is asked of an ELF file on disk: where its code begins to run."""

    def __init__(self, path):
        with open(path, "rb") as file:
            header = file.read(4096)
        word = lambda at, size: int.from_bytes(header[at : at + size], "little")
        segments = [word(32, 8) + i * word(54, 2) for i in range(word(56, 2))]
        loaded = [(word(at + 8, 8), word(at + 16, 8)) for at in segments if word(at, 4) == 1]
        # As an offset in the file: that is what the recording knows of a mapping.
        offset, address = max(segment for segment in loaded if segment[1] <= word(24, 8))
        self.entry = word(24, 8) - address + offset


def start_of_thread(whole, images, frame):
    """What kind of start a root frame is, None if it is none: by name in libc, by address in what the kernel starts."""
    if frame["function"] in ("clone3", "clone", "start_thread"):
        return "thread"
    if frame["function"] == "__start_context":
        return "coroutine"
    address = int(frame["address"], 16) - 1
    for module in whole["modules"]:
        if module["path"] == frame["module"] and int(module["start"], 16) <= address < int(module["end"], 16):
            if module["path"] not in images:
                images[module["path"]] = Image(module["path"])
            offset = address - int(module["start"], 16) + int(module["file_offset"], 16)
            if 0 <= offset - images[module["path"]].entry < 64:
                return "process"
    return None


@pytest.mark.parametrize("name", PROGRAMS)
def test_stacks_reach_the_start_of_their_thread(build, folder, start, name):
    program = PROGRAMS[name]
    size = 4 * program.size
    recording = folder / "recording.mscope"
    command = harness.record_command(recording, [], program.rate)
    _, complaint, status = play(start, program, command, build, folder, size)
    assert status == 0, complaint.decode()
    assert stats(recording)["health"]["complete"] >= 0.99

    whole, images = dump(recording), {}
    stacks = [stack for stack in whole["stacks"] if stack["samples"]]
    samples, complete = collections.Counter(), collections.Counter()
    for stack in stacks:
        kind = start_of_thread(whole, images, whole["frames"][stack["frames"][-1]])
        samples[kind] += stack["samples"]
        complete[stack["complete"]] += stack["samples"]
    total = sum(samples.values())
    assert total == whole["totals"]["samples"] >= SAMPLES and whole["totals"]["drops"] == 0
    assert sum(stack["complete"] for stack in stacks) >= 0.99 * len(stacks)
    assert complete[True] >= 0.99 * total
    assert samples[None] <= 0.01 * total, f"{samples[None]} of {total} stacks end elsewhere"
    if not name.startswith("c-O"):
        assert samples["coroutine"] == 0
    elif program.rate == "exact":
        assert samples["coroutine"] == 5 * C_ROUNDS * size, "five allocations a round are made in coroutines"


def assert_handlers_and_coroutines(whole, program):
    """A handler's stack goes on with what the signal interrupted, on whichever stack; a coroutine's ends where it
    begins. In a recording of one round of stacks.c, compiled with -O0."""
    found = collections.Counter()
    for stack in whole["stacks"]:
        frames = [whole["frames"][number] for number in stack["frames"]]
        assert stack["complete"]
        found[tuple(frame["function"] for frame in frames if frame["module"] == str(program))] += stack["samples"]
    handler = ("allocate", "recursion", "recursion", "recursion", "on_signal")
    both_stacks = 2
    for names, count in {
        ("allocate", "on_fault", "read_at_once", *["fault"] * 4, "signals", "main", "_start"): both_stacks,
        (*handler, "signals", "main", "_start"): both_stacks,
        (*handler, "on_outer_signal", "signals", "main", "_start"): both_stacks,
        (*handler, "outer_coroutine"): 1,
        ("allocate", "outer_coroutine"): 1,
        ("allocate", "recursion", "inner_coroutine"): 1,
        ("allocate", "recursion", "recursion", "inner_coroutine"): 1,
    }.items():
        assert found[names] == count, f"{found[names]} instead of {count}: {' < '.join(names)}"


def test_signal_handlers_and_coroutines(build, record):
    program = build("stacks.c", "-O0")
    whole = dump(record(program, 1))
    assert_handlers_and_coroutines(whole, program)
    for stack in whole["stacks"]:
        names = [whole["frames"][number]["function"] for number in stack["frames"]]
        assert ("[signal handler called]" in names) == any(name.startswith("on_") for name in names), names
        assert (names[-1] == "__start_context") == any(name.endswith("_coroutine") for name in names), names


IN_GDB = Path(__file__).parent / "stacks_in_gdb.py"

# Where gdb goes on although the stack has ended, with the reason, and in how many samples it may.
PAST_THE_START = {
    # The loader's first code has no unwind information. It runs the libraries' constructors, which allocate little.
    "_dl_start_user": lambda name, size: 20,
    # A coroutine's first function returns to the first instruction that has unwind information. gdb looks up the
    # instruction before the return address, which has none.
    "__start_context": lambda name, size: 5 * C_ROUNDS * size if name.startswith("c-O") else 0,
}


def recorded_stacks(whole):
    """Words of the stacks with their numbers of samples. Of the frames that share an address, being inlined into one
    another, the outermost stands for the address."""
    stacks = collections.Counter()
    for stack in whole["stacks"]:
        frames = [whole["frames"][number] for number in stack["frames"]]
        stacks[tuple(int(frame["address"], 16) for frame in frames if not frame["inlined"])] += stack["samples"]
    return +stacks


def explain(whole, ours, theirs):
    """The first stacks that only one of the two has."""
    names = {int(frame["address"], 16): frame["function"] for frame in whole["frames"] if frame["address"]}
    lines = []
    for who, extra in (("malloscope", ours - theirs), ("gdb", theirs - ours)):
        lines.append(f"{sum(extra.values())} samples have stacks that only {who} sees")
        for words, count in extra.most_common(3):
            lines.append(f"  {count} times " + " < ".join(f"{word:x} {names.get(word, '?')}" for word in words))
    return "\n".join(lines)


@pytest.mark.parametrize("name", PROGRAMS)
def test_stacks_are_those_that_gdb_shows(build, folder, start, name):
    """Every sample of the run, frame by frame: gdb stops at each, and its stacks are the recording's, as often."""
    program = PROGRAMS[name]
    recording, result = folder / "recording.mscope", folder / "gdb.json"
    rate = "1" if program.rate == "exact" else program.rate
    job = {
        "scripts": str(IN_GDB.parent),
        "library": str(harness.LIBRARY),
        "result": str(result),
        "environment": {"LD_PRELOAD": str(harness.LIBRARY), "MALLOSCOPE_OUTPUT": str(recording),
                        "MALLOSCOPE_RATE": rate, "MALLOSCOPE_STACKS": "native"},
    }
    gdb = [need("gdb"), "-nx", "-q", "-batch", "-ex", f"python job = {job}", "-x", IN_GDB, "--args"]
    output, complaint, _ = play(start, program, gdb, build, folder, program.size)
    assert result.exists(), (output + complaint).decode(errors="replace")
    seen = json.loads(result.read_text())
    assert seen["exit_code"] == 0, (output + complaint).decode(errors="replace")
    assert seen["stacks"], "gdb never stopped: does the recorder still have the SAMPLING_POINTS of stacks_in_gdb.py?"

    whole = dump(recording)
    assert whole["totals"]["samples"] >= SAMPLES and whole["totals"]["drops"] == 0
    ours, theirs, past = recorded_stacks(whole), collections.Counter(), collections.Counter()
    for stack in seen["stacks"]:
        theirs[tuple(stack["words"])] += stack["count"]
        if stack["past"]:
            past[stack["past"]] += stack["count"]
    assert ours == theirs, explain(whole, ours, theirs)
    for function, count in past.items():
        assert function in PAST_THE_START, f"gdb went on after {function}"
        assert count <= PAST_THE_START[function](name, program.size)
