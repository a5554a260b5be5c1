"""mimalloc's tests, linked with its shared library, whose malloc they use. Those that call mi_malloc and so on find
nothing of the recorder in their way; the stress test runs once more through the C library's names."""

import re
import shutil

from comparing import Program, by_status
from sources import WORK, call, source

PACKAGES = ("gcc", "g++", "cmake", "make", "dpkg-dev")
AT_ONCE = 2
EXPECTED = {}
TESTS = {
    "test-api": ["test-api.c"],
    "test-api-fill": ["test-api-fill.c"],
    "test-stress": ["test-stress.c"],
    "test-stress-malloc": ["test-stress.c", "-DUSE_STD_MALLOC"],
    "main-override": ["main-override.c"],
    "main-override-cxx": ["main-override.cpp"],
}
STRESS = (8, 20, 10)  # threads, size, rounds: a quarter of what it does by itself


def build(folder):
    log = WORK / "mimalloc.log"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    sources = source("mimalloc")
    call(["cmake", "-DCMAKE_BUILD_TYPE=RelWithDebInfo", "-DMI_BUILD_TESTS=OFF", sources], folder, log)
    call(["make", "-j2", "mimalloc"], folder, log)
    linked = ["-pthread", "-Wl,--no-as-needed", f"-L{folder}", f"-Wl,-rpath,{folder}", "-lmimalloc"]
    for name, (file, *options) in TESTS.items():
        compiler = ["g++" if file.endswith("cpp") else "gcc", "-O2", "-g", "-DNDEBUG", f"-I{sources}/include"]
        call([*compiler, *options, sources / "test" / file, "-o", folder / name, *linked], folder, log)
    (folder / "built").touch()


def outcomes(name):
    """The tests of the functions print a line for each case."""

    def read(status, output):
        lines = re.findall(r"^test: (.+?)\.{2,}\s*(.*)$", output, re.MULTILINE)
        found = {f"{name} {case}": "passed" if rest.startswith("ok") else "failed" for case, rest in lines}
        return {**found, f"{name} as a whole": by_status(status)}

    return read


def programs():
    folder = WORK / "mimalloc"
    if not (folder / "built").exists():
        build(folder)
    arguments = {name: STRESS if "stress" in name else () for name in TESTS}
    return [Program(name, [folder / name, *arguments[name]], outcomes=outcomes(name)) for name in TESTS]
