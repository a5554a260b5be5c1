#!/usr/bin/env python3
"""Makes pictures of terminals from real runs: docs/pictures/terminal.py OUT.svg WIDTH COMMAND...

The command runs in a pseudo terminal of the given width; what it prints, colours included, becomes an SVG."""
import fcntl
import html
import os
import pty
import re
import struct
import sys
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


def take_code(numbers, style):
    """One sequence that changes how text looks."""
    for number in numbers:
        if number == 0:
            style.clear()
        elif number == 1:
            style["font-weight"] = "bold"
        elif number == 2:
            style["fill"] = DIM
        elif number == 7:
            style["reverse"] = True
        elif number in (22, 27, 39, 49):
            style.pop({22: "font-weight", 27: "reverse", 39: "fill", 49: "back"}[number], None)
        elif number in COLOURS:
            style["fill"] = COLOURS[number]
        elif number - 10 in COLOURS:
            style["back"] = COLOURS[number - 10]


def spans(line, style):
    """The line's pieces as (text, style); `style` carries over from line to line."""
    for piece in re.split(r"(\x1b\[[0-9;?]*[A-Za-z])", line):
        code = re.fullmatch(r"\x1b\[([0-9;]*)m", piece)
        if code:
            take_code([int(number or 0) for number in code[1].split(";")], style)
        elif piece and not piece.startswith("\x1b"):
            yield piece, dict(style)


def draw_span(text, style, x, y):
    back, width = style.pop("back", None), len(text) * CHARACTER
    if style.pop("reverse", False):
        back, style["fill"] = style.get("fill", TEXT), back or BACK
    if back:
        yield f'<rect x="{x:.2f}" y="{y - 14}" width="{width:.2f}" height="{LINE}" fill="{back}"/>'
    if text.strip():
        css = ";".join(f"{key}:{value}" for key, value in style.items())
        shown = html.escape(text).replace(" ", "\u00a0")  # browsers join other blanks, whatever they are told
        yield f'<text x="{x:.2f}" y="{y}" style="{css}" textLength="{width:.2f}">{shown}</text>'


def draw(lines, width, out):
    """Writes lines of a terminal as a picture."""
    height = 2 * MARGIN + LINE * len(lines)
    picture = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width * CHARACTER + 2 * MARGIN:.0f}" height="{height}">',
               f'<rect width="100%" height="100%" rx="8" fill="{BACK}"/>',
               f'<g font-family="ui-monospace,Menlo,DejaVu Sans Mono,monospace" font-size="14" fill="{TEXT}">']
    style = {}
    for number, line in enumerate(lines):
        column, y = 0, MARGIN + LINE * number + 14
        for text, look in spans(line, style):
            picture += draw_span(text, look, MARGIN + column * CHARACTER, y)
            column += len(text)
    picture += ["</g>", "</svg>"]
    with open(out, "w", encoding="utf-8") as file:
        file.write("\n".join(picture) + "\n")


def main():
    out, width, command = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
    shown = " ".join(os.path.basename(c) if i == 0 else c for i, c in enumerate(command))
    draw([f"\x1b[1m$ {shown}\x1b[0m"] + run(width, command).rstrip("\n").split("\n"), width, out)


if __name__ == "__main__":
    main()
