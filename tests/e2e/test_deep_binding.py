"""Libraries that look functions up in the C library first: opened with RTLD_DEEPBIND, or through its handle. They free
blocks that the program allocated, which in exact mode are all marked."""

import json

import pytest

import harness
from api import INCLUDE, LINKED
from harness import PROGRAMS, assert_same_outcome, record_command, report, stats

SOURCE = PROGRAMS / "deep_host.c"
SHARED = ["-shared", "-fPIC", "-O1", "-fno-builtin"]
LAZY, NOW = ["-Wl,-z,lazy"], ["-Wl,-z,now,-z,relro"]


@pytest.fixture
def run_host(build):
    """Runs the program, whose threads use libraries that are bound lazily and at once, and that open one another."""
    host = build("deep_host.c", "-O1", "-pthread", "-rdynamic")
    inner = build("deep_library.c", *SHARED, *NOW, target="inner.so")
    lazy = build("deep_library.c", *SHARED, *LAZY, "-DOUTER", target="lazy.so")
    now = build("deep_library.c", *SHARED, *NOW, "-DOUTER", target="now.so")

    def run_it(threads, wrap=list, **options):
        return harness.run(
            wrap([host, lazy, *[lazy, now, inner][:threads]]), expect=None, env={"DEEP_INNER": str(inner)}, **options
        )

    return run_it


@pytest.mark.parametrize("rate", ["exact", "64", "4K", "512K"])
def test_libraries_bound_deeply_free_the_programs_blocks(run_host, folder, rate):
    path = folder / "deep.mscope"
    plain = run_host(3)
    assert plain.returncode == 0 and json.loads(plain.stdout)["freed"] == 4 * 5 * 2000
    recorded = run_host(3, lambda command: record_command(path, command, rate))
    assert_same_outcome(plain, recorded, f"libraries bound deeply, {rate}")
    handed = harness.figures_of_site(report(path)["rows"], SOURCE, "handed")
    assert handed["live_objects"] == 0, "frees of these libraries did not arrive"
    if rate == "exact":
        assert handed["total_objects"] == handed["frees"] == 40000
        assert stats(path)["totals"]["drops"] == 0


def test_a_library_that_was_opened_before_recording_began(build, folder):
    """The program is linked with the recorder, which has found the allocator but marks no block before mscope_init."""
    host = build("deep_host.c", "-O1", "-pthread", "-rdynamic", "-DLATE", INCLUDE, *LINKED)
    library = build("deep_library.c", *SHARED, *NOW, target="opened.so")
    path = folder / "late.mscope"
    told = json.loads(harness.run([host, library], env={"RECORDING": str(path)}).stdout)
    handed = harness.figures_of_site(report(path)["rows"], SOURCE, "handed")
    assert told["freed"] == handed["total_objects"] == handed["frees"] == 10000


@pytest.mark.parametrize("rate", ["exact", "64"])
def test_where_symbols_cannot_be_changed_no_block_is_marked(build, run_host, folder, rate):
    path = folder / "refused.mscope"
    refuse = build("refuse_protection.c")
    plain = run_host(0, lambda command: [refuse, *command])
    recorded = run_host(0, lambda command: [refuse, *record_command(path, command, rate)])
    assert_same_outcome(plain, recorded, f"symbols that cannot be changed, {rate}")
    assert json.loads(plain.stdout)["freed"] == 5 * 2000
    handed = harness.figures_of_site(report(path)["rows"], SOURCE, "handed")
    assert handed["total_objects"] == 10000 or rate != "exact"


@pytest.mark.parametrize("rate", ["exact", "64"])
def test_pythons_ctypes_frees_through_the_c_library(folder, rate):
    """ctypes.CDLL("libc.so.6").free is the C library's own free to everybody who asks for it."""
    text = (
        "import ctypes\n"
        "program, libc = ctypes.CDLL(None), ctypes.CDLL('libc.so.6')\n"
        "for f in (program.malloc, program.strdup, libc.realloc): f.restype = ctypes.c_void_p\n"
        "free = libc.free\n"
        "free.argtypes, free.restype = [ctypes.c_void_p], None\n"
        "for i in range(2000):\n"
        "    free(program.malloc(ctypes.c_size_t(100 + i)))\n"
        "    free(libc.realloc(ctypes.c_void_p(program.strdup(b'x' * 200)), ctypes.c_size_t(700)))\n"
        "print('freed')\n"
    )
    plain = harness.run_plain(["/usr/bin/python3", "-c", text])
    assert plain.stdout == b"freed\n"
    command = record_command(folder / "ctypes.mscope", ["/usr/bin/python3", "-c", text], rate)
    assert_same_outcome(plain, harness.run(command, expect=None), f"ctypes, {rate}")
