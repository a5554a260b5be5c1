#!/usr/bin/env python3
"""Puts the page into a C file: embed.py INDEX.html OUT.c

The style sheets and scripts that the page names are put in its place, in their order, as they are. The content
security policy gets their hashes, so that a browser runs these scripts and no others, and loads nothing."""
import base64
import hashlib
import re
import sys
from pathlib import Path

MARK = "@DATA@"


def inline(page, folder):
    hashes = {"script": [], "style": []}

    def put(kind):
        def replacement(match):
            text = "\n" + (folder / match[1]).read_text().strip() + "\n"
            assert f"</{kind}" not in text.lower(), f"{match[1]} would end its own element"
            digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
            hashes[kind].append(f"'sha256-{digest}'")
            return f"<{kind}>{text}</{kind}>"

        return replacement

    page = re.sub(r'<link rel="stylesheet" href="([\w.]+)">', put("style"), page)
    page = re.sub(r'<script src="([\w.]+)"></script>', put("script"), page)
    for kind, found in hashes.items():
        page = page.replace(f"{kind}-src 'self'", f"{kind}-src {' '.join(found)}")
    return page


def c_array(name, text):
    numbers = ",".join(map(str, text.encode()))
    lines = re.sub(r"(.{1,110}),", r"\1,\n", numbers)
    return f"const char {name}[] = {{\n{lines}}};\nconst size_t {name}_size = sizeof {name};\n"


def main(index, out):
    page = inline(Path(index).read_text(), Path(index).parent)
    before, after = page.split(MARK)
    Path(out).write_text(
        '#include "format/page_template.h"\n' + c_array("page_before_data", before) + c_array("page_after_data", after)
    )


main(*sys.argv[1:])
