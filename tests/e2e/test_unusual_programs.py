"""Programs that do what few do, and must run as they do without the recorder."""

import platform

import pytest

import harness
from harness import malloscope, stats

RATES = ["exact", "64", "512K"]


def same_as_plain(command, folder, rate):
    plain = harness.run(command, expect=None)
    option = ["--exact"] if rate == "exact" else ["--rate", rate]
    result = malloscope("run", "-q", *option, "-o", folder / "%e.%p.mscope", "--", *command, expect=None)
    assert (result.returncode, result.stdout) == (plain.returncode, plain.stdout), result.stderr.decode()
    return result


@pytest.mark.parametrize("rate", RATES)
def test_some_operators_replaced(build, folder, rate):
    same_as_plain([build("some_operators.cpp", "-std=c++17", "-O1")], folder, rate)


@pytest.mark.parametrize("rate", RATES)
def test_operators_that_find_no_memory(build, folder, rate):
    """They call the new-handler, and throw or return NULL, through the recorder as without it."""
    result = same_as_plain([build("failing_new.cpp", "-std=c++17", "-O1")], folder, rate)
    assert result.stdout.count(b"thrown, handler called 3 times") == 4 and result.stdout.endswith(b"done\n")
    totals = stats(next(folder.glob("*.mscope")))["totals"]
    assert totals["total_bytes"] < 1 << 40 and totals["exact_total_bytes"] < 1 << 40, "what failed is not counted"


@pytest.mark.parametrize("rate", RATES)
def test_plugin_with_operators_of_its_own(build, folder, rate):
    plugin = build("plugin_operators.cpp", "-std=c++17", "-O1", "-shared", "-fPIC", "-Wl,-Bsymbolic")
    same_as_plain([build("plugin_host.c", "-ldl"), plugin], folder, rate)


@pytest.mark.parametrize("rate", RATES)
def test_own_malloc_in_a_followed_child(build, folder, rate):
    """A program with a malloc of its own, which `run` itself refuses: as a child of a shell it runs as ever."""
    program = build("own_malloc.c", "-O1")
    result = same_as_plain(["/bin/sh", "-c", f"'{program}'; exit $?"], folder, rate)
    assert b"cannot record" not in result.stderr


@pytest.mark.parametrize("rate", RATES)
def test_malloc_is_no_cancellation_point(build, folder, rate):
    result = same_as_plain([build("cancelled.c", "-O1", "-pthread")], folder, rate)
    assert result.stdout == b"20 finished\n"


@pytest.mark.skipif(platform.machine() != "x86_64", reason="other processors insist on the alignment themselves")
@pytest.mark.parametrize("rate", RATES)
def test_calls_with_a_stack_that_is_not_aligned(build, folder, rate):
    program = build("misaligned.c", "-O1", "-fno-builtin", "-D_GNU_SOURCE", "-lstdc++")
    assert same_as_plain([program], folder, rate).returncode == 3
    totals = [stats(path)["totals"] for path in folder.glob("*.mscope")]
    assert len(totals) == 2 or rate == "512K", "the program and its child, which leaves none if nothing was sampled"
    if rate == "exact":
        assert max(figures["total_objects"] for figures in totals) >= 3000 * (8 + 7 + 5)


def test_child_inherits_what_was_live_at_the_fork(build, folder):
    same_as_plain([build("fork_while_freeing.c", "-O1")], folder, "exact")
    totals = [stats(path)["totals"] for path in folder.glob("*.mscope")]
    parent, child = sorted(totals, key=lambda total: -total["frees"])
    assert parent["frees"] >= 50000 and parent["inherited_bytes"] == 0
    assert child["live_objects"] >= 50000 and child["frees"] == 0
    assert child["inherited_bytes"] == child["live_bytes"] - child["total_bytes"] >= 5_000_000


def test_first_allocation_under_the_lock_of_gettext(build, record):
    library = build("translated.c", "-DLIBRARY", "-shared", "-fPIC", target="libtranslated.so")
    program = build("translated.c", "-Wl,--no-as-needed", f"-Wl,-rpath,{library.parent}", str(library))
    for rate in ("4K", "exact"):
        assert record(program, rate=rate).stdout == b"hello\n"
