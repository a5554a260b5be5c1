"""What the tests of malloscope.h share: how its programs are compiled, and figures by heap, type and scope."""

import json

import harness

INCLUDE = f"-I{harness.ROOT / 'include'}"
LEDGER = f"-I{harness.PROGRAMS}"
# Against the shared library, without a preload.
LINKED = ("-DMSCOPE_LINKED", f"-L{harness.BUILD}", f"-Wl,-rpath,{harness.BUILD}", "-lmalloscope")


def heaps(recording):
    """{name: figures} of all heaps, malloc among them."""
    return {heap["name"]: heap for heap in harness.report(recording)["heaps"]}


def by(recording, what, **only):
    """{name: figures} by "heap", "type" or "scope" (the innermost); None are those without."""
    rows = {}
    for stack in stacks(recording):
        if all(stack[key] == value for key, value in only.items()):
            sums = rows.setdefault(stack[what], dict.fromkeys(harness.FIGURES, 0))
            for figure in harness.FIGURES:
                sums[figure] += stack[figure]
    return rows


def stacks(recording):
    """All stacks with their figures; `frames` are frames, the leaf first."""
    export = json.loads(harness.malloscope("export", recording, "--format", "json").stdout)
    for stack in export["stacks"]:
        stack["frames"] = [export["frames"][number] for number in stack["frames"]]
    return export["stacks"]


def names(stack):
    """Functions and scopes from the root on: "main", "[scope line]"."""
    return [frame["function"] for frame in reversed(stack["frames"])]


def within(names_of_stack, *expected):
    """Whether these come one after the other, in this order, with nothing in between."""
    length = len(expected)
    return any(tuple(names_of_stack[i : i + length]) == expected for i in range(len(names_of_stack) - length + 1))
