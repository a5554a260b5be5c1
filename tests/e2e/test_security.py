"""Files that others cannot read, links that are not followed, privileges that are not lent out. SECURITY.md says what
is promised."""

import os
import shutil
import stat

import pytest

import harness
from harness import LIBRARY, MALLOSCOPE, malloscope

AS_NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to be somebody else")


def mode_of(path):
    return stat.S_IMODE(os.lstat(path).st_mode)


def test_what_is_recorded_is_for_its_owner_alone(folder, hello):
    """Whatever the umask permits."""
    env = {
        "XDG_CACHE_HOME": str(folder / "cache"),
        "MALLOSCOPE_DUMP_AT": "exit",
        "MALLOSCOPE_DUMP": str(folder / "d.heap"),
    }
    everybody = ["sh", "-c", 'umask 0; exec "$@"', "sh"]
    harness.run([*everybody, MALLOSCOPE, "run", "-q", "--exact", "-o", folder / "r.mscope", "--", hello], env=env)
    harness.run([*everybody, MALLOSCOPE, "dump", "-q", folder / "r.mscope", "-o", folder / "copy.mscope"], env=env)
    harness.run([*everybody, MALLOSCOPE, "archive", "-q", folder / "r.mscope", "-o", folder / "a.mscope"], env=env)
    harness.run([*everybody, MALLOSCOPE, "report", folder / "r.mscope"], env=env)
    files = [folder / name for name in ("r.mscope", "d.heap", "copy.mscope", "a.mscope")]
    files += list((folder / "cache" / "malloscope").iterdir())
    assert len(files) > 4, "names were kept"
    assert {mode_of(path) for path in files} == {0o600}
    assert mode_of(folder / "cache" / "malloscope") == 0o700
    assert sorted(path.name for path in folder.iterdir()) == ["a.mscope", "cache", "copy.mscope", "d.heap", "r.mscope"]


@needs_root
def test_nobody_else_changes_the_control_words_of_a_recording(folder, good):
    script = f"exec 3<>'{good}'"
    assert harness.run([*AS_NOBODY, "sh", "-c", script], expect=None).returncode != 0
    shutil.copy(good, folder / "shared.mscope")
    (folder / "shared.mscope").chmod(0o644)
    harness.run([*AS_NOBODY, MALLOSCOPE, "stats", "--json", folder / "shared.mscope"])


LINKED = {
    "run": lambda good, hello, out: ["run", "-q", "-o", out, "--", hello],
    "dump": lambda good, hello, out: ["dump", good, "-o", out],
    "archive": lambda good, hello, out: ["archive", good, "-o", out],
    "export": lambda good, hello, out: ["export", good, "--format", "json", "-o", out],
    "flame": lambda good, hello, out: ["flame", good, "-o", out],
}


@pytest.mark.parametrize("exists", [True, False], ids=["to a file", "to nothing"])
@pytest.mark.parametrize("command", LINKED)
def test_links_are_not_followed(folder, good, hello, command, exists):
    """Somebody else may have put one where a file is to be written."""
    target, link = folder / "target", folder / "out.mscope"
    if exists:
        target.write_bytes(b"precious")
    link.symlink_to(target)
    result = malloscope(*LINKED[command](good, hello, link), expect=None)
    assert link.is_symlink() and target.exists() == exists
    if exists:
        assert target.read_bytes() == b"precious"
    assert result.returncode != 0 or command == "run", "'run' may record under another name"
    if result.returncode:
        assert b"out.mscope" in result.stderr and b"hint: " in result.stderr


def test_run_replaces_no_link(folder, hello):
    (folder / "link").symlink_to(folder / "nowhere")
    result = malloscope("run", "-f", "-q", "-o", folder / "link", "--", hello, expect=1)
    assert b"not a plain file" in result.stderr and not (folder / "nowhere").exists()


@pytest.mark.parametrize("command", ["dump", "archive"])
def test_a_link_that_is_to_be_replaced_is_replaced_itself(folder, good, hello, command):
    target, link = folder / "target", folder / "out.mscope"
    target.write_bytes(b"precious")
    link.symlink_to(target)
    arguments = LINKED[command](good, hello, link)
    malloscope(arguments[0], "-f", *arguments[1:])
    assert target.read_bytes() == b"precious"
    assert not link.is_symlink() and mode_of(link) == 0o600


@needs_root
def test_a_set_uid_program_that_is_linked_with_the_recorder_is_not_recorded(build, folder):
    """Neither by what the environment says nor where the program itself asks for it."""
    program = build("api_linked.c", "-O1", "-DMSCOPE_LINKED", f"-I{harness.ROOT / 'include'}", f"-L{LIBRARY.parent}",
                    f"-Wl,-rpath,{LIBRARY.parent}", "-lmalloscope")  # fmt: skip
    raised = folder / "raised"
    shutil.copy(program, raised)
    raised.chmod(0o4755)
    open_folder = folder / "open"
    open_folder.mkdir()
    open_folder.chmod(0o777)
    env = {"MALLOSCOPE_OUTPUT": str(open_folder / "r.mscope"), "MALLOSCOPE_DUMP_AT": "exit",
           "MALLOSCOPE_DUMP": str(open_folder / "d.heap")}  # fmt: skip
    harness.run([program], expect=None, env=env)
    assert list(open_folder.iterdir()), "as any other user's program it is recorded"
    for path in open_folder.iterdir():
        path.unlink()
    result = harness.run([*AS_NOBODY, raised], expect=None, env=env)
    assert b"error while loading" not in result.stderr
    assert list(open_folder.iterdir()) == []
    assert b"Operation not permitted" in result.stderr


def test_the_programs_name_is_no_pattern_and_no_path(folder, hello):
    program = folder / "%p%n..%s"
    shutil.copy(hello, program)
    place = folder / "out"
    place.mkdir()
    malloscope("run", "-q", "-o", place / "%e.mscope", "--", program)
    assert [path.name for path in place.iterdir()] == ["%p%n..%s.mscope"]


@needs_root
def test_names_that_another_user_left_in_the_cache_are_not_believed(build, folder, record):
    """Whoever can write into the folder of kept names cannot give names to functions."""
    recording = record(build("hello.c", "-O1"), rate="exact").path
    env = {"XDG_CACHE_HOME": str(folder / "cache")}
    first = malloscope("report", recording, env=env).stdout
    kept = list((folder / "cache" / "malloscope").iterdir())
    assert kept
    for path in kept:
        content = path.read_bytes()
        path.unlink()
        other = folder / "elsewhere"
        other.write_bytes(content[:-20] + bytes(20))
        os.chown(other, 65534, 65534)
        path.symlink_to(other)
    assert malloscope("report", recording, env=env).stdout == first
    assert not any(path.is_symlink() for path in kept), "they have been replaced"
    assert (folder / "elsewhere").stat().st_uid == 65534
    os.chown(folder / "cache" / "malloscope", 65534, 65534)
    for path in kept:
        path.unlink()
    assert malloscope("report", recording, env=env).stdout == first
    assert list((folder / "cache" / "malloscope").iterdir()) == [], "nothing is kept in somebody else's folder"
