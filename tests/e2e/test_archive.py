"""An archive is read in place of its recordings, also where the programs are not; names that were found are kept."""

import json
import random
import shutil

import pytest

import harness
from harness import PROGRAMS, malloscope, report, wait_until

FAILURE, USAGE, MISSING, PERMISSION, DAMAGED = 1, 2, 3, 4, 5
READERS = [
    ["report", "-v"], ["report", "--json", "-n", "0"], ["report", "--by", "function"], ["tree"], ["leaks"],
    ["stats", "--json"], ["export", "--format", "collapsed"], ["export", "--format", "heap_v2"],
    ["export", "--format", "json"],
]


@pytest.fixture
def views(build, folder):
    """A copy of the program that tests may delete."""
    program = folder / "program"
    shutil.copy2(build("views.c", "-O0"), program)
    return program


@pytest.fixture
def recording(views, record):
    return record(views, 100000).path


def archive_of(*sources, out, options=()):
    malloscope("archive", *sources, "-o", out, *options)
    return out


def outputs(path, readers=READERS):
    """What all readers say, without the file's own name."""
    return [malloscope(*reader, path).stdout.decode().replace(str(path), "THE FILE") for reader in readers]


def test_every_reader_takes_an_archive_in_place_of_its_recording(recording, folder):
    archive = archive_of(recording, out=folder / "it.mscar")
    assert outputs(archive) == outputs(recording)


def test_an_archive_needs_no_binaries(recording, views, folder):
    expected = outputs(recording)
    rows = report(recording)["rows"]
    assert any(row["line"] and row["file"].endswith("views.c") for row in rows)
    archive = archive_of(recording, out=folder / "it.mscar")
    views.unlink()
    assert outputs(archive) == expected
    assert b"program" not in malloscope("report", archive).stderr
    # The names are no longer to be had: what is shown from here on comes from the archive.
    without = malloscope("report", recording, "--json", "-n", "0")
    assert b"does not exist here" in without.stderr
    assert not any(row["file"] and row["file"].endswith("views.c") for row in json.loads(without.stdout)["rows"])


def test_a_library_that_was_closed_is_archived_too(build, record, folder):
    program, plugin = folder / "program", folder / "libplugin.so"
    shutil.copy2(build("lifecycle.c", "-O1", "-ldl"), program)
    shutil.copy2(build("plugin.c", "-shared", "-fPIC"), plugin)
    recording = record(program, "plugin").path
    expected = outputs(recording)
    assert any(row["file"] and row["file"].endswith("plugin.c") and row["line"] for row in report(recording)["rows"])
    archive = archive_of(recording, out=folder / "it.mscar")
    plugin.unlink()
    assert outputs(archive) == expected
    named = malloscope("info", "--symbols", archive).stdout.decode().split("libplugin.so\n")[1].splitlines()[0]
    assert named.strip() == f"the names in {archive}"


def test_a_rebuilt_program_does_not_mislead(recording, views, folder):
    expected = outputs(recording)
    archive = archive_of(recording, out=folder / "it.mscar")
    views.unlink()
    harness.run(["gcc", "-O2", "-g", PROGRAMS / "hello.c", "-o", views])
    assert outputs(archive) == expected


def test_debug_info_that_was_missing_may_be_here(recording, views, folder):
    """The archive was made where the program is stripped, and is read where its debug info is."""
    expected = report(recording)["rows"]
    shutil.copy2(views, folder / "whole")
    harness.run(["strip", "-g", views])
    archive = archive_of(recording, out=folder / "it.mscar")
    names_alone = report(archive)["rows"]
    assert {row["function"] for row in names_alone} == {row["function"] for row in expected}
    assert not any(row["line"] for row in names_alone if "program" in row["module"])
    shutil.move(folder / "whole", views)
    assert report(archive)["rows"] == expected


def test_an_archive_is_small(views, record, folder):
    recording = record(views, 1000).path
    archive = archive_of(recording, out=folder / "it.mscar")
    assert archive.stat().st_size < 40000 and archive.stat().st_size * 4 < recording.stat().st_size
    assert archive.stat().st_mode & 0o777 == 0o600


def test_the_name_of_an_archive_follows_from_the_recording(recording, folder):
    said = malloscope("archive", recording).stderr.decode()
    archive = recording.with_suffix(".mscar")
    assert archive.exists() and str(archive) in said and "1 recording of" in said
    (folder / "sub").mkdir()
    shutil.copy(recording, folder / "sub")
    malloscope("archive", f"{folder}/sub/", "-q")
    assert (folder / "sub.mscar").exists()


def test_a_running_program_is_archived(build, folder, start):
    flag, program = folder / "flag", build("waiting.c", "-O1")
    process = start(harness.record_command(folder / "running.mscope", [program, flag], "exact"))
    wait_until(flag.exists, process)
    pid = harness.child_of(process.pid, "waiting")
    archive = archive_of(pid, out=folder / "now.mscar")
    malloscope("archive", pid, "-q", cwd=folder)
    assert process.poll() is None
    for path in (archive, folder / "running.mscar"):
        info = malloscope("info", path).stdout.decode()
        assert "running when this copy of its recording was made" in info
        rows = report(path)["rows"]
        assert any(row["live_bytes"] and row["line"] and row["file"].endswith("waiting.c") for row in rows)


def test_several_recordings_go_into_one_archive(views, record, folder):
    both = [record(views, 100000).path, record(views, 5000).path]
    archive = archive_of(*both, out=folder / "both.mscar")
    expected = [malloscope(*reader, *both).stdout for reader in READERS[1:5]]
    views.unlink()
    assert [malloscope(*reader, archive).stdout for reader in READERS[1:5]] == expected
    again = archive_of(archive, out=folder / "again.mscar")  # and an archive into another
    assert [malloscope(*reader, again).stdout for reader in READERS[1:5]] == expected


def test_a_recording_comes_out_again(recording, folder):
    archive = archive_of(recording, out=folder / "it.mscar")
    malloscope("dump", archive, "-o", folder / "out.mscope")
    assert report(folder / "out.mscope")["rows"] == report(recording)["rows"]


def test_what_cannot_be_archived_is_explained(recording, folder):
    archive = archive_of(recording, out=folder / "it.mscar")
    before = archive.read_bytes()
    for arguments, code in [
        ([recording, "-o", archive], FAILURE),
        ([recording, "-o", folder / "no" / "where.mscar"], MISSING),
        ([folder / "nothing.mscope"], MISSING),
        ([recording, recording], USAGE),
        ([archive], USAGE),
        ([PROGRAMS / "views.c", "-o", folder / "x.mscar"], DAMAGED),
    ]:
        result = malloscope("archive", *arguments, expect=code).stderr.decode()
        assert result.startswith("malloscope: ") and "\nhint: " in result, result
    assert archive.read_bytes() == before
    assert not [path for path in folder.iterdir() if path.name.startswith(("x.mscar", "nothing"))]
    malloscope("archive", recording, "-o", archive, "-f")


@pytest.mark.parametrize("reader", READERS, ids=" ".join)
def test_damaged_archives_do_no_harm(recording, folder, reader):
    archive = archive_of(recording, out=folder / "it.mscar")
    whole = archive.read_bytes()
    bad = folder / "bad.mscar"
    chance = random.Random(" ".join(reader))
    for attempt in range(12):
        damaged = bytearray(whole)
        if attempt % 2:
            del damaged[chance.randrange(len(damaged)) :]
        else:
            damaged[chance.randrange(16, len(damaged))] ^= 1 << chance.randrange(8)
        bad.write_bytes(damaged)
        result = malloscope(*reader, bad, expect=None)
        assert result.returncode in (0, DAMAGED), result.stderr
        if attempt % 2:
            assert result.returncode == DAMAGED and b"hint: " in result.stderr, result.stderr


# Names that are kept


def cache_files(cache):
    return sorted(cache.glob("malloscope/*")) if cache.exists() else []


def test_names_are_kept_and_found_again(recording, folder):
    cache = folder / "cache"
    environment = {"XDG_CACHE_HOME": str(cache)}
    first = malloscope("report", recording, "--json", "-n", "0", env=environment).stdout
    assert cache_files(cache)
    assert malloscope("report", recording, "--json", "-n", "0", env=environment).stdout == first
    assert malloscope("report", recording, "--json", "-n", "0", "--no-cache", env=environment).stdout == first


def test_nothing_is_kept_if_that_is_not_wanted(recording, folder):
    cache = folder / "cache"
    malloscope("report", recording, "--no-cache", env={"XDG_CACHE_HOME": str(cache)})
    malloscope("tree", recording, env={"XDG_CACHE_HOME": str(cache), "MALLOSCOPE_NO_CACHE": "1"})
    assert not cache_files(cache)
    malloscope("tree", recording, env={"XDG_CACHE_HOME": str(cache), "MALLOSCOPE_NO_CACHE": "0"})
    assert cache_files(cache)


def test_a_cache_that_cannot_be_used_is_no_harm(recording, folder):
    expected = malloscope("report", recording).stdout
    (folder / "file").write_text("not a folder")
    for place in (folder / "file", "/proc", "/dev/null/x"):
        result = malloscope("report", recording, env={"XDG_CACHE_HOME": str(place)})
        assert result.stdout == expected and not result.stderr
    cache = folder / "cache"
    malloscope("report", recording, env={"XDG_CACHE_HOME": str(cache)})
    for path in cache_files(cache):
        path.write_bytes(path.read_bytes()[:-100])
    result = malloscope("report", recording, env={"XDG_CACHE_HOME": str(cache)})
    assert result.stdout == expected and not result.stderr


def test_a_rebuilt_program_is_not_shown_with_kept_names(views, record, folder):
    environment = {"XDG_CACHE_HOME": str(folder / "cache")}
    malloscope("report", record(views, 100000), env=environment)
    views.unlink()
    harness.run(["gcc", "-O1", "-g", PROGRAMS / "hello.c", "-o", views])
    recording = record(views)
    text = malloscope("report", recording, "--json", "-n", "0", env=environment).stdout
    assert b"hello.c" in text and b"views.c" not in text
