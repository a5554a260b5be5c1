"""The API on an emulated aarch64: the same programs, with the same expectations."""

import pytest

import api
import test_api_heaps
import test_api_scopes
from test_aarch64 import cross, record  # noqa: F401 (fixtures)


@pytest.mark.parametrize(
    "case", ["shared", "apart", "across", "on_malloc", "resize", "many", "same_address", "enumerate"]
)
def test_heaps(cross, record, case):  # noqa: F811
    recording = record(cross("api_heaps.c", "-O1", api.INCLUDE), case)
    if case == "on_malloc":
        heaps = api.heaps(recording)
        assert heaps["malloc"]["live_bytes"] < 100_000 and heaps["on malloc"]["live_bytes"] == 140_000
    else:
        test_api_heaps.assert_exact(recording)


def test_a_sampled_heap(cross, record):  # noqa: F811
    recording = record(cross("api_heaps.c", "-O1", api.INCLUDE), "as_malloc", rate=4096)
    heap, truth = api.heaps(recording)["as malloc"], recording.ledger["as malloc"]
    for figure, error, key in test_api_heaps.ESTIMATES:
        assert abs(test_api_heaps.sigmas(heap, figure, error, truth[key])) < 4.5


def test_wrong_calls(cross, record):  # noqa: F811
    test_api_heaps.test_wrong_calls_are_refused_and_change_nothing(cross("api_heaps.c", "-O1", api.INCLUDE), record)


SCOPES = [
    test_api_scopes.test_nesting_to_128_and_beyond,
    test_api_scopes.test_unbalanced_ends,
    test_api_scopes.test_a_scope_stands_inside_the_function_that_entered_it,
    test_api_scopes.test_a_coroutine_is_inside_the_scopes_of_who_resumed_it,
    test_api_scopes.test_longjmp,
    test_api_scopes.test_a_thread_may_end_inside_its_scopes,
    test_api_scopes.test_start_in_the_middle_of_a_scope,
    test_api_scopes.test_what_is_ignored,
    test_api_scopes.test_types,
]


@pytest.mark.parametrize("level", ["-O0", "-O2"])
@pytest.mark.parametrize("expectation", SCOPES, ids=lambda function: function.__name__.removeprefix("test_"))
def test_scopes(cross, record, level, expectation):  # noqa: F811
    expectation(cross("api_scopes.c", level, api.INCLUDE), record)
