"""completions: what real shells would complete is compared with the tables of options of the commands."""

import json
import os
import shutil
import tempfile
import time
from pathlib import Path

import pytest

import attaching
import harness
import shells
from harness import malloscope

TABLE = {command["name"]: command for command in json.loads(malloscope("help", "--json").stdout)["commands"]}


@pytest.fixture(scope="module", params=sorted(shells.SHELLS))
def shell(request, session_folder):
    if not shutil.which(request.param):
        pytest.skip(f"no {request.param} here (Debian: apt install {request.param})")
    script = malloscope("completions", request.param).stdout
    running = shells.SHELLS[request.param](Path(tempfile.mkdtemp(dir=session_folder)), script)
    yield running
    running.close()


@pytest.fixture
def place(folder):
    """A folder with recordings and other things."""
    for name in ("one.mscope", "two.mscar", "notes.txt"):
        (folder / name).touch()
    (folder / "more").mkdir()
    return folder


def files(names):
    """Without what else is recorded on this machine, and the marks of folders."""
    return {name.rstrip("/") for name in names if not name.isdigit()}


def test_commands_are_completed(shell, place):
    assert set(TABLE) <= shell.complete("malloscope ", place)
    assert shell.complete("malloscope rep", place) == {"report"}
    assert set(TABLE) <= shell.complete("malloscope help ", place)
    assert shell.complete("malloscope completions ", place) == {"bash", "zsh", "fish"}


@pytest.mark.parametrize("command", TABLE)
def test_options_are_completed(shell, command, place):
    found = {name.rstrip("=") for name in shell.complete(f"malloscope {command} --", place)}
    assert found == {f"--{option['name']}" for option in TABLE[command]["options"]}


CHOICES = [(command, option) for command in TABLE for option in TABLE[command]["options"] if "choices" in option]


@pytest.mark.parametrize("command, option", CHOICES, ids=[f"{c}-{o['name']}" for c, o in CHOICES])
def test_values_are_completed(shell, command, option, place):
    wanted = set(option["choices"])
    assert shell.complete(f"malloscope {command} --{option['name']} ", place) == wanted
    assert shell.complete(f"malloscope {command} --{option['name']}=", place) == wanted
    if option["letter"]:
        assert shell.complete(f"malloscope {command} -{option['letter']} ", place) == wanted
    first = option["choices"][0]
    assert first in shell.complete(f"malloscope {command} --{option['name']} {first[:2]}", place)


def test_recordings_are_completed(shell, place):
    for line in ("report ", "report --by site -v ", "export --format=pprof ", "diff one.mscope ", "timeline "):
        assert files(shell.complete(f"malloscope {line}", place)) == {"one.mscope", "two.mscar", "more"}, line
    assert files(shell.complete("malloscope tree o", place)) == {"one.mscope"}


def test_files_and_folders_are_completed(shell, place):
    assert "notes.txt" in shell.complete("malloscope flame one.mscope -o ", place)
    assert "notes.txt" in shell.complete("malloscope flame one.mscope -fo ", place)
    assert files(shell.complete("malloscope report --sysroot ", place)) >= {"more"}
    assert "notes.txt" not in shell.complete("malloscope report --sysroot ", place)
    assert "USR2" in shell.complete("malloscope run --signal ", place)


def test_processes_are_completed(shell, place, build, start, folder):
    path = folder / "more" / "running.mscope"
    recorder = start(harness.record_command(path, [build("top_growing.c")], "exact"))
    pid = str(harness.child_of(recorder.pid, "top_growing"))
    deadline = time.monotonic() + shells.PATIENCE
    while pid not in malloscope("completions", "--processes").stdout.decode():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert pid in shell.complete("malloscope report ", place)
    assert pid in shell.complete(f"malloscope top {pid[:2]}", place)
    # Anything can be attached to, but only what is recorded can be shown.
    assert str(os.getpid()) in shell.complete("malloscope attach ", place)
    assert str(os.getpid()) not in shell.complete("malloscope report ", place)


def test_the_line_of_a_program_is_its_own(shell, place):
    assert "python3" in shell.complete("malloscope run pytho", place)
    assert "python3" in shell.complete("malloscope run --rate 64K -o notes.txt -- pytho", place)
    found = shell.complete("malloscope run --rate 64K cat --", place)
    assert "--leaks-fail" not in found
    assert "notes.txt" in shell.complete("malloscope run --exact cat no", place)


def test_what_is_no_shell_is_refused():
    assert "bash, zsh and fish" in malloscope("completions", "tcsh", expect=2).stderr.decode()
    assert "bash, zsh and fish" in malloscope("completions", expect=2).stderr.decode()


@pytest.mark.probes
def test_a_process_that_is_attached_to_is_listed(start, folder):
    """Although the recording is written by the tool, not by that process."""
    if attaching.why_not():
        pytest.skip(attaching.why_not())
    target = start(["sleep", "1000"])
    recorder = start([harness.MALLOSCOPE, "attach", "-q", "-o", folder / "a.mscope", target.pid])
    deadline = time.monotonic() + shells.PATIENCE
    processes = ["completions", "--processes"]
    while f"{target.pid}\tsleep" not in (listed := malloscope(*processes).stdout.decode().splitlines()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert not any(line.startswith(f"{recorder.pid}\t") for line in listed)
