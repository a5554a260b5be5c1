"""Fixtures: folders that vanish, programs that are compiled once, recordings. And what tests/runner is told."""

import contextlib
import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

import harness
import programs


def pytest_configure(config):
    config.addinivalue_line("markers", "quiet: measures time or processor time; nothing else runs beside it")
    config.addinivalue_line("markers", "probes: uses the kernel's probes; no other such test runs beside it")


def pytest_sessionstart(session):
    for needed in (harness.MALLOSCOPE, harness.COMMANDS, harness.LIBRARY):
        if not needed.exists():
            pytest.exit(f"{needed} does not exist: build first, or name the build folder in MALLOSCOPE_BUILD", 1)


# ---- what tests/runner is told: a line of JSON in the file MALLOSCOPE_TEST_EVENTS for each test ----

EVENTS = os.environ.get("MALLOSCOPE_TEST_EVENTS")


def tell(**what):
    with open(EVENTS, "a") as events:
        events.write(json.dumps(what) + "\n")


def pytest_collection_finish(session):
    """Which tests were chosen, and how they are marked."""
    if EVENTS and session.config.option.collectonly:
        for item in session.items:
            tell(test=item.nodeid, marks=[mark for mark in ("quiet", "probes") if item.get_closest_marker(mark)])


def pytest_collectreport(report):
    """Files whose tests are all left out."""
    if EVENTS and report.skipped:
        tell(file=report.nodeid, reason=report.longrepr[2].removeprefix("Skipped: "))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item):
    """What processor time a test took, with that of its processes that have ended."""
    before = os.times()
    item.reports = []
    yield
    if not EVENTS:
        return
    after = os.times()
    outcome, reason = "passed", ""
    for report in item.reports:
        if report.failed:
            outcome = "failed"
        elif report.skipped and outcome != "failed":
            outcome, reason = "skipped", report.longrepr[2].removeprefix("Skipped: ")
    seconds = after.elapsed - before.elapsed
    tell(test=item.nodeid, outcome=outcome, reason=reason, seconds=round(seconds, 3),
         processor=round(sum(after[:4]) - sum(before[:4]), 3))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item):
    made = yield
    item.reports.append(made.get_result())


# ---- fixtures ----


@pytest.fixture(scope="session")
def session_folder():
    with tempfile.TemporaryDirectory(prefix="malloscope-e2e-") as folder:
        os.chmod(folder, 0o755)  # some programs are run as another user
        yield Path(folder)


@pytest.fixture
def folder(session_folder):
    path = Path(tempfile.mkdtemp(dir=session_folder))
    os.chmod(path, 0o755)
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture(scope="session")
def build(session_folder):
    """build("truth.c", "-O2", …) compiles a program of tests/programs once and returns the path of a copy of this
    session's own. With `machine` the compiler is that for another one: "aarch64-linux-gnu"."""
    made = {}

    def build_program(name, *flags, target=None, machine=None):
        key = (name, flags, target, machine)
        if key not in made:
            source = Path(name) if os.path.isabs(name) else harness.PROGRAMS / name
            place = Path(tempfile.mkdtemp(dir=session_folder))
            os.chmod(place, 0o755)
            path = place / (target or source.stem)
            programs.copy_of(programs.compiler_command(source, flags, machine), path)
            made[key] = path
        return made[key]

    return build_program


@pytest.fixture(scope="session")
def pprof():
    """The command of the real pprof."""
    go = shutil.which("go") or shutil.which("go", path="/usr/local/go/bin")
    if not go:
        pytest.skip("no Go here, so no pprof (Debian: apt install golang-go)")

    def make(path):
        # Go's own copy needs no network; not every package of Go has its source. Without optimisation the build takes
        # half the time.
        fast = ["-gcflags=all=-N -l", "-ldflags=-s -w"]
        options = {"expect": None, "patience": harness.COMPILER_PATIENCE}
        built = harness.run([go, "build", *fast, "-o", path, "cmd/pprof"], env={"CGO_ENABLED": "0"}, **options)
        if built.returncode == 0:
            return
        fetched = harness.run(
            [go, "install", "github.com/google/pprof@latest"], env={"GOBIN": str(path.parent)}, **options
        )
        if fetched.returncode:
            pytest.skip("pprof cannot be fetched: " + fetched.stderr.decode(errors="replace")[-300:])

    return programs.kept(programs.key_of([go, "pprof"]), "pprof", make)


@pytest.fixture
def record(folder):
    """record(program, argument, …, rate=…) runs a program under the recorder and returns the Recording."""
    count = 0

    def record_program(program, *arguments, rate="exact", env=None, expect=0, **options):
        nonlocal count
        count += 1
        path = folder / f"{count}.mscope"
        command = harness.record_command(path, [program, *arguments], rate)
        result = harness.run(command, expect=expect, env=env, **options)
        assert path.exists(), f"no recording was made; stderr: {result.stderr.decode(errors='replace')}"
        return harness.Recording(path, result)

    return record_program


@contextlib.contextmanager
def starting():
    with contextlib.ExitStack() as stack:

        def end(process):
            # 'malloscope run' passes this on to its program; killed, it would leave that behind.
            if process.poll() is None:
                process.terminate()
                try:
                    process.wait(2)
                except subprocess.TimeoutExpired:
                    process.kill()
            process.wait()
            for stream in (process.stdout, process.stderr):
                if stream:
                    stream.close()

        def start_process(command, env=None, **options):
            process = subprocess.Popen(
                [str(part) for part in command], env=harness.clean_environment(env), **options
            )
            stack.callback(end, process)
            return process

        yield start_process


@pytest.fixture
def start():
    """start(command, …) starts a process that is ended, by its id, when the test is over."""
    with starting() as start_process:
        yield start_process


@pytest.fixture(scope="module")
def module_start():
    """The same, for fixtures that several tests of a file share."""
    with starting() as start_process:
        yield start_process


@pytest.fixture
def hello(build):
    return build("hello.c", "-O1")


@pytest.fixture
def good(hello, record):
    """A recording to damage."""
    return record(hello, rate="64").path
