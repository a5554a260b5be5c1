"""Every system call of the recorder in a Python program is made to fail in turn. The program never notices, its
recordings can be read, and what is missing in them is counted.

MALLOSCOPE_ALL_FAULTS=1 tries all calls, otherwise the first from some places of the code."""

import errno
import sys

import pytest

import faults
import harness
from harness import PROGRAMS

# As always, so that each run makes the same calls; nothing is looked for in folders of the user's.
COMMAND = [sys.executable, "-I", "-S", "-B", PROGRAMS / "python_calls.py"]
ALWAYS = {"PYTHONHASHSEED": "0", "MALLOSCOPE_SEED": "5"}
WAYS = {
    "exact": {**ALWAYS, "MALLOSCOPE_RATE": "1"},
    "objects": {**ALWAYS, "MALLOSCOPE_RATE": "4K", "MALLOSCOPE_PYTHON_OBJECTS": "1"},
}


def functions(path):
    return {row["function"] for row in harness.report(path, "--by", "function")["rows"]}


@pytest.mark.parametrize("way, how, error, step", [
    ("exact", "once", errno.EACCES, 3), ("exact", "from", errno.ENOMEM, 9), ("objects", "once", errno.ENOMEM, 5),
], ids=["exact-once", "exact-from", "objects-once"])  # fmt: skip
def test_no_failing_call_of_the_recorder_harms_a_python_program(build, folder, way, how, error, step):
    injector = faults.Injector(build)
    plain = harness.run(COMMAND, expect=3)
    result, calls = injector.run(COMMAND, folder / "0", WAYS[way])
    assert (result.returncode, result.stdout, result.stderr) == (3, plain.stdout, b"")
    expected = faults.totals_by_process(folder / "0", calls[0].pid)
    assert set(expected) == {"parent", "child"}
    assert "keep" in functions(folder / "0" / f"{calls[0].pid}.1.mscope")
    chosen = faults.selection(calls, step)
    places = {(call.name, call.place) for call in calls}
    print(f"{len(chosen)} runs, of {len(calls)} calls from {len(places)} places")
    for call in chosen:
        place = folder / str(call.number)
        result, made = injector.run(COMMAND, place, WAYS[way], call.number, how, error)
        what = f"call {call.number} {how}: {errno.errorcode[error]} in {[one for one in made if one.failed][:3]}"
        assert (result.returncode, result.stdout) == (3, plain.stdout), (what, result.stderr)
        found = faults.totals_by_process(place, made[0].pid, how == "from")
        faults.assert_said(result, made, found, what)
        if "parent" in found and "child" not in found:
            assert found["parent"]["drops_by_kind"]["child"] == 1, what
        for process, totals in found.items():
            # The interpreter itself allocates a little more or less from run to run.
            near = totals["total_objects"] == pytest.approx(expected[process]["total_objects"], rel=0.01)
            assert near or totals["drops"] or way != "exact", f"{what}: {process} lacks something, and says nothing"
        for path in place.iterdir():
            path.unlink()
