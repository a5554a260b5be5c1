"""Attaching to a running test program with the driver build/tests/attach_events, and what came of it."""

import json
import os
import subprocess
import time

import pytest

import harness

DRIVER = harness.BUILD / "tests" / "attach_events"


def require_ebpf():
    """Skips the test, with the reason, where probes cannot be used."""
    check = json.loads(harness.run([DRIVER, "--check"], expect=None).stdout)
    if check["trouble"]:
        pytest.skip(f"no eBPF here: {check['what']}")
    return check["method"]


# Best first. A kernel that has one method also has those after it.
METHODS = ["session links", "multi links", "perf events"]


def methods():
    """The methods that this kernel has."""
    best = require_ebpf()
    return [name for name in METHODS[METHODS.index(best) :]]


class Target:
    """A program that says "ready" and waits; see tests/programs/attach_target.h."""

    def __init__(self, start, command, env=None, **options):
        self.process = start(
            command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0, **options
        )
        self.lines = []
        assert self.line() == "ready"

    @property
    def pid(self):
        return self.process.pid

    def line(self):
        return self.process.stdout.readline().decode().rstrip("\n")

    def work(self):
        """Lets it work, and returns its log: (what, old, address, size)."""
        self.process.stdin.write(b"\n")
        log = []
        while (line := self.line()) != "done":
            assert line, "the program ended in the middle"
            if line[1:2] == " ":
                what, *numbers = line.split()
                log.append((what, *map(int, numbers)))
            else:
                self.lines.append(line)
        return log

    def end(self):
        self.process.stdin.close()
        return self.process.wait(harness.PATIENCE)


class Probes:
    """The driver, attached. `stop` detaches and returns the totals; `events` has all that came before."""

    def __init__(self, start, pid, *options):
        self.process = start(
            [DRIVER, *options, pid], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        self.events = []
        first = self.read()
        assert first["kind"] == "attached", first
        self.method, self.warnings = first["method"], first["warnings"]

    def read(self):
        line = self.process.stdout.readline()
        assert line, self.process.stderr.read().decode()
        event = json.loads(line)
        self.events.append(event)
        return event

    def wait_for(self, kind):
        while True:
            event = self.read()
            if event["kind"] == kind:
                return event

    def stop(self):
        self.process.stdin.close()
        totals = self.wait_for("totals")
        assert self.process.wait(harness.PATIENCE) == 0
        return totals

    def of_kind(self, *kinds):
        return [event for event in self.events if event["kind"] in kinds]

    def story(self):
        """Allocations and frees in the form of a target's log, with addresses in the place of block numbers."""
        address_of, told = {}, []
        for event in self.of_kind("allocation", "free"):
            if event["kind"] == "free":
                told.append(("f", 0, address_of.pop(event["block"]), 0))
                continue
            old = address_of.pop(event["ended"]) if event["ended"] else 0
            address_of[event["block"]] = event["address"]
            told.append(("r" if old else "a", old, event["address"], event["size"]))
        return told


def option_of(method):
    return ["--method", method.split()[0]]


def left_behind():
    """What would be left of an attach: probes and programs in the kernel that belong to the driver."""
    if not os.path.exists("/usr/sbin/bpftool"):
        return None
    programs = json.loads(harness.run(["/usr/sbin/bpftool", "-j", "prog", "show"]).stdout)
    return [program["name"] for program in programs if program.get("name", "").startswith("heap_")]


def wait_until_gone():
    """The kernel frees programs a moment after they were let go."""
    deadline = time.monotonic() + harness.PATIENCE
    while left_behind() and time.monotonic() < deadline:
        time.sleep(0.05)
    return left_behind()
