#!/usr/bin/env python3
"""Puts the fixed parts of the scripts into a C file: embed.py OUT.c SCRIPT...; the ending names the shell."""
import json
import sys
from pathlib import Path


def main(out, *scripts):
    parts = ['#include "cli/completion/completion.h"\n']
    for script in map(Path, scripts):
        lines = "\n".join(f"    {json.dumps(line)}" for line in script.read_text().splitlines(keepends=True))
        parts.append(f"const char completion_rules_{script.suffix[1:]}[] =\n{lines};\n")
    Path(out).write_text("\n".join(parts))


main(*sys.argv[1:])
