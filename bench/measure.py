"""One run of one program under one variant: its time, memory, output and recording."""
import os
import shutil
import signal
import subprocess
import tempfile


class TooSlow(Exception):
    """A run was stopped because it took longer than it was given."""


class Run:
    """What a run gave. Times are in nanoseconds, `peak` and `file` in bytes."""

    def __init__(self, wall, user, system, peak, output, file, unpacked, archived):
        self.wall, self.cpu, self.peak, self.output = wall, user + system, peak, output
        self.file, self.unpacked, self.archived = file, unpacked, archived


class Bench:
    """Where things lie, and the environment every program gets: nothing of the caller's but a path."""

    def __init__(self, workloads):
        self.workloads = workloads
        self.scratch = tempfile.mkdtemp(prefix="malloscope-bench-")
        self.environment = {"PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "LC_ALL": "C",
                            "HOME": self.scratch, "PYTHONHASHSEED": "0", "PERL_HASH_SEED": "0"}

    def close(self):
        shutil.rmtree(self.scratch, ignore_errors=True)

    def folder(self):
        return tempfile.mkdtemp(dir=self.scratch)

    def measured(self, environment, argv, result):
        """The command that runs `argv` and writes what it took into `result`."""
        settings = ["%s=%s" % item for item in environment.items()]
        return [os.path.join(self.workloads, "measure"), result] + settings + ["--"] + argv

    def run(self, variant, program, seconds=None):
        """Runs a program under a variant, for so long at most. Raises RuntimeError when it fails to run."""
        folder = self.folder()
        try:
            environment, argv = variant.command(program.argv(self), folder)
            result = os.path.join(folder, "result")
            variant.begin(folder)
            try:
                output, wall = program.execute(self, self.measured({**program.environment, **environment},
                                                                   argv, result), seconds or 600)
            finally:
                variant.end()
            with open(result, encoding="ascii") as file:
                numbers = [int(word) for word in file.read().split()]
            if numbers[4] != 0:
                raise RuntimeError("exit status %d" % numbers[4])
            return Run(wall or numbers[0], numbers[1], numbers[2], numbers[3] << 10, output,
                       variant.recorded(folder), variant.unpacked(folder), variant.archived(folder))
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def stop(process):
    """Ends a process that was started in a session of its own, and its children."""
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def checked_output(argv, environment, stdin=None, seconds=600):
    """Standard output of a command; RuntimeError with the end of its complaint if it fails."""
    with subprocess.Popen(argv, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                          stderr=subprocess.PIPE, start_new_session=True) as process:
        try:
            output, complaint = process.communicate(stdin, timeout=seconds)
        except subprocess.TimeoutExpired as late:
            stop(process)
            raise TooSlow() from late
        except BaseException:
            stop(process)
            raise
    if process.returncode != 0:
        raise RuntimeError("exit status %d: %s" % (process.returncode, complaint.strip()[-300:]))
    return output
