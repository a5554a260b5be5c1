"""Puts the library and the command, as ./dev build made them, into the package."""

import os
import shutil
import stat
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py

HERE = Path(__file__).resolve().parent
PARTS = ("libmalloscope.so", "malloscope", "malloscope-commands")


class BuildWithParts(build_py):
    def run(self):
        super().run()
        built = Path(os.environ.get("MALLOSCOPE_BUILD", HERE.parent / "build"))
        folder = Path(self.build_lib) / "malloscope" / "_bin"
        folder.mkdir(parents=True, exist_ok=True)
        for part in PARTS:
            if not (built / part).exists():
                raise SystemExit(
                    f"malloscope: {built / part} does not exist. Build it first with './dev build', or name the "
                    "folder that holds it in MALLOSCOPE_BUILD."
                )
            shutil.copy2(built / part, folder / part)
            (folder / part).chmod((folder / part).stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)


class ForThisMachine(Distribution):
    """The wheel is for one processor, though no interpreter's headers were needed."""

    def has_ext_modules(self):
        return True


commands = {"build_py": BuildWithParts}
try:
    from setuptools.command.bdist_wheel import bdist_wheel
except ImportError:
    try:
        from wheel.bdist_wheel import bdist_wheel
    except ImportError:
        bdist_wheel = None

if bdist_wheel:

    class AnyInterpreter(bdist_wheel):
        """Nothing is compiled against Python: one wheel serves them all."""

        def get_tag(self):
            return "py3", "none", super().get_tag()[2]

    commands["bdist_wheel"] = AnyInterpreter

setup(cmdclass=commands, distclass=ForThisMachine)
