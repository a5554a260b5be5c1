"""A storm of libraries that are opened and closed on several threads while every allocation is recorded: nothing
breaks, and what is shown of them is right."""

import collections
import concurrent.futures
import json
from pathlib import Path

import pytest

import harness
from harness import PROGRAMS, malloscope

LIBRARIES = 1000
ALIKE = 300  # of them, where they are alike
THREADS = 4
SHAPES = [(room, pointers) for room in (24, 200, 3000)
          for pointers in ("-fomit-frame-pointer", "-fno-omit-frame-pointer")]


def assemble(folder, number, text, padding, build_id):
    part = folder / f"{number}.o"
    text = text.replace("@NUMBER@", str(number)).replace("@PADDING@", str(padding))
    harness.run(["as", "-o", part, "-"], input=text.encode())
    harness.run(["ld", "-shared", f"--build-id={build_id}", "--eh-frame-hdr", part, "-o", folder / f"{number}.so"])
    part.unlink()


@pytest.fixture(scope="module")
def libraries(session_folder):
    """libraries(alike, build_id) makes a folder of libraries, once: they have nothing in common but the name of the
    function that is called, or are alike in all but the names of their functions."""
    texts = []
    for room, pointers in SHAPES:
        source = PROGRAMS / "library_storm_part.c"
        compiled = harness.run(["gcc", "-S", "-O2", "-fPIC", f"-DROOM={room}", pointers, source, "-o", "-"])
        texts.append(compiled.stdout.decode())

    def make_folder(alike, build_id):
        folder = session_folder / f"libraries-{alike}-{build_id}"
        if not folder.exists():
            folder.mkdir()

            def make(number):
                text, padding = (texts[0], 16) if alike else (texts[number % len(texts)], 16 + number * 48)
                assemble(folder, number, text, padding, build_id)

            with concurrent.futures.ThreadPoolExecutor(4) as pool:
                list(pool.map(make, range(ALIKE if alike else LIBRARIES)))
        return folder

    return make_folder


@pytest.fixture(scope="module")
def storm(build, libraries, session_folder):
    """storm(keep, …) records library_storm, once for each, and returns what is in the recording."""
    made = {}

    def run(keep, alike, build_id, threads):
        program, path = build("library_storm.c", "-O2", "-ldl"), session_folder / f"storm{len(made)}.mscope"
        count = ALIKE if alike else LIBRARIES
        command = [program, libraries(alike, build_id), count, threads, int(keep)]
        result = harness.run(harness.record_command(path, command, "exact"))
        assert result.stdout.decode() == f"{count * threads} calls, {count * threads} right\n"
        assert result.stderr == b""
        return json.loads(malloscope("export", path, "--format", "json", "-o", "-").stdout)

    def storm_once(keep, alike=False, build_id="sha1", threads=THREADS):
        key = keep, alike, build_id, threads
        if key not in made:
            made[key] = run(*key)
        return made[key]

    return storm_once


def allocations(number):
    """How often all threads have a library allocate, by how many of its frames the stack then has."""
    return {3 + depth: THREADS for depth in range(number % 4 + 1)}


def truth():
    depths = collections.Counter()
    for number in range(LIBRARIES):
        depths.update(allocations(number))
    return depths


def split(whole, stack):
    """The frames in libraries of the storm, from the leaf on, and the others."""
    frames = [whole["frames"][number] for number in stack["frames"]]
    count = 0
    while count < len(frames) and frames[count]["module"] and Path(frames[count]["module"]).stem.isdigit():
        count += 1
    return frames[:count], frames[count:]


def walked_right(whole):
    """Allocations in libraries whose stacks are whole, by the number of the libraries' frames."""
    depths = collections.Counter()
    for stack in whole["stacks"]:
        inside, outside = split(whole, stack)
        callers = [frame["function"] for frame in outside]
        if inside and stack["complete"] and callers == ["visit", "storm", "start_thread", "clone3"]:
            depths[len(inside)] += stack["samples"]
    return depths


def named_right(whole):
    """Allocations that are shown in the right library with the right functions."""
    right = collections.Counter()
    for stack in whole["stacks"]:
        inside, _ = split(whole, stack)
        if not inside:
            continue
        number = Path(inside[0]["module"]).stem
        names = [f"allocate_{number}"] + [f"descend_{number}"] * (len(inside) - 2) + ["library_call"]
        same = all(Path(frame["module"]).stem == number for frame in inside)
        if same and [frame["function"] for frame in inside] == names:
            right[int(number), len(inside)] += stack["samples"]
    return sum(
        min(count, right[number, depth]) for number in range(LIBRARIES) for depth, count in allocations(number).items()
    )


def shown_elsewhere(whole):
    """Allocations that are shown in another library than they were made in, which their size tells."""
    wrong = 0
    for stack in whole["stacks"]:
        inside, _ = split(whole, stack)
        if not inside:
            continue
        number = Path(inside[0]["module"]).stem
        names = [frame["function"] for frame in inside]
        functions = all(name in ("library_call", f"{name.split('_')[0]}_{number}") for name in names)
        if not functions or stack["total_bytes"] != stack["samples"] * (1000 + int(number)):
            wrong += stack["samples"]
    return wrong


def assert_healthy(whole):
    assert whole["totals"]["drops"] == 0
    assert whole["totals"]["total_objects"] > sum(truth().values()) >= 10_000
    assert whole["health"]["complete"] >= 0.995


@pytest.mark.skip(reason="not mended: stacks that are new after the recording was finished find no room")
def test_libraries_that_stay_open(storm):
    """No address ever means two things, so that everything can be known."""
    whole = storm(keep=True)
    assert_healthy(whole)
    assert walked_right(whole) == truth()
    assert named_right(whole) == sum(truth().values())


def test_stacks_through_libraries_that_come_and_go(storm):
    """A library opened where another was may at first be walked by that one's rules: then its stack ends early."""
    whole = storm(keep=False)
    assert_healthy(whole)
    expected = truth()
    wrong = expected - walked_right(whole)
    assert sum(wrong.values()) <= 0.005 * sum(expected.values()), f"stacks that are not right, by depth: {dict(wrong)}"
    assert not walked_right(whole) - expected, "there are stacks that cannot be"


def test_names_of_libraries_that_come_and_go(storm):
    whole = storm(keep=False)
    total = sum(truth().values())
    assert named_right(whole) >= 0.99 * total, f"{named_right(whole)} of {total} allocations have the right names"
    assert shown_elsewhere(whole) <= 0.01 * total


@pytest.mark.parametrize("build_id, threads", [("sha1", THREADS), ("none", 1)])
def test_libraries_that_are_alike(storm, build_id, threads):
    """Each takes the place of another, with its functions at the same addresses: only the file tells them apart."""
    whole = storm(keep=False, alike=True, build_id=build_id, threads=threads)
    ends = collections.Counter()
    for stack in whole["stacks"]:
        inside, _ = split(whole, stack)
        if inside:
            ends[inside[-1]["function"]] += stack["samples"]
    assert shown_elsewhere(whole) == 0
    for number in range(ALIKE):
        # Threads that have it open at the same time share it.
        assert 1 <= ends[f"begin_{number}"] == ends[f"end_{number}"] <= threads
    assert ends["library_call"] == threads * sum(number % 4 + 1 for number in range(ALIKE))
