"""Runs inside gdb: at every sampled allocation, the stack as gdb sees it.

`job` is set before: `environment` of the program (which preloads the recorder), the recorder's `library`, and where the
`result` goes, as JSON: the program's exit code and a list of stacks, each with

    words   as the recorder has them: return addresses leaf first, the address after that of an interrupted instruction, or
            of one that begins a function to which the stack was made to return
    count   how often it was seen
    past    the function at whose end gdb went on although the stack ends there, null if it did not
"""

import collections
import json

import gdb

# One of them is called for every sample, with the caller's stack still as it was.
SAMPLING_POINTS = ("recorder_sample", "recorder_sample_unmarked")
SAMPLING_FILE = "recorder.c"

stacks = collections.Counter()


def executable_ranges():
    with open(f"/proc/{gdb.selected_inferior().pid}/maps", encoding="utf-8") as maps:
        lines = [line.split(maxsplit=2)[:2] for line in maps]
    return [[int(bound, 16) for bound in place.split("-")] for place, rights in lines if "x" in rights]


def symbol_at(address):
    """The function's name alone, from "name + offset in section .text of file"."""
    return gdb.execute(f"info symbol {address}", to_string=True).split()[0]


def without_guesses(words):
    """Where no unwind information says that a stack ends, gdb guesses on, through whatever lies above on the stack.
    What is not even code was a guess."""
    ranges = executable_ranges()
    for i, word in enumerate(words):
        if not any(start <= word < end for start, end in ranges):
            last = symbol_at(words[i - 1])
            return words[: i - 1] + [words[i - 1] + (last == "__start_context")], last
    return words, None


def caller_of_the_recorder():
    frame = gdb.newest_frame()
    while frame is not None and gdb.solib_name(frame.pc()) == job["library"]:
        frame = frame.older()
    return frame


def stack():
    words, frame, interrupted, reason = [], caller_of_the_recorder(), False, None
    while frame is not None:
        # Inlined and tail calls have no frames of their own: gdb adds them from the debug information.
        if frame.type() in (gdb.NORMAL_FRAME, gdb.SIGTRAMP_FRAME):
            is_trampoline = frame.type() == gdb.SIGTRAMP_FRAME
            words.append(frame.pc() + (interrupted or is_trampoline))
            interrupted = is_trampoline
        reason = frame.unwind_stop_reason()
        frame = frame.older()
    past = None
    if reason != gdb.FRAME_UNWIND_OUTERMOST:
        words, past = without_guesses(words)
    return tuple(words), past


class Sampled(gdb.Breakpoint):
    def stop(self):
        stacks[stack()] += 1
        return False


def main():
    for setting in ("confirm off", "debuginfod enabled off", "print thread-events off", "backtrace limit unlimited",
                    "backtrace past-main on", "backtrace past-entry on"):
        gdb.execute("set " + setting)
    gdb.execute("handle all nostop noprint pass", to_string=True)
    # Not "set environment", which a shell would inherit that gdb starts the program with.
    gdb.execute("set exec-wrapper env " + " ".join(f"{name}={value}" for name, value in job["environment"].items()))
    gdb.execute("catch load libmalloscope")
    gdb.execute("run")
    # gdb looks for functions that are inlined everywhere in files that it has read whole only.
    gdb.execute("maintenance expand-symtabs " + SAMPLING_FILE)
    for function in SAMPLING_POINTS:
        Sampled(function, internal=True)
    gdb.execute("continue")
    exit_code = gdb.convenience_variable("_exitcode")
    with open(job["result"], "w", encoding="ascii") as file:
        json.dump({
            "exit_code": None if exit_code is None else int(exit_code),
            "stacks": [{"words": words, "count": count, "past": past} for (words, past), count in stacks.items()],
        }, file)


main()
