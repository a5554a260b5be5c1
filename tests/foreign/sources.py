"""Gets Debian's source packages, and builds in them, below build/foreign: nothing is installed, /etc is left alone."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import harness

WORK = harness.BUILD / "foreign"
SIGNED = "[signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]"
SOURCES = f"""\
deb-src {SIGNED} http://deb.debian.org/debian bookworm main
deb-src {SIGNED} http://deb.debian.org/debian-security bookworm-security main
"""


def call(command, folder, log):
    """Runs a step of a build. What it says goes to a file, and its end to the user if it fails."""
    with open(log, "ab") as output:
        done = subprocess.run(
            [str(part) for part in command],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=harness.clean_environment(),
        )
    if done.returncode:
        tail = Path(log).read_text(errors="replace")[-2000:]
        sys.exit(f"{tail}\nforeign: '{' '.join(map(str, command))}' failed; all that it said is in {log}")


def apt_get(*arguments, folder):
    for part in ("lists/partial", "cache/archives/partial"):
        (WORK / part).mkdir(parents=True, exist_ok=True)
    (WORK / "sources.list").write_text(SOURCES)
    options = {
        "Dir::Etc::sourcelist": WORK / "sources.list",
        "Dir::Etc::sourceparts": "-",
        "Dir::State::lists": WORK / "lists",
        "Dir::Cache": WORK / "cache",
        "APT::Sandbox::User": "root",
    }
    settings = [part for name, value in options.items() for part in ("-o", f"{name}={value}")]
    call(["apt-get", "-q", *settings, *arguments], folder, WORK / "apt.log")


def source(package):
    """The folder of the unpacked source of a Debian package, with Debian's patches."""
    folder = WORK / "source" / package
    unpacked = folder / "unpacked"
    if not unpacked.exists():
        folder.mkdir(parents=True, exist_ok=True)
        apt_get("update", folder=folder)
        apt_get("source", "--download-only", package, folder=folder)
        half = folder / "half"
        call(["rm", "-rf", half], folder, WORK / "apt.log")
        call(["dpkg-source", "-x", *folder.glob("*.dsc"), half], folder, WORK / "apt.log")
        half.rename(unpacked)
    return unpacked


def all_at_once(function, items):
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(function, items))
