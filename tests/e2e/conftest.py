"""Fixtures: folders that vanish, programs that are compiled once, recordings."""

import contextlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

import harness


def pytest_sessionstart(session):
    for needed in (harness.MALLOSCOPE, harness.COMMANDS, harness.LIBRARY):
        if not needed.exists():
            pytest.exit(f"{needed} does not exist: build first, or name the build folder in MALLOSCOPE_BUILD", 1)


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
    """build("truth.c", "-O2", …) compiles a program of tests/programs once and returns its path. With `machine` the
    compiler is that for another one: "aarch64-linux-gnu"."""
    made = {}

    def compile_c(source, target, flags, machine):
        compiler = (f"{machine}-" if machine else "") + ("g++" if source.suffix == ".cpp" else "gcc")
        flags = list(flags)
        libraries = [flag for flag in flags if flag.startswith("-l")]
        others = [flag for flag in flags if not flag.startswith("-l")]
        if not any(flag.startswith("-O") for flag in flags):
            others.append("-O1")
        harness.run([compiler, "-g", "-Wall", "-Wextra", "-pthread", *others, source, "-o", target, *libraries])

    def compile_rust(source, target, flags, machine):
        assert not machine, "Rust programs are compiled for this machine alone"
        rustc = shutil.which("rustc")
        if not rustc:
            pytest.skip("no rustc here (Debian: apt install rustc)")
        harness.run([rustc, "--edition", "2021", "-g", *flags, source, "-o", target])

    def build_program(name, *flags, target=None, machine=None):
        key = (name, flags, target, machine)
        if key not in made:
            source = Path(name) if os.path.isabs(name) else harness.PROGRAMS / name
            place = Path(tempfile.mkdtemp(dir=session_folder))
            os.chmod(place, 0o755)
            path = place / (target or source.stem)
            (compile_rust if source.suffix == ".rs" else compile_c)(source, path, flags, machine)
            made[key] = path
        return made[key]

    return build_program


@pytest.fixture(scope="session")
def pprof(session_folder):
    """The command of the real pprof."""
    folder = session_folder / "pprof"
    folder.mkdir()
    go = shutil.which("go") or shutil.which("go", path="/usr/local/go/bin")
    if not go:
        pytest.skip("no Go here, so no pprof (Debian: apt install golang-go)")
    made = folder / "pprof"
    # Go's own copy needs no network; not every package of Go has its source.
    if harness.run([go, "build", "-o", made, "cmd/pprof"], expect=None).returncode == 0:
        return made
    fetched = harness.run(
        [go, "install", "github.com/google/pprof@latest"], expect=None, env={"GOBIN": str(folder)}
    )
    if fetched.returncode:
        pytest.skip("pprof cannot be fetched: " + fetched.stderr.decode(errors="replace")[-300:])
    return made


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
