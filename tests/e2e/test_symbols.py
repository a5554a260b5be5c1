"""Names for code wherever it comes from: generated code, replaced and deleted files, containers, other machines."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import harness
from harness import LIBRARY, MALLOSCOPE, PROGRAMS, child_of, malloscope, report, run, site_lines, wait_until

AS_NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


def stacks_of(recording, *options):
    """The stacks of `leaks`, each a list of (function, place)."""
    text = malloscope("leaks", recording, "-n", "0", "--raw-site", *options).stdout.decode()
    entries = [[line for line in entry.splitlines() if line.startswith("    ")] for entry in text.split("\n\n")]
    return [[tuple(re.split(r"  +", line.strip())) for line in entry] for entry in entries if entry]


def stack_with(recording, function, *options):
    found = [stack for stack in stacks_of(recording, *options) if any(frame[0] == function for frame in stack)]
    assert found, f"no stack with {function} in {stacks_of(recording, *options)}"
    return found[0]


def functions(stack):
    return [frame[0] for frame in stack]


def warnings_of(recording, *options):
    return malloscope("report", recording, *options).stderr.decode()


# Generated code


@pytest.fixture
def jit_map():
    """Takes the maps away that a program left in /tmp."""
    paths = []
    yield lambda pid: paths.append(Path(f"/tmp/perf-{pid}.map")) or paths[-1]
    for path in paths:
        path.unlink(missing_ok=True)


JIT_STACK = ["inner: of a script", "outer: of a script", "run_generated", "main"]


@pytest.mark.parametrize("flags", [["-O0"], ["-O2", "-fomit-frame-pointer"], ["-O2", "-DTRAMPOLINE"]],
                         ids=["O0", "O2", "trampoline"])
@pytest.mark.parametrize("rate", ["exact", "1K"])
def test_generated_code_has_names_and_whole_stacks(build, record, jit_map, flags, rate):
    recording = record(build("jit.c", *flags), rate=rate)
    jit_map(int(recording.stdout))
    stack = functions(stack_with(recording, JIT_STACK[0]))
    if flags == ["-O0"]:
        assert stack[:4] == JIT_STACK
    else:  # run_generated may be inlined under another name
        assert stack[:2] == JIT_STACK[:2] and "main" in stack[2:4]
    assert stack[-1] == "_start"
    assert harness.stats(recording)["health"]["complete"] == 1
    rows = report(recording, "--by", "function")["rows"]
    (row,) = [row for row in rows if row["function"] == JIT_STACK[0]]
    assert row["module"] == "[anonymous code]"
    if rate == "exact":
        assert row["live_bytes"] == 100 * 1000


def test_generated_code_without_a_map(build, record, jit_map):
    recording = record(build("jit.c", "-O0"))
    jit_map(int(recording.stdout)).unlink()
    result = malloscope("report", recording)
    assert result.stderr == b""
    assert b"[anonymous code]" in result.stdout and b"no names for generated code" in result.stdout
    stack = functions(stack_with(recording, "[anonymous code]"))
    assert stack[-1] == "_start" and "run_generated" in stack


GARBAGE = {
    "nothing": b"",
    "zeros": b"\0" * 5000,
    "lines": b"garbage\n" * 3,
    "noise": os.urandom(100000),
    "digits": b"f" * 100000 + b"\n",
}


@pytest.mark.parametrize("content", GARBAGE.values(), ids=GARBAGE.keys())
def test_a_map_of_garbage(build, record, jit_map, content):
    recording = record(build("jit.c", "-O0"))
    jit_map(int(recording.stdout)).write_bytes(content)
    assert b"[anonymous code]" in malloscope("report", recording).stdout


@needs_root
def test_a_map_that_somebody_else_left(build, record, jit_map):
    recording = record(build("jit.c", "-O0"))
    path = jit_map(int(recording.stdout))
    os.chown(path, 65534, 65534)
    assert f"'{path}' belongs to user 65534" in warnings_of(recording)
    assert JIT_STACK[0].encode() not in malloscope("report", recording).stdout


def test_a_running_program_with_generated_code(build, start, folder, jit_map):
    tool = start(harness.record_command(folder / "r.mscope", [build("jit.c", "-O0"), folder / "ready"], "exact"))
    pid = child_of(tool.pid, "jit")
    jit_map(pid)
    wait_until((folder / "ready").exists, tool)
    assert functions(stack_with(pid, JIT_STACK[0]))[:4] == JIT_STACK
    (folder / "ready").unlink()
    assert tool.wait(harness.PATIENCE) == 0


def python_with_perf():
    """A Python that knows -X perf, itself and not a script that chooses one."""
    for name in ("python3.14", "python3.13", "python3.12"):
        result = run([name, "-c", "import sys; print(sys.executable)"], expect=None) if shutil.which(name) else None
        if result and result.returncode == 0:
            return os.path.realpath(result.stdout.decode().strip())
    pytest.skip("no Python of 3.12 or later here")


def test_python_tells_its_functions(record, folder, jit_map):
    script = folder / "script.py"
    script.write_text("""import os
def inner(n):
    return [bytearray(2000) for _ in range(n)]
def outer(n):
    return inner(n)
kept = outer(2000)
print(os.getpid(), flush=True)
os._exit(0)
""")
    recording = record(python_with_perf(), "-X", "perf", script, rate="4K", env={"PYTHONMALLOC": "malloc"})
    jit_map(int(recording.stdout))
    stack = functions(stack_with(recording, f"py::inner:{script}"))
    python_frames = [name for name in stack if name.startswith("py::")]
    assert python_frames == [f"py::{name}:{script}" for name in ("inner", "outer", "<module>")]
    assert stack[-1] == "_start"
    assert harness.stats(recording)["health"]["complete"] == 1


def test_node_tells_its_functions(record, folder, jit_map):
    if not shutil.which("node"):
        pytest.skip("no node here (Debian: apt install nodejs)")
    script = folder / "script.js"
    script.write_text("""function inner(n) {
    const list = [];
    for (let i = 0; i < n; i++) list.push(Buffer.allocUnsafeSlow(20000));
    return list;
}
function outer(n) { return inner(n); }
for (let i = 0; i < 30; i++) global.kept = outer(200);
console.log(process.pid);
""")
    options = ["--perf-basic-prof", "--interpreted-frames-native-stack"]
    recording = record("node", *options, script, rate="64K", cwd=folder)  # it leaves a log where it is
    jit_map(int(recording.stdout))
    rows = report(recording, "--by", "stack", "--filter", f"inner {script}")["rows"]
    assert sum(row["total_bytes"] for row in rows) == pytest.approx(30 * 200 * 20000, rel=0.2)
    collapsed = malloscope("export", recording, "--format", "collapsed", "--value", "total").stdout.decode()
    assert re.search(rf"^_start;.*outer {script}:6:15;[^;]*inner {script}:1:15;", collapsed, re.MULTILINE)
    assert harness.stats(recording)["health"]["complete"] > 0.95


# The kernel's library


def test_code_of_the_kernel_has_names(build, record):
    recording = record(build("in_vdso.c", "-O1"))
    stack = stack_with(recording, "on_alarm")
    names = functions(stack)
    assert names[:2] == ["on_alarm", "[signal handler called]"]
    assert "gettime" in names[2] and stack[2][1] == "[vdso]", stack
    assert "main" in names and names[-1] == "_start"


# Files that are not what they were


def test_a_replaced_program_gives_no_names(build, record, folder, jit_map):
    program = folder / "program"
    shutil.copy2(build("jit.c", "-O0"), program)
    recording = record(program)
    jit_map(int(recording.stdout))
    assert "run_generated" in functions(stack_with(recording, "main"))
    program.unlink()
    shutil.copy2(build("jit.c", "-O2"), program)
    result = malloscope("report", recording)
    assert b"program has changed since the recording: its functions are shown as addresses" in result.stderr
    assert b"--sysroot" in result.stderr
    names = {frame for stack in stacks_of(recording) for frame in functions(stack)}
    assert "main" not in names and "run_generated" not in names
    assert any(re.fullmatch(r"\[program\+0x[0-9a-f]+\]", name) for name in names)
    info = malloscope("info", recording, "--symbols").stdout.decode()
    assert re.search(rf"{program}\n +no names: the file has changed since the recording\n", info)
    assert re.search(r"/libc\.so\.6\n +functions (only|and lines): /", info)
    assert "functions" not in malloscope("info", recording).stdout.decode()
    program.unlink()
    assert "program does not exist here" in warnings_of(recording)


@pytest.mark.parametrize("user", [[], pytest.param(AS_NOBODY, marks=needs_root)], ids=["self", "nobody"])
def test_a_program_that_was_replaced_while_it_runs(build, start, folder, user):
    program = folder / "program"
    shutil.copy2(build("waiting.c", "-O0"), program)
    os.chmod(folder, 0o777)
    tool = start([*user, *harness.record_command(folder / "r.mscope", [program, folder / "ready"], "exact")],
                 stdout=subprocess.DEVNULL)
    pid = child_of(tool.pid, "program")
    wait_until((folder / "ready").exists, tool)
    program.unlink()
    shutil.copy2(build("waiting.c", "-O2"), program)
    result = run([*user, MALLOSCOPE, "report", pid, "--json"])
    assert result.stderr == b""
    lines = [row["line"] for row in json.loads(result.stdout)["rows"] if row["function"] == "deeper"]
    assert lines == site_lines(PROGRAMS / "waiting.c")["waiting"]
    (folder / "ready").unlink()
    assert tool.wait(harness.PATIENCE) == 0


# Other roots


def copy_into(root, path, inside=None):
    target = root / Path(inside or path).relative_to("/")
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(path, target)


def libraries_of(path):
    return re.findall(r"(/\S+) \(0x", run(["ldd", path]).stdout.decode())


@pytest.fixture
def container(build, folder):
    """A folder to be the root of a program that the rest of the machine does not have, with the tool in it."""
    if os.geteuid() != 0 or run(["unshare", "--mount", "--pid", "--fork", "true"], expect=None).returncode != 0:
        pytest.skip("no containers may be made here")
    root = folder / "root"
    program = build("jit.c", "-O0", target="contained")
    copy_into(root, program, "/app/contained")
    built = {LIBRARY, MALLOSCOPE, harness.COMMANDS}
    for path in built.union(*(libraries_of(file) for file in {program, *built})):
        copy_into(root, path)
    (root / "proc").mkdir()
    (root / "tmp").mkdir(exist_ok=True)
    return root


def in_container(root):
    command = harness.record_command("/tmp/r.mscope", ["/app/contained", "/tmp/ready"], "exact")
    return ["unshare", "--mount", "--pid", "--fork", f"--root={root}", "--mount-proc", *command]


def test_a_program_in_a_container(container, start):
    tool = start(in_container(container), stdout=subprocess.DEVNULL)
    pid = child_of(child_of(tool.pid, "malloscope"), "contained")
    wait_until((container / "tmp/ready").exists, tool)
    assert not Path("/app/contained").exists()
    assert Path(f"/proc/{pid}/root/tmp/r.mscope").exists()
    lines = site_lines(PROGRAMS / "jit.c")
    result = malloscope("report", pid, "--json", "-v")
    assert result.stderr == b""
    stack = stack_with(pid, JIT_STACK[0])
    assert functions(stack)[:4] == JIT_STACK
    assert stack[2][1].endswith(f"jit.c:{lines['generated'][0]}")

    (container / "tmp/ready").unlink()
    assert tool.wait(harness.PATIENCE) == 0
    recording = container / "tmp/r.mscope"
    assert "contained does not exist here" in warnings_of(recording)
    assert "--sysroot DIR" in warnings_of(recording)
    for command in (["report", "-v"], ["tree"], ["leaks"], ["export", "--format", "collapsed"]):
        outside = malloscope(*command, recording).stdout
        inside = malloscope(*command, recording, "--sysroot", container)
        assert b"run_generated" not in outside and b"run_generated" in inside.stdout, command
        assert JIT_STACK[0].encode() in inside.stdout and inside.stderr == b"", command
    info = malloscope("info", recording, "--sysroot", container).stdout.decode()
    assert f"functions and lines: {container}/app/contained" in info
    stack = stack_with(recording, JIT_STACK[0], "--sysroot", container)
    assert functions(stack)[:4] == JIT_STACK and functions(stack)[-1] == "_start"
    assert stack[2][1].endswith(f"jit.c:{lines['generated'][0]}")


def test_a_sysroot_that_is_none(build, record, folder, jit_map):
    recording = record(build("jit.c", "-O0"))
    jit_map(int(recording.stdout))
    result = malloscope("report", recording, "--sysroot", folder / "nowhere", expect=3)
    assert b"nowhere': No such file or directory" in result.stderr and b"hint: " in result.stderr
    result = malloscope("report", recording, "--sysroot", recording, expect=2)
    assert b"is not a folder" in result.stderr
    (folder / "a:b").mkdir()
    assert b"colon" in malloscope("report", recording, "--sysroot", folder / "a:b", expect=2).stderr
    # A file that is not below the sysroot is looked for in the usual places, if it has a build-id to compare.
    (folder / "empty").mkdir()
    stack = stack_with(recording, "run_generated", "--sysroot", folder / "empty")
    assert functions(stack)[:4] == JIT_STACK


# Long names


def test_long_names_are_short_in_tables_only(build, record):
    recording = record(build("long_names.cpp", "-O1"))
    full = re.compile(r"^store::Table<.*std::allocator<.*>::insert\(.*std::less<.*\)$")
    short = "store::Table<std::string, std::vector<…>>::insert(…)"
    table = malloscope("report", recording, env={"LC_ALL": "C.UTF-8"}).stdout.decode()
    assert short in table and "std::allocator" not in table
    assert short.replace("…", "..") in malloscope("report", recording).stdout.decode()
    for command in ("tree", "leaks"):
        text = malloscope(command, recording, env={"LC_ALL": "C.UTF-8"}).stdout.decode()
        assert short in text and "std::less" not in text, command
    for command in ("report", "tree", "leaks"):
        text = malloscope(command, recording, "-v", env={"LC_ALL": "C.UTF-8"}).stdout.decode()
        assert short not in text and "std::less" in text, command
    assert any(full.match(row["function"]) for row in report(recording)["rows"])
    assert "std::less" in malloscope("export", recording, "--format", "collapsed").stdout.decode()
    assert report(recording, "--filter", "std::less")["rows"]
