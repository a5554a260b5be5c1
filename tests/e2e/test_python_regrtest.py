"""CPython's own regression tests end under the recorder as they end without it, case by case.

Here they are run on the oldest and the newest interpreter that carry them, and of those that take long some.
`./dev test-cpython` runs all of them on all interpreters.
"""

import pytest

from cpython_suite import compare, is_there
from pythons import ALL, SUPPORTED

CARRIED = sorted((name for name in SUPPORTED if is_there(SUPPORTED[name])), key=lambda name: ALL[name][1])

WHOLE = ("test_dict", "test_list", "test_gc", "test_json", "test_threading")
IN_PART = ("test_subprocess", "test_multiprocessing_fork", "test_multiprocessing_spawn")
PARTS = (
    "POSIXProcessTestCase", "RunFuncTestCase",
    "WithProcessesTestQueue", "WithProcessesTestSharedMemory", "WithManagerTestContainers", "TestSimpleQueue",
)  # fmt: skip


@pytest.mark.parametrize("name", dict.fromkeys(CARRIED[:1] + CARRIED[-1:]))
def test_cases_end_as_without_the_recorder(name):
    only = (*(f"test.{module}.*" for module in WHOLE), *PARTS)
    plain, different = compare(SUPPORTED[name], WHOLE + IN_PART, only=only)
    assert different == []
    for module in WHOLE + IN_PART:
        completed = [case for case in plain if f".{module}." in case and plain[case] == "completed"]
        assert len(completed) >= 20, module
