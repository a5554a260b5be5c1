"""What the program wants ignored stays out of every figure, also that of unknown frees; and what it has told of a block
stays with the block when it is resized."""

import json
import subprocess

import pytest

import api
import harness


@pytest.fixture(scope="module", params=["libc", "jemalloc"])
def recording(request, build, tmp_path_factory):
    linked = ["-ljemalloc"] if request.param == "jemalloc" else []
    empty = ["gcc", "-x", "c", "-o", "/dev/null", "-", *linked]
    if linked and subprocess.run(empty, input=b"int main(void) { return 0; }", stderr=subprocess.DEVNULL).returncode:
        pytest.skip("libjemalloc.so is not installed (Debian: libjemalloc-dev)")
    program = build("api_ignored.c", "-O1", api.INCLUDE, *(["-Wl,--no-as-needed", *linked] if linked else []))
    path = tmp_path_factory.mktemp("ignored") / "x.mscope"
    result = harness.malloscope("run", "-q", "--exact", "-o", path, program)
    return json.loads(result.stdout), path


def test_frees_of_ignored_blocks_are_not_unknown(recording):
    told, path = recording
    assert told == {"known": 50, "unknown": 1}
    assert harness.stats(path)["totals"]["unknown_frees"] == 1, "the one that was freed twice"


def test_a_resized_block_keeps_its_type_and_its_count(recording):
    _, path = recording
    rows = [row for row in harness.report(path)["rows"] if row["heap"] == "pool" and row["live_bytes"]]
    assert [(row["type"], row["live_bytes"], row["live_objects"]) for row in rows] == [("struct seven", 32, 7)]
