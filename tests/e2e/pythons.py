"""The CPython interpreters of this machine: Debian's, pyenv's, and those that tests/pythons/fetch has got."""

import functools
import os
import subprocess
from pathlib import Path

from harness import BUILD

OLDEST, NEWEST = (3, 8), (3, 15)


def interpreters():
    """The path and version of each, by a name."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    candidates = {
        "debian": [Path("/usr/bin/python3")],
        "pyenv": sorted(pyenv.glob("versions/3.*/bin/python3")),
        "fetched": sorted((BUILD / "pythons").glob("3.*/python3")),
    }
    found = {}
    for origin, paths in candidates.items():
        for path in paths:
            told = subprocess.run(
                [path, "-c", "import sys; print(*sys.version_info[:3])"], stdout=subprocess.PIPE, text=True
            ) if path.exists() else None
            if told and told.returncode == 0:
                version = tuple(map(int, told.stdout.split()))
                found[f"{origin} {'.'.join(map(str, version))}"] = (str(path.resolve()), version[:2])
    return found


ALL = interpreters()
SUPPORTED = {name: path for name, (path, version) in ALL.items() if OLDEST <= version <= NEWEST}
OTHERS = {name: path for name, (path, version) in ALL.items() if not OLDEST <= version <= NEWEST}


@functools.lru_cache(None)
def besides(python):
    """How many bytes a bytearray takes besides those that it holds."""
    text = "import sys; print(sys.getsizeof(bytearray(1000)) - sys.getsizeof(bytearray()) - 1000)"
    return int(subprocess.run([python, "-c", text], stdout=subprocess.PIPE).stdout)
