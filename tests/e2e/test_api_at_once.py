"""Reports that come in the middle of others: from a second thread, a signal handler, a forked child."""

import platform

import pytest

import api
import harness

STEPS = pytest.mark.skipif(platform.machine() != "x86_64", reason="needs the processor's single steps")


@pytest.fixture
def program(build):
    return build("api_at_once.c", "-O1", api.INCLUDE, "-pthread")


@pytest.fixture
def linked(build):
    return build("api_at_once.c", "-O1", api.INCLUDE, "-pthread", *api.LINKED)


def test_a_free_that_two_threads_report_counts_once(program, record):
    for _ in range(3):
        found = record(program, "freed_twice").ledger
        assert found["frees"] == 100_000 and found["unknown"] == 0 and 0 <= found["live"] < 10_000


@STEPS
def test_a_handler_may_reset_a_heap_that_gets_its_first_block(program, record):
    found = record(program, "reset_in_handler").ledger
    assert found["steps"] > 100 and found["live"] < 10_000


@STEPS
def test_a_handler_may_enter_a_scope_while_its_thread_ends(program, record):
    assert record(program, "end_in_handler").ledger["steps"] > 100


def test_a_heap_may_be_registered_while_recording_begins(linked, folder):
    for i in range(10):
        assert harness.run([linked, "register_meanwhile", folder / f"{i}.mscope"]).stdout.strip() == b'{"taken": 1000}'


def test_a_child_is_stopped_if_its_parent_was(linked, folder):
    """1, 2, 3: INITIALIZED, ACTIVE, STOPPED."""
    found = harness.run([linked, "fork_in_states", folder / "x.mscope"]).stdout.strip()
    assert found == b'{"initialized": 1, "active": 2, "stopped": 3}'


def test_a_child_lists_heaps_that_its_parent_was_listing(program, record):
    assert record(program, "fork_while_enumerating").ledger["seen"] == 1


def test_what_began_before_a_stop_ends_where_it_is_said_to(program, record):
    scopes = {name: row["total_bytes"] for name, row in api.by(record(program, "stop_in_scope"), "scope").items()}
    assert scopes["outer"] == 22222 and "inner" not in scopes
    assert 33333 <= scopes[None] < 44444
