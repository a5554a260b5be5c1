"""A program that commands its recorder: every call in every state, from many threads, and with wrong options."""

import pytest

import api
import harness


@pytest.fixture
def program(build):
    return build("api_life.c", "-O1", api.INCLUDE, *api.LINKED)


@pytest.fixture
def record_itself(program, folder):
    """The recording that the program has made by itself; its own checks have passed."""

    def run(what):
        path = folder / "own.mscope"
        harness.run([program, what, path], cwd=folder)
        assert [found.name for found in folder.iterdir()] == ["own.mscope"]
        return path

    return run


def sizes(path):
    """{size: (ever allocated, live)} of what `take` has allocated, for sizes that occur once."""
    return {
        stack["total_bytes"]: (stack["total_objects"], stack["live_objects"])
        for stack in api.stacks(path)
        if "take" in api.names(stack)
    }


def test_every_call_in_every_state(record_itself):
    path = record_itself("states")
    # 10001: before the start, 10004: while stopped, 10006: after the end.
    assert sizes(path) == {10002: (1, 0), 10003: (1, 1), 10005: (1, 1)}
    heap = api.heaps(path)["early"]
    assert heap["total_objects"] == heap["frees"] == 4, "reports in other states were recorded"
    assert harness.report(path)["health"]["complete"] == 1


@pytest.mark.parametrize("what", ["end_initialized", "end_stopped"])
def test_an_end_without_anything_recorded(record_itself, what):
    assert harness.stats(record_itself(what))["totals"]["total_objects"] == 0


def test_init_can_be_tried_again(record_itself):
    assert sizes(record_itself("again")) == {10001: (1, 1)}


def test_options_that_make_no_sense_and_of_other_versions(record_itself):
    assert sizes(record_itself("options")) == {10001: (1, 1)}


def test_options_of_an_earlier_header(record_itself):
    assert harness.stats(record_itself("short"))["totals"]["rate"] == 512 << 10


def test_threads_that_were_there_before(record_itself):
    path = record_itself("late")
    assert api.by(path, "scope")["worker"]["total_objects"] == 8 * 100


def test_of_many_threads_that_command_one_succeeds(record_itself):
    totals = harness.stats(record_itself("race"))["totals"]
    assert totals["total_objects"] <= 8 * 2000
    assert totals["drops"] == 0


@pytest.mark.parametrize("what", ["load_exact", "load_sampled"])
def test_start_and_stop_while_others_allocate(record_itself, what):
    path = record_itself(what)
    totals = harness.stats(path)["totals"]
    assert totals["drops"] == 0
    # Everything that the threads have allocated they have freed, whether that was recorded or not.
    churned = [stack for stack in api.stacks(path) if "churn" in api.names(stack)]
    assert sum(stack["total_objects"] for stack in churned) > 1000
    assert sum(stack["live_bytes"] for stack in churned) == 0


def test_shutdown_while_others_allocate(record_itself):
    path = record_itself("shutdown_load")
    health = harness.report(path)["health"]
    assert health["complete"] == 1
    churned = [stack for stack in api.stacks(path) if "churn" in api.names(stack)]
    # Of each of the eight threads up to 64 blocks were live when it ended.
    assert 0 < sum(stack["live_objects"] for stack in churned) <= 8 * 64


def test_under_run_it_is_active_from_the_beginning(build, record):
    program = build("api_life.c", "-O1", api.INCLUDE)
    assert sizes(record(program, "run")) == {10002: (1, 1)}


def test_linked_and_under_run(program, record):
    """The library is there twice, by its link and by the preload: one of them records."""
    assert sizes(record(program, "run")) == {10002: (1, 1)}
