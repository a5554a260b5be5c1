"""Python's frames: function, file and line of the Python code, in their places among the native frames."""

import json
import os
import shutil
from pathlib import Path

import pytest

import api
import harness
from harness import PROGRAMS
from pythons import OTHERS, SUPPORTED, besides

@pytest.fixture(params=SUPPORTED, scope="module")
def python(request):
    return SUPPORTED[request.param]


def record(python, path, *arguments, options=("--exact",), env=None):
    return harness.malloscope("run", "-q", *options, "-o", path, python, *arguments, env=env)


def exported(path):
    return json.loads(harness.malloscope("export", "--format", "json", path).stdout)


def python_frames(dump, stack):
    frames = [dump["frames"][i] for i in stack["frames"]]
    return [[frame["function"], frame["file"], frame["line"]] for frame in frames if frame.get("kind") == "python"]


def test_every_stack_is_the_interpreters_own(python, tmp_path):
    """Some 800 allocations, through C callbacks, generators, coroutines, threads, recursion."""
    told = record(python, tmp_path / "x.mscope", PROGRAMS / "python_stacks.py")
    expected = {int(size): stack for size, stack in json.loads(told.stdout).items()}
    assert len(expected) >= 700
    dump = exported(tmp_path / "x.mscope")

    # Blocks of one stack are of several sizes: what a stack holds in all is compared.
    sizes = {}
    for size, stack in expected.items():
        stack = [[name, str(Path(file)) if file[0] != "<" else file, line] for name, file, line in stack]
        sizes.setdefault(json.dumps(stack), []).append(size)
    recorded = {}
    for stack in dump["stacks"]:
        frames = python_frames(dump, stack)
        if frames and frames[0][0] == "take" and frames[0][2] == take_line():
            key = json.dumps(frames)
            recorded[key] = recorded.get(key, 0) + stack["total_bytes"]
    extra = besides(python)
    # The interpreter may let a table of its own grow at such a line; our blocks are of 200,000 bytes and more.
    wrong = [(recorded.get(key), total, key) for key, total in sizes.items()
             if not 0 <= recorded.get(key, 0) - sum(size + extra for size in total) < 100_000]
    strange = [(total, key) for key, total in recorded.items() if key not in sizes]
    drops = dump["totals"]["drops"]
    assert not wrong and not strange, f"{drops} drops; {wrong[:1]} of {len(sizes)} stacks; {strange[:1]}"


def take_line():
    lines = (PROGRAMS / "python_stacks.py").read_text().splitlines()
    return next(number for number, text in enumerate(lines, 1) if "= bytearray(size)" in text)


CALLBACK = """
import functools
kept = []
def key(x):
    kept.append(bytearray(300000))
    return x
def rank():
    return sorted([2, 1], key=key)
class Shelf:
    def fill(self):
        rank()
Shelf().fill()
import os
os._exit(0)
"""


def test_frames_stand_where_they_are_interpreted(python, tmp_path):
    (tmp_path / "shelf.py").write_text(CALLBACK)
    record(python, tmp_path / "x.mscope", tmp_path / "shelf.py")
    dump = exported(tmp_path / "x.mscope")
    # The compiler may have split the one call in list.sort into two.
    one = 300000 + besides(python)
    stacks = [stack for stack in dump["stacks"] if stack["live_bytes"] in (2 * one, one)]
    assert sum(stack["live_bytes"] for stack in stacks) == 2 * one
    for stack in stacks:
        frames = [dump["frames"][i] for i in stack["frames"]]
        kinds = [frame.get("kind") for frame in frames]
        functions = [frame["function"] for frame in frames]
        key, rank = functions.index("key"), functions.index("rank")
        assert kinds[key] == kinds[rank] == "python"
        # C code called the one from the other, and the interpreter's own function is nowhere.
        between = functions[key + 1:rank]
        assert between and "python" not in kinds[key + 1:rank]
        assert any("sort" in name or name.startswith("[") for name in between)
        assert "_PyEval_EvalFrameDefault" not in functions
        assert functions[-1] == "_start" and stack["complete"]
    # The site is the Python line.
    row = next(row for row in harness.report(tmp_path / "x.mscope")["rows"] if row["live_bytes"] == 2 * one)
    assert (row["function"], row["file"], row["line"]) == ("key", str(tmp_path / "shelf.py"), 5)
    raw = harness.report(tmp_path / "x.mscope", "--raw-site")["rows"]
    assert all(row["function"] != "key" for row in raw)


OBJECTS = """
class Node:
    __slots__ = ("value",)
def build(count):
    return [Node() for _ in range(count)]
kept = build(20000)
text = [str(i) * 3 for i in range(100000, 110000)]
import os
os._exit(0)
"""


def heap_of(report, name):
    return next((heap for heap in report["heaps"] if heap["name"] == name), None)


def test_objects(python, tmp_path):
    (tmp_path / "nodes.py").write_text(OBJECTS)
    script = "import sys\nclass Node: __slots__ = ('value',)\nprint(sys.getsizeof(Node()))"
    size = int(harness.run([python, "-c", script]).stdout)
    record(python, tmp_path / "all.mscope", tmp_path / "nodes.py", options=("--exact", "--python-objects"))
    report = harness.report(tmp_path / "all.mscope")
    rows = [row for row in report["rows"] if row["heap"] == "python objects" and row["line"] == 5]
    objects = sum(row["live_objects"] for row in rows)
    assert 20000 <= objects <= 20010
    # With the collector's header, or (before 3.14) two words in front of what getsizeof tells.
    assert 20000 * size <= sum(row["live_bytes"] for row in rows) <= 20010 * (size + 32)
    assert heap_of(report, "python objects")["live_objects"] > 30000

    record(python, tmp_path / "few.mscope", tmp_path / "nodes.py")
    few = harness.report(tmp_path / "few.mscope")
    assert heap_of(few, "python objects") is None
    assert not [row for row in few["rows"] if row["line"] == 5 and row["live_objects"] > 1000]


PATHS = """
import json, os, random
class Node:
    __slots__ = ("value",)
def step(way, left, at):
    if left == 0:
        kept[at] = Node()
    elif way & 1:
        step(way >> 1, left - 1, at)
    else:
        step(way >> 1, left - 1, at)
chance = random.Random(1)
first = chance.getrandbits(60)
ways = [first] + [first ^ 1 << turn for turn in range(60)]
walked = [chance.choice(ways) for _ in range(6000)]
kept = [None] * len(walked)
for at, way in enumerate(walked):
    step(way, 60, at)
print(json.dumps({way: walked.count(way) for way in ways}), flush=True)
os._exit(0)
"""


def test_calls_that_differ_in_one_of_many_frames(python, tmp_path):
    """At any depth, again and again: each object counts for the calls that led to it."""
    (tmp_path / "paths.py").write_text(PATHS)
    told = record(python, tmp_path / "x.mscope", tmp_path / "paths.py", options=("--exact", "--python-objects"))
    lines = PATHS.splitlines()
    made, odd = lines.index("        kept[at] = Node()") + 1, lines.index("    elif way & 1:") + 2
    dump = exported(tmp_path / "x.mscope")
    found = {}
    for stack in dump["stacks"]:
        frames = [line for function, _, line in python_frames(dump, stack) if function == "step"]
        if frames and frames[0] == made and stack["heap"] == "python objects":
            assert len(frames) == 61
            way = sum(1 << turn for turn, line in enumerate(reversed(frames[1:])) if line == odd)
            found[way] = found.get(way, 0) + stack["live_objects"]
    assert found == {int(way): count for way, count in json.loads(told.stdout).items()}


def test_objects_are_freed(python, tmp_path):
    """Resized, freed by other threads, and by the interpreter's end: little is left."""
    (tmp_path / "churn.py").write_text(
        "import threading\n"
        "def churn():\n"
        "    for i in range(300):\n"
        "        x = [str(j) for j in range(100)]\n"
        "        x.extend(range(i))\n"
        "        y = {j: (j,) for j in range(50)}\n"
        "        b = bytearray()\n"
        "        for j in range(400): b.append(1)\n"
        "threads = [threading.Thread(target=churn) for _ in range(4)]\n"
        "[t.start() for t in threads]\n"
        "[t.join() for t in threads]\n")
    record(python, tmp_path / "x.mscope", tmp_path / "churn.py", options=("--exact", "--python-objects"))
    rows = [row for row in harness.report(tmp_path / "x.mscope")["rows"]
            if (row["file"] or "").endswith("churn.py") and row["heap"] == "python objects"]
    assert sum(row["total_objects"] for row in rows) > 4 * 300 * 150
    assert sum(row["live_objects"] for row in rows) < 100
    assert harness.report(tmp_path / "x.mscope")["totals"]["unknown_frees"] == 0


def test_sampled_objects_are_unbiased(tmp_path):
    name, python = next(iter(SUPPORTED.items()))
    (tmp_path / "nodes.py").write_text(OBJECTS)
    record(python, tmp_path / "all.mscope", tmp_path / "nodes.py", options=("--exact", "--python-objects"))
    exact = heap_of(harness.report(tmp_path / "all.mscope"), "python objects")["live_bytes"]
    record(python, tmp_path / "some.mscope", tmp_path / "nodes.py", options=("--rate", "4K", "--python-objects"))
    heap = heap_of(harness.report(tmp_path / "some.mscope"), "python objects")
    assert heap["rate"] == 4096
    assert abs(heap["live_bytes"] - exact) < 4.5 / 1.96 * heap["live_error"] + 0.01 * exact


def test_forked_children(python, tmp_path):
    (tmp_path / "forks.py").write_text(
        "import os\n"
        "def in_child():\n"
        "    return bytearray(400000)\n"
        "def in_parent():\n"
        "    return bytearray(500000)\n"
        "kept = in_parent()\n"
        "if os.fork() == 0:\n"
        "    more = in_child()\n"
        "    os._exit(0)\n"
        "os.wait()\n"
        "os._exit(0)\n")
    record(python, tmp_path / "x.mscope", tmp_path / "forks.py")
    children = [path for path in tmp_path.glob("*.mscope") if path.name != "x.mscope"]
    assert len(children) == 1
    rows = {row["function"]: row for row in harness.report(children[0])["rows"]}
    assert rows["in_child"]["live_bytes"] == 400000 + besides(python) and rows["in_child"]["line"] == 3
    assert rows["in_parent"]["live_bytes"] == 500000 + besides(python) and rows["in_parent"]["line"] == 5
    assert rows["in_parent"]["total_bytes"] == 0


def test_functions_that_die(python, tmp_path):
    """New code in the place of code that was freed keeps its own name, and names need not be ASCII."""
    (tmp_path / "many.py").write_text(
        "import gc, os\n"
        "kept = []\n"
        "for i in range(300):\n"
        "    space = {}\n"
        "    exec(compile('def größe_%d():\\n' % i + '\\n' * i + '    return bytearray(300000 + %d)\\n' % i,\n"
        "                 'made_%d.py' % i, 'exec'), space)\n"
        "    kept.append(space['größe_%d' % i]())\n"
        "    del space\n"
        "    gc.collect() if i % 50 == 0 else None\n"
        "os._exit(0)\n")
    record(python, tmp_path / "x.mscope", tmp_path / "many.py")
    rows = {row["function"]: row for row in harness.report(tmp_path / "x.mscope")["rows"]}
    for i in range(300):
        row = rows[f"größe_{i}"]
        assert (row["live_bytes"], row["file"], row["line"]) == (300000 + i + besides(python), f"made_{i}.py", i + 2)


def test_texts_that_are_executed_one_after_the_other(python, tmp_path):
    """Same name, same file, same first line, and mostly the same place in memory; only the lines differ."""
    (tmp_path / "texts.py").write_text(
        "import os\n"
        "kept = []\n"
        "def keep(size): kept.append(bytearray(size))\n"
        "for i in range(40):\n"
        "    exec('\\n' * (i % 10) + 'keep(%d)' % (400000 + i % 10))\n"
        "os._exit(0)\n")
    record(python, tmp_path / "x.mscope", tmp_path / "texts.py")
    dump = exported(tmp_path / "x.mscope")
    found = {}
    for stack in dump["stacks"]:
        frames = python_frames(dump, stack)
        if frames and frames[0][0] == "keep":
            found[frames[1][2]] = found.get(frames[1][2], 0) + stack["live_bytes"]
    assert found == {line + 1: 4 * (400000 + line + besides(python)) for line in range(10)}


def test_deep_recursion_is_said_to_be_cut(python, tmp_path):
    (tmp_path / "deep.py").write_text(
        "import os\n"
        "def deeper(n): return bytearray(500000) if n == 0 else deeper(n - 1)\n"
        "kept = deeper(900)\n"
        "os._exit(0)\n")
    record(python, tmp_path / "x.mscope", tmp_path / "deep.py")
    assert harness.report(tmp_path / "x.mscope")["health"]["truncated"] >= 1


INTERRUPTED = """
import ctypes, os, sys
signals = ctypes.CDLL(sys.argv[1])
def numbers(n):
    for i in range(n):
        yield i
def pass_on(n):
    yield from numbers(n)
def deep(n):
    return 0 if n == 0 else deep(n - 1) + 1
class Box:
    def __init__(self, n):
        self.n = n
    def __lt__(self, other):
        return self.n < other.n
signals.begin()
while signals.count() < 10000:
    sorted([Box(i * 7919 % 101) for i in range(30)])
    sum(pass_on(20)), deep(20)
    list(map(lambda x: x + 1, range(20)))
os._exit(0)
"""


@pytest.mark.parametrize("options", [("--exact",), ("--rate", "512K")])
def test_handlers_may_report_at_any_moment(python, tmp_path, build, options):
    """A signal may interrupt the interpreter while it is linking a frame: the recorder must not follow broken links."""
    library = build("python_signals.c", "-shared", "-fPIC", "-pthread", api.INCLUDE, target="signals.so")
    (tmp_path / "interrupted.py").write_text(INTERRUPTED)
    record(python, tmp_path / "x.mscope", tmp_path / "interrupted.py", library, options=options)
    assert api.heaps(tmp_path / "x.mscope")["signals"]["total_objects"] >= 10000


SUBINTERPRETER = """
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
interpreters.run_string(interpreters.create(), '''
import os
kept = []
def inside():
    kept.append(bytearray(300000))
inside()
os._exit(0)
''')
"""


def test_subinterpreters(python, tmp_path):
    """With subinterpreters a thread has several thread states; the frames are those of the current one."""
    (tmp_path / "sub.py").write_text(SUBINTERPRETER)
    record(python, tmp_path / "x.mscope", tmp_path / "sub.py")
    row = next(row for row in harness.report(tmp_path / "x.mscope")["rows"] if row["function"] == "inside")
    assert (row["live_bytes"], row["line"]) == (300000 + besides(python), 5)


EMBEDDED = """
kept = []
def key(x):
    kept.append(bytearray(300000))
    return x
def rank():
    return sorted([2, 1], key=key)
rank()
"""


def shared_library(python):
    """The interpreter as a library, or None where there is none."""
    text = "import sysconfig; print(*map(sysconfig.get_config_var, ('LIBDIR', 'MULTIARCH', 'INSTSONAME')))"
    folder, machine, name = harness.run([python, "-c", text]).stdout.decode().split()
    places = [Path(folder) / name, Path(folder) / machine / name]
    return next((place for place in places if ".so" in name and place.exists()), None)


def test_interpreters_that_are_opened_later(python, tmp_path, build):
    """By a program that is no interpreter itself, twice: closed in between, the library may be mapped elsewhere."""
    library = shared_library(python)
    if not library:
        pytest.skip("no shared library of this interpreter")
    program = build("python_embedded.c", "-ldl")
    (tmp_path / "embedded.py").write_text(EMBEDDED)
    prefix = harness.run([python, "-c", "import sys; print(sys.prefix)"]).stdout.decode().strip()
    harness.malloscope("run", "-q", "--exact", "-o", tmp_path / "x.mscope", program, library, tmp_path / "embedded.py",
                       "2", env={"PYTHONHOME": prefix})
    dump = exported(tmp_path / "x.mscope")
    file = str(tmp_path / "embedded.py")
    expected = [["key", file, 4], ["rank", file, 7], ["<module>", file, 8]]
    found = [stack for stack in dump["stacks"] if python_frames(dump, stack) == expected]
    large = [stack["total_bytes"] for stack in found if stack["total_bytes"] >= 300000]
    assert sum(large) == 4 * (300000 + besides(python))
    for stack in found:
        functions = [dump["frames"][i]["function"] for i in stack["frames"]]
        assert functions.index("rank") - functions.index("key") > 1 and functions[-1] == "_start"
        assert functions.index("<module>") < functions.index("execute")


UNLOCKED = """
import ctypes, sys, threading
library = ctypes.CDLL(sys.argv[1])
churn = threading.Thread(target=library.churn)
churn.start()
for _ in range(1000):
    short = threading.Thread(target=int)
    short.start()
    short.join()
library.stop()
churn.join()
"""


def test_threads_without_the_lock(python, tmp_path, build):
    """Up to 3.11 only the state of whoever holds the lock can be asked for. Here it is unmapped when that ends."""
    library = build("python_unlocked.c", "-shared", "-fPIC", target="unlocked.so")
    (tmp_path / "unlocked.py").write_text(UNLOCKED)
    unmaps = {"MALLOC_MMAP_THRESHOLD_": "128", "MALLOC_MMAP_MAX_": "1000000"}
    record(python, tmp_path / "x.mscope", tmp_path / "unlocked.py", library, env=unmaps)
    dump = exported(tmp_path / "x.mscope")
    stacks = [stack for stack in dump["stacks"] if dump["frames"][stack["frames"][0]]["function"] == "churn"]
    assert sum(stack["total_objects"] for stack in stacks) >= 1000
    assert not any(python_frames(dump, stack) for stack in stacks)


@pytest.mark.parametrize("name", OTHERS)
def test_other_versions_show_native_frames(tmp_path, name):
    python = OTHERS[name]
    (tmp_path / "shelf.py").write_text(CALLBACK)
    told = record(python, tmp_path / "x.mscope", tmp_path / "shelf.py", options=("--exact", "--python-objects"))
    assert told.returncode == 0
    report = harness.report(tmp_path / "x.mscope")
    assert not [row for row in report["rows"] if row["function"] == "key"]
    assert any(row["live_bytes"] == 600002 for row in report["rows"])
