"""malloscope: which line of your program holds its memory, Python and native frames in one stack.

    import malloscope

    with malloscope.MemoryProfiler() as profiler:
        work()
    for row in profiler.snapshot.top_allocators(10):
        print(row["estimated_bytes"], row["function"], row["file"], row["line"])

or `python -m malloscope run script.py`. See docs/python.md.
"""

from ._recorder import State
from .errors import CommandError, FewSamplesWarning, MalloscopeError, RecordingError, StateError
from .profiler import MemoryProfiler, MemProfStats, get_snapshot, get_stats, set_rate, shutdown, start, state, stop
from .snapshot import FORMATS, AllocationSample, FramePointerHealth, HeapSnapshot, SiteDifference, StackFrame

__version__ = "0.1.0"

__all__ = [
    "AllocationSample",
    "CommandError",
    "FORMATS",
    "FewSamplesWarning",
    "FramePointerHealth",
    "HeapSnapshot",
    "MalloscopeError",
    "MemProfStats",
    "MemoryProfiler",
    "RecordingError",
    "SiteDifference",
    "StackFrame",
    "State",
    "StateError",
    "get_snapshot",
    "get_stats",
    "load_ipython_extension",
    "set_rate",
    "shutdown",
    "start",
    "state",
    "stop",
]


def load_ipython_extension(ipython):  # type: ignore[no-untyped-def]
    """For `%load_ext malloscope`."""
    from .ipython import MalloscopeMagics

    ipython.register_magics(MalloscopeMagics)
