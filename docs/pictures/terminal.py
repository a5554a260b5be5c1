#!/usr/bin/env python3
"""Makes the terminal pictures of the README from real runs: docs/pictures/terminal.py OUT.svg WIDTH COMMAND...

The command runs in a pseudo terminal of the given width; what it prints, colours included, becomes an SVG."""
import html
import os
import pty
import re
import struct
import sys
import fcntl
import termios

COLOURS = {30: "#20242c", 31: "#e06c75", 32: "#98c379", 33: "#e5c07b", 34: "#61afef", 35: "#c678dd", 36: "#56b6c2",
           37: "#dcdfe4", 90: "#7f848e"}
TEXT, BACK, DIM = "#dcdfe4", "#20242c", "#8b919d"
CHARACTER, LINE, MARGIN = 8.43, 18, 14


def run(width, command):
    """What the command prints to a terminal of that width."""
    child, terminal = pty.fork()
    if child == 0:
        os.environ.update(TERM="xterm-256color", COLUMNS=str(width), LC_ALL="C.UTF-8")
        os.environ.pop("NO_COLOR", None)
        os.execvp(command[0], command)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 50, width, 0, 0))
    output = b""
    while True:
        try:
            data = os.read(terminal, 65536)
        except OSError:
            break
        if not data:
            break
        output += data
    os.waitpid(child, 0)
    return output.decode(errors="replace").replace("\r\n", "\n")


def spans(line, style):
    """The line's pieces as (text, css); `style` carries over from line to line."""
    for piece in re.split(r"(\x1b\[[0-9;?]*[A-Za-z])", line):
        code = re.fullmatch(r"\x1b\[([0-9;]*)m", piece)
        if code:
            for number in [int(n or 0) for n in code[1].split(";")]:
                if number == 0:
                    style.clear()
                elif number == 1:
                    style["font-weight"] = "bold"
                elif number == 2:
                    style["fill"] = DIM
                elif number in (22, 39):
                    style.pop("font-weight" if number == 22 else "fill", None)
                elif number in COLOURS:
                    style["fill"] = COLOURS[number]
        elif piece and not piece.startswith("\x1b"):
            yield piece, ";".join(f"{k}:{v}" for k, v in style.items())


def main():
    out, width, command = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
    shown = " ".join(os.path.basename(c) if i == 0 else c for i, c in enumerate(command))
    lines = [f"\x1b[1m$ {shown}\x1b[0m"] + run(width, command).rstrip("\n").split("\n")
    height = 2 * MARGIN + LINE * len(lines)
    picture = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width * CHARACTER + 2 * MARGIN:.0f}" height="{height}">',
               f'<rect width="100%" height="100%" rx="8" fill="{BACK}"/>',
               f'<g font-family="ui-monospace,Menlo,DejaVu Sans Mono,monospace" font-size="14" fill="{TEXT}" xml:space="preserve">']
    style = {}
    for number, line in enumerate(lines):
        column, y = 0, MARGIN + LINE * number + 14
        for text, css in spans(line, style):
            picture.append(f'<text x="{MARGIN + column * CHARACTER:.2f}" y="{y}" style="{css}" '
                           f'textLength="{len(text) * CHARACTER:.2f}">{html.escape(text)}</text>')
            column += len(text)
    picture += ["</g>", "</svg>"]
    with open(out, "w", encoding="utf-8") as file:
        file.write("\n".join(picture) + "\n")


main()
