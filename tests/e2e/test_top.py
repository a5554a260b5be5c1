"""top: the live screen, in a real terminal (tmux)."""

import contextlib
import fcntl
import os
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import termios
import time
from pathlib import Path

import pytest

import harness
from harness import COMMANDS, MALLOSCOPE, malloscope

PATIENCE = 60  # seconds that a change may take to be seen on a machine under load


class Screen:
    """A terminal of tmux, with a server of its own."""

    def __init__(self, socket):
        self.socket = socket

    def tmux(self, *arguments):
        command = ["tmux", "-S", self.socket, "-f", "/dev/null", *map(str, arguments)]
        return harness.run(command, env={"TERM": "xterm-256color", "LC_ALL": "C.UTF-8"}).stdout.decode()

    def start(self, command, width=80, height=24, env=None):
        words = {"LC_ALL": "C.UTF-8", "XDG_CACHE_HOME": harness.CACHE, **(env or {})}
        settings = " ".join(f"{name}={value}" for name, value in words.items())
        line = f"{settings} {' '.join(map(str, command))}; echo \"status $?\"; sleep 1000"
        self.tmux("new-session", "-d", "-x", width, "-y", height, line)
        return self

    def press(self, *keys):
        for key in keys:
            self.tmux("send-keys", key)

    def resize(self, width, height):
        self.tmux("resize-window", "-x", width, "-y", height)

    def text(self):
        return self.tmux("capture-pane", "-p")

    def wait(self, pattern):
        """The screen as soon as it matches."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            text = self.text()
            if re.search(pattern, text, re.MULTILINE):
                return text
            time.sleep(0.1)
        raise AssertionError(f"{pattern!r} is not on the screen:\n{text}")

    def wait_without(self, pattern):
        return self.wait(rf"(?s)\A(?!.*{pattern})")


@pytest.fixture
def screen(folder):
    if not shutil.which("tmux"):
        pytest.skip("no tmux here (Debian: apt install tmux)")
    terminal = Screen(folder / "tmux")
    yield terminal
    with contextlib.suppress(AssertionError):
        terminal.tmux("kill-server")


@pytest.fixture
def program(build, start, folder):
    """The program under the recorder: its process id."""
    path = folder / "g.mscope"
    recorder = start(harness.record_command(path, [build("top_growing.c")], "exact"))
    pid = harness.child_of(recorder.pid, "top_growing")
    deadline = time.monotonic() + PATIENCE
    while not path.exists() or not harness.run([MALLOSCOPE, "stats", path], expect=None).returncode == 0:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    yield pid
    # Forked children are ours as well.
    for other in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError, ValueError):
            if str(folder) in Path(f"/proc/{other}/maps").read_text() and int(other) != os.getpid():
                os.kill(int(other), signal.SIGKILL)


def rows(text):
    """The lines of the table by their first name: live, growth, total, temporary, age."""
    found = {}
    for line in text.split("SITE", 1)[1].splitlines()[1:]:
        match = re.match(r"(.{8}) (.{9}) (.{8}) (.{5}) (.{7})  (\w+)  \S*top_growing\.c:\d+", line)
        if match:
            found[match.group(6)] = [cell.strip() for cell in match.groups()[:5]]
    return found


def kib(text):
    number, unit = re.fullmatch(r"[+-]?([\d.]+)([KMG]?)", text).groups()
    return float(number) * {"": 1 / 1024, "K": 1, "M": 1024, "G": 1024 * 1024}[unit]


def top_of(program):
    """The process that shows the screen: `malloscope top`."""
    command = [str(MALLOSCOPE).encode(), b"top", str(program).encode()]
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            if Path(f"/proc/{name}/cmdline").read_bytes().split(b"\0")[:3] == command:
                return int(name)
    raise AssertionError("top does not run")


def test_the_number_of_run_itself(screen, program):
    """What a shell knows as $! stands for the program that it runs."""
    run = int(re.search(r"^PPid:\s*(\d+)", Path(f"/proc/{program}/status").read_text(), re.M)[1])
    screen.start([MALLOSCOPE, "top", run])
    screen.wait(rf" malloscope top  top_growing \({program}\), running for")
    screen.press("q")
    screen.wait(r"^status 0")


def test_sites_have_their_figures(screen, program):
    screen.start([MALLOSCOPE, "top", program])
    text = screen.wait(r"^ +[\d.]+[KM] +\+[56]\d\dK .*leak")
    table = rows(text)
    assert table["hold"][:4] == ["2.00M", "", "2.00M", "0%"]
    assert table["for_a_moment"][0] == "0" and table["for_a_moment"][3] == "100%" and table["for_a_moment"][4] == ""
    assert table["leak"][0] == table["leak"][2] and 400 < kib(table["leak"][1]) < 900
    assert re.fullmatch(r"[\d.]+s", table["leak"][4])
    lines = text.splitlines()
    assert re.match(rf" malloscope top  top_growing \({program}\), running for [\d.]+ s", lines[0])
    assert re.match(r" live [\d.]+ MiB   \+\d+K/s   peak [\d.]+ MiB   total [\d.]+ MiB   temporary >?99%", lines[1])
    assert re.match(r" [\d.]+ MiB [▁▂▃▄▅▆▇█]+ [\d.]+ MiB   last [\d.]+s", lines[2])
    assert lines[23].startswith(" q quit  ? help") and max(map(len, lines)) <= 80
    screen.press("q")
    screen.wait(r"^status 0")


def test_keys(screen, program):
    screen.start([MALLOSCOPE, "top", program])
    screen.wait(r"LIVE▼(.*\n)*.*\+\d+K .*leak")
    screen.press("t")
    text = screen.wait("TOTAL▼")
    totals = [kib(row[2]) for row in rows(text).values()]
    assert totals == sorted(totals, reverse=True)
    screen.press("g")
    assert next(iter(rows(screen.wait("GROWTH/s▼")))) == "leak"

    screen.press("Enter")
    text = screen.wait("main  ")
    stack = re.search(r"leak  \S+top_growing.c:\d+\n +leak .*\n +serve .*\n +main .*top_growing.c:\d+", text)
    assert stack, text
    screen.press("Enter")
    screen.wait_without("main  ")

    screen.press("/", "l", "e", "a", "k", "Enter")
    text = screen.wait("filter: leak")
    assert set(rows(text)) == {"leak"}
    screen.press("/", "C-u", "[", "Enter")
    text = screen.wait("is not a regular expression")
    assert set(rows(text)) == {"leak", "hold", "for_a_moment"}

    screen.press("?")
    screen.wait(r"b +baseline: LIVE and TOTAL count from now on")
    screen.press("x")
    screen.wait("SITE")

    screen.press("f")
    before = screen.wait("FROZEN")
    time.sleep(2.5)
    assert screen.text() == before
    screen.press("Space")
    assert rows(screen.wait_without("FROZEN"))
    screen.wait_without(re.escape(rows(before)["leak"][0]))


def test_the_baseline_counts_from_now_on(screen, program):
    screen.start([MALLOSCOPE, "top", program])
    screen.wait("hold")
    screen.press("b")
    text = screen.wait(r"\+LIVE▼[^\n]*\n +\+\d+")
    table = rows(text)
    assert "hold" not in table and table["leak"][0] == table["leak"][2] and table["for_a_moment"][0] == ""
    assert re.search(r"from now on: [\d.]+s $", text.splitlines()[0] + " ") and "(+" in text.splitlines()[1]
    screen.press("B")
    assert "hold" in rows(screen.wait("hold"))


def test_the_screen_follows_the_size_of_the_terminal(screen, program):
    screen.start([MALLOSCOPE, "top", program], width=130, height=40)
    text = screen.wait("hold")
    assert "tests/programs/top_growing.c:" in text and text.splitlines()[39].startswith(" q quit")
    for width, height in ((80, 24), (40, 10), (200, 50)):
        screen.resize(width, height)
        text = screen.wait(rf"\A malloscope top.*\n(.*\n){{{height - 2}}} q quit")
        assert len(text.splitlines()) == height and "leak" in text
        assert max(map(len, text.splitlines())) <= width
        assert len(re.findall("q quit", text)) == 1


def test_a_program_that_ends_stays_with_its_last_figures(screen, program):
    screen.start([MALLOSCOPE, "top", program])
    screen.wait("hold")
    os.kill(program, signal.SIGTERM)
    text = screen.wait("all programs have ended: these are their last figures")
    assert f"top_growing ({program}), ended after" in text
    table = rows(text)
    report = harness.report(Path(f"{screen.socket.parent}/g.mscope"))
    live = {row["function"]: row["live_bytes"] for row in report["rows"]}
    leak = live["leak"] / 1024
    assert abs(kib(table["leak"][0]) - leak) <= 0.006 * leak and table["hold"][0] == "2.00M"
    screen.press("Enter")
    screen.wait("main  ")
    screen.press("q")
    screen.wait(r"^status 0")


def test_children_by_fork_and_programs_by_exec_are_shown(screen, program):
    screen.start([MALLOSCOPE, "top", program])
    screen.wait("hold")
    os.kill(program, signal.SIGUSR1)
    text = screen.wait("leak_in_child")
    assert "2 of 2 processes running" in text
    tree = re.search(rf"^ +{program} .*  top_growing\n +(\d+) .*  └ top_growing", text, re.MULTILINE)
    assert tree, text
    child = int(tree.group(1))
    table = rows(text)
    assert table["hold"][0] == "4.00M", "what the child inherited is live in both"
    screen.press("p", "p")
    text = screen.wait(rf"top_growing \({child}\), running")
    assert rows(text)["hold"][0] == "2.00M" and "leak_in_child" in rows(text)
    screen.press("p")
    screen.wait("2 of 2 processes running")

    os.kill(child, signal.SIGTERM)
    text = screen.wait(r"└ top_growing \(ended\)")
    assert "1 of 2 processes running" in text and "leak_in_child" not in rows(text)

    os.kill(program, signal.SIGUSR2)
    text = screen.wait(r"1 of 3 processes running(.*\n)*.*leak")
    assert len(re.findall(rf"^ +{program} ", text, re.MULTILINE)) == 2 and "hold" not in rows(text)


def test_terminals_without_colour_or_utf_8(screen, program):
    screen.start([MALLOSCOPE, "top", program], env={"TERM": "vt100", "LC_ALL": "C"})
    text = screen.wait(r"\+\d+K .*leak")
    assert "LIVEv" in text and re.search(r"MiB [.:+#]+ [\d.]+ MiB", text) and text.isascii()
    assert not re.search(r"\x1b\[[0-9;]*3[0-7]m", screen.tmux("capture-pane", "-p", "-e"))
    screen.press("Down")
    screen.press("q")
    screen.wait("^status 0")


def test_refreshing_sends_only_what_has_changed(program):
    """What is sent again although it did not change flickers on a slow line."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(MALLOSCOPE, ["malloscope", "top", str(program)], harness.clean_environment({"TERM": "xterm"}))
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))

    def read_until(is_enough):
        """What comes until it is enough, which is asked each time that nothing has come for half a second."""
        data, deadline = b"", time.monotonic() + PATIENCE
        while True:
            if select.select([terminal], [], [], 0.5)[0]:
                data += os.read(terminal, 65536)
            elif is_enough(data):
                return data
            assert time.monotonic() < deadline, data

    try:
        read_until(lambda data: b"hold" in data and b"for_a_moment" in data)
        begin = time.monotonic()
        later = read_until(lambda data: time.monotonic() - begin > 5 and len(data) > 100)
        os.write(terminal, b"\x03")
        assert os.waitpid(pid, 0)[1] == 0
    finally:
        os.close(terminal)
    assert b"for_a_moment" not in later and b"SITE" not in later, "lines that had not changed were sent again"
    assert len(later) < 4000 and not re.search(rb"\x1b\[(2J|H\x1b\[J)", later), later


def test_the_screen_ends_with_its_terminal(screen, program):
    screen.start([MALLOSCOPE, "top", program])
    screen.wait("hold")
    pid = top_of(program)
    screen.tmux("kill-server")
    deadline = time.monotonic() + PATIENCE
    while Path(f"/proc/{pid}/cmdline").exists() and Path(f"/proc/{pid}/cmdline").read_bytes():
        assert time.monotonic() < deadline, "it runs on"
        time.sleep(0.05)


def test_lost_allocations_are_said(screen, build, start, folder):
    small = ["-e", "--max-size", "16M", "-o", folder / "small.mscope"]
    recorder = start([MALLOSCOPE, "run", "-q", *small, "--", build("waiting.c"), folder / "wait"])
    pid = harness.child_of(recorder.pid, "waiting")
    screen.start([MALLOSCOPE, "top", pid])
    screen.wait(r"\A malloscope top .* INCOMPLETE")
    os.remove(folder / "wait")
    recorder.wait(PATIENCE)


def test_all_that_runs_is_shown_without_a_name(screen, program):
    screen.start([MALLOSCOPE, "top"], width=120, height=60)
    assert re.search(rf"\b{program}\b", screen.wait(rf"\b{program}\b"))


def test_nothing_is_read_that_was_freed(screen, program, folder):
    log = folder / "valgrind.txt"
    screen.start(["valgrind", f"--log-file={log}", "--error-exitcode=9", "--leak-check=full", COMMANDS, "top", program])
    screen.wait("hold")
    screen.press("Enter", "/", "a", "Enter")
    os.kill(program, signal.SIGUSR1)
    screen.wait("leak_in_child")
    screen.press("p", "p", "b")
    os.kill(program, signal.SIGTERM)
    screen.wait("ended")
    screen.press("q")
    screen.wait(r"^status \d")
    assert "status 0" in screen.text(), log.read_text()


def test_refreshing_costs_little(screen, program):
    """The bar is 2 % of one core; processor time does not depend on how busy the machine is."""
    screen.start([MALLOSCOPE, "top", program])
    screen.wait("hold")
    pid = top_of(program)

    def processor_seconds():
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    before, begin = processor_seconds(), time.monotonic()
    time.sleep(15)
    share = (processor_seconds() - before) / (time.monotonic() - begin)
    assert share < 0.02, f"{100 * share:.1f} % of a core"


def test_what_cannot_be_shown_is_said(folder, program):
    result = malloscope("top", program, expect=1)
    assert b"needs a terminal" in result.stderr and b"report PID" in result.stderr
    assert b"no process" in malloscope("top", 2**22 + 1, expect=3).stderr
    (folder / "notes").write_text("not a recording, whatever it may be " * 200)
    assert b"is not a recording" in malloscope("top", folder / "notes", expect=5).stderr
    assert b"cannot open" in malloscope("top", folder / "none.mscope", expect=3).stderr
    master, terminal = os.openpty()
    try:
        process = subprocess.run(
            [MALLOSCOPE, "top", str(program)], stdin=terminal, stdout=terminal, stderr=subprocess.PIPE,
            env=harness.clean_environment({"TERM": "dumb"}), timeout=PATIENCE,
        )  # fmt: skip
    finally:
        os.close(master)
        os.close(terminal)
    assert process.returncode == 1 and b"TERM='dumb'" in process.stderr
