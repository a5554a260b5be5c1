"""What was built carries the marks of a hardened build: read from the ELF files themselves."""

import re

import pytest

import harness
from harness import COMMANDS, LIBRARY, MALLOSCOPE, tool_output

TOOL = {"front": MALLOSCOPE, "commands": COMMANDS}
FILES = {**TOOL, "library": LIBRARY}


@pytest.fixture(params=FILES, ids=str)
def built(request):
    return FILES[request.param]


def test_position_independent(built):
    assert re.search(r"Type:\s+DYN", tool_output("readelf", "-h", built))


def test_stack_is_not_executable(built):
    (flags,) = re.findall(r"GNU_STACK.*0x\S+ ([R ][W ][E ]) 0x", tool_output("readelf", "-lW", built))
    assert flags == "RW "


def test_nothing_is_writable_and_executable(built):
    segments = re.findall(r"^\s+LOAD.*([R ][W ][E ]) 0x\S+$", tool_output("readelf", "-lW", built), re.M)
    assert len(segments) >= 3
    assert not [flags for flags in segments if "W" in flags and "E" in flags]


def test_relocations_are_done_at_the_start_and_then_read_only(built):
    assert "GNU_RELRO" in tool_output("readelf", "-lW", built)
    dynamic = tool_output("readelf", "-dW", built)
    assert "BIND_NOW" in dynamic or re.search(r"FLAGS_1\).*\bNOW\b", dynamic)


def test_no_search_path_that_others_could_write_to(built):
    assert not re.search(r"\((RPATH|RUNPATH)\)", tool_output("readelf", "-dW", built))
    assert "TEXTREL" not in tool_output("readelf", "-dW", built)


@pytest.fixture(params=TOOL, ids=str)
def executable(request):
    return TOOL[request.param]


def test_stack_protector_and_fortified_functions_of_the_tool(executable):
    symbols = tool_output("nm", "-D", executable)
    assert "__stack_chk_fail" in symbols
    assert len(re.findall(r"U __(?:\w+)_chk\b", symbols)) >= 5


def test_landing_pads_of_the_tool(executable):
    if "Advanced Micro Devices X86-64" not in tool_output("readelf", "-h", executable):
        pytest.skip("x86-64 alone has these")
    code = tool_output("objdump", "-d", "--disassemble=main", "--no-show-raw-insn", executable)
    assert re.search(r"<main>:\n\s+\w+:\s+endbr64", code)


def test_fortified_functions_of_the_library():
    assert re.search(r"U __\w+_chk\b", tool_output("nm", "-D", LIBRARY))


def test_running_a_program_needs_few_libraries():
    """Each of them delays its start."""
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", tool_output("readelf", "-dW", MALLOSCOPE))
    assert [name for name in needed if not re.match(r"(libc|libm|libelf|ld-linux\S*)\.so", name)] == []


def test_library_needs_libc_alone():
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", tool_output("readelf", "-dW", LIBRARY))
    assert [name for name in needed if not re.match(r"(libc|ld-linux\S*)\.so", name)] == []


@pytest.mark.parametrize("function, fast", [
    ("malloc", ["mov", "sub", "jbe", "jmp"]),
    ("free", ["test", "je", "cmpq", "je", "jmp"]),
])  # fmt: skip
def test_hot_path_of_the_library_is_what_it_is_said_to_be(function, fast):
    """Exactly these instructions: hardening has added none."""
    if "Advanced Micro Devices X86-64" not in tool_output("readelf", "-h", LIBRARY):
        pytest.skip("counted on x86-64")
    (place,) = re.findall(rf"^(\w+) T {function}$", tool_output("nm", "-D", LIBRARY), re.M)
    code = tool_output("objdump", "-d", "--no-show-raw-insn", f"--start-address=0x{place}",
                       f"--stop-address={int(place, 16) + 64}", LIBRARY)  # fmt: skip
    lines = re.findall(r"^\s+[0-9a-f]+:\s+(\w+)", code, re.M)
    assert lines[: len(fast)] == fast
