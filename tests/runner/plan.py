"""Which jobs there are: tests/e2e divided into parts that can run side by side, and everything else as it is."""

import json
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from jobs import LEFT_OUT, Counted, EndToEnd, Result, Step, Units
from times import START, function_of

ROOT = Path(__file__).resolve().parents[2]
PYTEST = ["/usr/bin/python3", "-m", "pytest", "-q", "-p", "no:cacheprovider"]
LONG, SHORT = 90, 30  # seconds: a part that takes longer is divided, parts that take less are put together
FUZZ_SECONDS = 20  # for each of six, which is what a minute for all of them on two cores comes to


@dataclass
class Part:
    """Tests of one file that are treated alike."""

    file: str
    names: list
    is_whole: bool  # all tests of the file
    quiet: bool = False
    lock: str = ""


def collect(environment, arguments):
    """The tests that pytest finds, {name: marks}, and the files whose tests are all left out."""
    places = [] if any(word.startswith("tests/") for word in arguments) else ["tests/e2e"]
    with tempfile.NamedTemporaryFile(suffix=".events") as events:
        told = subprocess.run(
            [*PYTEST, "--collect-only", *places, *arguments],
            cwd=ROOT, env={**environment, "MALLOSCOPE_TEST_EVENTS": events.name}, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        if told.returncode not in (0, 5):
            raise SystemExit(f"the end-to-end tests cannot be collected:\n{told.stdout}")
        found = [json.loads(line) for line in events.read().decode().splitlines()]
    tests = {one["test"]: one["marks"] for one in found if "test" in one}
    return tests, [Result(one["file"], LEFT_OUT, one["reason"]) for one in found if "file" in one]


def parts_of(tests, chosen, times, all_are_there):
    """Divides the chosen tests by file and marks, and what is long once more; a function's cases stay together."""
    everything = {}
    for name in tests:
        everything.setdefault(name.split("::")[0], []).append(name)
    parts = []
    for file, names in everything.items():
        mine = [name for name in names if name in chosen]
        for marks in dict.fromkeys(tuple(tests[name]) for name in mine):
            alike = [name for name in mine if tuple(tests[name]) == marks]
            is_whole = all_are_there and len(alike) == len(names)
            quiet, lock = "quiet" in marks, "probes" if "probes" in marks else ""
            if times.of_cases(alike) <= LONG or quiet:
                parts.append(Part(file, alike, is_whole, quiet, lock))
                continue
            parts += [Part(file, piece, False, quiet, lock) for piece in divide(alike, times)]
    return parts


def divide(names, times):
    """Pieces of about equal length, in order."""
    count = int(times.of_cases(names) / LONG) + 1
    goal, pieces, seconds = times.of_cases(names) / count, [[]], 0.0
    for function in dict.fromkeys(map(function_of, names)):
        cases = [name for name in names if function_of(name) == function]
        if seconds > 0 and seconds + times.of_cases(cases) / 2 > goal and len(pieces) < count:
            pieces.append([])
            seconds = 0.0
        pieces[-1] += cases
        seconds += times.of_cases(cases)
    return pieces


def put_together(parts, times):
    """Short parts that are treated alike share a process."""
    groups = []
    for part in parts:
        for group in groups:
            same = (group[0].quiet, group[0].lock) == (part.quiet, part.lock)
            seconds = sum(times.of_cases(other.names) for other in group)
            if same and (part.quiet or seconds + times.of_cases(part.names) <= SHORT):
                group.append(part)
                break
        else:
            groups.append([part])
    return groups


def end_to_end(tests, chosen, times, environment, all_are_there=True):
    """The jobs of tests/e2e. `all_are_there`: `tests` are all tests of their files."""
    jobs, used = [], {}
    for group in put_together(parts_of(tests, chosen, times, all_are_there), times):
        files = [Path(part.file).stem.removeprefix("test_") for part in group]
        name = ", ".join(files[:3]) + (f" and {len(files) - 3} more" if len(files) > 3 else "")
        used[name] = used.get(name, 0) + 1
        if used[name] > 1:
            name += f" ({used[name]})"
        names = [name for part in group for name in part.names]
        arguments = [word for part in group for word in ([part.file] if part.is_whole else part.names)]
        jobs.append(EndToEnd(
            name, names, [*PYTEST, "-rfE"], arguments, seconds=START + times.of_cases(names), environment=environment,
            lock=group[0].lock, quiet=group[0].quiet,
        ))  # fmt: skip
    return jobs


def units(name, build, times, environment, only=()):
    return Units(name, build, only, seconds=times.of(name, 60), environment=environment,
                 tests=len(only) or unit_count(build))


def unit_count(build):
    listed = subprocess.run(["meson", "test", "-C", build, "--no-rebuild", "--list"], stdout=subprocess.PIPE, text=True)
    return max(len(listed.stdout.splitlines()), 1)


def others(times, environment, has):
    """What is not in tests/e2e; `has` are the optional parts that can be run here."""
    def counted(name, command, tests, needs=()):
        return Counted(name, command, times.of(name, 60), tests, environment, needs)

    def step(name, command, needs=()):
        return Step(name, command, times.of(name, 60), 0, environment, needs)

    jobs = [counted("models of the tables", ["tests/models/run"], 43)]
    if "fuzzers" in has:
        fuzz = ["tests/fuzz/run", "build-fuzz", "--seconds", FUZZ_SECONDS, "--jobs", "1"]
        jobs += [step("build of the fuzzers", ["./dev", "build", "--fuzzers"]),
                 counted("fuzzers", fuzz, 6, ("build of the fuzzers",))]
    if "kernels" in has:
        jobs.append(step("image for other kernels", ["tests/kernels/run", "--image"]))
        jobs += [counted(f"attach on Linux {series}", ["tests/kernels/run", "--boot", series], 12,
                         ("image for other kernels",)) for series in ("6.1", "6.12")]
    return jobs
