"""jemalloc's unit and integration tests. The integration tests are linked with the shared library, whose malloc they
use; the unit tests have their jemalloc inside, under other names."""

import re
import shutil
import subprocess

from comparing import Program, by_status
from sources import WORK, call, source

PACKAGES = ("gcc", "g++", "make", "dpkg-dev")
AT_ONCE = 2
EXPECTED = {}
KINDS = ("unit", "integration", "integration/cpp")
WORDS = {"pass": "passed", "skip": "skipped", "fail": "failed"}


def build(folder):
    log = WORK / "jemalloc.log"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(source("jemalloc"), folder, symlinks=True)
    call(["./configure", "--with-version=5.3.0-0-g0", "--enable-prof", "--with-lg-page=12"], folder, log)
    call(["make", "-j2", "tests"], folder, log)
    (folder / "built").touch()


def settings(script):
    """What a test's own script sets."""
    shell = f". {script}; printf %s \"$MALLOC_CONF\""
    environment = {"enable_fill": "1", "enable_prof": "1", "PATH": "/usr/bin:/bin"}
    return subprocess.run(["sh", "-c", shell], env=environment, stdout=subprocess.PIPE, text=True, check=True).stdout


def outcomes(name):
    def read(status, output):
        found = {
            f"{name} {case}": WORDS[word]
            for case, word in re.findall(r"^(\w+ \([\w-]+\)): (pass|skip|fail)$", output, re.MULTILINE)
        }
        return {**found, f"{name} as a whole": by_status(status)}

    return read


def programs():
    folder = WORK / "jemalloc"
    if not (folder / "built").exists():
        build(folder)
    made = []
    for kind in KINDS:
        for file in sorted((folder / "test" / kind).glob("*.o")):
            test = file.with_suffix("")
            script = file.with_suffix(".sh")
            environment = {"MALLOC_CONF": settings(script)} if script.exists() else {}
            name = f"{kind}/{test.name}"
            made.append(Program(name, [test], folder, environment, outcomes=outcomes(name)))
    return made
