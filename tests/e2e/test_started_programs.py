"""Programs that a recorded one starts or becomes. Some cannot carry the recorder: they run as they do without it, and
are counted and named. With --no-follow none of them sees anything of it."""

import json
import os
import shutil
import subprocess

import pytest

import harness
from harness import PROGRAMS, malloscope, stats

# The ways of starts.c. Those that end in a process of its own are the second half.
BECOMES = ["execve", "execv", "execvp", "execvpe", "execl", "execlp", "execle", "fexecve", "fexecve-path", "execveat",
           "syscall", "syscall-at", "handler"]
STARTS = ["vfork", "spawn", "spawnp", "fork", "system", "popen"]
SANITIZERS = {"address": "-fsanitize=address", "thread": "-fsanitize=thread"}


def compiled(path, command):
    made = harness.run(command, expect=None)
    if made.returncode or not path.exists():
        pytest.skip(f"{command[0]} cannot make it here: {made.stderr.decode(errors='replace')[-200:]}")


def make(kind, path):
    source = PROGRAMS / "started.c"
    if kind == "musl":
        if not shutil.which("musl-gcc"):
            pytest.skip("no musl-gcc here (Debian: apt install musl-tools)")
        compiled(path, ["musl-gcc", "-O1", "-o", path, source])
    elif kind == "32 bits":
        if not os.path.exists("/lib/ld-linux.so.2"):
            pytest.skip("no 32-bit loader here (Debian: apt install libc6-i386)")
        compiled(path, ["gcc", "-m32", "-nostdlib", "-pie", "-Wl,--dynamic-linker=/lib/ld-linux.so.2", "-o", path,
                        PROGRAMS / "started_32_bits.S"])
    elif kind == "static":
        compiled(path, ["gcc", "-O1", "-static", "-o", path, source])
    else:
        compiler, sanitizer = kind.split()
        compiled(path, [compiler, "-O1", "-g", SANITIZERS[sanitizer], "-o", path, source])


@pytest.fixture(scope="module")
def started(session_folder):
    """started(kind): the program started.c, made in a way that cannot carry the recorder, or can."""
    made = {}

    def get(kind):
        if kind not in made:
            path = session_folder / ("started-" + kind.replace(" ", "-"))
            make(kind, path)
            plain = harness.run([path, "argument"], expect=None)
            if plain.returncode != 7:
                pytest.skip(f"a program of this kind does not run here: {plain.stderr.decode(errors='replace')[-300:]}")
            made[kind] = path
        return made[kind]

    return get


def environment_of(program):
    return {"PATH": f"{program.parent}:{os.environ['PATH']}"}


def compare(folder, command, env, *options):
    """Runs it plainly and recorded. Returns what the recorded run printed at its end, and its recordings."""
    recordings = folder / "recordings"
    shutil.rmtree(recordings, ignore_errors=True)
    recordings.mkdir()
    plain = harness.run(command, expect=None, env=env)
    result = malloscope("run", *options, "-o", recordings / "%e.%p.mscope", "--", *command, expect=None, env=env)
    lines = result.stderr.decode().splitlines(keepends=True)
    end = next((i for i, line in enumerate(lines) if line.startswith("malloscope: recorded ")), len(lines))
    what = " ".join(map(str, command))
    assert "".join(lines[:end]) == plain.stderr.decode(), what
    assert (result.returncode, result.stdout) == (plain.returncode, plain.stdout), what
    return "".join(lines[end:]), recordings


@pytest.mark.parametrize("kind, reason", [
    ("musl", "other_libc"), ("32 bits", "machine"), ("gcc address", "sanitizer"), ("gcc thread", "sanitizer"),
    ("clang address", "sanitizer"), ("clang thread", "sanitizer")])
def test_a_program_that_cannot_carry_the_recorder(build, started, folder, kind, reason):
    """It runs as without the recorder, whatever starts it; what it writes tells that LD_PRELOAD was not there."""
    program, starter = started(kind), build("starts.c", "-O1")
    for way in BECOMES + STARTS:
        said, recordings = compare(folder, [starter, way, program], environment_of(program))
        totals = stats(recordings)["totals"]
        counted = {"path": str(program), "reason": reason, "count": 3 if way == "vfork" else 1}
        assert totals["unrecorded_programs"] == [counted], way
        assert "not recorded:" in said and program.name in said and "malloscope attach" in said, (way, said)


@pytest.mark.parametrize("kind", ["musl", "gcc address", "clang address"])
def test_by_shells_and_python(started, folder, kind):
    program = started(kind)
    script = folder / "script"
    script.write_text(f"#!{program}\n")
    script.chmod(0o755)
    import_and_run = "import subprocess, sys; sys.exit(subprocess.run([sys.argv[1], 'argument']).returncode)"
    for command in (["/bin/sh", "-c", f"'{program}' argument; exit $?"],
                    ["/bin/sh", "-c", f"exec '{program}' argument"],
                    ["bash", "-c", f"'{program}' argument | cat; exit ${{PIPESTATUS[0]}}"],
                    ["env", str(program), "argument"],
                    ["/usr/bin/python3", "-c", import_and_run, str(program)],
                    ["/bin/sh", "-c", f"'{script}'; exit $?"]):
        said, recordings = compare(folder, command, {})
        assert [p["path"] for p in stats(recordings)["totals"]["unrecorded_programs"]] == [str(program)], command


def test_other_preloaded_libraries_stay(started, build, folder):
    program, starter = started("gcc thread"), build("starts.c", "-O1")
    other = folder / "libother.so"
    harness.run(["gcc", "-shared", "-fPIC", "-x", "c", "-o", other, "/dev/null"])
    result = malloscope("run", "-q", "-o", folder / "%e.%p.mscope", "--", starter, "execve", program, expect=7,
                        env={"LD_PRELOAD": str(other)})
    assert result.stdout == f"started with argument, recorder absent, given\nothers: {other}\n".encode()


@pytest.mark.parametrize("way", BECOMES + STARTS)
def test_a_program_that_carries_the_recorder(build, folder, way):
    """It is recorded, and nothing is said."""
    program, starter = build("started.c", "-O1"), build("starts.c", "-O1")
    result = malloscope("run", "--exact", "-o", folder / "%e.%p.mscope", "--", starter, way, program, expect=7,
                        env=environment_of(program))
    assert b"recorder preloaded" in result.stdout and b"not recorded" not in result.stderr
    assert len(list(folder.glob("started.*.mscope"))) == (3 if way == "vfork" else 1)
    assert stats(folder)["totals"]["unrecorded_programs"] == []


def test_programs_that_bear_the_recorder_and_are_not_recorded(build, started, folder):
    """A static program, one with its own malloc, and one that is started without the environment: each is named with
    its reason, in `run`, in `info` and for scripts. What cannot be started does not count."""
    static, own = started("static"), build("own_malloc.c", "-O1")
    shell = f"'{static}' argument; '{static}' argument; '{own}' > /dev/null; env -i /bin/true; ./missing; :"
    result = malloscope("run", "-o", folder / "%e.%p.mscope", "--", "/bin/sh", "-c", shell, cwd=folder)
    said = " ".join(result.stderr.decode().split())
    assert "not recorded: 4 programs that it started or became:" in said
    assert f"{static} (statically linked) 2 times" in said
    assert f"{own} (has its own malloc inside)" in said and "(started without LD_PRELOAD)" in said
    totals = stats(folder)["totals"]
    assert totals["unrecorded_starts"] == 4
    assert {(p["reason"], p["count"]) for p in totals["unrecorded_programs"]} == {
        ("static", 2), ("own_malloc", 1), ("environment", 1)}
    exported = json.loads(malloscope("export", folder, "--format", "json").stdout)
    assert exported["totals"]["unrecorded_programs"] == totals["unrecorded_programs"]
    told = malloscope("info", folder).stdout.decode()
    assert f"2 times started or became, statically linked: {static}" in told


def test_a_program_with_a_glibc_of_its_own(folder):
    """One that is as new as the recorder needs carries it. One that is older would end the program."""
    machine = os.uname().machine.replace("_", "-")
    loader = harness.tool_output("gcc", f"-print-file-name=ld-linux-{machine}.so.2").strip()
    if not os.path.isabs(loader):
        pytest.skip("no glibc of this machine here")
    own = folder / "glibc"
    own.mkdir()
    shutil.copy(loader, own / os.path.basename(loader))
    program = folder / "started"
    harness.run(["gcc", "-O1", f"-Wl,--dynamic-linker={own}/{os.path.basename(loader)}", "-o", program,
                 PROGRAMS / "started.c"])
    command = ["/bin/sh", "-c", f"'{program}' argument; exit $?"]

    shutil.copy(os.path.join(os.path.dirname(loader), "libc.so.6"), own)
    result = malloscope("run", "-o", folder / "%e.%p.mscope", "--", *command, expect=7)
    assert b"recorder preloaded" in result.stdout and b"not recorded" not in result.stderr

    versions = folder / "versions"
    versions.write_text("GLIBC_2.2.5 { global: old; local: *; };\nGLIBC_2.31 { global: newer; } GLIBC_2.2.5;\n")
    source = folder / "libc.c"
    source.write_text("int old(void) { return 1; }\nint newer(void) { return 2; }\n")
    harness.run(["gcc", "-shared", "-fPIC", f"-Wl,--version-script={versions}", "-o", own / "libc.so.6", source])
    said, recordings = compare(folder, command, {})
    assert stats(recordings)["totals"]["unrecorded_programs"] == [
        {"path": str(program), "reason": "other_libc", "count": 1}]


def test_bad_pointers(build, folder):
    """The kernel's answer is the same: EFAULT, three times."""
    program, starter = build("started.c", "-O1"), build("starts.c", "-O1")
    malloscope("run", "-q", "-o", folder / "r.mscope", "--", starter, "bad-pointers", program, expect=3)


def test_a_program_that_gains_rights(build, folder):
    if os.getuid() != 0:
        pytest.skip("only root can make a set-uid program of another user")
    program = folder / "changes-user"
    shutil.copy(build("started.c", "-O1"), program)
    os.chown(program, 65534, 65534)
    program.chmod(0o4755)
    mount = subprocess.run(["findmnt", "-n", "-o", "OPTIONS", "-T", program], stdout=subprocess.PIPE, text=True)
    if "nosuid" in mount.stdout:
        pytest.skip("programs here cannot be set-uid")
    said, recordings = compare(folder, ["/bin/sh", "-c", f"'{program}' argument; exit $?"], {})
    assert [p["reason"] for p in stats(recordings)["totals"]["unrecorded_programs"]] == ["rights"]


@pytest.mark.parametrize("way", BECOMES + STARTS)
def test_no_follow_leaves_no_trace(build, folder, way):
    """No program gets LD_PRELOAD, however it is started, and only the program that was named has a recording. The one
    that the process becomes ends it: that is said."""
    program, starter = build("started.c", "-O1"), build("starts.c", "-O1")
    said, recordings = compare(folder, [starter, way, program], environment_of(program), "--no-follow")
    assert [path.name.split(".")[0] for path in recordings.iterdir()] == ["starts"]
    listed = stats(recordings)["totals"]["unrecorded_programs"]
    if way in STARTS:
        assert listed == [] and "not recorded" not in said
    else:
        assert listed == [{"path": str(program), "reason": "no_follow", "count": 1}]
        assert "--no-follow" in said and "attach" not in said


def test_no_follow_and_a_program_that_executes_itself(folder):
    """The new image is another program: it is not recorded."""
    again = "import os, sys\nif len(sys.argv) == 1: os.execv(sys.executable, [sys.executable, sys.argv[0], 'again'])"
    script = folder / "again.py"
    script.write_text(again)
    for options, count in ([], 2), (["--no-follow"], 1):
        recordings = folder / f"r{count}"
        recordings.mkdir()
        malloscope("run", "-q", *options, "-o", recordings / "%e.%p.mscope", "--", "/usr/bin/python3", script)
        assert len(list(recordings.iterdir())) == count


WRAPPERS = {
    "env": "#!/usr/bin/env -S {program} argument",
    "sh": "#!/bin/sh\nenv | grep ^LD_PRELOAD\n{program} child\nexec {program} argument",
    "bash": "#!/usr/bin/env bash\n(exec {program} child)\nexec env {program} argument",
}


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_no_follow_steps_over_wrappers(build, folder, wrapper):
    """env and shells lead to the program that is meant: what the process becomes is recorded under the name that was
    asked for. What they start as a child is not, and nobody else sees LD_PRELOAD."""
    program, script = build("started.c", "-O1"), folder / "script"
    script.write_text(WRAPPERS[wrapper].format(program=program) + "\n")
    script.chmod(0o755)
    plain = harness.run([script], expect=7)
    result = malloscope("run", "--no-follow", "-o", folder / "r.mscope", "--", script, expect=7)
    assert result.stdout == plain.stdout
    names = sorted(json.loads(malloscope("export", path, "--format", "json").stdout)["processes"][0]["executable"]
                   for path in folder.glob("*.mscope"))
    assert names.count(str(program)) == 1, names
    assert json.loads(malloscope("export", folder / "r.mscope", "--format", "json").stdout)["processes"][0][
        "executable"] == str(program)
    assert b"not recorded" not in result.stderr


def test_no_follow_keeps_the_environment_otherwise(folder):
    """The variable is gone, and all others are there, in /proc too."""
    shown = "import os; print(sorted(k for k in os.environ if not k.startswith('MALLOSCOPE')))"
    plain = harness.run(["/usr/bin/python3", "-c", shown])
    result = malloscope("run", "-q", "--no-follow", "-o", folder / "r.mscope", "--", "/usr/bin/python3", "-c", shown)
    assert result.stdout == plain.stdout


def test_a_library_in_a_namespace_of_its_own(build, folder):
    library = folder / "libapart.so"
    harness.run(["gcc", "-shared", "-fPIC", "-x", "c", "-o", library, "/dev/null"])
    program = build("namespaces.c", "-O1", "-ldl")
    said, recordings = compare(folder, [program, library], {})
    assert stats(recordings)["totals"]["unrecorded_programs"] == [
        {"path": str(library), "reason": "namespace", "count": 1}]
    assert "a library in a linker namespace of its own" in " ".join(said.split())


def test_under_another_root(build, started, folder):
    """Where the recorder's file is not, a program starts without its loader's complaint."""
    if os.getuid() != 0:
        pytest.skip("only root can change the root")
    root = folder / "root"
    program = build("started.c", "-O1")
    lines = harness.tool_output("ldd", program).splitlines()
    needed = [line.split("=>")[-1].split()[0] for line in lines if "/" in line]
    for path in [*needed, str(program)]:
        (root / path.lstrip("/")).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, root / path.lstrip("/"))
    said, recordings = compare(folder, ["chroot", root, program, "argument"], {})
    assert [p["reason"] for p in stats(recordings)["totals"]["unrecorded_programs"]] == ["unreachable"]


def test_the_table_of_programs_is_bounded(build, started, folder):
    """More programs than it has room for are counted without names."""
    static = started("static")
    for i in range(40):
        shutil.copy(static, folder / f"program{i}")
    line = f"import subprocess\nfor i in range(40): subprocess.run(['{folder}/program%d' % i])"
    malloscope("run", "-q", "-o", folder / "r.mscope", "--", "/usr/bin/python3", "-c", line)
    totals = stats(folder / "r.mscope")["totals"]
    assert totals["unrecorded_starts"] == 40 and len(totals["unrecorded_programs"]) == 32
    assert "8 starts of other programs" in malloscope("info", folder / "r.mscope").stdout.decode()
