"""Libraries that take each other's place in memory are told apart, also by a forked child and in every format."""

import gzip
import json
import shutil

import pytest

import harness
from harness import PROGRAMS, malloscope, report
from test_formats import google_pprof

NAMES = ["keep_a", "keep_b", "keep_c", "keep_d"]
PARENT = {"keep_a": 1000, "keep_b": 2000, "keep_d": 4000}
CHILD = {"keep_a": 1000, "keep_b": 2000, "keep_c": 3000}


@pytest.fixture(scope="module", params=["exact", "1"])
def recordings(build, session_folder, request):
    """The program, and the recordings of parent and child."""
    place = session_folder / f"places-{request.param}"
    place.mkdir()
    program = build("library_places.c", "-O1", "-ldl")
    libraries = [place / f"lib{name}.so" for name in NAMES]
    for name, library in zip(NAMES, libraries):
        source = PROGRAMS / "library_keep.c"
        harness.run(["gcc", "-shared", "-fPIC", "-O1", "-g", f"-DNAME={name}", source, "-o", library])
    result = harness.run(harness.record_command(place / "%n.mscope", [program, *libraries], request.param))
    assert len(set(result.stdout.split())) == 1, "the libraries were not at one place: there is nothing to tell apart"
    both = sorted(place.glob("*.mscope"), key=lambda path: malloscope("info", path).stdout.count(b"libkeep_c"))
    return program, *both


def kept(values):
    return {name: value for name, value in values.items() if name in NAMES and value}


def test_names_in_parent_and_child(recordings):
    _, *paths = recordings
    for path, expected in zip(paths, (PARENT, CHILD)):
        whole = report(path)
        assert kept({row["function"]: row["live_bytes"] for row in whole["rows"]}) == expected
        for row in whole["rows"]:
            assert row["function"] not in NAMES or row["module"].endswith(f"lib{row['function']}.so")
        assert whole["totals"]["drops"] == 0


def test_collapsed(recordings):
    _, parent, _ = recordings
    lines = malloscope("export", parent, "--format", "collapsed").stdout.decode().splitlines()
    leaves = {line.rsplit(" ", 1)[0].split(";")[-1]: int(line.rsplit(" ", 1)[1]) for line in lines
              if not line.startswith("#")}
    assert kept(leaves) == PARENT
    assert all(";library_keep;" in line for line in lines if "keep_" in line.split(";")[-1])


def test_both_at_once(recordings, folder):
    """Recordings that are added up number their modules differently."""
    _, parent, child = recordings
    rows = report(parent, child)["rows"]
    both = {name: PARENT.get(name, 0) + CHILD.get(name, 0) for name in NAMES}
    assert kept({row["function"]: row["live_bytes"] for row in rows}) == both


@pytest.mark.parametrize("form", ["heap", "heap_v2"])
def test_google_pprof_looks_each_up_in_its_file(recordings, folder, form):
    program, parent, _ = recordings
    profile = folder / form
    profile.write_bytes(malloscope("export", parent, "--format", form).stdout)
    _, flat = google_pprof(program, profile, "--inuse_space")
    assert kept(flat) == PARENT


def test_pprof_places_each_in_its_mapping(recordings):
    _, parent, _ = recordings
    if not shutil.which("protoc"):
        pytest.skip("no protoc here (Debian: apt install protobuf-compiler)")
    whole = json.loads(malloscope("export", parent, "--format", "json", "-o", "-").stdout)
    data = gzip.decompress(malloscope("export", parent, "--format", "pprof").stdout)
    schema = harness.ROOT / "src" / "format" / "profile.proto"
    command = ["protoc", "--decode=pprof.Profile", f"--proto_path={schema.parent}", schema.name]
    text = harness.run(command, input=data).stdout.decode()
    for name in PARENT:
        address = {frame["address"] for frame in whole["frames"] if frame["function"] == name}
        assert len(address) == 1
        # The same address, in another mapping each.
        assert text.count(f"address: {int(address.pop(), 16) - 1}\n") == len(PARENT)
