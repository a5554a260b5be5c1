"""start, stop, snapshot: the profiler of this process.

    UNINITIALIZED ── start ──► ACTIVE ── stop ──► STOPPED ── start ──► ACTIVE
                                  └── shutdown ──► TERMINATED ◄── shutdown ──┘

set_rate is for ACTIVE and STOPPED. A call that the state does not allow raises StateError and changes nothing.
"""

import atexit
import functools
import inspect
import os
import shutil
import tempfile
import threading
import warnings
from contextlib import ContextDecorator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Any, Callable, Optional, Type, TypeVar, Union, cast

from ._recorder import State, recorder, unrecorded
from .errors import StateError
from .snapshot import HeapSnapshot

DEFAULT_RATE_KB = 512
Function = TypeVar("Function", bound=Callable[..., Any])

_lock = threading.RLock()
_numbers = count(1)
_has_joined = False
_folder: Optional[str] = None


@dataclass(frozen=True)
class MemProfStats:
    """The figures so far."""

    total_samples: int
    live_samples: int
    freed_samples: int
    unique_stacks: int
    estimated_heap_bytes: int
    estimated_error_bytes: float  #: half the width of the 95 % interval
    peak_bytes: int  #: the heap at the moment when it seemed largest, estimated
    total_bytes: int  #: ever allocated, estimated
    dropped_samples: int
    recorder_bytes: int  #: what the recorder takes itself
    heap_map_load_percent: float  #: how much of the recording's largest size is in use
    sampling_rate_bytes: int
    watched_peak_bytes: int  #: the most that was live at once since the last MemoryProfiler began
    time_ns: int  #: since the recording's start
    peak_error_bytes: float = 0.0  #: half the width of the 95 % interval of peak_bytes
    peak_at_most_bytes: int = 0  #: with a chance of 97.5 %, the heap was never larger than this


def _temporary_folder() -> str:
    global _folder
    if _folder is None or not os.path.isdir(_folder):
        _folder = tempfile.mkdtemp(prefix="malloscope-")
        atexit.register(_remove_folder, _folder, os.getpid())
    return _folder


def _remove_folder(folder: str, owner: int) -> None:
    if os.getpid() == owner:  # a forked child leaves its parent's alone
        shutil.rmtree(folder, ignore_errors=True)


def state() -> State:
    """The state of the profiler."""
    return recorder().state()


def start(
    sampling_rate_kb: float = DEFAULT_RATE_KB, *, output: Optional[Union[str, "os.PathLike[str]"]] = None
) -> None:
    """Starts recording, or goes on after `stop`.

    `sampling_rate_kb`: the mean number of KiB between two samples; 0 records every allocation. The first start decides
    it, or `malloscope run`; `set_rate` changes it.
    `output`: where the recording is kept, with the pid in its name if the name is taken. Without it the recording
    vanishes with the process.
    """
    global _has_joined
    if sampling_rate_kb < 0:
        raise ValueError(f"sampling_rate_kb cannot be {sampling_rate_kb}: it is 0 or more")
    rate = max(1, round(sampling_rate_kb * 1024))
    with _lock:
        here = recorder()
        now = here.state()
        if now == State.ACTIVE and here.is_preloaded and not _has_joined:
            _has_joined = True  # `malloscope run` has started it
        elif now == State.UNINITIALIZED:
            where = os.fspath(output) if output else os.path.join(_temporary_folder(), "python.%p.mscope")
            here.init(where, rate)
            here.start()
        else:
            here.start()
        _has_joined = True
        if sampling_rate_kb != DEFAULT_RATE_KB and here.figures().rate != rate:
            warnings.warn(
                f"the sampling rate stays {here.figures().rate} bytes: it is decided when recording first starts; "
                "malloscope.set_rate() changes it, if that was not exact",
                RuntimeWarning,
                stacklevel=2,
            )


def stop() -> None:
    """Records no more allocations. Frees of recorded ones are still noticed."""
    with _lock:
        recorder().stop()


def set_rate(sampling_rate_kb: float) -> None:
    """Changes the mean number of KiB between two samples, in each thread after the sample that it is counting down to.

    What was sampled before keeps its weight, so that all figures and their errors stay right. Whether every allocation
    is recorded (0) is decided by the first start: an exact recording stays exact, a sampled one cannot become so.
    """
    rate = round(sampling_rate_kb * 1024)
    if not 0 <= rate < 2**64:
        raise ValueError(f"sampling_rate_kb cannot be {sampling_rate_kb}: it is 0 or more, and less than 2**54")
    with _lock:
        recorder().set_rate(max(1, rate))


def shutdown() -> None:
    """Ends recording for good, and gives the process's allocation calls back as they were."""
    with _lock:
        recorder().shutdown()


def get_snapshot(resolve: bool = True) -> HeapSnapshot:
    """What is live now. Without `resolve` it is only copied, and names are looked up when they are needed."""
    with _lock:
        here = recorder()
        with unrecorded():
            path = Path(_temporary_folder()) / f"snapshot.{os.getpid()}.{next(_numbers)}.mscope"
            here.snapshot(str(path))
            snapshot = HeapSnapshot(path)
    return snapshot.resolve() if resolve else snapshot


def get_stats() -> MemProfStats:
    """The figures so far, at the cost of a look at each live sample."""
    figures = recorder().figures()
    return MemProfStats(
        total_samples=figures.samples,
        live_samples=figures.live_samples,
        freed_samples=max(0, figures.samples - figures.live_samples),
        unique_stacks=figures.stacks,
        estimated_heap_bytes=round(figures.live_bytes),
        estimated_error_bytes=figures.live_error,
        peak_bytes=round(figures.peak_bytes),
        total_bytes=round(figures.total_bytes),
        dropped_samples=figures.drops,
        recorder_bytes=figures.recorder_bytes,
        heap_map_load_percent=100 * figures.recorder_bytes / figures.max_bytes if figures.max_bytes else 0.0,
        sampling_rate_bytes=figures.rate,
        watched_peak_bytes=round(figures.watched_peak),
        time_ns=figures.time_ns,
        peak_error_bytes=figures.peak_error,
        peak_at_most_bytes=round(figures.peak_at_most),
    )


class MemoryProfiler(ContextDecorator):
    """Records a block of code, or every call of a function:

        with MemoryProfiler(sampling_rate_kb=64) as profiler:
            work()
        print(profiler.snapshot.top_allocators(5))

        @MemoryProfiler()
        def work(): ...

    Afterwards `snapshot` has what was allocated in the block and is live at its end, `stats` the figures of the
    whole recording, and `peak_bytes` by how much the heap had grown at most.
    """

    def __init__(self, sampling_rate_kb: float = DEFAULT_RATE_KB, resolve: bool = True) -> None:
        self.sampling_rate_kb = sampling_rate_kb
        self.resolve = resolve
        self.snapshot: Optional[HeapSnapshot] = None
        self.stats: Optional[MemProfStats] = None
        self.peak_bytes = 0
        self._depth = 0
        self._begun_ns = 0
        self._live_before = 0

    def __call__(self, function: Function) -> Function:
        """Coroutines and generators are recorded from their start to their end, with whatever runs in between."""
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def recorded_coroutine(*given: Any, **named: Any) -> Any:
                with self:
                    return await function(*given, **named)

            return cast(Function, recorded_coroutine)
        if inspect.isgeneratorfunction(function):

            @functools.wraps(function)
            def recorded_generator(*given: Any, **named: Any) -> Any:
                with self:
                    return (yield from function(*given, **named))

            return cast(Function, recorded_generator)
        if inspect.isasyncgenfunction(function):
            raise TypeError(
                f"{function.__qualname__} is an asynchronous generator: use 'with MemoryProfiler()' inside it"
            )
        return super().__call__(function)

    def __enter__(self) -> "MemoryProfiler":
        self._depth += 1
        if self._depth > 1:  # a function that calls itself
            return self
        try:
            start(self.sampling_rate_kb)
        except BaseException:
            self._depth -= 1
            raise
        recorder().watch_peak()
        before = get_stats()
        self._begun_ns, self._live_before = before.time_ns, before.estimated_heap_bytes
        return self

    def __exit__(
        self,
        exception_type: Optional[Type[BaseException]],
        exception: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        self._depth -= 1
        if self._depth:
            return
        try:
            stop()
        except StateError:
            if exception_type is None:
                raise
            return  # the exception of the block is the one to raise
        self.stats = get_stats()
        self.peak_bytes = max(0, self.stats.watched_peak_bytes - self._live_before)
        snapshot = get_snapshot(resolve=False).since(self._begun_ns)
        self.snapshot = snapshot.resolve() if self.resolve else snapshot
