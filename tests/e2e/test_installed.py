"""The command where it is installed: it finds its parts, wherever the whole is put, and says so if one is missing."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

import harness
from harness import BUILD

COMMANDS = "libexec/malloscope-commands"


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A folder with bin, libexec and lib."""
    root = tmp_path_factory.mktemp("installed")
    subprocess.run(["meson", "install", "--quiet", "--no-rebuild", "-C", BUILD, "--destdir", root], check=True,
                   stdout=subprocess.DEVNULL)  # fmt: skip
    (command,) = root.rglob("bin/malloscope")
    return root, command.parent.parent


@pytest.fixture
def moved(installed, folder):
    return shutil.copytree(installed[1], folder / "elsewhere", symlinks=True)


@pytest.fixture
def incomplete(installed, moved):
    root, prefix = installed
    if (Path("/") / prefix.relative_to(root) / COMMANDS).exists():
        pytest.skip("malloscope is installed on this machine, and serves as well")
    os.remove(moved / COMMANDS)
    return moved


def test_every_part_is_found_from_a_link(moved, folder):
    (folder / "link").symlink_to(moved / "bin" / "malloscope")
    harness.run([folder / "link", "run", "-q", "-o", folder / "a.mscope", "/bin/true"])
    told = harness.run([folder / "link", "info", folder / "a.mscope"]).stdout.decode()
    assert "/bin/true" in told


def with_gate(prefix, folder):
    return [prefix / "bin" / "malloscope", "run", "--exact", "-o", folder / "a.mscope", "--max-allocs", "0",
            "--", "/bin/ls", "/"]


def test_gates_are_judged(moved, folder):
    result = harness.run(with_gate(moved, folder), expect=6)
    assert b"--max-allocs" in result.stderr and result.stdout


def test_where_gates_cannot_be_judged_the_program_is_not_started(incomplete, folder):
    result = harness.run(with_gate(incomplete, folder), expect=3)
    assert b"cannot find malloscope-commands" in result.stderr and b"hint: " in result.stderr
    assert result.stdout == b"" and not (folder / "a.mscope").exists()


def test_programs_are_recorded_without_the_other_commands(incomplete, folder):
    result = harness.run([incomplete / "bin" / "malloscope", "run", "-o", folder / "a.mscope", "/bin/true"])
    assert b"malloscope: recorded " in result.stderr
    result = harness.run([incomplete / "bin" / "malloscope", "report", folder / "a.mscope"], expect=3)
    assert b"cannot find malloscope-commands" in result.stderr and b"hint: " in result.stderr
    harness.malloscope("report", folder / "a.mscope")


def test_the_version_without_the_other_half(incomplete):
    result = harness.run([incomplete / "bin" / "malloscope", "--version"])
    assert result.stdout == harness.run([BUILD / "malloscope", "--version"]).stdout != b""
