"""python -m malloscope COMMAND …: the command, where `run` takes a Python script.

    python -m malloscope run [OPTION]... script.py ARG...     record the script with this interpreter
    python -m malloscope run [OPTION]... -m module ARG...     record a module, or with -c a text
    python -m malloscope report FILE                          and everything else the command knows
"""

import os
import re
import sys
from typing import List, NoReturn, Set

from ._parts import command_path, run_command
from .errors import MalloscopeError

def options_with_value() -> Set[str]:
    """The options of `malloscope run` whose value is the next argument, from its help: "-o, --output FILE  …"."""
    text = run_command(["run", "--help"]).decode()
    found = re.findall(r"^ +(?:(-\w), )? *(--[\w-]+) [A-Z]+(?: |$)", text, re.MULTILINE)
    return {name for names in found for name in names if name}


def with_interpreter(arguments: List[str]) -> List[str]:
    """Inserts this interpreter between the options of `run` and the script."""
    with_value = options_with_value()
    at = 0
    while at < len(arguments):
        argument = arguments[at]
        if argument == "--":
            at += 1
            break
        if argument in ("-m", "-c") or not argument.startswith("-"):
            break
        at += 2 if argument in with_value else 1
    if at >= len(arguments):
        return arguments  # the command will say what is missing
    options = [argument for argument in arguments[:at] if argument != "--"]
    return [*options, "--", sys.executable, *arguments[at:]]


def become(arguments: List[str]) -> NoReturn:
    os.execv(command_path(), ["malloscope", *arguments])


def command() -> None:
    """The script `malloscope` that pip installs: the command as it is, for programs of every kind."""
    try:
        become(sys.argv[1:])
    except MalloscopeError as problem:
        sys.exit(f"malloscope: {problem}")


def main() -> None:
    arguments = sys.argv[1:]
    try:
        if arguments[:1] == ["run"]:
            arguments = ["run", *with_interpreter(arguments[1:])]
        become(arguments)
    except MalloscopeError as problem:
        sys.exit(f"malloscope: {problem}")


if __name__ == "__main__":
    main()
