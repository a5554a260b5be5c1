"""What the recorder itself takes, and that it does not grow with churn."""

import json
import shutil

import pytest

import harness
from harness import PROGRAMS, figures_of_site, report, stats

MIB = 1 << 20


def test_a_heap_of_4_gib_costs_at_most_16_mib(build, record):
    with open("/proc/meminfo") as file:
        available = next(int(line.split()[1]) for line in file if line.startswith("MemAvailable"))
    if available < 6 * MIB:
        pytest.skip("less than 6 GiB of memory to be had here")
    program = build("big_heap.c", "-O1")
    plain = json.loads(harness.run([program, 4]).stdout)
    recording = record(program, 4, rate="512K")
    truth = recording.ledger
    assert (truth["bytes"], truth["objects"]) == (plain["bytes"], plain["objects"])
    assert truth["resident_kib"] - plain["resident_kib"] <= 16 * 1024
    whole = report(recording)
    assert whole["totals"]["recorder_bytes"] <= 16 * MIB
    assert whole["totals"]["drops"] == 0
    site = figures_of_site(whole["rows"], PROGRAMS / "big_heap.c", "heap")
    # Some 8000 samples: five standard errors.
    assert site["live_bytes"] == pytest.approx(truth["bytes"], rel=5 / site["samples"] ** 0.5)
    assert site["live_objects"] == pytest.approx(truth["objects"], rel=10 / site["samples"] ** 0.5)


def test_distinct_deep_stacks_keep_to_the_bound(build, record):
    """Stacks of which each is new took 498 MiB. The bound of 60 MiB holds, and nothing is lost."""
    program = build("deep_stacks.c", "-O1")
    plain = json.loads(harness.run([program, 400_000, 125]).stdout)
    recording = record(program, 400_000, 125, rate="512K")
    truth, whole = recording.ledger, report(recording)
    assert truth["resident_kib"] - plain["resident_kib"] <= 60 * 1024
    assert recording.path.stat().st_blocks * 512 <= 60 * MIB
    assert whole["totals"]["recorder_bytes"] <= 60 * MIB
    site = figures_of_site(whole["rows"], PROGRAMS / "deep_stacks.c", "deep")
    assert site["samples"] > 300_000 and whole["totals"]["drops"] == 0
    assert site["total_bytes"] == pytest.approx(truth["bytes"], rel=5 / site["samples"] ** 0.5)
    assert site["total_objects"] == pytest.approx(truth["objects"], rel=5 / site["samples"] ** 0.5)
    assert whole["health"]["folded"] > 200_000
    for command in ("report", "info"):
        text = " ".join(harness.malloscope(command, recording).stdout.decode().split())
        assert "middle frames, since the recording was nearly full" in text


def test_a_larger_bound_keeps_whole_stacks(build, folder):
    program, path = build("deep_stacks.c", "-O1"), folder / "larger.mscope"
    harness.malloscope("run", "-q", "--max-size", "200M", "-o", path, "--", program, 60_000, 125)
    health = report(path)["health"]
    assert health["folded"] == 0 and health["complete"] == 1


def test_churn_of_a_thousand_million_pairs(build, record):
    program = build("churn.c", "-O2")
    pairs = 1_000_000_000
    recording = record(program, pairs, 0, rate="512K")
    whole = report(recording)
    totals, site = whole["totals"], figures_of_site(whole["rows"], PROGRAMS / "churn.c", "pairs")
    assert 0 <= totals["exact_total_bytes"] - recording.ledger["bytes"] < 100_000
    assert site["live_objects"] == 0 and site["live_bytes"] == 0
    assert site["total_objects"] == pytest.approx(pairs, rel=5 / site["samples"] ** 0.5 * 2)
    assert site["total_bytes"] == pytest.approx(recording.ledger["bytes"], rel=5 / site["samples"] ** 0.5)
    assert totals["recorder_bytes"] <= 16 * MIB and totals["drops"] == 0


@pytest.mark.parametrize("rate", ["exact", "256"])
def test_tables_do_not_grow_with_churn(build, record, rate):
    """Twenty times the replacements among as many live blocks take no more memory."""
    program = build("churn.c", "-O2")
    short = stats(record(program, 500_000, 20_000, rate=rate))["totals"]
    long = stats(record(program, 10_000_000, 20_000, rate=rate))["totals"]
    assert long["total_objects"] == pytest.approx(20 * short["total_objects"], rel=0.05)
    assert long["recorder_bytes"] <= 1.5 * short["recorder_bytes"] + MIB
    assert long["drops"] == 0


@pytest.mark.parametrize("rate", ["exact", "1024"])
def test_lookups_are_as_short_after_churn_as_before(build, folder, rate):
    """Instructions per replacement, counted by callgrind, stay the same as the number of replacements grows."""
    if not shutil.which("valgrind"):
        pytest.skip("valgrind is not installed")
    program = build("churn.c", "-O2")

    def instructions(pairs):
        path, out = folder / f"{pairs}.mscope", folder / f"{pairs}.callgrind"
        env = {
            "LD_PRELOAD": str(harness.LIBRARY),
            "MALLOSCOPE_OUTPUT": str(path),
            "MALLOSCOPE_RATE": "1" if rate == "exact" else rate,
            "MALLOSCOPE_SEED": "1",
        }
        harness.run(["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", program, pairs, 5000], env=env)
        assert path.exists() and stats(path)["totals"]["total_objects"] > 0
        for line in out.read_text().splitlines():
            if line.startswith(("summary:", "totals:")):
                return int(line.split()[1])
        raise AssertionError("callgrind did not say")

    first, second, fourth = (instructions(n) for n in (50_000, 100_000, 400_000))
    early, late = (second - first) / 50_000, (fourth - second) / 300_000
    assert late <= 1.05 * early, f"{early:.1f} instructions per replacement at first, {late:.1f} later"
