#!/usr/bin/env python3
"""Makes the picture of the HTML page in the README from a real run: docs/pictures/page.py [OUT.png]

The program of `./dev demo` is recorded, and its page is shown by Debian's chromium."""
import subprocess
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True
ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "e2e"))

import web_page  # pylint: disable=wrong-import-position

TOOL = ROOT / "build" / "malloscope"


def main(out):
    with tempfile.TemporaryDirectory() as folder, web_page.Browser() as running:
        recording, page = Path(folder) / "demo.mscope", Path(folder) / "page.html"
        program = [ROOT / "build" / "wordindex", "/usr/include", "malloc", "free"]
        subprocess.run([TOOL, "run", "-q", "-o", recording, "--rate", "16K", "--", *program], check=True,
                       stdout=subprocess.DEVNULL)
        subprocess.run([TOOL, "flame", recording, "-q", "-o", page], check=True)
        shown = running.open_page(page, width=1200, height=1000)
        shown.settle()
        x, y, width = shown.evaluate("(() => { const box = malloscope.flame.canvas.getBoundingClientRect();"
                                     " return [box.x, box.y, box.width]; })()")
        shown.mouse("mouseMoved", x + 0.52 * width, y + 310)
        shown.settle()
        shown.screenshot(out)


main(sys.argv[1] if len(sys.argv) > 1 else ROOT / "docs" / "pictures" / "page.png")
