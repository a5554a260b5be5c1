"""The listing in docs/fast-path.md is that of the library which was built, and what it claims of it is true."""
import platform
import re

import pytest

from harness import LIBRARY, ROOT, tool_output

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="the page is about x86-64")


def normal(line):
    """An instruction without its addresses, and without the names of the places it jumps to."""
    line = re.sub(r"\s*#.*", "", line.strip())
    line = re.sub(r"-?0x[0-9a-f]+\(%rip\)|…\(%rip\)", "…(%rip)", line)
    line = re.sub(r"^(j(?!mp)\w+)\s+.*", r"\1", line)
    return re.sub(r"\s+", " ", line)


@pytest.fixture(scope="module")
def listing():
    """The first instructions of each function, by all its names."""
    symbols = {}
    for line in tool_output("nm", LIBRARY).splitlines():
        value, _, name = line.rpartition(" ")
        symbols[name] = int(value.split()[0], 16) if re.match(r"[0-9a-f]+ [tT]", value) else None
    code = {}
    for line in tool_output("objdump", "-d", "--no-show-raw-insn", LIBRARY).splitlines():
        match = re.match(r"\s*([0-9a-f]+):\t(.*)", line)
        if match:
            code[int(match[1], 16)] = match[2]
    places = sorted(code)

    def of(name, count):
        first = places.index(symbols[name])
        return [normal(code[place]) for place in places[first:first + count]]

    return of


def documented():
    text = (ROOT / "docs" / "fast-path.md").read_text()
    return [[normal(line) for line in block.strip().splitlines()] for block in re.findall(r"```\n(.*?)```", text, re.S)]


@pytest.mark.parametrize("name, block", [("malloc", 0), ("free", 1), ("entry_free_filtered", 2)])
def test_listing(listing, name, block):
    expected = documented()[block]
    assert listing(name, len(expected)) == expected


def test_the_only_store_is_to_the_countdown(listing):
    stores = [line for name, count in (("malloc", 4), ("free", 5)) for line in listing(name, count)
              if re.match(r"(mov|add|sub|inc|dec|xadd|xchg|and|or)\w* .*,\S*\(%", line)]
    assert stores == ["sub %rdi,%fs:(%rax)"]


@pytest.mark.parametrize("name", ["posix_memalign", "aligned_alloc", "memalign", "_Znwm", "_Znam"])
def test_as_malloc(listing, name):
    as_malloc = [re.sub(r"%r(dx|si|di),%fs", "%rdi,%fs", line) for line in listing(name, 4)]
    assert as_malloc == listing("malloc", 4)
