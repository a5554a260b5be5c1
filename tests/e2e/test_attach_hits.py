"""How often the target is interrupted: the cost of an attach is the number of probes that are hit, counted here."""

import contextlib
import json
import os
import re
from pathlib import Path

import pytest

import attach
import harness

pytestmark = [
    pytest.mark.probes,
    pytest.mark.skipif(os.geteuid() != 0, reason="loading programs into the kernel takes root"),
]

PAIRS = 10000
NEVER = 0xFFFFFFFF  # bytes between samples, on average: once in 6,000 runs of 10,000 pairs there is one
STATISTICS = Path("/proc/sys/kernel/bpf_stats_enabled")
JEMALLOC = Path("/usr/lib/x86_64-linux-gnu/libjemalloc.so.2")


@pytest.fixture(params=attach.METHODS)
def method(request):
    if request.param not in attach.methods():
        pytest.skip(f"this kernel has no {request.param}")
    return request.param


@contextlib.contextmanager
def kernel_counts():
    """Lets the kernel count how often programs run."""
    before = STATISTICS.read_text()
    STATISTICS.write_text("1")
    try:
        yield
    finally:
        STATISTICS.write_text(before)


def runs_of(pid):
    """How often the probes' programs that a process has loaded have run, as the kernel counts."""
    descriptors = [path.read_text() for path in Path(f"/proc/{pid}/fdinfo").iterdir()]
    held = {int(number) for text in descriptors for number in re.findall(r"^prog_id:\s+(\d+)", text, re.M)}
    programs = json.loads(harness.run(["/usr/sbin/bpftool", "-j", "prog", "show"]).stdout)
    mine = [one for one in programs if one["id"] in held and one.get("name", "").startswith("heap_")]
    assert mine
    return sum(program.get("run_cnt", 0) for program in mine)


def hits(start, method, command, env=None, *options):
    """(interruptions as the kernel counts them, totals of the driver)"""
    with kernel_counts():
        target = attach.Target(start, command, env=env)
        probes = attach.Probes(start, target.pid, *attach.option_of(method), "--quiet", *options)
        target.work()
        runs = runs_of(probes.process.pid)
        totals = probes.stop()
        assert target.end() == 0
    return runs, totals


@pytest.mark.parametrize("what", ["malloc", "calloc", "new"])
@pytest.mark.parametrize("flags", [["-O1"], ["-O1", "-static"]], ids=["dynamic", "static"])
def test_two_hits_for_a_pair_that_is_not_sampled(build, start, method, what, flags):
    runs, totals = hits(start, method, [build("attach_pairs.cpp", *flags), what, PAIRS], None, "--rate", NEVER)
    counters = totals["counters"]
    assert counters["entries"] == 2 * PAIRS
    assert sum(thread["allocations"] for thread in totals["threads"]) == PAIRS
    # Older kernels cannot be asked to leave a return out.
    returns = counters["sampled"] if method == "session links" else PAIRS
    assert counters["returns"] == returns
    assert runs == 2 * PAIRS + returns


def test_two_hits_for_a_pair_with_jemalloc(build, start, method):
    if not JEMALLOC.exists():
        pytest.skip("no libjemalloc here (Debian: apt install libjemalloc-dev)")
    command = [build("attach_pairs.cpp", "-O1"), "malloc", PAIRS]
    runs, totals = hits(start, method, command, {"LD_PRELOAD": str(JEMALLOC)}, "--rate", NEVER)
    assert totals["counters"]["entries"] == 2 * PAIRS
    if method == "session links":
        assert runs == 2 * PAIRS + totals["counters"]["sampled"]


def test_three_hits_for_a_pair_that_is_recorded(build, start, method):
    runs, totals = hits(start, method, [build("attach_pairs.cpp", "-O1"), "malloc", PAIRS], None, "--rate", 1)
    assert totals["allocations"] == totals["frees"] == PAIRS
    assert runs == 3 * PAIRS == totals["counters"]["entries"] + totals["counters"]["returns"]


@pytest.mark.parametrize("flags", [[], ["-O"], ["-O", "-C", "lto=fat"]], ids=["debug", "release", "fat"])
def test_one_hit_for_each_call_of_rust(build, start, flags):
    """Through all its layers, __rust_alloc, the default allocator and malloc, one is probed."""
    attach.require_ebpf()
    runs, totals = hits(start, attach.methods()[0], [build("attach_rust.rs", *flags)], None, "--rate", NEVER)
    counters = totals["counters"]
    allocations = sum(thread["allocations"] for thread in totals["threads"])
    assert allocations > 40 and counters["nested"] == 0
    assert counters["entries"] == allocations + counters["frees"]
    assert runs == counters["entries"] + counters["returns"]
