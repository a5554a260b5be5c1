"""The parts of ./dev test that are run as processes of their own, and what each of them has to say at its end.

A job is one command. It takes one worker's place, or, if it measures time, the whole machine. Three kinds of output are
understood: pytest's (through tests/e2e/conftest.py, which tells of every test), meson's, and the closing line
"N passed, N failed" of everything else.
"""

import json
import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

PASSED, FAILED, LEFT_OUT = "passed", "failed", "left out"


@dataclass
class Result:
    """How one test ended. `reason` is that of a test that was left out."""

    name: str
    outcome: str
    reason: str = ""
    seconds: float = 0.0


@dataclass
class Job:
    """A command, and how the scheduler has to treat it."""

    name: str
    command: list
    seconds: float = 10.0  # that are expected on a quiet machine
    tests: int = 1  # that are expected
    environment: dict = field(default_factory=dict)
    needs: tuple = ()  # names of jobs that must have ended well before
    lock: str = ""  # of the jobs with the same lock, one runs at a time
    quiet: bool = False  # nothing else may run beside it

    def begin(self, folder):
        """Starts the process; its output goes into a file of the folder."""
        self.log = folder / (re.sub(r"[^\w.]+", "-", self.name) + ".log")
        self.prepare()
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                [str(word) for word in self.command], stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
                env=self.environment or None, start_new_session=True,
            )  # fmt: skip

    def prepare(self):
        """Done before the process is started."""

    def done(self):
        """How many of the tests have ended, while the job runs."""
        return 0

    def results(self):
        """How the tests ended, when the job has. Never empty: a job that did not get to its end has failed."""
        raise NotImplementedError

    def again(self, failures):
        """A job that runs the tests that failed once more."""
        raise NotImplementedError

    def said(self):
        return self.log.read_text(errors="replace")


class Counted(Job):
    """A command that closes with "N passed, N failed". It is run again as a whole."""

    def results(self):
        found = re.findall(r"^(\d+) passed, (\d+) failed$", self.said(), re.M)
        if not found:
            return [Result(f"{self.name} (it did not get to its end)", FAILED)]
        passed, failed = map(int, found[-1])
        return [Result(self.name, PASSED)] * passed + [Result(self.name, FAILED)] * failed

    def again(self, failures):
        return Counted(self.name, self.command, self.seconds, self.tests, self.environment)


class Step(Job):
    """Something that others need, such as a build. It is no test, unless it fails."""

    def results(self):
        return [] if self.process.returncode == 0 else [Result(self.name, FAILED)]

    def again(self, failures):
        return Step(self.name, self.command, self.seconds, 0, self.environment)


class Units(Job):
    """`meson test` of a build folder, one test after the other."""

    def __init__(self, name, build, only=(), **more):
        self.build, self.only = Path(build), list(only)
        self.table = self.build / "meson-logs" / "testlog.json"
        command = ["meson", "test", "-C", build, "--no-rebuild", "--print-errorlogs", "--num-processes", "1", *only]
        super().__init__(name, command, **more)

    def prepare(self):
        self.table.unlink(missing_ok=True)

    def lines(self):
        if not self.table.exists():
            return []
        return [json.loads(line) for line in self.table.read_text(errors="replace").splitlines() if line.endswith("}")]

    def done(self):
        return len(self.lines())

    def results(self):
        outcomes = {"OK": PASSED, "SKIP": LEFT_OUT, "EXPECTEDFAIL": PASSED}
        told = [
            Result(line["name"].split(" / ")[-1], outcomes.get(line["result"], FAILED), "meson", line["duration"])
            for line in self.lines()
        ]
        if not told or (self.process.returncode != 0 and all(one.outcome != FAILED for one in told)):
            told.append(Result(f"{self.name} (it did not get to its end)", FAILED))
        return told

    def again(self, failures):
        names = [one.name for one in failures if "(" not in one.name]
        return Units(self.name, self.build, names, seconds=self.seconds, environment=self.environment)


class EndToEnd(Job):
    """Tests of tests/e2e by their names, with a table of how each ended."""

    def __init__(self, name, names, pytest, arguments=(), **more):
        """`names` are the tests; `arguments` what pytest is given to choose them, if that is shorter."""
        self.names, self.pytest = list(names), pytest
        super().__init__(name, [*pytest, *(arguments or names)], tests=len(self.names), **more)

    def prepare(self):
        self.table = self.log.with_suffix(".events")
        self.table.unlink(missing_ok=True)
        self.environment = {**self.environment, "MALLOSCOPE_TEST_EVENTS": str(self.table)}

    def lines(self):
        if not self.table.exists():
            return []
        told = [json.loads(line) for line in self.table.read_text().splitlines() if line.endswith("}")]
        return [line for line in told if "outcome" in line]

    def done(self):
        return len(self.lines())

    def results(self):
        outcomes = {"passed": PASSED, "failed": FAILED, "skipped": LEFT_OUT}
        told = [Result(line["test"], outcomes[line["outcome"]], line["reason"], line["seconds"])
                for line in self.lines()]
        ended = {one.name for one in told}
        return told + [Result(name, FAILED) for name in self.names if name not in ended]

    def again(self, failures):
        return EndToEnd(self.name, [one.name for one in failures], self.pytest, environment=self.environment)
