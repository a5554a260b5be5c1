"""leaks: planted leaks rank first, with the reason; what only looks like one does not."""

import json

import pytest

import harness
from harness import malloscope

RATES = ["exact", "4K"]


@pytest.fixture(scope="module")
def program(build):
    return build("leak_kinds.c")


def leaks(source, *options):
    return json.loads(malloscope("leaks", source, "--json", *options).stdout)


def kinds(source, *options):
    """Function and kind of each entry, in order."""
    return [(entry["row"]["function"], entry["kind"]) for entry in leaks(source, *options)["entries"]]


@pytest.mark.parametrize("by", ["stack", "site", "function"])
@pytest.mark.parametrize("rate", RATES)
def test_planted_leaks_rank_first(program, record, rate, by):
    assert kinds(record(program, rate=rate), "--by", by) == [
        ("slow_leak", "growing"),
        ("leak_at_exit", "never_freed"),
        ("growing_cache", "in_use"),
        ("start_up_tables", "start_up"),
    ]


def test_the_text_says_why(program, record):
    text = malloscope("leaks", record(program)).stdout.decode()
    likely, in_use, start_up = (text.index(title) for title in ("LIKELY LEAKS", "IN USE", "START-UP"))
    assert likely < text.index("slow_leak") < text.index("leak_at_exit") < in_use
    assert in_use < text.index("growing_cache") < start_up < text.index("start_up_tables")
    why = [line.strip() for line in text.splitlines() if line.startswith("  why:")]
    assert "it grows" in why[0] and "199,800 objects freed here" in why[0]
    assert "nothing from here was ever freed; all came at the end" in why[1]
    assert "a cache, or work under way" in why[2]
    assert "allocated in the first" in why[3]
    limited = malloscope("leaks", record(program), "-n", "1").stdout.decode()
    assert "slow_leak" in limited and "leak_at_exit" not in limited and "1 more with" in limited
    assert "START-UP" in limited and "start_up_tables" not in limited


def test_exact_figures(program, record):
    result = leaks(record(program))
    assert result["likely"]["live_bytes"] == 200 * 1000 + 60 * 1500
    assert result["start_up"]["live_objects"] == 100
    assert result["in_use"]["live_bytes"] == 3000 * 400
    slow = result["entries"][0]
    assert sum(slow["births"]) == 200 and all(slow["births"])
    assert {"slow_leak", "main"} <= {frame["function"] for frame in slow["stack"]}


@pytest.mark.parametrize("rate", RATES)
def test_of_a_program_that_was_killed(program, record, rate):
    found = kinds(record(program, "kill", rate=rate, expect=-9), "--by", "site")
    assert found == [("slow_leak", "growing"), ("growing_cache", "in_use"), ("start_up_tables", "start_up")]


@pytest.mark.parametrize("rate", RATES)
def test_of_a_program_that_runs(program, folder, start, rate):
    path = folder / "running.mscope"
    process = start(harness.record_command(path, [program, "run"], rate), stdout=-1)
    assert process.stdout.readline() == b"ready\n"
    child = harness.child_of(process.pid, "leak_kinds")
    expected = [("slow_leak", "growing"), ("growing_cache", "in_use"), ("start_up_tables", "start_up")]
    assert kinds(child, "--by", "site") == expected
    assert kinds(path, "--by", "site") == expected


def test_suppressions(program, record, folder):
    recording = record(program)
    path = folder / "known.supp"
    path.write_text("# not ours\nleak:^slow_l*k$\nleak:nowhere_at_all\n")
    options = ["--suppressions", path]
    result = leaks(recording, *options)
    assert [entry["row"]["function"] for entry in result["entries"]][0] == "leak_at_exit"
    assert result["suppressed"]["live_bytes"] == 200 * 1000
    assert result["likely"]["live_bytes"] == 60 * 1500
    text = malloscope("leaks", recording, *options).stdout.decode()
    assert "in 200 objects suppressed, by 1 of 2 patterns" in text and "slow_leak" not in text
    for whole in ("leak_kinds.c", "/leak_kinds$"):
        path.write_text(f"leak:{whole}\n")
        assert leaks(recording, *options)["entries"] == [], "files and modules are names, too"
    path.write_text("leak:x\nthread:y\n")
    wrong = malloscope("leaks", recording, *options, expect=2).stderr.decode()
    assert "line 2" in wrong and "thread:y" in wrong
    assert b"none.supp" in malloscope("leaks", recording, "--suppressions", folder / "none.supp", expect=3).stderr


def test_filter_and_nothing(program, record):
    recording = record(program)
    assert kinds(recording, "--filter", "cache") == [("growing_cache", "in_use")]
    text = malloscope("leaks", recording, "--filter", "cache").stdout.decode()
    assert "nothing looks like a leak" in text
    assert "matches the filter" in malloscope("leaks", recording, "--filter", "no such").stdout.decode()


def test_what_the_library_keeps_is_no_leak(build, folder, record):
    source = folder / "prints.c"
    source.write_text('#include <stdio.h>\nint main(void) { puts("hello"); return 0; }\n')
    recording = record(build(str(source)))
    assert harness.stats(recording)["totals"]["live_bytes"] > 0
    result = leaks(recording)
    assert result["entries"] == [] and result["held"]["live_objects"] == 1
    assert "keeps for itself" in malloscope("leaks", recording).stdout.decode()
