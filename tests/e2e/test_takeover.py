"""The recorder opened late, without a preload: calls are taken over at the start and given back at the end."""

import harness
from api import INCLUDE
from harness import LIBRARY, PROGRAMS

SOURCE = PROGRAMS / "takeover.c"


def take_over(build, folder, cycles, *flags, env=None):
    program = build("takeover.c", INCLUDE, "-fno-builtin", *flags)
    plugin = build("plugin.c", "-shared", "-fPIC", target="plugin.so")
    other = build("plugin.c", "-shared", "-fPIC", "-Wl,-z,relro,-z,now", target="other_plugin.so")
    result = harness.run([program, LIBRARY, folder / "late.mscope", plugin, cycles, other], env=env)
    recording = harness.Recording(folder / "late.mscope", result)
    return recording, harness.report(recording)["rows"]


def check(recording):
    told = recording.ledger
    assert told["result"] == 0 and told["drops"] == 0
    assert told["by_init"] == 0, "nothing is touched before the start"
    assert told["by_start"] > 5, "the calls of the program and of the C library are taken over"
    assert told["by_shutdown"] == 0, f"{told['by_shutdown']} of {told['slots']} slots are not as they were"
    assert told["rounds"] > 0


def test_calls_are_seen_and_slots_restored(build, folder):
    recording, rows = take_over(build, folder, 1, env={"LD_BIND_NOW": "1"})
    check(recording)
    kept = harness.figures_of_site(rows, SOURCE, "kept")
    freed = harness.figures_of_site(rows, SOURCE, "freed")
    assert kept["total_objects"] == 50 and kept["total_bytes"] == 50_000
    assert freed["total_objects"] == 50 and freed["live_bytes"] == 0


def test_a_thousand_starts_under_load(build, folder):
    """A library is opened and closed in every round: the recorder must not write into its GOT after it is gone."""
    recording, rows = take_over(build, folder, 1000, env={"LD_BIND_NOW": "1"})
    check(recording)
    assert recording.ledger["openings"] > 100
    plugin = harness.figures_of_site(
        [row for row in rows if row["module"].endswith("/plugin.so")], PROGRAMS / "plugin.c", "plugin"
    )
    assert plugin["total_objects"] == 1000 and plugin["live_objects"] == 0
    assert any(row["function"] == "churn" for row in rows), "threads that were there before are seen"


def test_tables_that_are_protected_and_calls_bound_late(build, folder):
    for flags in (["-Wl,-z,relro,-z,now"], ["-Wl,-z,lazy"], ["-no-pie"]):
        (folder / flags[0][-4:]).mkdir()
        recording, rows = take_over(build, folder / flags[0][-4:], 1, *flags)
        assert recording.ledger["result"] == 0 and recording.ledger["by_start"] > 5
        assert harness.figures_of_site(rows, SOURCE, "kept")["total_objects"] == 50


def test_a_preloaded_allocator_stays(build, folder):
    """The recorder passes calls on to the allocator that served the program before."""
    recording, rows = take_over(build, folder, 10, env={"LD_PRELOAD": "libjemalloc.so.2", "LD_BIND_NOW": "1"})
    check(recording)
    assert harness.figures_of_site(rows, SOURCE, "kept")["total_objects"] == 50
    processes = harness.malloscope("info", recording).stdout.decode()
    assert "jemalloc" in processes
