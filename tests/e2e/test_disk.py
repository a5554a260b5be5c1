"""Recordings take the space that they hold, whatever becomes of the processes that write them."""

import os
import subprocess

import pytest

import harness
from harness import PROGRAMS, figures_of_site, malloscope, record_command, report

SOURCE = PROGRAMS / "family.c"
MIB = 1 << 20

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give up its privileges")


@pytest.fixture
def family(build):
    return build("family.c", "-O1")


def recordings(place):
    return sorted(place.glob("*.mscope"))


def on_disk(place):
    return sum(path.stat().st_blocks * 512 for path in recordings(place))


def run_family(family, folder, rate, *arguments, **options):
    place = folder / "recordings"
    place.mkdir()
    harness.run(record_command(place / "%p.%n.mscope", [family, *arguments], rate), **options)
    return place


def kept_blocks(path):
    return figures_of_site(report(path)["rows"], SOURCE, "kept")["live_objects"]


@pytest.mark.parametrize("rate", ["exact", "512K"])
def test_children_that_become_other_programs(family, folder, rate):
    """The bar is 20 MB for 2,000. Neither the forked child nor a program that allocates nothing leaves a file."""
    place = run_family(family, folder, rate, "exec", 200, "/bin/true")
    assert len(recordings(place)) == 1
    assert on_disk(place) < 2 * MIB


def test_programs_that_sampled_nothing_leave_no_file(family, folder):
    place = folder / "recordings"
    place.mkdir()
    command = record_command(place / "%p.%n.mscope", [family, "exec", 20, "/bin/sh", "-c", ":"], "1G")
    harness.run(command)
    assert len(recordings(place)) == 1, "that of the program that the user named, which sampled nothing either"


def test_killed_children_are_cut_to_what_they_hold(family, folder):
    """300 forks in exact mode left 2.6 GB."""
    place = run_family(family, folder, "exact", "kill", 50)
    assert len(recordings(place)) == 51
    assert on_disk(place) < 51 * 200_000
    children = [path for path in recordings(place) if kept_blocks(path) == 1100]
    assert len(children) == 50, "the blocks that were inherited, and those of the child"


def test_killed_children_without_a_sample_leave_no_file(family, folder):
    assert len(recordings(run_family(family, folder, "1G", "idle", 20))) == 1


def start_family(family, folder, rate, what, count):
    """Starts it, and waits until all children are ready."""
    place = folder / "recordings"
    place.mkdir()
    command = record_command(place / "%p.%n.mscope", [family, what, count], rate)
    process = subprocess.Popen([str(part) for part in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, env=harness.clean_environment())
    for _ in range(count):
        assert process.stdout.readline() == b"ready\n"
    return process, place


@needs_root
def test_workers_that_give_up_their_privileges(family, folder):
    """107 of them took 6.8 GB; the bar is 200 MB. They cannot open their recordings any more, but lose nothing."""
    process, place = start_family(family, folder, "exact", "work", 20)
    assert on_disk(place) < 20 * 200 * MIB / 107, "while they run"
    process.stdin.close()
    assert process.wait() == 0
    assert on_disk(place) < 20 * 200 * MIB / 107
    whole = [report(path) for path in recordings(place)]
    assert len(whole) == 21 and all(one["totals"]["drops"] == 0 for one in whole)
    assert sorted(kept_blocks(path) for path in recordings(place)) == [1000] + 20 * [21000]


def test_a_recording_that_is_still_written_is_left_alone(family, folder):
    """`run` ends with the program that it started; its children go on, and so do their recordings."""
    process, place = start_family(family, folder, "exact", "stay", 3)
    assert process.wait() == 0
    assert len(recordings(place)) == 4
    process.stdin.close()
    assert process.stdout.read() == b"", "which is read when the last child has ended"
    children = [path for path in recordings(place) if kept_blocks(path) > 1000]
    assert [kept_blocks(path) for path in children] == 3 * [21000]
    assert all(report(path)["totals"]["drops"] == 0 for path in children)


@needs_root
@pytest.mark.parametrize("size", ["256k", "1m"])
def test_a_full_disk_is_no_signal(family, folder, size):
    """The space of a worker without privileges is mapped ahead as a hole. A full disk there is a counted drop, not
    SIGBUS; and the remedy is the disk, not --max-size."""
    place = folder / "disk"
    place.mkdir()
    script = f'mount -t tmpfs -o size={size} tmpfs "{place}" && "$@"; status=$?; cp {place}/*.mscope {folder}; '
    script += "exit $status"
    command = record_command(place / "%p.mscope", [family, "work", 2], "exact")
    result = harness.run(["unshare", "-m", "sh", "-c", script, "sh", *command], expect=None, stdin=subprocess.DEVNULL)
    assert result.returncode == 0 and result.stdout == b"ready\nready\n", result.stderr
    whole = [report(path) for path in recordings(folder)]
    dropped = [path for path, one in zip(recordings(folder), whole, strict=True) if one["totals"]["drops"]]
    assert dropped, "the disk was not small enough"
    for path in dropped:
        text = " ".join(malloscope("report", path).stdout.decode().split())
        assert "the disk was full: free some space" in text and "--max-size" not in text


@pytest.mark.parametrize("blocks", [100, 20_000])
def test_a_program_that_becomes_another_one(family, folder, blocks):
    """Its recording is cut before, without `run`. An exec that fails ends nothing."""
    path = folder / "r.mscope"
    env = {"LD_PRELOAD": str(harness.LIBRARY), "MALLOSCOPE_OUTPUT": str(path), "MALLOSCOPE_RATE": "1"}
    harness.run([family, "become", blocks, "/bin/true"], env=env)
    assert kept_blocks(path) == 1000 + blocks
    whole = report(path)
    assert whole["totals"]["drops"] == 0
    assert b"finished after" in malloscope("report", path).stdout, "and not killed"
    assert path.stat().st_size < (1000 + blocks) * 70 + 100_000
    assert path.stat().st_blocks * 512 <= path.stat().st_size + (16 << 10), "and what the file system needs itself"


# ---- which recordings of a tree stay ----


def test_the_largest_children_are_kept(build, folder):
    """Each child allocates more than the one before."""
    place = folder / "recordings"
    place.mkdir()
    body = "if os.fork() == 0:\n    os._exit(len(bytearray(n << 20)) == 0)\n  os.wait()"
    script = f"import os\nfor n in range(1, 6):\n  {body}"
    command = ["run", "-q", "--exact", "--keep", 2, "-o", place / "%p.mscope", "--", "/usr/bin/python3", "-c", script]
    malloscope(*command)
    peaks = sorted(report(path)["totals"]["peak_bytes"] for path in recordings(place))
    assert len(peaks) == 3
    assert peaks[2] > peaks[1] > peaks[0] + 3.5 * MIB, "the program, and the last two of its children"


def test_none_of_the_children_is_kept(family, folder):
    path = folder / "main.mscope"
    malloscope("run", "-q", "--exact", "--keep", 0, "-o", path, "--", family, "kill", 5)
    assert recordings(folder) == [path] and kept_blocks(path) == 1000


def test_one_archive_of_the_tree(family, folder):
    path = folder / "tree.mscope"
    result = malloscope("run", "--exact", "--merge", "-o", path, "--", family, "kill", 5)
    assert [entry.name for entry in folder.iterdir()] == ["tree.mscar"]
    assert b"6 recordings" in result.stderr and b"next: malloscope report " in result.stderr
    site = figures_of_site(report(folder / "tree.mscar")["rows"], SOURCE, "kept")
    assert site["total_objects"] == 1000 + 5 * 100


def test_what_cannot_be_merged_stays(family, folder):
    path = folder / "tree.mscope"
    (folder / "tree.mscar").write_text("somebody else's")
    result = malloscope("run", "--exact", "--merge", "-o", path, "--", family, "kill", 5, expect=1)
    assert b"they stay as they are" in result.stderr
    assert len(recordings(folder)) == 6 and (folder / "tree.mscar").read_text() == "somebody else's"
