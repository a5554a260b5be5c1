"""Python's objects behind marks: what the interpreter's allocator hands out works as without the recorder."""

import pytest

import harness

PYTHON = "/usr/bin/python3"

# Blocks of all sizes around those at which the interpreter, or a mark in front, changes the allocator; filled, resized
# up and down through all of them and looked at. 20,000 more see blocks that would begin a page.
BLOCKS = """
import ctypes, os, sys
api = ctypes.pythonapi
def function(name, *arguments):
    found = getattr(api, name)
    found.restype, found.argtypes = ctypes.c_void_p, arguments
    return found
size = ctypes.c_size_t
families = [[function(kind + "_Malloc", size), function(kind + "_Calloc", size, size),
             function(kind + "_Realloc", ctypes.c_void_p, size), function(kind + "_Free", ctypes.c_void_p)]
            for kind in ("PyObject", "PyMem")]
SIZES = [1, 16, 31, 32, 33, 64, 255, 447, 448, 449, 479, 480, 481, 496, 511, 512, 513, 544, 600, 5000]
def check(block, byte, count):
    assert ctypes.string_at(block, count) == bytes([byte]) * count, (count, byte)
for malloc, calloc, realloc, free in families:
    free(None)
    for first in SIZES:
        for second in SIZES:
            block = malloc(first)
            assert block % 16 == 0
            ctypes.memset(block, 7, first)
            block = realloc(block, second)
            check(block, 7, min(first, second))
            ctypes.memset(block, 9, second)
            block = realloc(block, first)
            check(block, 9, min(first, second))
            free(realloc(block, 0))
        block = realloc(None, first)
        ctypes.memset(block, 5, first)
        free(block)
        block = calloc(first, 1)
        check(block, 0, first)
        free(block)
    many = []
    for i in range(20000):
        block = malloc(16 + i % 100)
        ctypes.memset(block, i % 251, 16 + i % 100)
        many.append(block)
    if os.fork() == 0:
        for i, block in enumerate(many):
            check(block, i % 251, 16 + i % 100)
            free(block)
        os._exit(0)
    assert os.wait()[1] == 0
    for i, block in enumerate(many):
        check(block, i % 251, 16 + i % 100)
        free(realloc(block, 1 + i % 520))
def hold():
    return [families[0][0](400 + i % 113) for i in range(5000)]
kept = hold()
print("right")
sys.stdout.flush()
os._exit(0)
"""


@pytest.mark.parametrize("rate", ["1", "64", "1K", "512K"])
def test_every_size_keeps_its_contents(tmp_path, rate):
    (tmp_path / "blocks.py").write_text(BLOCKS)
    told = harness.malloscope("run", "-q", "--rate", rate, "--python-objects", "-o", tmp_path / "x.mscope", PYTHON,
                              tmp_path / "blocks.py")
    assert told.stdout.strip() == b"right"
    report = harness.report(tmp_path / "x.mscope")
    site = ("hold.<locals>.<listcomp>", "python objects")
    rows = [row for row in report["rows"] if (row["function"], row["heap"]) == site]
    if rate == "1":
        assert sum(row["live_objects"] for row in rows) >= 5000
        assert sum(row["live_bytes"] for row in rows) >= sum(400 + i % 113 for i in range(5000))
    assert report["totals"]["unknown_frees"] == 0


def test_memory_hooks_of_others_stand_in_front(tmp_path):
    """tracemalloc puts its hooks in front of the recorder's, and takes them away again."""
    (tmp_path / "traced.py").write_text(
        "import tracemalloc\n"
        "kept = [str(i) * 10 for i in range(1000)]\n"
        "tracemalloc.start()\n"
        "kept += [str(i) * 10 for i in range(1000)]\n"
        "print(tracemalloc.get_traced_memory()[0] > 50000)\n"
        "del kept[:500]\n"
        "tracemalloc.stop()\n"
        "del kept[:1000]\n"
        "print(len(kept))\n")
    told = harness.malloscope("run", "-q", "--exact", "--python-objects", "-o", tmp_path / "x.mscope", PYTHON,
                              tmp_path / "traced.py")
    assert told.stdout.split() == [b"True", b"500"]
