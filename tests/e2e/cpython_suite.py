"""CPython's own regression tests, without the recorder and with it: every case must end the same way.

    cpython_suite.py [--python NAME]... [--option OPTION]... [MODULE]...

compares all modules (MODULES) on all interpreters that carry them, and prints a line for each of both. NAME is part
of a name such as "pyenv 3.12.1". "--option=--python-objects" records with that option.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as xml
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import harness
from pythons import SUPPORTED

MODULES = (
    "test_dict", "test_list", "test_gc", "test_json", "test_threading", "test_subprocess",
    "test_multiprocessing_fork", "test_multiprocessing_forkserver", "test_multiprocessing_spawn",
)  # fmt: skip
RECORDED = ("--rate", "1K")
PATIENCE = 3600


def is_there(python):
    """Not every interpreter comes with its tests."""
    found = subprocess.run([python, "-c", "import test.test_dict"], stderr=subprocess.DEVNULL)
    return found.returncode == 0


def outcome_of(case):
    for kind in ("failure", "error", "skipped"):
        if case.find(kind) is not None:
            return kind
    return case.get("result")


def run_suite(python, modules, options=None, only=()):
    """How each case of these modules ends, by its name; recorded with these options, or plain if there are none.
    `only` are patterns of cases."""
    with tempfile.TemporaryDirectory(prefix="malloscope-cpython-") as folder:
        results = Path(folder) / "results.xml"
        command = [python, "-m", "test", "-j2", "--junit-xml", results]
        for pattern in only:
            command += ["-m", pattern]
        environment = {"LC_ALL": "C.UTF-8"}
        if options is None:
            environment["LD_PRELOAD"] = "libc.so.6"  # it is there anyway; some tests skip if anything is preloaded
        else:
            command = [harness.MALLOSCOPE, "run", "-q", *options, "-o", Path(folder) / "%p.mscope", "--", *command]
        run = subprocess.run(
            [str(part) for part in (*command, *modules)],
            cwd=folder,
            env=harness.clean_environment(environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=PATIENCE,
        )
        if not results.exists():
            raise AssertionError(f"the tests did not get to their end:\n{run.stdout[-3000:].decode(errors='replace')}")
        if options is not None and not list(Path(folder).glob("*.mscope")):
            raise AssertionError("nothing was recorded")
        cases = xml.parse(results).getroot().iter("testcase")
        return {case.get("name"): outcome_of(case) for case in cases}


def differences(plain, recorded):
    """The names of cases that do not end the same way."""
    return sorted(name for name in plain.keys() | recorded.keys() if plain.get(name) != recorded.get(name))


def compare(python, modules, options=(), only=()):
    """What the cases do without the recorder, and a line for each that does something else with it. Those that differ
    are run again by themselves: many wait for others for a limited time, which a busy machine can use up."""
    recorded_as = (*RECORDED, *options)
    with ThreadPoolExecutor() as both:
        plain = both.submit(run_suite, python, modules, None, only)
        recorded = both.submit(run_suite, python, modules, recorded_as, only)
    plain, recorded = plain.result(), recorded.result()
    names = differences(plain, recorded)
    if names:
        plain.update(run_suite(python, modules, None, names))
        recorded.update(run_suite(python, modules, recorded_as, names))
    return plain, [
        f"{name}: {plain.get(name, 'not run')}, recorded: {recorded.get(name, 'not run')}"
        for name in differences(plain, recorded)
    ]


def main():
    parser = argparse.ArgumentParser(description="CPython's own tests, plain and recorded")
    parser.add_argument("--python", action="append", default=[], metavar="NAME")
    parser.add_argument("--option", action="append", default=[], metavar="OPTION")
    parser.add_argument("modules", nargs="*", default=MODULES, metavar="MODULE")
    arguments = parser.parse_args()
    different = 0
    for name, python in SUPPORTED.items():
        if arguments.python and not any(part in name for part in arguments.python):
            continue
        if not is_there(python):
            print(f"{name}: comes without its tests")
            continue
        for module in arguments.modules:
            plain, found = compare(python, [module], arguments.option)
            passed = sum(outcome == "completed" for outcome in plain.values())
            print(f"{name} {module}: {len(plain)} cases, {passed} pass, {len(found)} differ", flush=True)
            for line in found:
                print(f"    {line}", flush=True)
            different += len(found)
    shutil.rmtree(harness.CACHE, ignore_errors=True)
    sys.exit(1 if different else 0)


if __name__ == "__main__":
    main()
