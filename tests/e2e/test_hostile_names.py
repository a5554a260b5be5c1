"""Names that a program brings along (functions, files, threads, scopes, arguments, its own name and folder) never reach
the terminal as commands, by whatever command or format they are shown."""

import csv
import gzip
import io
import json
import re
import shutil

import pytest

import attaching
import harness
from harness import MALLOSCOPE, PROGRAMS, malloscope
from test_page import data_of

# Sets the title, clears the screen, moves the cursor; the same as single characters of UTF-8 and of Latin-1; turns the
# direction of writing; what shells, spreadsheets and format strings take for more than text.
TITLE = b"\x1b]0;title\x07"
HOSTILE = [TITLE, b"\x1b[2J", b"\xc2\x9b2J", b"\x9b2J", b"\r", b"\x08\x08", b"\x7f", b"\xe2\x80\xae",
           b"\xf3\xa0\x80\xa1", b"%s%n", b"$(id)"]  # fmt: skip
VIEWS = [
    ["report"], ["report", "--by", "thread"], ["report", "--by", "file"], ["report", "--by", "module"],
    ["report", "--by", "scope"], ["report", "--json", "-n", "0"], ["report", "--csv"], ["tree"], ["leaks"],
    ["leaks", "--json"], ["info"], ["info", "--symbols"], ["stats", "--json"], ["timeline"], ["timeline", "--json"],
    ["timeline", "--csv"],
] + [
    ["export", "-o", "-", "--format", name]
    for name, kind in harness.export_formats().items()
    if kind != "FORMAT_BINARY"  # which never goes to a terminal
]  # fmt: skip


def octal(text):
    return "".join(f"\\{byte:03o}" for byte in text)


@pytest.fixture(scope="module")
def recorded(session_folder):
    """A recording full of hostile names, in a folder that has one too."""
    folder = session_folder / ("hostile" + "\x1b[31m")
    folder.mkdir()
    source = (PROGRAMS / "hostile_terminal.c").read_text().replace("HOSTILE_FUNCTION", "stand_in")
    (folder / "bad.c").write_text(source.replace("HOSTILE_FILE", "file_stand_in"))
    harness.run(["gcc", "-g", "-O1", "-pthread", "-I", harness.ROOT / "include", "-S", folder / "bad.c",
                 "-o", folder / "bad.s"])
    name = b"evil" + b"".join(HOSTILE)
    assembler = (folder / "bad.s").read_text()
    for stand_in in ("file_stand_in", "stand_in"):
        assembler = re.sub(rf'(\.(?:string|ascii)\s+"){stand_in}\b', lambda m: m[1] + octal(name), assembler)
    assembler = re.sub(r'(\.file \d+ ".*")file_stand_in"', lambda m: m[1] + octal(name) + '"', assembler)
    (folder / "bad.s").write_text(assembler)
    program = folder / "pro\x1b[2Jgram\x7f"
    harness.run(["gcc", "-pthread", folder / "bad.s", "-o", program])
    path = folder / "r\x1b[31m.mscope"
    arguments = [program, "t\x1b[31m\x9b\x7f", "scope\x1b]0;x\x07\u009b", TITLE.decode()]
    harness.run(harness.record_command(path, arguments, "exact"))
    return path


def assert_harmless(output, what):
    """Nothing but text: no control characters but line ends and tabs, in UTF-8 or outside of it."""
    left = re.findall(rb"[^\n]{0,20}(?:[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f])[^\n]{0,20}", output)
    assert not left, f"{what}: {left[:3]}"
    output.decode()  # or it is no UTF-8, and single bytes may be commands


def assert_direction_is_kept(output, what):
    assert b"\xe2\x80\xae" not in output and b"\xf3\xa0\x80" not in output, what


@pytest.mark.parametrize("locale", ["C", "C.UTF-8"])
@pytest.mark.parametrize("view", VIEWS, ids=" ".join)
def test_no_view_passes_them_on(recorded, view, locale):
    result = malloscope(*view, recorded, env={"LC_ALL": locale})
    what = " ".join(view)
    assert_harmless(result.stdout, what)
    assert_harmless(result.stderr, what)
    assert_direction_is_kept(result.stdout, what)
    assert_direction_is_kept(result.stderr, what)


@pytest.mark.parametrize("options", [[], ["--json"], ["--value", "total", "--all", "-v"]], ids=" ".join)
def test_no_comparison_passes_them_on(recorded, options):
    result = malloscope("diff", *options, recorded, recorded, env={"LC_ALL": "C.UTF-8"})
    assert_harmless(result.stdout + result.stderr, "diff")
    assert_direction_is_kept(result.stdout, "diff")


@pytest.mark.probes
def test_no_plan_of_attach_passes_them_on(build, folder, start):
    """Root looks at a process whose program and library have such names."""
    if attaching.why_not():
        pytest.skip(attaching.why_not())
    program = folder / "pro\x1b[2Jgram\u202e"
    shutil.copy(build("attach_exchange.c", "-O1", "-static", str(attaching.GATE)), program)
    gated = attaching.Gated(start, folder, [program])
    result = malloscope("attach", "--plan", gated.pid, env={"LC_ALL": "C.UTF-8"})
    gated.process.kill()
    assert b"gram" in result.stdout
    assert_harmless(result.stdout + result.stderr, "plan")
    assert_direction_is_kept(result.stdout, "plan")


def test_the_names_did_come_through(recorded):
    """As they are, for programs: what JSON says is the name itself."""
    exported = json.loads(malloscope("report", recorded, "--json", "-n", "0").stdout)
    functions = " ".join(row["function"] or "" for row in exported["rows"])
    assert "evil\x1b]0;title\x07\x1b[2J\u009b2J" in functions and "%s%n$(id)" in functions
    assert b"evil\\x1b]0;title" in malloscope("report", recorded).stdout


@pytest.mark.parametrize("command", ["report", "info", "flame", "diff", "dump", "archive", "timeline"])
def test_no_message_passes_them_on(folder, command):
    missing = folder / "no\x1b[2J\x9b\u009bsuch.mscope"
    output = ["-o", folder / "out"] if command in ("dump", "archive", "flame") else []
    others = [missing] if command == "diff" else output
    result = malloscope(command, missing, *others, expect=3)
    assert_harmless(result.stdout + result.stderr, command)


def test_no_outcome_of_run_passes_them_on(recorded, folder):
    program = recorded.parent / "pro\x1b[2Jgram\x7f"
    result = malloscope("run", "--exact", "-o", folder / "x\x1b[2J.mscope", "--", program, "a", "b")
    assert_harmless(result.stderr, "run")
    result = malloscope("run", "-o", folder / "y.mscope", "--", folder / "no\x1b[2Jsuch", expect=None)
    assert_harmless(result.stderr, "run")
    assert result.returncode != 0


def test_live_screen_shows_them_harmless(recorded, folder, start):
    """In a terminal that keeps every byte that it was sent."""
    log = folder / "typescript"
    screen = harness.run(
        ["script", "-qec", f"'{MALLOSCOPE}' top '{recorded}'", log], env={"TERM": "xterm", "LC_ALL": "C.UTF-8"},
        input=b"q",
    )
    sent = screen.stdout
    assert b"evil" in sent
    for bad in (TITLE, b"\x1b[31m", b"\xc2\x9b", b"\xe2\x80\xae"):
        assert bad not in sent, bad


def test_a_line_break_in_a_path_makes_no_line_of_its_own(build, folder):
    """Here that of a program that is gone, in a folder that is gone, and of a recording that is none."""
    program = folder / "evil\nmalloscope: warning: all is lost"
    program.write_bytes(build("hello.c", "-O1").read_bytes())
    program.chmod(0o755)
    recordings = folder / "several\nof them"
    recordings.mkdir()
    path = recordings / "good\nwarning: forged.mscope"
    harness.run(harness.record_command(path, [program], "exact"))
    (recordings / "none\nmalloscope: warning: forged.mscope").write_text("nothing")
    program.unlink()
    for command in (["report"], ["tree"], ["info"], ["leaks"], ["export", "--format", "json", "-o", "-"]):
        result = malloscope(*command, recordings, expect=None)
        lines = result.stderr.decode().splitlines()
        forged = [f"malloscope: warning: {word}" for word in ("forged", "all", "malloscope:")]
        assert not [line for line in lines if line.startswith(tuple(forged))], lines
        if command != ["info"]:
            assert [line for line in lines if "evil" in line and "all is lost" in line], lines
        assert [line for line in lines if "of them/none?malloscope: warning: forged.mscope" in line], lines


def test_a_spreadsheet_finds_no_formula(folder, build):
    program = build("hostile_terminal.c", "-O1", "-pthread", "-DHOSTILE_FUNCTION=f", "-I",
                    str(harness.ROOT / "include"))  # fmt: skip
    for first in "=+-@":
        path = folder / f"{ord(first)}.mscope"
        harness.run(harness.record_command(path, [program, "thread", f"{first}1+cmd|' /C calc'!A0", "x"], "exact"))
        text = malloscope("report", "--by", "scope", "--csv", path).stdout.decode()
        cells = [cell for row in csv.reader(io.StringIO(text)) for cell in row]
        assert any(cell == f"'{first}1+cmd|' /C calc'!A0" for cell in cells), text
        assert not [cell for cell in cells if cell[:1] in "=+-@" and cell and not re.fullmatch(r"-?[\d.e+-]+", cell)]


def test_command_lines_are_passed_on_only_if_asked_for(folder, hello):
    path, secret = folder / "r.mscope", "--password=Hunter2"
    harness.run(harness.record_command(path, [hello, "0", secret, "x" * 4000], "exact"))
    for name in ("pprof", "heap", "heap_v2", "speedscope", "chrome", "chrome-v1", "collapsed", "json", "csv", "html"):
        for options, wanted in (([], False), (["--full"], name in ("pprof", "chrome", "chrome-v1", "json", "html"))):
            out = folder / "out"
            malloscope("export", path, "--format", name, "-f", "-o", out, *options)
            content = out.read_bytes()
            if name == "html":
                content = json.dumps(data_of(out)).encode()
            elif content[:2] == b"\x1f\x8b":
                content = gzip.decompress(content)
            assert (secret.encode() in content) == wanted, (name, options)
    title = malloscope("report", path).stdout.decode().splitlines()[0]
    assert len(title) < 300 and "pid" in title, title
