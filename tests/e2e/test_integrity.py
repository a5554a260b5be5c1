"""The program's data are its own: contents, alignment and usable size of blocks, at every rate."""

import pytest

import harness
from harness import report, stats


@pytest.mark.parametrize("rate", ["1", "64", "4K", "512K"])
@pytest.mark.parametrize("threads, operations", [(1, 20000), (32, 2000)])
def test_blocks_hold_what_was_written(build, record, rate, threads, operations):
    program = build("integrity.c", "-O1")
    for seed in (1, 2, 3):
        plain = harness.run_plain([program, threads, operations, seed])
        assert plain.returncode == 0
        recording = record(program, threads, operations, seed, rate=rate)
        assert recording.stdout == plain.stdout
        totals = stats(recording)["totals"]
        assert totals["samples"] > 0
        # All that the threads allocated was freed: nothing but what libc keeps for itself stays live.
        assert totals["live_bytes"] <= max(20000, 0.001 * totals["total_bytes"]), "a free was missed"


def test_the_whole_family_at_small_rates(build, record):
    """Sampled and other blocks side by side go through every function."""
    program = build("truth.c", "-O1")
    plain = harness.run([program])
    for seed in range(1, 13):
        for rate in (16, 200, 5000):
            recording = record(program, rate=rate, env={"MALLOSCOPE_SEED": str(seed)})
            assert recording.ledger["sites"] == harness.json.loads(plain.stdout)["sites"]


def test_cpp_and_rust_at_small_rates(build, record):
    cpp = build("truth_cpp.cpp", "-std=c++17", "-O1")
    rust = build("truth_rust.rs", "-O")
    for rate in (16, 200, 5000):
        assert record(cpp, rate=rate).stdout == harness.run([cpp]).stdout
        record(rust, rate=rate)


def test_a_seed_makes_a_recording_repeatable(build, record):
    program = build("integrity.c", "-O1")

    def figures(seed):
        recording = record(program, 1, 5000, 1, rate="4K", env={"MALLOSCOPE_SEED": str(seed)})
        whole = report(recording)
        return [(row["line"], row["total_bytes"], row["samples"]) for row in whole["rows"] if row["line"]]

    assert sorted(figures(5)) == sorted(figures(5))
    assert sorted(figures(5)) != sorted(figures(6))


@pytest.mark.parametrize("rate", ["1", "64", "512K"])
def test_errno_is_what_the_allocator_leaves(build, record, rate):
    program = build("out_of_memory.c")
    assert record(program, rate=rate).stdout == harness.run([program]).stdout
