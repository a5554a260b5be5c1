"""Runs inside gdb: at every sampled allocation, the stack as gdb sees it.

`job` is set before: the folder of these `scripts`, `environment` of the program (which preloads the recorder), the
recorder's `library`, and where the `result` goes, as JSON: the program's exit code and a list of stacks, each with

    words   as the recorder has them: return addresses leaf first, the address after that of an interrupted instruction,
            or of one that begins a function to which the stack was made to return
    count   how often it was seen
    past    the function at whose end gdb went on although the stack ends there, null if it did not
"""

import collections
import json
import sys

import gdb

sys.path.insert(0, job["scripts"])
import frames_in_gdb

# One of them is called for every sample, with the caller's stack still as it was.
SAMPLING_POINTS = ("recorder_sample", "recorder_sample_unmarked")
SAMPLING_FILE = "recorder.c"

stacks = collections.Counter()


def caller_of_the_recorder():
    frame = gdb.newest_frame()
    while frame is not None and gdb.solib_name(frame.pc()) == job["library"]:
        frame = frame.older()
    return frame


class Sampled(gdb.Breakpoint):
    def stop(self):
        stacks[frames_in_gdb.words_from(caller_of_the_recorder())] += 1
        return False


def main():
    frames_in_gdb.prepare()
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
