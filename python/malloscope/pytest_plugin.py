"""Limits on the memory of tests:

    @pytest.mark.limit_memory("24 MB")    # the heap never grows by more while the test runs
    @pytest.mark.limit_leaks("1 MB")      # the test leaves no more than this behind

Every allocation is recorded while such a test runs. A test that fails its limit says which lines hold most. What a
test leaves in caches (modules it imports, for one) counts as left behind.
"""

import gc
from typing import Any, Callable, Dict, Iterable, List, Optional, Tuple

import pytest

from . import profiler
from ._recorder import State, recorder
from .sizes import read_size, write_size
from .snapshot import HeapSnapshot, Site

MARKS = ("limit_memory", "limit_leaks")
SITES_SHOWN = 5


def pytest_configure(config: Any) -> None:
    config.addinivalue_line("markers", "limit_memory(size): fail if the heap grows by more than this during the test")
    config.addinivalue_line("markers", "limit_leaks(size): fail if the test leaves more than this behind")


def limits_of(item: Any) -> Dict[str, int]:
    limits = {}
    for name in MARKS:
        mark = item.get_closest_marker(name)
        if mark is None:
            continue
        if len(mark.args) != 1 or mark.kwargs:
            raise pytest.UsageError(f"{item.nodeid}: {name} takes one size, such as {name}('24 MB')")
        try:
            limits[name] = read_size(mark.args[0])
        except (TypeError, ValueError) as problem:
            raise pytest.UsageError(f"{item.nodeid}: {name}: {problem}") from None
    return limits


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_call(item: Any) -> None:
    limits = limits_of(item)
    if limits:
        item.runtest = measured(item.runtest, limits)


def measured(run: Callable[[], None], limits: Dict[str, int]) -> Callable[[], None]:
    def run_measured() -> None:
        __tracebackhide__ = True
        gc.collect()
        was_active = profiler.state() == State.ACTIVE
        if not was_active:
            profiler.start(sampling_rate_kb=0)
        try:
            before = profiler.get_snapshot(resolve=False)
            recorder().watch_peak()
            begun = profiler.get_stats()
            run()
            peak = profiler.get_stats().watched_peak_bytes - begun.estimated_heap_bytes
            gc.collect()
        finally:
            if not was_active:
                profiler.stop()
        complaint = too_much(limits, peak, before, begun.time_ns)
        if complaint:
            pytest.fail(complaint, pytrace=False)

    return run_measured


def too_much(limits: Dict[str, int], peak: int, before: HeapSnapshot, begun_ns: int) -> Optional[str]:
    parts: List[str] = []
    limit = limits.get("limit_memory")
    if limit is not None and peak > limit:
        after = profiler.get_snapshot(resolve=False)
        parts.append(f"the heap grew by {write_size(peak)} during the test; limit_memory allows {write_size(limit)}")
        parts += table("allocated most", allocated_between(before, after))
    limit = limits.get("limit_leaks")
    if limit is not None:
        left = profiler.get_snapshot(resolve=False).since(begun_ns)
        held = left.estimated_heap_bytes
        if held > limit:
            parts.append(f"the test left {write_size(held)} behind; limit_leaks allows {write_size(limit)}")
            rows = left.top_allocators(SITES_SHOWN)
            sites = (((row["function"], row["file"], row["line"]), row["estimated_bytes"]) for row in rows)
            parts += table("hold most of it", sites)
    return "\n".join(parts) or None


def allocated_between(before: HeapSnapshot, after: HeapSnapshot) -> List[Tuple[Site, float]]:
    totals = after.total_bytes_by_site()
    for site, size in before.total_bytes_by_site().items():
        totals[site] = totals.get(site, 0) - size
    return sorted(totals.items(), key=lambda pair: -pair[1])[:SITES_SHOWN]


def table(what: str, sites: Iterable[Tuple[Site, float]]) -> List[str]:
    rows = [
        f"  {write_size(size):>8}  {function}  {f'{file}:{line}' if file else ''}".rstrip()
        for (function, file, line), size in sites
        if size > 0
    ]
    return [f"these lines {what}:", *rows] if rows else []
