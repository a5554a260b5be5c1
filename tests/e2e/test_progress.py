"""Work that takes longer than half a second says so to a person at a terminal, and to nobody else."""

import fcntl
import http.server
import os
import pty
import re
import select
import struct
import subprocess
import tempfile
import termios
import threading
import time

import pytest

import harness
from harness import MALLOSCOPE

ERASED = b"\r\x1b[K"


class Terminal:
    """A command whose stderr is a terminal, and its stdout a file."""

    def __init__(self, command, columns=80, **environment):
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        self.out = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            list(map(str, command)), stdin=subprocess.DEVNULL, stdout=self.out, stderr=slave,
            env=harness.clean_environment({"TERM": "xterm", **environment}),
        )  # fmt: skip
        os.close(slave)
        self.seen = b""

    def read(self, until=None):
        """Reads what the terminal shows, until the text `until` appears or to the end."""
        deadline = time.monotonic() + harness.PATIENCE
        while until is None or until not in self.seen:
            assert time.monotonic() < deadline, self.seen
            if not select.select([self.master], [], [], 0.1)[0]:
                continue
            try:
                data = os.read(self.master, 65536)
            except OSError:  # the last one who had it open is gone
                break
            if not data:
                break
            self.seen += data
        return self.seen

    def end(self):
        self.read()
        self.process.wait(timeout=harness.PATIENCE)
        os.close(self.master)
        with self.out:
            self.out.seek(0)
            return self.out.read()


@pytest.fixture
def recording(record, build):
    return record(build("many_stacks.c", "-O1"), 6)


def export_slowly(recording, folder, columns=80, **environment):
    """Exports into a pipe that nobody empties for a while: what the terminal shows meanwhile, and in all."""
    pipe = folder / "pipe"
    os.mkfifo(pipe)
    command = [MALLOSCOPE, "export", recording, "--format", "json", "-q", "-f", "-o", pipe]
    terminal = Terminal(command, columns, **environment)
    with open(pipe, "rb") as reading:
        assert len(reading.read(10)) == 10, "it is writing"
        if "NONE_IS_EXPECTED" in environment:
            time.sleep(1.5)
        else:
            terminal.read(until=b" s")
        meanwhile = terminal.seen
        written = reading.read()
    terminal.end()
    assert terminal.process.returncode == 0 and written.rstrip().endswith(b"}")
    return meanwhile, terminal.seen


def test_slow_writing_is_told_and_erased(recording, folder):
    meanwhile, seen = export_slowly(recording, folder)
    assert re.search(rb"\rwriting \[[.#]+\] +\d+ s", meanwhile)
    assert seen.endswith(ERASED), "nothing is left of it"
    assert b"\x1b[3" not in seen and b"\x1b[1m" not in seen, "no colours"


def test_it_fits_narrow_terminals(recording, folder):
    _, seen = export_slowly(recording, folder, columns=24)
    assert all(len(part.replace(b"\x1b[K", b"")) < 24 for part in seen.split(b"\r"))


def test_no_colour_is_no_reason_to_be_silent(recording, folder):
    meanwhile, seen = export_slowly(recording, folder, NO_COLOR="1")
    assert b"writing" in meanwhile and seen.endswith(ERASED)


def test_what_cannot_be_erased_is_not_drawn(recording, folder):
    _, seen = export_slowly(recording, folder, TERM="dumb", NONE_IS_EXPECTED="1")
    assert seen == b""


def test_a_pipe_gets_none_of_it(recording, folder):
    pipe = folder / "pipe"
    os.mkfifo(pipe)
    command = [MALLOSCOPE, "export", recording, "--format", "json", "-q", "-f", "-o", pipe]
    with subprocess.Popen(command, stderr=subprocess.PIPE) as process:
        with open(pipe, "rb") as reading:
            reading.read(10)
            time.sleep(1)
            reading.read()
        assert process.stderr.read() == b"" and process.wait() == 0


def test_quick_work_is_done_in_silence(record, build):
    terminal = Terminal([MALLOSCOPE, "report", record(build("hello.c"))])
    began = time.monotonic()
    out = terminal.end()
    assert b"hello" in out or b"main" in out
    assert terminal.seen == b"" or time.monotonic() - began > 0.5, "on a busy machine it may have taken long"


@pytest.mark.parametrize(
    "command",
    [["report"], ["flame", "-o", "-"], ["leaks"], ["tree"], ["export", "--format", "collapsed"], ["diff"]],
)
def test_slow_symbols_have_a_bar(command, record, build):
    """Debug files that a server is slow to look for. Every command that shows names says so."""
    class Slow(http.server.BaseHTTPRequestHandler):
        def do_GET(self):  # pylint: disable=invalid-name
            time.sleep(0.8)
            self.send_error(404)

        def log_message(self, *unused):
            pass

    recording = record(build("hello.c", "-s"))  # it has no debug info of its own
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Slow) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        sources = [recording, recording] if command[0] == "diff" else [recording]
        terminal = Terminal(
            [MALLOSCOPE, command[0], *sources, *command[1:], "--no-cache"],
            XDG_CACHE_HOME=str(recording) + ".cache", DEBUGINFOD_CACHE_PATH=str(recording) + ".files",
            DEBUGINFOD_URLS=f"http://127.0.0.1:{server.server_address[1]}",
        )  # fmt: skip
        out = terminal.end()
        server.shutdown()
    assert terminal.process.returncode == 0 and out
    assert re.search(rb"\rreading symbols \[[.#]+\] +\d+ (s|%)", terminal.seen)
    last = terminal.seen.rindex(b"reading symbols")
    assert ERASED in terminal.seen[last:], "it is erased before anything else is said"
