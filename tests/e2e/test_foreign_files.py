"""Files that another user's program names: what root reads of them is no more than that user may read, and what stands
there is not opened unless it is a plain file."""

import json
import os
import struct
from pathlib import Path

import pytest

import attaching
import harness
from harness import MALLOSCOPE, PROGRAMS, malloscope
from test_page import data_of
from test_security import AS_NOBODY, mode_of, needs_root

NOBODY = 65534
SECRET = "the-password-of-root"
WRITER, TARGET_USER = 36, 44  # where the header of a recording has these


@pytest.fixture
def theirs(folder):
    """A folder of another user's."""
    path = folder / "theirs"
    path.mkdir()
    path.chmod(0o755)
    os.chown(path, NOBODY, NOBODY)
    return path


@pytest.fixture
def secret(folder):
    path = folder / "secret.txt"
    path.write_text(f"{SECRET}\n" * 20)
    path.chmod(0o600)
    return path


def program_with_source(place, source):
    """A program whose debug info says that it was compiled from `source`."""
    text = (PROGRAMS / "hostile_names.c").read_text().replace("HOSTILE_FUNCTION", "odd")
    (place / "build.c").write_text(text.replace("HOSTILE_FILE", f'"{source}"'))
    harness.run(["gcc", "-g", "-O1", place / "build.c", "-o", place / "odd"])
    return place / "odd"


def record_as_nobody(place, program):
    path = place / "r.mscope"
    harness.run([*AS_NOBODY, MALLOSCOPE, "run", "-q", "--exact", "-o", path, "--", program])
    return path


def make_page(recording, place, *options):
    page = place / "page.html"
    result = malloscope("flame", recording, "-f", "-o", page, *options)
    return data_of(page), result.stderr.decode()


def seems_attached(recording, user):
    """Makes root's recording look as if root had attached to a process of that user."""
    with open(recording, "r+b") as file:
        for place, number in ((WRITER, 1), (TARGET_USER, user + 1)):
            file.seek(place)
            file.write(struct.pack("<I", number))


@needs_root
def test_a_page_holds_no_file_that_the_recorded_user_may_not_read(folder, theirs, secret):
    """By a link, and by its own name."""
    (theirs / "evil.c").symlink_to(secret)
    hidden = folder / "hidden.c"
    hidden.write_text(f"{SECRET}\n" * 20)
    hidden.chmod(0o600)
    for source in (theirs / "evil.c", hidden):
        recording = record_as_nobody(theirs, program_with_source(folder, source))
        for options in ([], ["--source"]):
            data, said = make_page(recording, folder, *options)
            assert any(name.endswith(source.name) for name in data["files"]), "the program does name it"
            assert SECRET not in json.dumps(data), options
            assert ("lines of source files are left out" in said) == (not options), said
        malloscope("export", recording, "--format", "html", "-f", "-o", folder / "page.html")
        assert SECRET not in json.dumps(data_of(folder / "page.html"))
        recording.unlink()


@needs_root
def test_a_page_of_an_attached_process_holds_none_either(folder, theirs, secret):
    (theirs / "evil.c").symlink_to(secret)
    path = folder / "r.mscope"
    harness.run(harness.record_command(path, [program_with_source(folder, theirs / "evil.c")], "exact"))
    seems_attached(path, NOBODY)
    for options in ([], ["--source"]):
        data, said = make_page(path, folder, *options)
        assert SECRET not in json.dumps(data), options
        assert (f"user {NOBODY}" in said) == (not options), said


@needs_root
def test_a_python_program_names_its_file_as_it_likes(folder, theirs, secret):
    (theirs / "evil.py").symlink_to(secret)
    (theirs / "start.py").write_text(
        "code = '\\n' * 6 + 'kept = [bytes(100000) for i in range(100)]'\n"
        f"exec(compile(code, {str(theirs / 'evil.py')!r}, 'exec'))\n"
    )
    path = folder / "r.mscope"
    harness.run(harness.record_command(path, ["/usr/bin/python3", theirs / "start.py"], "exact"))
    seems_attached(path, NOBODY)
    data, _ = make_page(path, folder, "--source")
    assert any(name.endswith("evil.py") for name in data["files"]), "the program does name it"
    assert SECRET not in json.dumps(data)


@needs_root
def test_what_the_recorded_user_may_read_can_be_asked_for(folder, theirs):
    """Their own files, those that everybody may read, and both through links of their own."""
    own, common = theirs / "own.c", folder / "common.c"
    for path, user, mode in ((own, NOBODY, 0o600), (common, 0, 0o644)):
        path.write_text("\n".join(f"line {number} of {path.name}" for number in range(20)))
        path.chmod(mode)
        os.chown(path, user, user)
    (theirs / "link.c").symlink_to(common)
    os.lchown(theirs / "link.c", NOBODY, NOBODY)
    (theirs / "up.c").symlink_to("../theirs/./own.c")
    os.lchown(theirs / "up.c", NOBODY, NOBODY)
    for source, shown in ((own, "own"), (common, "common"), (theirs / "link.c", "common"), (theirs / "up.c", "own")):
        recording = record_as_nobody(theirs, program_with_source(folder, source))
        data, _ = make_page(recording, folder)
        assert "line 6 of" not in json.dumps(data)
        data, _ = make_page(recording, folder, "--source")
        assert f"line 6 of {shown}.c" in json.dumps(data["sources"])
        recording.unlink()


@needs_root
def test_a_third_user_cannot_lead_root_elsewhere(folder, theirs, secret):
    """Root's own program was compiled from a file in a folder of somebody else's, who has put a link there since."""
    (theirs / "evil.c").symlink_to(secret)
    os.lchown(theirs / "evil.c", NOBODY, NOBODY)
    path = folder / "r.mscope"
    harness.run(harness.record_command(path, [program_with_source(folder, theirs / "evil.c")], "exact"))
    data, _ = make_page(path, folder)
    assert any(name.endswith("evil.c") for name in data["files"]) and SECRET not in json.dumps(data)
    (theirs / "evil.c").unlink()
    (theirs / "evil.c").symlink_to(secret)
    data, _ = make_page(path, folder)
    assert SECRET in json.dumps(data), "a link of root's own leads where root wants"


@needs_root
def test_a_report_tells_no_names_of_a_program_that_the_recorded_user_may_not_read(folder, theirs):
    """It has no build-id, and nothing but its path says that it was mapped."""
    source = (PROGRAMS / "hostile_names.c").read_text().replace("HOSTILE_FILE", '"x.c"')
    for name in ("public_name", "secret_name"):
        (folder / f"{name}.c").write_text(source.replace("HOSTILE_FUNCTION", name))
        harness.run(["gcc", "-g", "-O1", "-Wl,--build-id=none", folder / f"{name}.c", "-o", folder / name])
    (folder / "secret_name").chmod(0o700)
    program = theirs / "program"
    program.write_bytes((folder / "public_name").read_bytes())
    program.chmod(0o755)
    os.utime(program, (1e9, 1e9))
    os.utime(folder / "secret_name", (1e9, 1e9))
    recording = record_as_nobody(theirs, program)
    assert b"public_name" in malloscope("report", recording).stdout
    program.unlink()
    program.symlink_to(folder / "secret_name")
    result = malloscope("report", recording)
    assert b"secret_name" not in result.stdout and b"program may not be read" in result.stderr


def test_what_the_kernel_shows_as_files_is_not_read(folder, good):
    """Reading /proc/kmsg takes messages away from others, and some files there have no end."""
    for name in ("/proc/self/maps", "/proc/version", "/sys/kernel/uevent_seqnum"):
        result = malloscope("report", name, expect=5)
        assert b"is not a regular file" in result.stderr, result.stderr


@needs_root
@pytest.mark.probes
def test_attach_notes_the_user_of_the_process(build, start, folder):
    if attaching.why_not():
        pytest.skip(attaching.why_not())
    program = build("attach_exchange.c", "-O1", str(attaching.GATE))
    for user, command in ((NOBODY, [*AS_NOBODY, program]), (0, [program])):
        gated = attaching.Gated(start, folder, command)
        attached = attaching.Attached(start, folder, gated.pid)
        recording = attached.stop()
        gated.process.kill()
        with open(recording, "rb") as file:
            file.seek(TARGET_USER)
            assert struct.unpack("<I", file.read(4)) == (user + 1,)


def test_what_is_written_is_for_its_owner_unless_asked_otherwise(folder, good, hello):
    """However open the umask is."""
    everybody = ["sh", "-c", 'umask 002; exec "$@"', "sh", MALLOSCOPE]
    for public, mode in (([], 0o600), (["--public"], 0o664)):
        place = folder / f"{mode:o}"
        place.mkdir()
        for name in ("json", "csv", "pprof", "html", "collapsed"):
            harness.run([*everybody, "export", good, "--format", name, "-o", place / name, *public])
        harness.run([*everybody, "flame", good, "-o", place / "flame", *public])
        harness.run([*everybody, "report", "--html", good, "-o", place / "report", *public])
        harness.run([*everybody, "diff", "--html", good, good, "-o", place / "diff", *public])
        harness.run([*everybody, "run", "-q", "-o", folder / f"{mode:o}.mscope", "--peak-limit", "1G", "--junit",
                     place / "junit", *public, "--", hello])  # fmt: skip
        modes = {path.name: mode_of(path) for path in place.iterdir()}
        assert len(modes) == 9 and set(modes.values()) == {mode}, modes


def write_end(start, fifo, done):
    """A process that waits to write to the pipe, and makes `done` when somebody has opened it to read."""
    process = start(["sh", "-c", 'exec 3> "$1"; touch "$2"', "sh", fifo, done])
    waiting = Path(f"/proc/{process.pid}/wchan")
    harness.wait_until(lambda: "partner" in waiting.read_text(encoding="ascii"), process)
    return process


@pytest.mark.parametrize("what", ["program", "debug file", "split debug info", "source"])
def test_a_pipe_in_the_place_of_a_file_is_not_opened(folder, start, what):
    """Nor is a device, which opening alone could set off."""
    (folder / "x.c").write_text((PROGRAMS / "hello.c").read_text())
    flags = ["-gsplit-dwarf"] if what == "split debug info" else ["-g"]
    harness.run(["gcc", *flags, "-O1", "-c", folder / "x.c", "-o", folder / "x.o"], cwd=folder)
    harness.run(["gcc", "-g", folder / "x.o", "-o", folder / "x"])
    if what == "debug file":
        harness.run(["objcopy", "--only-keep-debug", folder / "x", folder / "x.debug"])
        harness.run(["objcopy", "--strip-debug", f"--add-gnu-debuglink={folder / 'x.debug'}", folder / "x"])
    path = folder / "r.mscope"
    harness.run(harness.record_command(path, [folder / "x"], "exact"))
    fifo = folder / {"program": "x", "debug file": "x.debug", "split debug info": "x.dwo", "source": "x.c"}[what]
    assert fifo.exists()
    fifo.unlink()
    os.mkfifo(fifo)
    done = folder / "done"
    writer = write_end(start, fifo, done)
    for command in (["report", "--no-cache"], ["info", "--symbols"], ["flame", "-f", "-o", folder / "page.html"]):
        malloscope(*command, path)
        assert not done.exists(), command
    with open(fifo, "rb"):  # lets the writer go
        assert writer.wait(harness.PATIENCE) == 0 and done.exists()
