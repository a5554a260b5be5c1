"""What the end-to-end tests share: building test programs, recording them, reading reports.

MALLOSCOPE_BUILD names the build folder that is tested (default: build/ of the project).
"""

import atexit
import json
import os
import re
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("MALLOSCOPE_BUILD", ROOT / "build")).resolve()
MALLOSCOPE = BUILD / "malloscope"
COMMANDS = BUILD / "malloscope-commands"  # what it becomes, but for most runs
LIBRARY = BUILD / "libmalloscope.so"
PROGRAMS = ROOT / "tests" / "programs"
FORMAT_TABLE = ROOT / "src" / "format" / "format.c"

# The tool caches symbols here, not in the user's cache. tests/runner names one folder for all tests that it runs.
CACHE = os.environ.get("MALLOSCOPE_TEST_CACHE")
if not CACHE:
    CACHE = tempfile.mkdtemp(prefix="malloscope-cache-")
    atexit.register(shutil.rmtree, CACHE, ignore_errors=True)

# Seconds. No test program takes anywhere near as long; it turns a hang into a failure.
PATIENCE = 300
# For compilers, some of which work for minutes on a quiet machine (pprof in Go): a busy one may take ten times as long.
COMPILER_PATIENCE = 3600


def export_formats():
    """The export formats, as {name: kind of struct format}, from the table in src/format/format.c: parameters of tests
    are needed when tests are collected, which may be before anything is built. test_formats.py compares them with what
    the tool lists."""
    table = FORMAT_TABLE.read_text().split("struct format formats[] = {")[1].split("\n};")[0]
    return dict(re.findall(r'\{"([^"]+)",.*?\b(FORMAT_\w+)\}', table, re.S))


def clean_environment(extra=None):
    """The environment of the tests without anything that would steer the recorder."""
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("MALLOSCOPE") and name not in ("LD_PRELOAD", "PYTHONMALLOC")
    }
    environment["LC_ALL"] = "C"
    environment["NO_COLOR"] = "1"
    environment["XDG_CACHE_HOME"] = CACHE
    environment.update(extra or {})
    return environment


def run(command, expect=0, env=None, patience=PATIENCE, **options):
    """Runs a command, checks its exit status (unless `expect` is None) and returns it with its output as bytes."""
    options.setdefault("stdin", subprocess.DEVNULL if "input" not in options else None)
    if "input" in options:
        del options["stdin"]
    result = subprocess.run(
        [str(part) for part in command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=clean_environment(env),
        timeout=patience,
        **options,
    )
    if expect is not None and result.returncode != expect:
        raise AssertionError(
            f"exit status {result.returncode} instead of {expect}: {' '.join(map(str, command))}\n"
            f"stdout: {result.stdout[-2000:].decode(errors='replace')}\n"
            f"stderr: {result.stderr[-4000:].decode(errors='replace')}"
        )
    return result


plain_runs = {}


def run_plain(command, env=None):
    """Runs a command without the recorder, once for all tests of a process that compare with it. For commands that do
    the same each time."""
    key = (*map(str, command), *sorted((env or {}).items()))
    if key not in plain_runs:
        plain_runs[key] = run(command, expect=None, env=env)
    return plain_runs[key]


def malloscope(*arguments, expect=0, **options):
    return run([MALLOSCOPE, *arguments], expect=expect, **options)


def rate_options(rate):
    return ["--exact"] if rate == "exact" else ["--rate", str(rate)]


class Recording(os.PathLike):
    """A recording and what the program that made it printed."""

    def __init__(self, path, result):
        self.path = Path(path)
        self.stdout = result.stdout
        self.stderr = result.stderr
        self.status = result.returncode

    def __fspath__(self):
        return str(self.path)

    __str__ = __fspath__

    @property
    def ledger(self):
        """What the program printed about itself."""
        return json.loads(self.stdout)


def record_command(path, command, rate):
    return [MALLOSCOPE, "run", "-q", "-o", path, *rate_options(rate), "--", *command]


def report(path, *options):
    """The whole `report --json`."""
    return json.loads(malloscope("report", path, "--json", "-n", "0", *options).stdout)


def stats(path):
    return json.loads(malloscope("stats", path, "--json").stdout)


def site_lines(source):
    """The lines that carry the comment `@site NAME`, by name."""
    lines = {}
    for number, text in enumerate(Path(source).read_text().splitlines(), 1):
        for name in re.findall(r"@site (\w+)", text):
            lines.setdefault(name, []).append(number)
    return lines


FIGURES = (
    "live_bytes",
    "live_objects",
    "at_peak_bytes",
    "total_bytes",
    "total_objects",
    "frees",
    "peak_bytes",
    "own_peak_at_most",
    "temporary_objects",
    "samples",
)


def figures_of_site(rows, source, name):
    """The sum of the rows of a site, as `report --json` has them."""
    lines = site_lines(source)[name]
    mine = [row for row in rows if row["file"] and Path(row["file"]).name == Path(source).name and row["line"] in lines]
    return {figure: sum(row[figure] for row in mine) for figure in FIGURES}


def child_of(pid, name):
    """The process called `name` among the children of `pid`; waits until it has been started."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        for candidate in filter(str.isdigit, os.listdir("/proc")):
            try:
                stat = Path(f"/proc/{candidate}/stat").read_text()
            except OSError:
                continue
            found, fields = stat[stat.index("(") + 1 : stat.rindex(")")], stat[stat.rindex(")") + 2 :].split()
            if found == name and int(fields[1]) == pid:
                return int(candidate)
        time.sleep(0.01)
    raise AssertionError(f"{name} was not started")


def wait_until(condition, process):
    """Waits for something that a running process is about to do."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert process.poll() is None and time.monotonic() < deadline, "the program did not get ready"
        time.sleep(0.01)


def tool_output(*command):
    return run(command).stdout.decode()


def assert_same_outcome(plain, recorded, what):
    """Two runs of a program look the same from outside."""
    assert recorded.returncode == plain.returncode, (
        f"{what}: exit status {recorded.returncode}, without the recorder {plain.returncode}\n"
        f"stderr: {recorded.stderr[-3000:].decode(errors='replace')}"
    )
    assert recorded.stdout == plain.stdout, f"{what}: other output than without the recorder"
    assert recorded.stderr == plain.stderr, (
        f"{what}: other text on stderr than without the recorder: {recorded.stderr[-3000:].decode(errors='replace')}"
    )
