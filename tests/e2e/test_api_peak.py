"""The figures of the peak stay right when something is learned of a block afterwards."""

import pytest

import harness
from harness import PROGRAMS, ROOT


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    target = tmp_path_factory.mktemp("peak") / "api_peak"
    harness.run(["gcc", "-g", "-O1", f"-I{ROOT}/include", PROGRAMS / "api_peak.c", "-o", target])
    return target


def recorded(program, tmp_path, *arguments):
    path = tmp_path / "x.mscope"
    harness.malloscope("run", "-q", "--exact", "-o", path, program, *arguments)
    return harness.report(path, "--by", "type"), harness.report(path)


def test_typed_after_the_peak(program, tmp_path):
    by_type, by_site = recorded(program, tmp_path, "typed")
    assert by_type["totals"]["peak_bytes"] == 11000
    at_peak = {row["type"]: row["at_peak_bytes"] for row in by_type["rows"]}
    assert at_peak == {None: 9000, "Late": 1000, "Later": 1000} or at_peak == {
        "[unknown]": 9000, "Late": 1000, "Later": 1000}
    assert sum(row["at_peak_bytes"] for row in by_site["rows"]) == 11000


def test_backing_is_not_in_the_peak(program, tmp_path):
    _, by_site = recorded(program, tmp_path)
    assert by_site["totals"]["peak_bytes"] == 1000
    assert by_site["totals"]["live_bytes"] == 500
    assert by_site["totals"]["total_bytes"] == 1000
    assert sum(row["at_peak_bytes"] for row in by_site["rows"]) == 1000
    assert max(row["own_peak_at_most"] for row in by_site["rows"]) == 1000
