"""Sizes as people write them. KB is 1,000 bytes and KiB 1,024."""

import re

UNITS = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}


def read_size(text: str) -> int:
    """'24 MB' in bytes."""
    found = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([a-zA-Z]+)\s*", text)
    if not found or found.group(2).upper() not in UNITS:
        raise ValueError(f"{text!r} is no size; write it as '24 MB' or '512 KiB'")
    return int(float(found.group(1)) * UNITS[found.group(2).upper()])


def write_size(size: float) -> str:
    for unit in ("GB", "MB", "KB"):
        if abs(size) >= UNITS[unit]:
            return f"{size / UNITS[unit]:.3g} {unit}"
    return f"{size:.0f} B"
