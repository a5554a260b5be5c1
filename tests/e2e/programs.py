"""Test programs are compiled once for all tests and all runs.

A program is kept in the folder test-programs of the build folder, below a key: the hash of the command that makes it
and of every file that the command reads. Tests get copies, so that they may change, move or strip what they have.
"""

import fcntl
import functools
import hashlib
import os
import shutil
import subprocess
from pathlib import Path

import pytest

import harness

KEPT = harness.BUILD / "test-programs"
HEADERS = sorted([*harness.PROGRAMS.glob("*.h"), *(harness.ROOT / "include").rglob("*.h")])


@functools.cache
def version_of(compiler):
    return subprocess.run([compiler, "--version"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout


@functools.cache
def contents_of(path):
    return hashlib.sha256(Path(path).read_bytes()).digest()


def compiler_command(source, flags, machine=None):
    """The command that compiles a program, without the name of what it makes. Libraries stand behind the source."""
    if source.suffix == ".rs":
        assert not machine, "Rust programs are compiled for this machine alone"
        rustc = shutil.which("rustc")
        if not rustc:
            pytest.skip("no rustc here (Debian: apt install rustc)")
        return [rustc, "--edition", "2021", "-g", *flags, source]
    compiler = (f"{machine}-" if machine else "") + ("g++" if source.suffix == ".cpp" else "gcc")
    libraries = [flag for flag in flags if flag.startswith("-l")]
    others = [flag for flag in flags if not flag.startswith("-l")]
    if not any(flag.startswith("-O") for flag in flags):
        others.append("-O1")
    return [compiler, "-g", "-Wall", "-Wextra", "-pthread", *others, source, *libraries]


def key_of(command):
    """The hash of a command and of what it reads: files that it names, headers, our library where it is linked."""
    words = [str(word) for word in command]
    read = [*HEADERS, *(word for word in words if os.path.isfile(word))]
    if any("malloscope" in word for word in words):
        read += [path for path in sorted(harness.BUILD.glob("libmalloscope.*")) if path.is_file()]
    whole = hashlib.sha256(version_of(words[0]))
    for word in words:
        whole.update(word.encode() + b"\0")
    for path in read:
        whole.update(contents_of(path))
    return whole.hexdigest()[:24]


def kept(key, name, make):
    """The file `name` below `key`; if it is not there, `make` is called with the path where it is to be made. Only one
    process makes it."""
    place = KEPT / f"{key}-{name}"
    if not place.exists():
        locks = KEPT / "locks"
        locks.mkdir(parents=True, exist_ok=True)
        with open(locks / place.name, "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not place.exists():
                making = KEPT / f"{place.name}.part"
                shutil.rmtree(making, ignore_errors=True)
                making.mkdir()
                make(making / name)
                making.rename(place)
    os.utime(place)  # the runner removes what nobody has used for long
    return place / name


def copy_of(command, path):
    """Compiles to `path`, or copies what was compiled before."""

    def make(target):
        harness.run([*command, "-o", target], patience=harness.COMPILER_PATIENCE)

    made = kept(key_of(command), path.name, make)
    shutil.copy2(made, path)
