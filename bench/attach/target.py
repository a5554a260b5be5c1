"""The program that is attached to, with a C library of its own, and a tracer while it is attached."""
import contextlib
import os
import shutil
import signal
import subprocess
import time

PATIENCE = 60  # seconds; memleak compiles its probes first
SETTLED = 0.5  # seconds that malloc and free have had their probes; one on malloc's return cannot be seen from outside
NEAR = 16  # bytes from its beginning in which a function is probed


class Target:
    """paced.c at work. Its C library is a copy: bpftrace probes a library in all processes that use it."""

    def __init__(self, program, folder, preload=None):
        own = os.path.join(folder, "libc.so.6")
        if not os.path.exists(own):
            shutil.copy(c_library(), own)
        self.library = preload or own  # whose malloc it calls
        environment = {"LD_LIBRARY_PATH": folder, **({"LD_PRELOAD": preload} if preload else {})}
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0,
                                        env=environment, start_new_session=True)
        if self.process.stdout.readline() != b"ready\n":
            raise RuntimeError("the target does not start")
        self.base = base_of(self.process.pid, self.library)

    def is_probed(self, function):
        """Whether a function's first bytes are not those of the file."""
        offset = offset_of(function, self.library)
        with open(self.library, "rb") as file, open("/proc/%d/mem" % self.process.pid, "rb") as memory:
            file.seek(offset)
            memory.seek(self.base + offset)
            return file.read(NEAR) != memory.read(NEAR)

    def run(self, rate, milliseconds):
        """(pairs made, nanoseconds of processor time, nanoseconds that passed)"""
        self.process.stdin.write(b"%d %d\n" % (rate, milliseconds))
        return [int(word) for word in self.process.stdout.readline().split()]

    def end(self):
        self.process.stdin.close()
        if self.process.wait(timeout=PATIENCE) != 0:
            raise RuntimeError("the target ended with status %d" % self.process.returncode)


def c_library():
    """The file that programs here load as libc.so.6."""
    with open("/proc/self/maps", encoding="utf-8") as maps:
        return next(line.split()[-1] for line in maps if line.rstrip().endswith("/libc.so.6"))


def base_of(pid, library):
    """Where a process has mapped the beginning of a library."""
    with open("/proc/%d/maps" % pid, encoding="utf-8") as maps:
        for line in maps:
            if line.rstrip().endswith(library):
                return int(line.split("-")[0], 16)
    raise RuntimeError("process %d does not use %s" % (pid, library))


def offset_of(function, library):
    """Where in a library a function begins. In its file it is at the same place as in memory."""
    listed = subprocess.run(["nm", "-D", "--defined-only", library], check=True, capture_output=True, text=True).stdout
    return next(int(address, 16) for address, _, name in map(str.split, listed.splitlines())
                if name.split("@")[0] == function)


def processor_time(pid):
    """Nanoseconds that a process's threads have used."""
    total = 0
    for task in os.listdir("/proc/%d/task" % pid):
        with open("/proc/%d/task/%s/schedstat" % (pid, task), encoding="ascii") as file:
            total += int(file.read().split()[0])
    return total


@contextlib.contextmanager
def attached(tracer, target, folder, environment):
    """The tracer's process, once its probes are in the target's code; None for the tracer that is nobody."""
    command = tracer.command(target.process.pid, target.library, folder)
    if command is None:
        yield None
        return
    with open(os.path.join(folder, "said"), "w+b") as said:
        process = subprocess.Popen(command, env={**environment, **tracer.environment()}, stdin=subprocess.DEVNULL,
                                   stdout=said, stderr=said, start_new_session=True)
        try:
            wait_for_probes(process, target, said)
            yield process
        finally:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(timeout=PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def wait_for_probes(process, target, said):
    until = time.monotonic() + PATIENCE
    while not (target.is_probed("malloc") and target.is_probed("free")):
        if process.poll() is not None or time.monotonic() > until:
            said.seek(0)
            raise RuntimeError("it does not attach: %s" % said.read().decode(errors="replace").strip()[-300:])
        time.sleep(0.05)
    time.sleep(SETTLED)
