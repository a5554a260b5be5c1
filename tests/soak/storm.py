#!/usr/bin/env python3
"""A long run that tries to wear the recorder out: threads at full speed, forks every second, readers all the
time, one sampling rate after the other, and rates that change while the threads run. Each reading is compared with
what the program has counted itself.

    tests/soak/storm.py --minutes 60

Prints a line for each generation of the program, and at the end what was compared. Fails at the first reading
that is further from the truth than its error bar allows, at any crash, and if the recorder keeps growing."""

import argparse
import json
import math
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "e2e"))
from counters import Counters  # noqa: E402
from harness import MALLOSCOPE, clean_environment, site_lines  # noqa: E402

SOURCE = ROOT / "tests" / "programs" / "busy.c"
THREADS = 16
RATES = ["exact", "512K", "changing", "4K", "64K"]
CHANGES = 0.2  # seconds that a rate lasts where it changes
Z = 5.0  # of some ten thousand readings not one lies that far off by chance
CONFIDENCE = 1.96  # what live_error stands for


class Failure(Exception):
    pass


def resident(pid):
    for line in open(f"/proc/{pid}/status"):
        if line.startswith("VmRSS"):
            return int(line.split()[1]) * 1024
    raise Failure(f"process {pid} is gone")


def read(source):
    result = subprocess.run(
        [MALLOSCOPE, "report", source, "--json", "-n", "0"], capture_output=True, env=clean_environment(), timeout=600
    )
    if result.returncode != 0:
        raise Failure(f"report ended with {result.returncode}: {result.stderr.decode()}")
    return json.loads(result.stdout)


def compare(whole, before, after):
    """The program went on while it was read: its counters before and after are bounds of what was true."""
    (line,) = site_lines(SOURCE)["busy"]
    row = next((row for row in whole["rows"] if row["line"] == line), {"live_bytes": 0, "live_error": math.inf})
    if whole["totals"]["drops"]:
        raise Failure(f"{whole['totals']['drops']} drops")
    lowest = before.bytes - before.begun_freed_bytes - after.freed_bytes - after.begun_freed_bytes
    highest = after.bytes + after.begun_bytes - before.freed_bytes
    room = Z / CONFIDENCE * row["live_error"]
    if not lowest - room <= row["live_bytes"] <= highest + room:
        raise Failure(f"live {row['live_bytes']:.0f} ± {row['live_error']:.0f} is not in {lowest}..{highest}")
    return room


def generation(program, folder, rate, seconds, random_numbers):
    counters = folder / "counters"
    changes = CHANGES if rate == "changing" else 0
    options = ["--exact"] if rate == "exact" else ["--rate", "32K" if changes else rate]
    busy = [program, THREADS, counters, 0, 1, changes]
    command = [MALLOSCOPE, "run", "-q", *options, "-o", folder / "%p.%n.mscope", "--", *busy]
    tool = subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, env=clean_environment())
    try:
        end = time.monotonic() + seconds
        while not counters.exists() or counters.stat().st_size == 0:
            time.sleep(0.05)
        pid = int(open(f"/proc/{tool.pid}/task/{tool.pid}/children").read().split()[0])
        readings, sizes = 0, []
        while time.monotonic() < end:
            time.sleep(random_numbers.uniform(0, 0.5))
            before = Counters(counters)
            whole = read(str(pid))
            compare(whole, before, Counters(counters))
            readings += 1
            sizes.append((whole["totals"]["recorder_bytes"], resident(pid)))
        os.kill(pid, 15)
        output, _ = tool.communicate(timeout=300)
    finally:
        if tool.poll() is None:
            tool.terminate()
    if tool.returncode != 0 or output != b"ended well\n":
        raise Failure(f"the program ended with {tool.returncode}")
    recordings = sorted(folder.glob("*.mscope"))
    first = folder / f"{pid}.1.mscope" if (folder / f"{pid}.1.mscope").exists() else recordings[0]
    truth = Counters(counters)
    whole = read(str(first))
    compare(whole, truth, truth)
    children = [path for path in recordings if path != first]
    for path in random_numbers.sample(children, min(3, len(children))):
        read(str(path))
    third = max(1, len(sizes) // 3)
    middle = sizes[third : 2 * third] or sizes
    growth = [max(size[i] for size in sizes[-third:]) / max(size[i] for size in middle) for i in (0, 1)]
    print(
        f"{rate:>8}: {readings} readings, {truth.objects:,} allocations, {len(children)} children, "
        f"recorder {sizes[-1][0] >> 10:,} KiB (× {growth[0]:.3f}), resident × {growth[1]:.3f}",
        flush=True,
    )
    if len(sizes) >= 9 and max(growth) > 1.10:
        raise Failure(f"memory keeps growing: {growth}")
    return readings, truth.objects, len(children)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--generation", type=float, default=60, metavar="SECONDS", help="how long one rate lasts")
    given = parser.parse_args()
    random_numbers = random.Random(1)
    work = pathlib.Path(tempfile.mkdtemp(prefix="malloscope-soak-"))
    program = work / "busy"
    subprocess.run(["gcc", "-O1", "-g", "-pthread", "-D_GNU_SOURCE", SOURCE, "-o", program], check=True)
    end, total, number = time.monotonic() + given.minutes * 60, [0, 0, 0], 0
    try:
        while time.monotonic() < end:
            folder = work / f"generation{number}"
            folder.mkdir()
            results = generation(program, folder, RATES[number % len(RATES)], given.generation, random_numbers)
            total = [a + b for a, b in zip(total, results)]
            shutil.rmtree(folder)
            number += 1
    except Failure as failure:
        print(f"FAILED in generation {number} ({RATES[number % len(RATES)]}): {failure}; see {work}")
        return 1
    shutil.rmtree(work)
    print(f"{number} generations, {total[0]:,} readings, {total[1]:,} allocations, {total[2]:,} children: all right")
    return 0


if __name__ == "__main__":
    sys.exit(main())
