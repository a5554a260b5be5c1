"""Runs inside gdb: stops the program in calls of malloc, as a probe would, has its stack copied and walked from
outside, and compares that with the stack as gdb sees it.

`job` is set before: the folder of these `scripts`, the program `serve` that walks, whether the program is
`statically_linked`, how many `stacks` to compare and every how manieth call; where the `result` goes, as JSON:

    stacks       compared
    distinct     among them
    ends         how walks ended, with their numbers
    differences  the first few: words of ours and of gdb's, and our end
    past         functions at whose end gdb went on although the stack ends there
"""

import collections
import json
import struct
import subprocess
import sys

import gdb

sys.path.insert(0, job["scripts"])
import frames_in_gdb

COPIED_MOST = 1 << 20
CUT = 1 << 56
ENDS = ("complete", "lost", "short")
MASK = (1 << 64) - 1

seen, ends, past, differences = collections.Counter(), collections.Counter(), collections.Counter(), []
calls = 0


class Walker:
    """The program that walks: a process beside gdb, which does not stop or trace anything."""

    def __init__(self):
        pid = str(gdb.selected_inferior().pid)
        self.process = subprocess.Popen([job["serve"], pid], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def walk(self, registers, stack):
        self.process.stdin.write(struct.pack("<8QII", *registers, len(stack), 1000) + stack)
        self.process.stdin.flush()
        end, count = struct.unpack("<II", self.process.stdout.read(8))
        return struct.unpack(f"<{count}Q", self.process.stdout.read(8 * count)), ENDS[end]


def up_to_another_stack(frame, words, low, high):
    """The words as far as a copy of [low, high) can tell, and whether that is not all: the interrupted frame of a
    signal is told by the handler's stack, even if it is on another one."""
    count = 0
    while frame is not None and count < len(words):
        if frame.type() in (gdb.NORMAL_FRAME, gdb.SIGTRAMP_FRAME):
            count += 1
            if not low <= int(frame.read_register("rsp")) & MASK < high:
                return words[:count], True
        frame = frame.older()
    return words, False


def compare(walker):
    frame = gdb.newest_frame()
    register = lambda name: int(frame.read_register(name)) & MASK
    sp = register("rsp")
    high = min(sp + COPIED_MOST, next(end for start, end, _ in frames_in_gdb.mappings() if start <= sp < end))
    copy = gdb.selected_inferior().read_memory(sp, high - sp).tobytes()
    registers = [int.from_bytes(copy[:8], "little"), sp + 8]
    registers += [register(name) for name in ("rbp", "rbx", "r12", "r13", "r14", "r15")]
    ours, end = walker.walk(registers, copy[8:])

    theirs, gone_past = frames_in_gdb.words_from(frame.older())
    theirs, elsewhere = up_to_another_stack(frame.older(), theirs, sp, high)
    expected = "short" if elsewhere else "complete"
    if elsewhere:
        theirs += (CUT,)
    seen[theirs] += 1
    ends[end] += 1
    if gone_past:
        past[gone_past] += 1
    if (ours != theirs or end != expected) and len(differences) < 5:
        differences.append({"ours": ours, "end": end, "gdb": theirs, "expected": expected})


class AtMalloc(gdb.Breakpoint):
    walker = None

    def stop(self):
        global calls
        calls += 1
        if calls % job["step"] == 0:
            self.walker = self.walker or Walker()
            compare(self.walker)
        return sum(seen.values()) == job["stacks"]


def main():
    frames_in_gdb.prepare()
    gdb.execute("set language c")  # in which malloc is a name
    if job["statically_linked"]:
        gdb.execute("starti")
    else:
        gdb.execute("catch load libc")
        gdb.execute("run")
    AtMalloc("*malloc", internal=True)
    gdb.execute("continue")
    if gdb.selected_inferior().pid:
        gdb.execute("kill")
    with open(job["result"], "w", encoding="ascii") as file:
        json.dump({"stacks": sum(seen.values()), "distinct": len(seen), "ends": ends, "differences": differences,
                   "past": past}, file)


main()
