"""Runs a program of program_list.py plainly and recorded, and says what differs."""

import json
import os
import shutil
import signal
import socket
import subprocess
import textwrap
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
MODES = {"sampled": ["--rate", "4K", "--depth", "4096"], "exact": ["--exact", "--depth", "4096"]}
LIMIT = 600  # seconds for one run


@dataclass
class Run:
    """One run: what it printed and how it ended; of a recorded one what its recordings say."""

    output: bytes
    status: int
    recordings: int = 0
    samples: int = 0
    whole: float = 1.0  # share of the samples whose stacks are whole
    drops: int = 0
    problems: list = field(default_factory=list)


def missing_packages(program):
    """The packages of the program that are not installed."""
    told = subprocess.run(
        ["dpkg-query", "-W", "-f", "${db:Status-Status} ${Package}\n", *program.packages.split()],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    there = {line.split()[1] for line in told.stdout.splitlines() if line.startswith("installed ")}
    return [name for name in program.packages.split() if name not in there]


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def environment(extra=()):
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("MALLOSCOPE", "LD_", "PYTEST"))}
    return kept | {"LC_ALL": "C.UTF-8", "TZ": "UTC", "PORT": str(free_port())} | dict(extra)


def run_script(program, folder, prefix=()):
    """Runs the script in the new folder, with `prefix` before its command. What it leaves running is ended."""
    folder.mkdir(parents=True)
    for name, text in program.files.items():
        (folder / name).write_text(text)
    (folder / "script").write_text(f". {HERE}/common.sh\n{textwrap.dedent(program.script).strip()}\n")
    with open(folder / "output", "wb") as output:
        process = subprocess.Popen(
            [*map(str, prefix), "bash", "script"], cwd=folder, stdin=subprocess.DEVNULL, stdout=output,
            stderr=subprocess.STDOUT, env=environment(), start_new_session=True,
        )  # fmt: skip
        try:
            status = process.wait(LIMIT)
        except subprocess.TimeoutExpired:
            status = -signal.SIGALRM
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()
    return Run((folder / "output").read_bytes(), status)


def read_recordings(run, recordings, malloscope):
    """Adds what the recordings say. Each of them must be readable by itself."""
    for path in sorted(recordings.glob("*.mscope")):
        command = [malloscope, "stats", "--json", path]
        told = subprocess.run(command, capture_output=True, env=environment(), check=False)
        if told.returncode != 0:
            run.problems.append(f"{path.name} cannot be read: {told.stderr.decode(errors='replace').strip()}")
            continue
        stats = json.loads(told.stdout)
        samples = stats["totals"]["samples"]
        run.whole = (run.whole * run.samples + stats["health"]["complete"] * samples) / max(run.samples + samples, 1)
        run.samples += samples
        run.drops += stats["totals"]["drops"]
        run.recordings += 1


def record(program, mode, folder, malloscope):
    recordings = folder.parent / f"{folder.name}-recordings"
    recordings.mkdir(parents=True, mode=0o777)
    recordings.chmod(0o777)  # servers drop their privileges
    prefix = [malloscope, "run", "-q", *MODES[mode], "-o", recordings / "%e.%p.%n.mscope", "--"]
    run = run_script(program, folder, prefix)
    read_recordings(run, recordings, malloscope)
    shutil.rmtree(recordings)
    return run


def differences(program, plain, recorded):
    """What a recorded run does otherwise than the plain one, or keeps silent about: lines of text."""
    found = list(recorded.problems)
    if recorded.status != plain.status:
        found.append(f"status {recorded.status} instead of {plain.status}")
    if recorded.output != plain.output:
        found.append(f"printed {recorded.output[-400:]!r} instead of {plain.output[-400:]!r}")
    if not recorded.recordings:
        found.append("nothing was recorded")
    if recorded.samples and recorded.whole < program.whole:
        found.append(f"{recorded.whole:.2%} of {recorded.samples} samples have whole stacks, not {program.whole:.0%}")
    if recorded.drops:
        found.append(f"{recorded.drops} drops")
    return found
