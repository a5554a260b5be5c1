"""Instructions, counted by callgrind: the same on a busy machine as on a quiet one.

Callgrind runs the program's own malloc, unlike valgrind's memory checkers, so what a preload library adds is
counted as it would be executed. The kernel's share is not seen.
"""
import os
import re
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor


def callgrind_tool():
    """The tool proper. The launcher in front of it would be preloaded too, and record itself."""
    launcher = shutil.which("valgrind")
    if not launcher:
        return None
    root = os.path.dirname(os.path.dirname(os.path.realpath(launcher)))
    names = ["%s/%s/valgrind/callgrind-amd64-linux" % (root, part) for part in ("libexec", "lib")]
    return next((name for name in names if os.path.exists(name)), None)


class Counter:
    """Counts programs' instructions, keeping callgrind's own output for a closer look."""

    def __init__(self, bench, outputs):
        self.bench, self.outputs, self.tool = bench, outputs, callgrind_tool()
        self.missing = None if self.tool else "not installed (apt install valgrind)"
        os.makedirs(outputs, exist_ok=True)

    def count(self, variant, program, label):
        """(instructions, path of callgrind's output)"""
        output = os.path.join(self.outputs, "%s.%s.callgrind" % (label, variant.key))
        folder = self.bench.folder()
        try:
            environment = variant.preload(folder) if hasattr(variant, "preload") \
                else variant.command([], folder)[0]
            settings = {"VALGRIND_LAUNCHER": "/usr/bin/valgrind", **program.environment, **environment}
            command = [self.tool, "--tool=callgrind", "-q", "--callgrind-out-file=" + output]
            program.execute(self.bench, self.bench.measured(settings, command + program.argv(self.bench),
                                                            os.path.join(folder, "result")), 1800)
            variant.recorded(folder)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        with open(output, encoding="utf-8", errors="replace") as file:
            return int(re.findall(r"^(?:totals|summary): (\d+)", file.read(), re.M)[-1]), output

    def count_all(self, jobs, done):
        """Runs (variant, program, label) jobs side by side; calls done(job, result or exception) for each."""
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            futures = [(job, pool.submit(self.count, *job)) for job in jobs]
            for job, future in futures:
                try:
                    done(job, future.result())
                except (RuntimeError, OSError, ValueError, IndexError, subprocess.SubprocessError) as problem:
                    done(job, problem)


def by_function(path):
    """{(object, function): instructions of its own} of a callgrind output."""
    names, cost, inclusive = {"ob": {}, "fn": {}}, {}, False
    place = {"ob": "?", "fn": "?"}
    with open(path, encoding="utf-8", errors="replace") as file:
        for line in file:
            named = re.match(r"(c?)(ob|fn)=\((\d+)\)(?: (.*))?$", line)
            if named:
                called, kind, number, text = named.groups()
                if text is not None:
                    names[kind][number] = text
                if not called:
                    place[kind] = names[kind][number]
            elif line.startswith("calls="):
                inclusive = True
            elif re.match(r"[-+*\d]\S* \d+", line):
                if not inclusive:
                    key = os.path.basename(place["ob"]), place["fn"]
                    cost[key] = cost.get(key, 0) + int(line.split()[1])
                inclusive = False
    return cost


def largest_differences(before, after, count=8):
    """Where the instructions of `after` differ most from those of `before`: [(added, object, function)]."""
    first, second = by_function(before), by_function(after)
    added = [(second.get(key, 0) - first.get(key, 0), *key) for key in {*first, *second}]
    return sorted(added, key=lambda entry: -abs(entry[0]))[:count]
