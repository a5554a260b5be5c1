"""The recorder in this process, by ctypes: the one that `malloscope run` preloaded, or else the library, opened now."""

import ctypes
import os
from contextlib import contextmanager
from enum import Enum
from typing import Iterator, Optional

from ._parts import library_path
from .errors import MalloscopeError, RecordingError, StateError


class State(Enum):
    """The states of the profiler. TERMINATED is final."""

    UNINITIALIZED = 0
    INITIALIZED = 1
    ACTIVE = 2
    STOPPED = 3
    TERMINATED = 4


OK, BAD_STATE, BAD_ARGUMENT, FAILED = 0, -2, -3, -7


class Options(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_size_t),
        ("output", ctypes.c_char_p),
        ("rate", ctypes.c_uint64),
        ("depth", ctypes.c_uint32),
        ("stacks", ctypes.c_uint32),
        ("max_bytes", ctypes.c_uint64),
        ("replace", ctypes.c_uint32),
    ]


class Figures(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_size_t),
        ("live_bytes", ctypes.c_double),
        ("live_error", ctypes.c_double),
        ("live_objects", ctypes.c_double),
        ("peak_bytes", ctypes.c_double),
        ("total_bytes", ctypes.c_double),
        ("total_error", ctypes.c_double),
        ("total_objects", ctypes.c_double),
        ("samples", ctypes.c_uint64),
        ("drops", ctypes.c_uint64),
        ("stacks", ctypes.c_uint64),
        ("heaps", ctypes.c_uint64),
        ("recorder_bytes", ctypes.c_uint64),
        ("rate", ctypes.c_uint64),
        ("live_samples", ctypes.c_uint64),
        ("max_bytes", ctypes.c_uint64),
        ("watched_peak", ctypes.c_double),
        ("time_ns", ctypes.c_uint64),
        ("peak_error", ctypes.c_double),
        ("peak_at_most", ctypes.c_double),
    ]


class Recorder:
    """The functions of malloscope.h. They raise exceptions where these return results."""

    def __init__(self) -> None:
        whole_process = ctypes.CDLL(None, use_errno=True)
        #: Whether `malloscope run` (or a preload, or a program linked with it) brought the recorder along.
        self.is_preloaded = hasattr(whole_process, "mscope_init")
        self._library = whole_process if self.is_preloaded else ctypes.CDLL(library_path(), use_errno=True)
        self._library.mscope_result_text.restype = ctypes.c_char_p

    def _check(self, result: int, doing: str) -> None:
        if result == OK:
            return
        if result == BAD_STATE:
            raise StateError(f"cannot {doing}: the profiler is {self.state().name}")
        if result == BAD_ARGUMENT:
            raise ValueError(f"cannot {doing}: an argument makes no sense")
        if result == FAILED:
            number = ctypes.get_errno()
            raise RecordingError(number, f"cannot {doing}: {os.strerror(number)}")
        raise MalloscopeError(f"cannot {doing}: {self._library.mscope_result_text(result).decode()}")

    def state(self) -> State:
        return State(self._library.mscope_state())

    def init(self, output: str, rate: int) -> None:
        options = Options(size=ctypes.sizeof(Options), output=os.fsencode(output), rate=rate)
        self._check(self._library.mscope_init(ctypes.byref(options)), "start")

    def start(self) -> None:
        self._check(self._library.mscope_start(), "start")

    def stop(self) -> None:
        self._check(self._library.mscope_stop(), "stop")

    def set_rate(self, rate: int) -> None:
        result = self._library.mscope_set_rate(ctypes.c_uint64(rate))
        if result == BAD_ARGUMENT:
            raise ValueError("sampling_rate_kb cannot be 0 here: what first started with samples cannot become exact")
        if result == BAD_STATE and self.state() in (State.ACTIVE, State.STOPPED):
            raise StateError(
                f"cannot change the sampling rate: the profiler is {self.state().name} and records every allocation, "
                "which is decided when recording first starts"
            )
        self._check(result, "change the sampling rate")

    def shutdown(self) -> None:
        self._check(self._library.mscope_shutdown(), "shut down")

    def snapshot(self, path: str) -> None:
        self._check(self._library.mscope_snapshot(os.fsencode(path.replace("%", "%%"))), "take a snapshot")

    def figures(self) -> Figures:
        figures = Figures(size=ctypes.sizeof(Figures))
        self._check(self._library.mscope_stats(ctypes.byref(figures)), "read the figures")
        return figures

    def watch_peak(self) -> None:
        self._check(self._library.mscope_watch_peak(), "watch for the peak")

    def ignore(self, on: bool) -> None:
        if on:
            self._library.mscope_ignore_begin()
        else:
            self._library.mscope_ignore_end()


_recorder: Optional[Recorder] = None


def recorder() -> Recorder:
    """The recorder of this process; the library is opened when it is first needed."""
    global _recorder
    if _recorder is None:
        _recorder = Recorder()
    return _recorder


@contextmanager
def unrecorded() -> Iterator[None]:
    """What this thread allocates within is not recorded: the profiler's own work."""
    here = _recorder  # None: nothing is recorded, and recordings can be read without the library
    if here:
        here.ignore(True)
    try:
        yield
    finally:
        if here:
            here.ignore(False)
