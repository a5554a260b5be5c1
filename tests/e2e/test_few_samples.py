"""Figures that rest on few samples say so wherever they are shown, and every estimate has its error beside it."""

import json
import re

import pytest

import harness
from harness import malloscope


@pytest.fixture(scope="module")
def program(build):
    return build("peak_shapes.c", "-O1")


def recorded(program, folder, rate, shape="growth", seed=1):
    path = folder / f"{shape}.{rate}.{seed}.mscope"
    harness.run(harness.record_command(path, [program, shape], rate), env={"MALLOSCOPE_SEED": str(seed)})
    return path


@pytest.fixture(scope="module")
def few(program, session_folder):
    return recorded(program, session_folder, 16384)


@pytest.fixture(scope="module")
def many(program, session_folder):
    return recorded(program, session_folder, 256)


@pytest.fixture(scope="module")
def exact(program, session_folder):
    return recorded(program, session_folder, "exact")


def text(*command):
    return malloscope(*command).stdout.decode()


def test_a_comparison_says_which_side_rests_on_few_samples(few, many, exact):
    said = re.sub(r"\s+", " ", text("diff", few, many))
    assert "note: the figures of BASE rest on only" in said and "of NEW rest" not in said
    assert "rest on only" not in text("diff", many, exact)
    found = json.loads(text("diff", "--json", few, many))
    assert found["base"]["few_samples"] and found["base"]["few_live_samples"] and found["base"]["samples"] < 100
    assert not found["new"]["few_samples"] and found["new"]["samples"] > 100
    assert not json.loads(text("diff", "--json", exact, many))["base"]["few_samples"]
    assert found["totals"]["base_error"] > found["totals"]["new_error"] > 0


@pytest.mark.parametrize("command", ["report", "tree", "leaks"])
def test_a_filter_that_leaves_few_samples_says_so(many, command):
    said = re.sub(r"\s+", " ", text(command, many, "--filter", "snprintf|printf|fwrite|_IO"))
    assert "note: the figures of what matches rest on only" in said
    assert "what matches rest" not in text(command, many, "--filter", "allocate")


def test_json_says_it(few, many, exact):
    assert harness.stats(few)["totals"]["few_samples"]
    assert not harness.stats(many)["totals"]["few_samples"] and not harness.stats(exact)["totals"]["few_samples"]
    matched = json.loads(text("report", "--json", many, "--filter", "fwrite|_IO"))["matched"]
    assert matched["few_samples"] and matched["samples"] < 100
    assert "matched" not in json.loads(text("report", "--json", many))


def test_the_rate_that_is_proposed_is_finer(program, few, session_folder):
    """Also where few samples stand for much: large blocks are few samples at every rate."""
    said = re.sub(r"\s+", " ", text("report", few))
    assert re.search(r"'--(exact|rate \d+[KM]?)' would give a finer picture", said)
    for rate in ("4K", "64K", "1M"):
        path = session_folder / f"large.{rate}.mscope"
        code = "b = [bytes(50_000_000) for _ in range(8)]"
        malloscope("run", "-q", "-f", "--rate", rate, "-o", path, "/usr/bin/python3", "-S", "-c", code)
        said = re.sub(r"\s+", " ", text("report", path))
        proposed = re.search(r"'--rate (\d+)([KM])' would give a finer picture", said)
        if proposed:
            size = int(proposed[1]) * {"K": 2**10, "M": 2**20}[proposed[2]]
            assert size < {"4K": 4096, "64K": 65536, "1M": 2**20}[rate], said


def test_every_column_has_its_error(few, exact):
    lines = text("report", few).splitlines()
    (titles,) = [line for line in lines if re.match(r" *LIVE", line)]
    assert re.match(r" *LIVE +(±|\+-) +PEAK +(±|\+-) +TOTAL +(±|\+-) +COUNT +(±|\+-) +TEMP", titles), titles
    (row,) = [line for line in lines if "allocate" in line and "MiB" not in line.split("allocate")[0][-3:]][:1]
    assert len(re.findall(r"(?:±|\+-)\d", row)) == 4, row
    assert re.search(r"peak [\d.]+ KiB (±|\+-) [\d.]+ KiB", text("report", few))
    assert re.search(r"[\d,]+ (±|\+-) [\d,]+ allocations", text("report", few))
    assert "±" not in text("report", exact) and "+-" not in text("report", exact)
    assert re.search(r"100\.0% +[\d.]+ KiB +(±|\+-)\d+%", text("tree", few))


@pytest.mark.parametrize("name", ["pprof", "heap", "heap_v2", "speedscope", "chrome", "collapsed", "json", "csv"])
def test_every_export_tells_what_the_recorder_takes(exact, folder, name):
    """In the recorder's own words; the number is the one of `stats`."""
    taken = str(harness.stats(exact)["totals"]["recorder_bytes"])
    path = folder / name
    malloscope("export", exact, "--format", name, "-o", path)
    found = path.read_bytes()
    if name == "pprof":
        import gzip
        found = gzip.decompress(found)
    if name == "chrome":  # in hexadecimal, as Chrome has its sizes
        assert f'"{int(taken):x}"'.encode() in found
    else:
        assert taken.encode() in found
