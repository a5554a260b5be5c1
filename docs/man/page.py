#!/usr/bin/env python3
"""Makes a page of the manual: page.py MALLOSCOPE PROSE.man SHARED.man OUT.1

What a command takes, its options and its examples come from the command's own table (`malloscope help --json`), so
they are those of --help. The prose adds what is too long for that. It is in the language of man(7), with lines that
begin with @:

    @option NAME       what follows belongs to this option; in shared.man: of every command that has one
    @section TITLE     what follows is a section of its own
    @commands          the list of all commands
    @environment       the variables that stand in for options

What comes first goes to the end of DESCRIPTION."""
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

# What stands for something in usage and help.
PLACEHOLDERS = r"FILE|PID|PROGRAM|ARGUMENT|OPTION|COMMAND|BASE|NEW|DIR|OUT\.html|BYTES|N"


def marked(text, *more):
    """Text of a table in the language of man(7): options, commands and placeholders stand out."""
    placeholders = "|".join([PLACEHOLDERS, *map(re.escape, more)])
    text = text.replace("\\", "\\e")
    patterns = [
        (r"'(malloscope[^']*)'", r"\\fB\1\\fR"),
        (r"(?<![\w-])(--?[a-zA-Z][\w-]*)(?![^\\]*\\fR)", r"\\fB\1\\fR"),
        (rf"(?<![\w.%=-])({placeholders})(?![\w.])(?![^\\]*\\fR)", r"\\fI\1\\fR"),
    ]
    for pattern, replacement in patterns:
        text = re.sub(pattern, replacement, text)
    text = re.sub(r"\\fB[^\\]*\\fR", lambda match: match[0].replace("-", "\\-"), text)
    text = text.replace("[--]", "[\\fB\\-\\-\\fR]")
    return text.replace("+-", "\\(+-").replace("...", ".\\|.\\|.")


def sentences(text):
    """A new line for each, which is how man(7) sets the right blank between them."""
    lines = re.sub(r"(?<=[a-z\d)][.]) +(?=[A-Z'])", "\n", text).split("\n")
    return "\n".join("\\&" + line if line[:1] in (".", "'") else line for line in lines)


def paragraphs(about):
    """The text of --help: paragraphs, and tables whose first column becomes a list."""
    lines, in_list = [], False
    for line in about.split("\n"):
        row = re.match(r" *(\S+) {2,}(.*)", line)
        if row:
            term = marked(f"\\fB{row[1]}\\fR").replace("\\efB", "\\fB").replace("\\efR", "\\fR")
            lines += [".TP", term, sentences(marked(row[2]))]
        elif not line:
            lines.append(".PP")
        else:
            if in_list and lines[-1] != ".PP":
                lines.append(".PP")
            lines.append(sentences(marked(line)))
        in_list = bool(row)
    return [line for line, after in zip(lines, [*lines[1:], ""]) if not (line == ".PP" and after == ".TP")]


def form(option):
    """An option as it is written."""
    names = [f"-{option['letter']}"] if option["letter"] else []
    text = ", ".join(f"\\fB{name}\\fR" for name in [*names, f"--{option['name']}"]).replace("-", "\\-")
    if not option["argument"]:
        return text
    if option["kind"] == "size or none":
        return f"{text}[=\\fI{option['argument'].strip('[=]')}\\fR]"
    return f"{text} \\fI{option['argument']}\\fR"


def explained(option):
    """Its help as sentences, with the choices."""
    text = " ".join(option["help"].split())
    choices = option.get("choices", [])
    if text.split()[0].rstrip(":") not in choices:
        text = text[0].upper() + text[1:]
    text = marked(text, *([option["argument"].strip("[=]")] if option["argument"] else []))
    bold = [f"\\fB{choice}\\fR".replace("-", "\\-") for choice in choices]
    listed = f"{', '.join(bold[:-1])} or {bold[-1]}" if bold else ""
    if listed and text.endswith(":"):
        text += f" {listed}"
    elif listed:
        text += f".\nOne of {listed}"
    return sentences(text) + ("" if text.endswith(".") else ".")


def read_prose(path):
    """The parts of a prose file, in their order: (mark, name) and the lines."""
    parts = [(("description", ""), [])]
    for line in Path(path).read_text().splitlines():
        mark = re.fullmatch(r"@(\w+) *(.*)", line)
        if mark:
            parts.append(((mark[1], mark[2]), []))
        elif not line.startswith('.\\"'):
            parts[-1][1].append(line)
    return parts


def example_lines(examples):
    shown = [line.replace("\\", "\\e").replace("-", "\\-") for line in examples.split("\n")]
    return [".SH EXAMPLES", ".nf", *[re.sub(r"^  ", "", line) for line in shown], ".fi"]


def command_page(command, prose, shared):
    """The page of a command."""
    own = {name: lines for (mark, name), lines in prose if mark == "option"}
    common = {name: lines for (mark, name), lines in shared if mark == "option"}
    known = {option["name"] for option in command["options"]}
    unknown = sorted(set(own) - known)
    if unknown:
        sys.exit(f"docs/man: '{command['name']}' has no option --{unknown[0]}, but prose about it")
    page = [f".SH NAME\nmalloscope\\-{command['name']} \\- {command['summary']}", ".SH SYNOPSIS"]
    usage = command["usage"].removeprefix(f"malloscope {command['name']}")
    page += [f".B malloscope {command['name']}", marked(usage.strip()).replace(" ", "\n") if usage else ""]
    page += [".SH DESCRIPTION", *paragraphs(command["about"])]
    if prose[0][1]:
        page += [".PP", *prose[0][1]]
    page.append(".SH OPTIONS")
    for option in command["options"]:
        page += [".TP", form(option), explained(option)]
        page += own.get(option["name"], common.get(option["name"], []))
    for (mark, name), lines in prose:
        if mark == "section":
            page += [f".SH {name}", *lines]
    variables = [option for option in command["options"] if option["environment"]]
    if variables:
        page.append(".SH ENVIRONMENT")
    for option in variables:
        values = " It is 0 or 1." if option["kind"] == "flag" else ""
        name = f"\\fB--{option['name']}\\fR".replace("-", "\\-")
        used = f"Used where {name} is not given.{values}".replace(". It", ".\nIt")
        page += [f".TP\n.B {option['environment']}", used]
    if command["examples"]:
        page += example_lines(command["examples"])
    page += [".SH SEE ALSO", ".BR malloscope (1)"]
    return page


def variable_list(commands):
    """All variables that stand in for options, with those options and their commands."""
    found = {}
    for command in commands:
        for option in command["options"]:
            if option["environment"]:
                place = found.setdefault(option["environment"], (option["name"], []))
                place[1].append(command["name"])
    for variable, (option, names) in found.items():
        shown = f"\\fB--{option}\\fR".replace("-", "\\-")
        users = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
        yield from (".TP", f".B {variable}", f"Stands in for {shown} of {users}.")


def overview(commands, prose):
    """malloscope.1: its prose with the lists that it asks for."""
    page = [".SH NAME\nmalloscope \\- record which code allocates a program's heap, and show it"]
    for (mark, name), lines in prose:
        if mark == "section":
            page.append(f".SH {name}")
        elif mark == "commands":
            for command in commands:
                page += [".TP", f".BR malloscope\\-{command['name']} (1)", sentences(marked(command["summary"]))]
        elif mark == "environment":
            page += variable_list(commands)
        page += lines
    return page


def main(tool, prose_path, shared_path, out):
    table = json.loads(subprocess.run([tool, "help", "--json"], check=True, stdout=subprocess.PIPE).stdout)
    name = Path(prose_path).stem
    prose = read_prose(prose_path)
    chosen = [command for command in table["commands"] if name == f"malloscope-{command['name']}"]
    page = command_page(chosen[0], prose, read_prose(shared_path)) if chosen else overview(table["commands"], prose)
    date = time.strftime("%Y-%m-%d", time.gmtime(int(os.environ.get("SOURCE_DATE_EPOCH", time.time()))))
    head = f".TH {name.upper()} 1 {date} \"malloscope {table['version']}\" \"User Commands\""
    Path(out).write_text("\n".join([head, *filter(None, page)]) + "\n", encoding="utf-8")


main(*sys.argv[1:])
