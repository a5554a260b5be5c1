"""Scopes and types: where they stand among the frames, and what becomes of them in unusual programs. The programs
allocate blocks of sizes that occur once, so that every stack is known by its total."""

import re

import pytest

import api
import harness


@pytest.fixture(params=["C -O0", "C -O2", "C++ -O2"])
def program(request, build):
    language, level = request.param.split()
    return build("api_scopes.cpp" if language == "C++" else "api_scopes.c", level, api.INCLUDE)


def stacks_by_size(recording):
    """{size of its blocks: names from the root on, without parameters} of the stacks through `take`."""
    found = {}
    for stack in api.stacks(recording):
        names = [re.sub(r"\(.*", "", name) for name in api.names(stack)]
        if "take" in names:
            size = stack["total_bytes"] / stack["total_objects"]
            found.setdefault(size, []).append(names)
    return found


def scopes_of(names):
    return [name.removeprefix("[scope ").removesuffix("]") for name in names if name.startswith("[scope ")]


def only(stacks):
    assert len(stacks) == 1, stacks
    return stacks[0]


# --- nesting ---


def test_nesting_to_128_and_beyond(program, record):
    stacks = stacks_by_size(record(program, "nesting"))
    for depth in (1, 2, 127, 128):
        assert scopes_of(only(stacks[10000 + depth])) == [f"level {i}" for i in range(1, depth + 1)]
    for depth in (129, 1000):
        names = only(stacks[10000 + depth])
        assert scopes_of(names) == [f"level {i}" for i in range(1, 129)], "the outer ones are kept"
        after = names[names.index("[scope level 128]") + 1]
        assert not after.startswith("[scope") and after != "nest", "nothing says that some are missing"
    assert scopes_of(only(stacks[20000])) == []


def test_unbalanced_ends(program, record):
    scopes = {size: scopes_of(only(names)) for size, names in stacks_by_size(record(program, "unbalanced")).items()}
    assert scopes == {10001: ["one"], 10002: ["outer", "never ended"], 10003: [], 10004: [], 10005: []}


# --- places ---


def test_a_scope_stands_inside_the_function_that_entered_it(program, record):
    stacks = stacks_by_size(record(program, "places"))

    def chain(size):
        names = only(stacks[size])
        return tuple(name for name in names[names.index("main") + 1 :] if name not in ("places", "take"))

    assert chain(10001) == ("handle", "[scope handling]", "leaf")
    assert chain(10002) == ("recurse", "[scope recursion]") * 4 + ("leaf",)
    # Frames of inlined functions are one frame to the processor: its scopes follow them.
    inlined = [name for name in chain(10003) if name != "inlined"]
    assert inlined == ["outer_of_inlined", "[scope around it]", "[scope in an inlined function]", "leaf"]
    assert scopes_of(chain(10004)) == ["by a wrapper"]
    assert chain(10007) == ("with_coroutine", "[scope around the coroutine]", "leaf")
    assert chain(10008) == ("leaf",)


def test_a_coroutine_is_inside_the_scopes_of_who_resumed_it(program, record):
    stacks = stacks_by_size(record(program, "places"))
    both = [names for size, several in stacks.items() for names in several if "coroutine" in names]
    assert both
    for names in both:
        assert names[0] == "[scope around the coroutine]"
        place = names.index("coroutine")
        assert names[place:] == ["coroutine", "[scope in the coroutine]", "leaf", "take"]


# --- ways out ---


def test_longjmp(program, record):
    stacks = stacks_by_size(record(program, "jump"))
    jumped = [names for size, several in stacks.items() for names in several if "jump_out" in names]
    assert {tuple(scopes_of(names)) for names in jumped} == {("around the jump", "jumped out of")}
    assert scopes_of(only(stacks[10002])) == [], "they end with the scope around the jump"
    assert scopes_of(only(stacks[10003])) == ["handling"]


@pytest.mark.parametrize("level", ["-O0", "-O2"])
def test_exceptions(build, record, level):
    recording = record(build("api_scopes.cpp", level, api.INCLUDE), "exception")
    stacks = stacks_by_size(recording)
    assert scopes_of(only(stacks[10002])) == ["catches"]
    thrown = sorted((scopes_of(names) for names in stacks[10001]), key=len)
    assert thrown == [["catches"] + ["thrown out of"] * depth for depth in range(1, 12)]


# --- threads and signals ---


def test_a_thread_may_end_inside_its_scopes(program, record):
    recording = record(program, "threads")
    sums = {tuple(scopes_of(names)) for several in stacks_by_size(recording).values() for names in several}
    assert sums == {(), ("the thread's last",)}, "what belongs to one thread was seen in another"
    assert api.by(recording, "scope")["the thread's last"]["total_objects"] >= 20


@pytest.mark.parametrize("rate", ["exact", "4K"])
def test_signal_handlers_with_scopes(program, record, rate):
    stacks = stacks_by_size(record(program, "signals", rate=rate))
    scopes = {tuple(scopes_of(names)) for several in stacks.values() for names in several}
    # A sample may come between the two calls. The handler's scope has none: the handler allocates nothing.
    assert scopes <= {(), ("interrupted", "inner")}
    assert ("interrupted", "inner") in scopes


def test_thread_names_as_frames(program, record):
    recording = record(program, "threads", env={"MALLOSCOPE_THREAD_FRAMES": "1"})
    roots = {}
    for stack in api.stacks(recording):
        root = stack["frames"][-1]
        assert root.get("kind") == "thread", root
        roots.setdefault(root["name"], 0)
        roots[root["name"]] += stack["total_objects"]
    assert roots["first name"] == 1
    # Of a name that changes late a few samples are missed.
    assert roots["second name"] >= 100
    assert program.name[:15] in roots


def test_scopes_without_native_stacks(program, record):
    recording = record(program, "places", env={"MALLOSCOPE_STACKS": "scopes"})
    for stack in api.stacks(recording):
        kinds = [frame.get("kind") for frame in reversed(stack["frames"])]
        assert kinds[0] == "thread" and set(kinds[1:]) <= {"scope"}, kinds
    scopes = {
        tuple(frame["name"] for frame in reversed(stack["frames"][:-1])): stack for stack in api.stacks(recording)
    }
    assert scopes[("recursion",) * 4]["total_bytes"] == 10002
    assert scopes[("around the coroutine", "in the coroutine")]["total_objects"] == 2


def test_native_stacks_without_scopes(program, record):
    recording = record(program, "places", env={"MALLOSCOPE_STACKS": "native"})
    assert set(api.by(recording, "scope")) == {None}
    assert all(not scopes_of(names) for several in stacks_by_size(recording).values() for names in several)


# --- the recorder's life ---


def test_start_in_the_middle_of_a_scope(program, record):
    stacks = stacks_by_size(record(program, "start_inside"))
    assert {size: scopes_of(only(names)) for size, names in stacks.items()} == {
        10002: [],
        10003: ["after the start"],
        10005: ["after the start"],
        10006: [],
    }


def test_what_is_ignored(program, record):
    recording = record(program, "ignoring")
    row = [stack for stack in api.stacks(recording) if any("take" in name for name in api.names(stack))]
    assert sum(stack["total_bytes"] for stack in row) == 10001 + 10006
    assert sum(stack["live_bytes"] for stack in row) == 10001
    assert harness.stats(recording)["totals"]["unknown_frees"] == 0, "nor is the free of the ignored one counted"


def test_a_child_is_in_the_scopes_of_its_parent(program, folder):
    harness.run(harness.record_command(folder / "%p.mscope", [program, "child"], "exact"))
    paths = sorted(folder.glob("*.mscope"), key=lambda path: 10003 in stacks_by_size(path))
    assert len(paths) == 2
    child, parent = (stacks_by_size(path) for path in paths)
    assert scopes_of(only(parent[10003])) == ["before the fork"]
    assert scopes_of(only(child[10001])) == ["before the fork", "new in the child"]
    assert scopes_of(only(child[10002])) == ["before the fork", "new in the child", "by its name"]


# --- names ---


def test_names_of_a_library_that_is_gone(program, build, record):
    library = build("api_library.c", "-shared", "-fPIC", api.INCLUDE, target="library.so")
    stacks = stacks_by_size(record(program, "library", library))
    inside = [names for several in stacks.values() for names in several if "in_library" in names]
    assert inside
    for names in inside:
        place = names.index("in_library")
        assert names[place : place + 3] == ["in_library", "[scope of the library]", "leaf"]
    assert scopes_of(only(stacks[10003])) == []


def test_a_hundred_thousand_names(program, record):
    recording = record(program, "names")
    scopes = api.by(recording, "scope")
    assert scopes["name 0"]["total_bytes"] == 10000 + 10001
    assert scopes["name 30000"]["total_bytes"] == 40000
    totals = harness.stats(recording)["totals"]
    assert totals["drops_by_kind"]["name"] > 60000, "names that were not kept are counted"
    assert recording.path.stat().st_size < 16 << 20


# --- types ---


def test_types(program, record):
    types = api.by(record(program, "types"), "type")
    figures = {name: (row["total_bytes"], row["live_bytes"]) for name, row in types.items() if name}
    assert figures == {
        "struct thing": (10001, 10001),
        "second": (10002, 10002),
        "before realloc": (10003, 0),
        "freed": (10004, 0),
        "each": (10000, 10000),
        "page": (8192, 8192),
    }


@pytest.mark.parametrize("allocator", ["jemalloc", "tcmalloc_minimal"])
def test_types_of_blocks_without_marks(build, record, allocator):
    from test_allocators import linked_with

    program = build("api_scopes.c", "-O1", api.INCLUDE, *linked_with(allocator))
    types = api.by(record(program, "types"), "type")
    assert types["second"]["live_bytes"] == 10002 and types["page"]["live_bytes"] == 8192
    assert (types["freed"]["total_bytes"], types["freed"]["live_bytes"]) == (10004, 0)


def test_types_of_sampled_blocks(program, record):
    """At this rate the large ones are always sampled, and of the small ones a third: types hold for those."""
    types = api.by(record(program, "types", rate="256"), "type")
    assert types["second"]["live_objects"] == pytest.approx(1, abs=0.01)
    assert types["page"]["live_objects"] == pytest.approx(1, abs=0.01)
    assert types["freed"]["frees"] == pytest.approx(1, abs=0.01)
    assert 10 < types["each"]["samples"] < 70
    assert "first" not in types
