"""What ./dev test says while it runs: a line for each part that has ended, and how long the rest will take.

On a terminal the last line is kept up to date. In a log the same is said once a minute.
"""

import os
import sys
import time

from jobs import FAILED, LEFT_OUT, PASSED

EVERY = 60  # seconds, in a log


def duration(seconds):
    seconds = int(seconds + 0.5)
    return f"{seconds} s" if seconds < 100 else f"{seconds // 60} min {seconds % 60:02} s"


class Progress:
    def __init__(self, jobs, workers):
        self.workers = workers
        self.tests, self.done, self.failed = sum(job.tests for job in jobs), 0, 0
        self.began = self.said_at = time.monotonic()
        self.expected_of_ended = self.seconds_of_ended = 0.0
        self.is_terminal = sys.stderr.isatty() and os.environ.get("TERM", "dumb") != "dumb"
        self.width = 0

    # ---- how long it will take ----

    def pace(self):
        """How many seconds pass here for a second of the table."""
        trust = 30.0  # seconds that count as measured at a pace of 1, so that the first few tests do not decide
        return (self.seconds_of_ended + trust) / (self.expected_of_ended + trust)

    @staticmethod
    def rest_of(job, pace, passed):
        """What a job still takes: by the table, but one that is late by the tests that it has left."""
        rest = job.seconds * pace - passed
        done = job.done()
        if rest < 0.2 * passed and 0 < done < job.tests:
            rest = max(rest, passed / done * (job.tests - done))
        return max(rest, 1.0)

    def left(self, scheduler):
        """Seconds until the end."""
        pace, now = self.pace(), time.monotonic()
        shared = alone = longest = 0.0
        for job in scheduler.running:
            rest = self.rest_of(job, pace, now - job.began)
            shared, longest = shared + rest, max(longest, rest)
        for job in scheduler.waiting:
            if job.quiet:
                alone += job.seconds * pace
            else:
                shared, longest = shared + job.seconds * pace, max(longest, job.seconds * pace)
        return alone + max(shared / self.workers, longest)

    # ---- what is said ----

    def say(self, text):
        if self.is_terminal:
            sys.stderr.write("\r\x1b[K")
        print(text, file=sys.stderr, flush=True)

    def line(self, scheduler):
        left, passed = self.left(scheduler), time.monotonic() - self.began
        done = self.done + sum(min(job.done(), job.tests) for job in scheduler.running)
        names = ", ".join(job.name for job in scheduler.running)
        percent = min(99, int(100 * passed / (passed + left)))
        failed = f", {self.failed} failed" if self.failed else ""
        return f"{percent:2} %  {duration(left)} left  {done:,} of {self.tests:,} tests{failed}  now: {names}"

    def show(self, scheduler):
        now = time.monotonic()
        if now - self.said_at < (1 if self.is_terminal else EVERY) or not scheduler.running:
            return
        self.said_at = now
        text = self.line(scheduler)
        if self.is_terminal:
            columns = os.get_terminal_size(sys.stderr.fileno()).columns
            sys.stderr.write(f"\r\x1b[K{text[: columns - 1]}")
            sys.stderr.flush()
        else:
            self.say(f"▸ {text}")

    def ended(self, job, results, seconds):
        counts = {outcome: sum(one.outcome == outcome for one in results) for outcome in (PASSED, FAILED, LEFT_OUT)}
        self.done += job.tests
        self.failed += counts[FAILED]
        self.expected_of_ended += job.seconds
        self.seconds_of_ended += seconds
        said = ", ".join(f"{count} {outcome}" for outcome, count in counts.items() if count) or "done"
        self.say(f"{'FAIL' if counts[FAILED] else 'ok  '} {job.name}: {said} in {duration(seconds)}")
        if counts[FAILED]:
            self.say("\n".join("     " + line for line in job.said().splitlines()[-150:]))
            self.say(f"     all that was said: {job.log}")

    def left_out(self, job):
        self.say(f"     {job.name}: left out, since what it needs has failed")
