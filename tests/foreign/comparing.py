"""Runs the programs of a foreign suite without the recorder and with it, and compares how their cases end."""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Callable

import harness

READ_MOST = 40
ROOM_MOST = 6 << 30  # bytes for the recordings of one run: exact ones of many children can fill a machine's memory
# In memory where that is possible: some tests fork ten thousand times, and a disk takes its time to forget that.
MADE_IN = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
RECORDED = {"4K": ("--rate", "4K"), "exact": ("--exact",)}


def by_status(status):
    """What the status of a program says, in words."""
    if status < 0:
        return f"died of {signal.Signals(-status).name}"
    return "passed" if status == 0 else f"status {status}"


@dataclass
class Program:
    """One thing to run, with one or more cases in it."""

    name: str
    command: list
    folder: Path = None  # where it runs; a new one each time if it does not matter
    environment: dict = field(default_factory=dict)
    patience: int = 600
    # From its exit status and all that it printed to {case: how it ended}.
    outcomes: Callable = None
    results: str = None  # a file that it writes where it runs, which `outcomes` reads in place of what was printed

    def read(self, status, output):
        return self.outcomes(status, output) if self.outcomes else {self.name: by_status(status)}


@dataclass
class Run:
    outcomes: dict
    recordings: int = 0
    read: int = 0
    unborn: int = 0  # files of processes that were killed while they began to record
    unreadable: list = field(default_factory=list)


def end_session(leader):
    """The program with all that it has started, in whatever process groups."""
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if os.getsid(int(entry.name)) == leader:
                os.kill(int(entry.name), signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            continue


running = set()  # the leaders of the sessions


def end_all(number, frame):
    """For the signals that end us."""
    for leader in list(running):
        end_session(leader)
    os._exit(128 + number)


def room_taken(folder):
    """By the recordings that are there. Some may vanish meanwhile."""
    blocks = 0
    for recording in folder.glob("*.mscope"):
        try:
            blocks += recording.stat().st_blocks
        except FileNotFoundError:
            continue
    return 512 * blocks


def wait_for(process, patience, recordings):
    """Its status, or None if it takes too long or too much."""
    end = time.monotonic() + patience
    while time.monotonic() < end and room_taken(recordings) <= ROOM_MOST:
        try:
            return process.wait(2)
        except subprocess.TimeoutExpired:
            continue
    return None


def execute(command, folder, environment, patience, recordings):
    """Status and output; the status is None for what did not come to an end."""
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            [str(part) for part in command],
            cwd=folder,
            env=harness.clean_environment(environment),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        running.add(process.pid)
        try:
            status = wait_for(process, patience, recordings)
        finally:
            end_session(process.pid)
            process.wait()
            running.discard(process.pid)
        output.seek(0)
        return status, output.read().decode(errors="replace")


def read_recordings(folder):
    """How many recordings there are, how many were read, how many were never begun, and what is wrong with others that
    could not be read. Of a program that forks thousands of times READ_MOST are read, evenly spread."""
    found = sorted(folder.glob("*.mscope"), key=lambda recording: recording.stat().st_mtime_ns)
    chosen = found[:: -(-len(found) // READ_MOST) or 1]
    unborn, unreadable = 0, []
    for recording in chosen:
        info = harness.malloscope("info", recording, expect=None)
        if info.returncode and not recording.read_bytes()[:8].strip(b"\0"):
            unborn += 1
        elif info.returncode:
            unreadable.append(f"{recording.name}: {info.stderr.decode(errors='replace').strip()}")
    return len(found), len(chosen), unborn, unreadable


def run_program(program, mode):
    """`mode` is "plain" or one of RECORDED."""
    folder = Path(tempfile.mkdtemp(prefix="malloscope-foreign-", dir=MADE_IN))
    try:
        inside = folder / "inside"
        inside.mkdir()
        command = program.command
        if mode != "plain":
            options = ("-q", *RECORDED[mode], "-o", folder / "%e.%p.%n.mscope")
            command = [harness.MALLOSCOPE, "run", *options, "--", *command]
        environment = {"TMPDIR": str(inside), **program.environment}
        status, output = execute(command, program.folder or inside, environment, program.patience, folder)
        if program.results:
            written = (program.folder or inside) / program.results
            output = written.read_text() if written.exists() else ""
        unended = "did not end, in time or in the room for recordings"
        outcomes = program.read(status, output) if status is not None else {program.name: unended}
        return Run(outcomes, *read_recordings(folder))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def differences(plain, recorded):
    """{case: (how it ends plain, recorded)} of those that do not end the same way."""
    names = sorted(plain.outcomes.keys() | recorded.outcomes.keys())
    both = {name: (plain.outcomes.get(name, "not run"), recorded.outcomes.get(name, "not run")) for name in names}
    return {name: ends for name, ends in both.items() if ends[0] != ends[1]}


def compare(program):
    """The plain run, the recorded ones by mode, and {mode: differences}. What differs is run again, plain and recorded,
    and counts if that case differs once more: many tests wait for something for a limited time."""
    plain = run_program(program, "plain")
    recorded, different = {}, {}
    for mode in RECORDED:
        recorded[mode] = run_program(program, mode)
        different[mode] = differences(plain, recorded[mode])
        if different[mode]:
            again = differences(run_program(program, "plain"), run_program(program, mode))
            different[mode] = {name: ends for name, ends in different[mode].items() if name in again}
    return plain, recorded, different
