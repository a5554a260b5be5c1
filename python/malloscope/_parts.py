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
    """The script that pip makes of this package has the command's name, too."""
    with open(path, "rb") as file:
        return os.access(path, os.X_OK) and file.read(4) == b"\x7fELF"


def library_path() -> str:
    return _find(LIBRARY)


def command_path() -> str:
    return _find(COMMAND)


def run_command(arguments: Sequence[str]) -> bytes:
    """What the command prints. It is not recorded itself, even if this process is."""
    environment = {
        name: value for name, value in os.environ.items() if name != "LD_PRELOAD" and not name.startswith("MALLOSCOPE_")
    }
    # Without closing files this goes by posix_spawn: no handler of fork runs, no child's recording begins.
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
