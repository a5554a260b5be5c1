"""Where the library and the command are: in the package, or in the build folder of a checkout."""

import os
import shutil
import subprocess
from functools import lru_cache
from pathlib import Path
from typing import Iterator, List, Sequence

from .errors import CommandError, MalloscopeError

LIBRARY = "libmalloscope.so"
COMMAND = "malloscope"
PACKAGE = Path(__file__).resolve().parent


def _folders() -> Iterator[Path]:
    yield PACKAGE / "_bin"
    if os.environ.get("MALLOSCOPE_BUILD"):
        yield Path(os.environ["MALLOSCOPE_BUILD"])
    yield PACKAGE.parent.parent / "build"
    on_path = shutil.which(COMMAND)
    if on_path:
        beside = Path(on_path).resolve().parent
        yield beside
        yield from sorted(beside.parent.glob("lib*")) + sorted(beside.parent.glob("lib/*-linux-gnu"))


@lru_cache(maxsize=None)
def _find(name: str) -> str:
    looked: List[str] = []
    for folder in _folders():
        path = folder / name
        if path.is_file() and (name == LIBRARY or _is_program(path)):
            return str(path)
        looked.append(str(folder))
    raise MalloscopeError(
        f"{name} is not there: looked in {', '.join(looked)}. Install the malloscope wheel, or build a checkout "
        "with './dev build'."
    )


def _is_program(path: Path) -> bool:
    """Whether it is the command itself, and not the script of the same name that pip installs."""
    with open(path, "rb") as file:
        return os.access(path, os.X_OK) and file.read(4) == b"\x7fELF"


def library_path() -> str:
    return _find(LIBRARY)


def command_path() -> str:
    return _find(COMMAND)


def run_command(arguments: Sequence[str]) -> bytes:
    """Runs the command and returns what it prints. The command is not recorded, even if this process is."""
    environment = {
        name: value for name, value in os.environ.items() if name != "LD_PRELOAD" and not name.startswith("MALLOSCOPE_")
    }
    # With close_fds=False subprocess uses posix_spawn: no fork handler runs, so no recording begins in the child.
    result = subprocess.run(
        [command_path(), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
        close_fds=False,
        check=False,
    )
    if result.returncode != 0:
        said = result.stderr.decode(errors="replace").strip()
        raise CommandError(f"'malloscope {' '.join(arguments)}' failed with {result.returncode}: {said}")
    return result.stdout
