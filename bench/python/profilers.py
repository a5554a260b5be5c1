"""Who profiles the Python scripts: malloscope, the interpreter's own tracemalloc, and memray and Scalene from PyPI."""
import os
import subprocess
import sys

from variants import Malloscope, Preload, Variant

PYTHON = "/usr/bin/python3"
PEERS = ("memray", "scalene")


class MalloscopeObjects(Malloscope):
    """The objects too that the interpreter's own allocator serves."""

    def __init__(self, key, column, rate, build):
        super().__init__(key, column, rate, build)
        self.about = "malloscope --python-objects, " + \
            ("every allocation" if rate == 1 else "one sample per %d KiB" % (rate >> 10))

    def command(self, argv, folder):
        environment, command = super().command(argv, folder)
        return environment, [*command[:2], "--python-objects", *command[2:]]

    def preload(self, folder):
        return {**super().preload(folder), "MALLOSCOPE_PYTHON_OBJECTS": "1"}


class Tracemalloc(Variant):
    column, about, core = "tracemalloc", "the interpreter's tracemalloc, one frame for each allocation", False

    def command(self, argv, folder):
        return {"PYTHONTRACEMALLOC": "1"}, argv


class Peer(Variant):
    """One that pip has installed into an environment of its own, which sees Debian's packages too."""
    core = False

    def __init__(self, key, column, about, environment):
        super().__init__(key)
        self.column, self.about = column, about
        self.python = os.path.join(environment, "bin", "python")
        if not os.path.exists(self.module_file(environment)):
            self.missing = "not installed (./dev bench does, where PyPI can be reached)"

    @staticmethod
    def module_file(environment):
        raise NotImplementedError


class Memray(Peer):
    def __init__(self, key, column, about, environment, options):
        super().__init__(key, column, about, environment)
        self.options = options

    @staticmethod
    def module_file(environment):
        return os.path.join(environment, "bin", "memray")

    def command(self, argv, folder):
        return {}, [self.python, "-m", "memray", "run", "-q", *self.options, "-o", os.path.join(folder, "out.bin"),
                    *argv[1:]]


class Scalene(Peer):
    def __init__(self, key, environment):
        super().__init__(key, "scalene", "Scalene, processor time and memory by samples (one per 10 MiB)", environment)

    @staticmethod
    def module_file(environment):
        return os.path.join(environment, "bin", "scalene")

    def command(self, argv, folder):
        return {}, [self.module_file(os.path.dirname(os.path.dirname(self.python))), "run", "-o",
                    os.path.join(folder, "out.json"), argv[1], "---", *argv[2:]]


def install_peers(environment):
    """Where PyPI can be reached; what is there stays."""
    if all(os.path.exists(os.path.join(environment, "bin", name)) for name in PEERS):
        return
    print("installing from PyPI: %s" % ", ".join(PEERS), file=sys.stderr)
    for command in ([PYTHON, "-m", "venv", "--system-site-packages", environment],
                    [os.path.join(environment, "bin", "pip"), "install", "-q", *PEERS]):
        if subprocess.run(command, check=False).returncode:
            print("left out of the bench: what '%s' could not install" % " ".join(command), file=sys.stderr)
            return


def all_profilers(build, workloads, environment):
    every = "memray, every allocation of malloc"
    objects = every + " and of the interpreter's allocator"
    native = ", with native frames as malloscope has them"
    return [
        Variant("plain"),
        Malloscope("512K", "512 KiB", 512 << 10, build),
        Preload("floor", "floor", "functions that only jump on, in front of the interpreter's allocator",
                os.path.join(workloads, "libfloor.so")),
        MalloscopeObjects("objects-512K", "objects", 512 << 10, build),
        Malloscope("exact", "exact", 1, build),
        MalloscopeObjects("objects-exact", "exact+obj", 1, build),
        Memray("memray", "memray", every, environment, []),
        Memray("memray-native", "memray -n", every + native, environment, ["--native"]),
        Memray("memray-objects", "memray+obj", objects, environment, ["--trace-python-allocators"]),
        Memray("memray-objects-native", "memray+obj -n", objects + native, environment,
               ["--native", "--trace-python-allocators"]),
        Tracemalloc("tracemalloc"),
        Scalene("scalene", environment),
    ]
