"""Rare but legal things that processes and threads do: they work under the recorder as without it."""

import os

import pytest

import harness
from harness import PROGRAMS, assert_same_outcome, figures_of_site, record_command, report

SOURCE = PROGRAMS / "hard_life.c"
RATES = ["exact", "64", "512K"]
MODES = {
    "_Fork": [], "raw-fork": [], "clone": [], "fork-in-thread": [], "fork-in-handler": [], "double-fork": [],
    "system": [], "jump-out": [], "cancel": [], "thread-storm": ["5000"], "late-destructors": [], "edges": [],
    "limits": [], "close-all": [],
}  # fmt: skip


@pytest.fixture
def program(build):
    return build("hard_life.c", "-O1", "-D_GNU_SOURCE")


def compare(program, arguments, folder, rate, env=None):
    """Runs it with and without the recorder. Returns the recordings, that of the first process before the others."""
    plain = harness.run_plain([program, *arguments], env)
    assert plain.returncode not in (98, 99), plain.stderr.decode()
    place = folder / "recordings"
    place.mkdir()
    command = record_command(place / "%p.%n.mscope", [program, *arguments], rate)
    assert_same_outcome(plain, harness.run(command, expect=None, env=env), f"hard_life {arguments} at {rate}")
    return sorted(place.glob("*.mscope"), key=lambda path: path.stat().st_ctime_ns)


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("mode", MODES)
def test_same_outcome(program, folder, mode, rate):
    for path in compare(program, [mode, *MODES[mode]], folder, rate):
        report(path)


def assert_all_is_recorded(recording):
    """Every allocation, from before the first constructor to after the last destructor."""
    rows = report(recording)["rows"]
    assert figures_of_site(rows, SOURCE, "kept")["total_bytes"] == 5000 + 6000
    assert sum(row["total_objects"] for row in rows if row["function"] == "churn") == 3 * 100


def test_a_program_that_is_an_argument_of_its_linker(program, folder):
    linker = harness.run(["patchelf", "--print-interpreter", program]).stdout.decode().strip()
    (recording,) = compare(linker, [program, "edges"], folder, "exact")
    assert_all_is_recorded(recording)


@pytest.mark.parametrize("variable", [{}, {"LD_BIND_NOW": "1"}], ids=["lazy", "LD_BIND_NOW"])
@pytest.mark.parametrize("option", ["-Wl,-z,lazy", "-Wl,-z,now"])
def test_binding(build, folder, option, variable):
    program = build("hard_life.c", "-O1", "-D_GNU_SOURCE", option)
    (recording,) = compare(program, ["edges"], folder, "exact", env=variable)
    assert_all_is_recorded(recording)


@pytest.mark.parametrize("mode", ["_Fork", "raw-fork", "clone"])
def test_child_of_a_bare_fork_inherits_what_was_live(program, folder, mode):
    recordings = compare(program, [mode], folder, "exact")
    sites = [figures_of_site(report(path)["rows"], SOURCE, "kept") for path in recordings]
    assert len(sites) == 2
    (child,) = [site for site in sites if site["live_bytes"] > 10000]
    ended_by_exit = 0 if mode == "clone" else 1  # which keeps one block more, and frees one of two from the parent
    assert child["total_objects"] == 5 + ended_by_exit
    assert child["live_objects"] == child["total_objects"] + 2 - ended_by_exit


def test_a_hundred_thousand_threads(program, folder):
    (recording,) = compare(program, ["thread-storm", "100000"], folder, "512K")
    assert recording.stat().st_size < 8 << 20, "the records of threads that have ended are used again"
    assert report(recording)["totals"]["drops"] == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may do this")
@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("mode", ["chroot", "drop-privileges"])
def test_recording_goes_on_where_its_file_is_out_of_reach(program, folder, mode, rate):
    (folder / "root").mkdir()
    folder.chmod(0o755)
    recordings = compare(program, [mode, folder / "root"], folder, rate)
    whole = report(recordings[0])
    assert whole["totals"]["drops"] == 0
    if rate == "exact":
        assert figures_of_site(whole["rows"], SOURCE, "kept")["total_objects"] > (30000 if mode == "chroot" else 300000)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount")
def test_read_only_file_system(program, folder):
    place = folder / "disk"
    place.mkdir()
    script = f'mount -t tmpfs -o ro tmpfs "{place}" && exec "$@"'
    command = ["unshare", "--mount", "sh", "-c", script, "sh"]
    command += [harness.MALLOSCOPE, "run", "-o", place / "r.mscope", "--", program, "edges"]
    result = harness.run(command, expect=None)
    assert b"Read-only file system" in result.stderr
    assert (result.returncode, result.stdout) == (4, b""), "said before the program begins"
    assert b"hint: choose another place" in result.stderr


@pytest.mark.parametrize("rate", RATES)
def test_a_child_goes_on_with_what_its_parent_had_begun(build, tmp_path, rate):
    program = build("fork_in_realloc.c", "-O1")
    command = record_command(tmp_path / "%p.mscope", [program], rate)
    assert harness.run(command).stdout == b"0 of 20 children failed\n"
