# Text that is put together, taken apart, searched and changed, line by line.
import re

import rounds

WORDS = "heap sample stack frame line scope peak live rate weight thread arena block mark table".split()
NAME = re.compile(r"(?P<word>[a-z]+)=(?P<number>\d+)")


def lines(seed, count):
    for i in range(count):
        seed = (seed * 1103515245 + 12345) & 0x7FFFFFFF
        yield f"{i:06d} {WORDS[seed % 15]}={seed % 10007} {WORDS[seed // 15 % 15].upper()} {seed / 7:.3f}"


def round_of_work(seed):
    text = "\n".join(lines(seed, 8000))
    total = 0
    for line in text.splitlines():
        number, assignment, word, ratio = line.split(" ")
        match = NAME.match(assignment)
        total += int(match["number"]) + len(word.lower() + number.lstrip("0") + ratio.replace(".", ","))
    turned = " ".join(reversed(text.split())).title()
    buffer = ""
    for word in turned.split(" ")[:8000]:
        buffer += word[:3]
    return total + len(turned.encode("utf-16")) + buffer.count("He")


rounds.measure(round_of_work)
