"""What the tests of `malloscope attach` share: whether it can work here, targets that wait, the tool at work."""

import functools
import os
import signal
import subprocess
from pathlib import Path

import harness
from harness import MALLOSCOPE, PROGRAMS, wait_until

GATE = PROGRAMS / "attach_gate.c"


@functools.cache
def why_not():
    """Why probes cannot be used here; empty if they can."""
    if os.geteuid() != 0:
        return "probes in the kernel need root"
    sleeper = subprocess.Popen(["sleep", "60"])
    try:
        recording = f"{harness.CACHE}/probe.{os.getpid()}.mscope"
        command = [MALLOSCOPE, "attach", "--via", "bpf", "-d", "1ms", "-q", "-f", "-o", recording, sleeper.pid]
        result = harness.run(command, expect=None)
    finally:
        sleeper.kill()
        sleeper.wait()
    return "" if result.returncode == 0 else result.stderr.decode(errors="replace").splitlines()[0]


class Attached:
    """The tool while it is attached to a process."""

    def __init__(self, start, folder, pid, *options):
        self.pid = pid
        self.recording = folder / f"attached.{pid}.mscope"
        self.text = folder / f"attached.{pid}.txt"
        with open(self.text, "wb") as text:
            command = [MALLOSCOPE, "attach", "-f", "-o", self.recording, *options, pid]
            self.process = start(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=text)
        try:
            wait_until(lambda: b"attached to process" in self.text.read_bytes(), self.process)
        except AssertionError as error:
            raise AssertionError(f"{error}: {self.said}") from None

    @property
    def said(self):
        return self.text.read_text(errors="replace")

    def wait(self):
        """Waits for its end, which must be a good one; returns the recording."""
        assert self.process.wait(harness.PATIENCE) == 0, self.said
        return self.recording

    def stop(self):
        self.process.send_signal(signal.SIGINT)
        return self.wait()


class Gated:
    """A program that waits before main until it is let go."""

    def __init__(self, start, folder, command, env=None):
        self.gate = folder / "go"
        self.output = folder / "output.txt"
        self.gate.unlink(missing_ok=True)
        with open(self.output, "wb") as output:
            environment = {**(env or {}), "ATTACH_GO": str(self.gate)}
            self.process = start(command, env=environment, stdin=subprocess.DEVNULL, stdout=output)
        # It is past the loader and the constructors of its libraries when it sleeps.
        sleeping = Path(f"/proc/{self.process.pid}/wchan")
        wait_until(lambda: "nanosleep" in sleeping.read_text(), self.process)

    @property
    def pid(self):
        return self.process.pid

    def let_go(self):
        self.gate.touch()

    def wait(self):
        """Waits for its end, which must be a good one; returns what it printed."""
        assert self.process.wait(harness.PATIENCE) == 0
        return self.output.read_text()


def record_gated(start, folder, command, *options, env=None):
    """Attaches to a program before its first allocation; returns the recording and what the program printed."""
    target = Gated(start, folder, command, env)
    attached = Attached(start, folder, target.pid, *(options or ["--exact"]))
    target.let_go()
    output = target.wait()
    return attached.wait(), output
