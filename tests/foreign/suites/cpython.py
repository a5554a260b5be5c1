"""CPython's own tests, of Debian's interpreter and the package that carries them. The program that drives a module, and
what its cases start, are all recorded."""

import subprocess
import xml.etree.ElementTree as xml

from comparing import Program, by_status
from cpython_suite import outcome_of

PACKAGES = ("python3", "libpython3.11-testsuite")
PYTHON = "/usr/bin/python3"
AT_ONCE = 2
EXPECTED = {
    "test.test_cmd_line.CmdLineTest.test_pythonmalloc":
        "--python-objects puts a function in front of the interpreter's allocator, which then has none of the names "
        "that this test knows",
}
RESULTS = "results.xml"
# All modules are run but these, which take from ten seconds to minutes each: they wait for networks and compilers, or
# do again what a shorter one does.
LONG = {
    "test_asyncio", "test_compileall", "test_concurrent_futures", "test_cppext", "test_ftplib", "test_imaplib",
    "test_logging", "test_multiprocessing_forkserver", "test_multiprocessing_spawn", "test_selectors", "test_socket",
    "test_ssl", "test_venv", "test_xmlrpc",
}  # fmt: skip


def outcomes(module):
    """A case that ran is known by the record that the tests leave at their end."""

    def read(status, results):
        cases = xml.fromstring(results).iter("testcase") if results else ()
        # One that failed in a part of it has no name there: it counts as not run.
        found = {case.get("name"): outcome_of(case) for case in cases if case.get("name")}
        found = {name: "passed" if outcome == "completed" else outcome for name, outcome in found.items()}
        return {**found, f"{module} as a whole": by_status(status)}

    return read


def modules():
    listed = subprocess.run([PYTHON, "-m", "test", "--list-tests"], stdout=subprocess.PIPE, text=True, check=True)
    return [module for module in listed.stdout.split() if module not in LONG]


def programs():
    # Some tests skip if anything is preloaded; the C library is there anyway.
    environment = {"LC_ALL": "C.UTF-8", "LD_PRELOAD": "libc.so.6"}
    command = [PYTHON, "-m", "test", "--junit-xml", RESULTS]
    return [
        Program(module, [*command, module], environment=environment, outcomes=outcomes(module), results=RESULTS)
        for module in modules()
    ]
