#!/usr/bin/env python3
"""Records a threaded web application under load and watches whether the recorder grows.

    tests/soak/python_web.py [--minutes 10] [--python PATH] [--option OPTION]...

"--option=--python-objects" records with that option. Prints a line for every twentieth of the time, and fails if the
application does not end well, samples are dropped, or the recording or the process's memory is larger at the end
than after the first quarter by more than GROWTH, and some SLACK.
"""

import argparse
import http.client
import json
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "e2e"))
from harness import MALLOSCOPE, PROGRAMS, clean_environment  # noqa: E402

APPLICATION = PROGRAMS / "python_web.py"
CLIENTS = 4
LINES = 20
WARM = LINES // 4
GROWTH = 0.10
SLACK = 64 << 10  # for stacks that come up for the first time


class Load:
    """Clients that ask one question after the other, each on a connection of its own."""

    def __init__(self, port):
        self.port, self.over, self.answers, self.failures = port, False, 0, []
        self.clients = [threading.Thread(target=self.ask_on, args=(i,)) for i in range(CLIENTS)]
        for client in self.clients:
            client.start()

    def ask(self, path):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request("GET", path)
        status = connection.getresponse()
        status.read()
        connection.close()
        return status.status

    def ask_on(self, number):
        while not self.over:
            kind = ("page", "digest", "ranking")[number % 3]
            try:
                status = self.ask(f"/{kind}/{number * 7919}")
            except (OSError, http.client.HTTPException) as error:
                self.failures.append(repr(error))
                return
            if status != 200:
                self.failures.append(f"status {status}")
            number += CLIENTS + 1
            self.answers += 1

    def end(self):
        self.over = True
        for client in self.clients:
            client.join()
        self.ask("/end/0")


def resident(pid):
    status = Path(f"/proc/{pid}/status").read_text()
    return 1024 * int(status.split("VmRSS:")[1].split()[0])


def look(pid, recording, load):
    told = subprocess.run([MALLOSCOPE, "stats", recording, "--json"], stdout=subprocess.PIPE, check=True)
    totals = json.loads(told.stdout)["totals"]
    return {
        "answers": load.answers,
        "resident": resident(pid),
        "recorder": totals["recorder_bytes"],
        "samples": totals["samples"],
        "live": totals["live_bytes"],
        "drops": totals["drops"],
    }


def soak(seconds, python, options, say=lambda line: None):
    """Returns LINES looks at the application."""
    with tempfile.TemporaryDirectory(prefix="malloscope-soak-") as folder:
        recording = Path(folder) / "web.mscope"
        command = [MALLOSCOPE, "run", "-q", *options, "-o", recording, "--", python, APPLICATION]
        run = subprocess.Popen([str(part) for part in command], stdout=subprocess.PIPE, env=clean_environment())
        load, looks = None, []
        try:
            load = Load(int(run.stdout.readline()))
            pid = int(Path(f"/proc/{run.pid}/task/{run.pid}/children").read_text().split()[0])
            begin = time.monotonic()
            for i in range(1, LINES + 1):
                time.sleep(max(0, begin + seconds * i / LINES - time.monotonic()))
                looks.append(look(pid, recording, load))
                say(looks[-1])
            load.end()
            assert run.wait(60) == 0, f"the application ended with status {run.returncode}"
        finally:
            if load:
                load.over = True
            run.terminate()
            run.wait()
        assert load.failures == [], load.failures[:3]
        return looks


def judge(looks):
    """What is wrong, or an empty list."""
    warm, end = looks[WARM - 1], looks[-1]
    wrong = [f"{end['drops']} samples were dropped"] if end["drops"] else []
    for what in ("recorder", "resident"):
        if end[what] > warm[what] * (1 + GROWTH) + SLACK:
            wrong.append(f"{what}: {warm[what]:,} bytes after a quarter of the time, {end[what]:,} at the end")
    return wrong


def main():
    parser = argparse.ArgumentParser(description="records a web application under load")
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--rate", default="64K")
    parser.add_argument("--option", action="append", default=[])
    arguments = parser.parse_args()

    def say(look):
        print("  ".join(f"{name} {value:,}" for name, value in look.items()), flush=True)

    wrong = judge(soak(60 * arguments.minutes, arguments.python, ["--rate", arguments.rate, *arguments.option], say))
    for line in wrong:
        print(line)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
