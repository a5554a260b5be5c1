"""Runs jobs side by side, as many as there are workers, in an order that lets all of them end soon."""

import os
import signal
import time

from jobs import FAILED


class Scheduler:
    """Runs all jobs to their ends, or until one has failed. `progress` is told what happens."""

    def __init__(self, jobs, workers, folder, progress, until_failure=False):
        self.waiting, self.running = list(jobs), []
        self.workers, self.folder, self.progress, self.until_failure = workers, folder, progress, until_failure
        self.ended_well, self.ended = set(), {}  # names; results by name
        self.seconds = {}  # that each job took

    def run(self):
        try:
            while (self.waiting or self.running) and not (self.until_failure and self.has_failed()):
                self.leave_out()
                while job := self.choose():
                    self.begin(job)
                self.collect()
                self.progress.show(self)
                time.sleep(0.1)
        finally:
            for job in self.running:  # after an interrupt, or a failure
                os.killpg(job.process.pid, signal.SIGKILL)
                job.process.wait()
        return self.ended

    def has_failed(self):
        return any(one.outcome == FAILED for _, results in self.ended.values() for one in results)

    def leave_out(self):
        """Jobs whose needs have failed fail themselves."""
        for job in list(self.waiting):
            if any(name in self.ended and name not in self.ended_well for name in job.needs):
                self.waiting.remove(job)
                self.ended[job.name] = job, []
                self.progress.left_out(job)

    def choose(self):
        """The next job, or None while nothing more may be started. What nothing else may run beside comes last."""
        if len(self.running) >= self.workers or any(job.quiet for job in self.running):
            return None
        held = {job.lock for job in self.running if job.lock}
        ready = [
            job for job in self.waiting
            if not job.quiet and job.lock not in held and self.ended_well.issuperset(job.needs)
        ]  # fmt: skip
        if ready:
            return max(ready, key=self.weight)
        quiet = [job for job in self.waiting if job.quiet]
        if len(quiet) == len(self.waiting) and quiet and not self.running:
            return quiet[0]
        return None

    def weight(self, job):
        """How much time hangs on a job: its own, that of what needs it, and that of all that wait for its lock."""
        behind = max((self.weight(other) for other in self.waiting if job.name in other.needs), default=0)
        same = sum(other.seconds for other in self.waiting if job.lock and other.lock == job.lock and other is not job)
        return job.seconds + max(behind, same)

    def begin(self, job):
        self.waiting.remove(job)
        self.running.append(job)
        job.began = time.monotonic()
        job.begin(self.folder)

    def collect(self):
        for job in list(self.running):
            if job.process.poll() is None and time.monotonic() - job.began < 20 * job.seconds + 1200:
                continue
            if job.process.poll() is None:  # it hangs
                os.killpg(job.process.pid, signal.SIGKILL)
                job.process.wait()
            self.running.remove(job)
            results = job.results()
            self.seconds[job.name] = time.monotonic() - job.began
            self.ended[job.name] = job, results
            if job.process.returncode == 0:
                self.ended_well.add(job.name)
            self.progress.ended(job, results, self.seconds[job.name])
