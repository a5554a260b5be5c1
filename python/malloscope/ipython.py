"""The cell magic `%%malloscope`, after `%load_ext malloscope`: which lines of the cell hold memory."""

import html
import tempfile
import warnings
from pathlib import Path
from typing import Any

from IPython.core.magic import Magics, cell_magic, magics_class
from IPython.core.magic_arguments import argument, magic_arguments, parse_argstring
from IPython.display import HTML, display

from .errors import FewSamplesWarning
from .profiler import MemoryProfiler
from .sizes import write_size
from .snapshot import HeapSnapshot


def flame_graph(snapshot: HeapSnapshot) -> str:
    """A page with the flame graph, as a frame within this one."""
    with tempfile.TemporaryDirectory(prefix="malloscope-") as folder:
        page = Path(folder) / "cell.html"
        snapshot.save(page, "html")
        text = page.read_text(encoding="utf-8", errors="replace")
    return f'<iframe srcdoc="{html.escape(text)}" width="100%" height="500" style="border:0"></iframe>'


@magics_class
class MalloscopeMagics(Magics):
    @magic_arguments()
    @argument("--rate", type=float, default=16, help="a sample every so many KiB; 0 records everything (default 16)")
    @argument("-n", type=int, default=10, help="how many lines to show (default 10)")
    @cell_magic
    def malloscope(self, line: str, cell: str) -> Any:
        """Runs the cell, and shows what it allocated and holds."""
        wanted = parse_argstring(self.malloscope, line)
        assert self.shell is not None
        profiler = MemoryProfiler(sampling_rate_kb=wanted.rate)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FewSamplesWarning)  # the summary says how many there are
            with profiler:
                result = self.shell.run_cell(cell)
        snapshot = profiler.snapshot
        assert snapshot is not None
        print(
            f"the cell holds {write_size(snapshot.estimated_heap_bytes)} "
            f"(± {write_size(snapshot.estimated_error_bytes)}, "
            f"{snapshot.live_samples} samples); the heap had grown by {write_size(profiler.peak_bytes)} at most"
        )
        for row in snapshot.top_allocators(wanted.n):
            place = f"{row['file']}:{row['line']}" if row["file"] else ""
            print(f"  {write_size(row['estimated_bytes']):>8}  {row['function']}  {place}".rstrip())
        display(HTML(flame_graph(snapshot)))
        result.raise_error()
