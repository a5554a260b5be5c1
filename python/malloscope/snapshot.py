"""What was live at a moment, sample by sample."""

import json
import os
import shutil
import warnings
import weakref
from contextlib import suppress
from dataclasses import dataclass, field, replace
from math import sqrt
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple, Union

from ._parts import run_command
from ._recorder import unrecorded
from .errors import FewSamplesWarning

#: With fewer samples an answer is rough, and comes with a warning.
ENOUGH_SAMPLES = 100

#: What `HeapSnapshot.save` can write. "mscope" is the recording itself, for every command of malloscope; "html" is a
#: page with a flame graph.
FORMATS = (
    "mscope", "html", "pprof", "heap", "heap_v2", "speedscope", "chrome", "chrome-v1", "collapsed", "json", "csv",
)  # fmt: skip

Site = Tuple[str, str, int]


@dataclass(frozen=True)
class StackFrame:
    """A frame of the call stack of an allocation."""

    address: int  #: the return address; 0 of a Python frame
    function: str
    file: str  #: "" if it is not known
    line: int  #: 0 if it is not known
    is_python: bool


@dataclass(frozen=True)
class AllocationSample:
    """A sampled allocation that is live."""

    address: int
    size: int  #: bytes, as asked for
    weight: int  #: bytes of the heap that this sample stands for
    timestamp_ns: int  #: when it was allocated, in nanoseconds since 1970
    stack: List[StackFrame]  #: the innermost frame first
    lifetime_ns: Optional[int] = None  #: None: it is live

    @property
    def estimated_bytes(self) -> int:
        """What the sample adds to the estimate of the heap: its weight."""
        return self.weight

    @property
    def site(self) -> StackFrame:
        """The call site: the innermost line of Python, or else the innermost frame."""
        return _site(self.stack)


@dataclass(frozen=True)
class FramePointerHealth:
    """How well native stacks could be walked."""

    shallow_stack_warnings: int  #: samples whose stack does not reach the start of its thread
    total_native_stacks: int  #: samples with a stack
    avg_native_depth: float
    min_native_depth: int

    @property
    def truncation_rate(self) -> float:
        return self.shallow_stack_warnings / self.total_native_stacks if self.total_native_stacks else 0.0

    @property
    def confidence(self) -> str:
        """'high' (under 5 % truncated), 'medium' (up to 20 %) or 'low'."""
        rate = self.truncation_rate
        return "high" if rate < 0.05 else "medium" if rate <= 0.20 else "low"


@dataclass(frozen=True)
class SiteDifference:
    """What a line holds more, or less, than it did in another snapshot."""

    function: str
    file: str
    line: int
    bytes: int
    samples: int


@dataclass(frozen=True)
class _Contents:
    samples: List[AllocationSample]
    total_samples: int
    start_ns: int  #: of the recording, since 1970
    timestamp_ns: int
    sampling_rate_bytes: int
    health: FramePointerHealth
    export: Dict[str, Any] = field(repr=False, default_factory=dict)


def _frame(exported: Dict[str, Any]) -> StackFrame:
    return StackFrame(
        address=int(exported["address"], 16) if exported["address"] else 0,
        function=exported["function"] or exported.get("name") or "[unknown]",
        file=exported["file"] or "",
        line=exported["line"] or 0,
        is_python=exported.get("kind") == "python",
    )


def _health(export: Dict[str, Any], frames: List[StackFrame]) -> FramePointerHealth:
    stacks = [stack for stack in export["stacks"] if stack["samples"]]
    depths = [sum(not frames[number].is_python for number in stack["frames"]) for stack in stacks]
    total = sum(int(stack["samples"]) for stack in stacks)
    return FramePointerHealth(
        shallow_stack_warnings=int(export["health"]["truncated"]),
        total_native_stacks=total,
        avg_native_depth=sum(d * s["samples"] for d, s in zip(depths, stacks)) / total if total else 0.0,
        min_native_depth=min(depths, default=0),
    )


def _read(path: Path) -> _Contents:
    export = json.loads(run_command(["export", str(path), "--format", "json", "--samples"]))
    frames = [_frame(frame) for frame in export["frames"]]
    stacks = [[frames[number] for number in stack["frames"]] for stack in export["stacks"]]
    begun = [process["start_realtime_ns"] for process in export["processes"]]
    samples = [
        AllocationSample(
            address=int(sample["address"], 16),
            size=sample["size"],
            weight=round(sample["weight"]),
            timestamp_ns=begun[export["stacks"][sample["stack"]]["process"]] + sample["birth_ns"],
            stack=stacks[sample["stack"]],
        )
        for sample in export.get("samples", ())
    ]
    process = export["processes"][0]
    return _Contents(
        samples=samples,
        total_samples=int(export["totals"]["samples"]),
        start_ns=process["start_realtime_ns"],
        timestamp_ns=process["start_realtime_ns"] + int(process["duration"] * 1e9),
        sampling_rate_bytes=int(export["totals"]["rate"]),
        health=_health(export, frames),
        export=export,
    )


class HeapSnapshot:
    """The sampled allocations that were live at a moment.

    Names are looked up when they are first asked for, unless the snapshot was taken with resolve=True.
    """

    def __init__(self, path: Path, owned: bool = True) -> None:
        self._path = path
        self._contents: Optional[_Contents] = None
        self._since = 0
        if owned:
            weakref.finalize(self, _remove, str(path), os.getpid())

    @classmethod
    def load(cls, path: Union[str, "os.PathLike[str]"]) -> "HeapSnapshot":
        """The snapshot in a recording (*.mscope) that `save` or `malloscope run` made."""
        return cls(Path(path), owned=False)

    def resolve(self) -> "HeapSnapshot":
        """Looks up all names now. Warns if there are too few samples for a good answer."""
        if self._contents is None:
            with unrecorded():
                self._contents = _read(self._path)
                if self._since:
                    self._keep_since()
            if self._contents.sampling_rate_bytes > 1 and len(self._contents.samples) < ENOUGH_SAMPLES:
                warnings.warn(
                    f"the figures rest on only {len(self._contents.samples)} samples and are rough; a smaller "
                    "sampling_rate_kb gives a finer picture",
                    FewSamplesWarning,
                    stacklevel=3,
                )
        return self

    def since(self, time_ns: int) -> "HeapSnapshot":
        """The part of this snapshot that was allocated since `time_ns`, a time as `get_stats()` has it."""
        part = HeapSnapshot(self._path, owned=False)
        part._whole = self  # type: ignore[attr-defined]  # keeps the file
        part._since = time_ns
        if self._contents is not None:
            part._contents = self._contents
            part._keep_since()
        return part

    def _keep_since(self) -> None:
        assert self._contents is not None
        earliest = self._contents.start_ns + self._since
        kept = [sample for sample in self._contents.samples if sample.timestamp_ns >= earliest]
        self._contents = replace(self._contents, samples=kept)

    @property
    def _loaded(self) -> _Contents:
        self.resolve()
        assert self._contents is not None
        return self._contents

    @property
    def samples(self) -> List[AllocationSample]:
        return self._loaded.samples

    @property
    def total_samples(self) -> int:
        """Samples taken so far, including those of blocks that have been freed."""
        return self._loaded.total_samples

    @property
    def live_samples(self) -> int:
        return len(self._loaded.samples)

    @property
    def estimated_heap_bytes(self) -> int:
        return sum(sample.weight for sample in self._loaded.samples)

    @property
    def estimated_error_bytes(self) -> float:
        """Half the width of the 95 % interval of `estimated_heap_bytes`. Without a sample: its upper end."""
        return _error(self._loaded.samples, self._loaded.sampling_rate_bytes)

    @property
    def timestamp_ns(self) -> int:
        return self._loaded.timestamp_ns

    @property
    def sampling_rate_bytes(self) -> int:
        return self._loaded.sampling_rate_bytes

    @property
    def frame_pointer_health(self) -> FramePointerHealth:
        return self._loaded.health

    @property
    def lifetimes(self) -> List[float]:
        """How many freed objects lived for up to 1, for 1 to 4, 4 to 16, 16 to 64, … microseconds."""
        return list(self._loaded.export["totals"]["lifetime"])

    def top_allocators(self, n: int = 10) -> List[Dict[str, Any]]:
        """The lines that hold most: function, file, line, is_python, estimated_bytes, error_bytes, samples."""
        by_site: Dict[Site, List[AllocationSample]] = {}
        for sample in self._loaded.samples:
            by_site.setdefault(_key(sample.site), []).append(sample)
        rows: List[Dict[str, Any]] = [
            {
                "function": function,
                "file": file,
                "line": line,
                "is_python": samples[0].site.is_python,
                "estimated_bytes": sum(sample.weight for sample in samples),
                "error_bytes": _error(samples, self._loaded.sampling_rate_bytes),
                "samples": len(samples),
            }
            for (function, file, line), samples in by_site.items()
        ]
        rows.sort(key=lambda row: row["estimated_bytes"], reverse=True)
        return rows[:n]

    def total_bytes_by_site(self) -> Dict[Site, float]:
        """What every line (function, file, line) has allocated so far, freed or not."""
        totals: Dict[Site, float] = {}
        export = self._loaded.export
        frames = [_frame(frame) for frame in export["frames"]]
        for stack in export["stacks"]:
            site = _key(_site([frames[number] for number in stack["frames"]]))
            totals[site] = totals.get(site, 0) + stack["total_bytes"]
        return totals

    def diff(self, other: "HeapSnapshot") -> List[SiteDifference]:
        """What every line holds more, or less, than in `other`, an earlier snapshot: the largest change first."""
        changes: Dict[Site, List[int]] = {}
        for snapshot, sign in ((self, 1), (other, -1)):
            for sample in snapshot.samples:
                change = changes.setdefault(_key(sample.site), [0, 0])
                change[0] += sign * sample.weight
                change[1] += sign
        rows = [SiteDifference(*site, *change) for site, change in changes.items() if change != [0, 0]]
        return sorted(rows, key=lambda row: -abs(row.bytes))

    def save(self, path: Union[str, "os.PathLike[str]"], format: Optional[str] = None) -> None:
        """Writes the snapshot for other tools: see FORMATS. A file that exists is replaced. Without a format the ending
        of the name decides: .html, .csv, .mscope, .collapsed, .heap, .pprof or .pb.gz; for all others, speedscope."""
        if format is None:
            format = _format_of(os.fspath(path))
        if format not in FORMATS:
            raise ValueError(f"there is no format {format!r}; it is one of {', '.join(FORMATS)}")
        with unrecorded():
            if format == "mscope":
                # The file may be the recording of a running program, which maps it: it must be replaced, not cut short.
                whole = f"{os.fspath(path)}.{os.getpid()}.new"
                shutil.copyfile(self._path, whole)
                os.replace(whole, path)
            else:
                run_command(["export", str(self._path), "--format", format, "-q", "-f", "-o", os.fspath(path)])

    def __repr__(self) -> str:
        if self._contents is None:
            return f"<HeapSnapshot {self._path}, not resolved>"
        return f"<HeapSnapshot of {self.estimated_heap_bytes:,} bytes in {self.live_samples:,} samples>"


_ENDINGS = {".pb.gz": "pprof", ".folded": "collapsed"}


def _format_of(path: str) -> str:
    for ending, format in _ENDINGS.items():
        if path.endswith(ending):
            return format
    ending = os.path.splitext(path)[1][1:]
    return ending if ending in FORMATS and ending != "json" else "speedscope"


def _site(stack: List[StackFrame]) -> StackFrame:
    for frame in stack:
        if frame.is_python:
            return frame
    return stack[0] if stack else StackFrame(0, "[unknown]", "", 0, False)


def _key(frame: StackFrame) -> Site:
    return frame.function, frame.file, frame.line


def _error(samples: List[AllocationSample], rate: int) -> float:
    """Half the width of the 95 % confidence interval of the sum of the weights, as in src/base/confidence_interval.h.

    Without a sample the estimate is 0, and the interval ends at three times the sampling rate."""
    if not samples:
        return 3.0 * rate if rate > 1 else 0.0
    variance = sum(max(0, sample.weight * (sample.weight - sample.size)) for sample in samples)
    if not variance:
        return 0.0
    typical = variance / sum(sample.weight for sample in samples)  # about the weight of one more sample
    return 1.96 * sqrt(variance + min(typical**2, variance))


def _remove(path: str, owner: int) -> None:
    if os.getpid() == owner:  # a forked child leaves its parent's alone
        with suppress(OSError):
            os.unlink(path)
