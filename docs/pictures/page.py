#!/usr/bin/env python3
"""Makes the picture of the HTML page in the README from a real run: docs/pictures/page.py [OUT.png]

malloscope is recorded while it reads a recording of build/wordindex, and its page is shown by Debian's chromium."""
import subprocess
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True
ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "e2e"))

import web_page  # pylint: disable=wrong-import-position

TOOL = ROOT / "build" / "malloscope"


def record(path, rate, *command):
    subprocess.run([TOOL, "run", "-q", "-o", path, "--rate", rate, "--", *command], check=True, stdout=subprocess.DEVNULL)


def main(out):
    with tempfile.TemporaryDirectory() as folder, web_page.Browser() as running:
        first, second, page = (Path(folder) / name for name in ("first.mscope", "second.mscope", "page.html"))
        record(first, "16K", ROOT / "build" / "wordindex", "/usr/include", "malloc")
        record(second, "2K", TOOL, "report", "--no-cache", first)
        subprocess.run([TOOL, "flame", second, "-q", "-o", page], check=True)
        shown = running.open_page(page, "#metric=total", width=1200, height=1000)
        # Into the part that branches, with the pointer on a call.
        shown.evaluate("""(() => { const {tree, report} = malloscope;
            let node = tree.root;
            while (tree.children(node).length && tree.value(tree.children(node)[0]) > 0.93 * tree.value(tree.root))
                node = tree.children(node)[0];
            malloscope.zoom(node); })()""")
        shown.settle()
        x, y, width = shown.evaluate("(() => { const box = malloscope.flame.canvas.getBoundingClientRect();"
                                     " return [box.x, box.y, box.width]; })()")
        shown.mouse("mouseMoved", x + 0.75 * width, y + 330)
        shown.settle()
        shown.screenshot(out)


main(sys.argv[1] if len(sys.argv) > 1 else ROOT / "docs" / "pictures" / "page.png")
