"""Stacks walked from outside: those of real programs, stopped in malloc as by a probe, are gdb's, frame by frame."""

import json
from pathlib import Path

import pytest

import harness
from stack_programs import C_ROUNDS, PROGRAMS, Program, c_program, need, play, rust_program

IN_GDB = Path(__file__).parent / "remote_in_gdb.py"
SERVE = harness.BUILD / "tests" / "unit" / "test_remote_serve"
STACKS = 300

STATICALLY_LINKED = {
    "c-static": Program(c_program("-O2", "-static", "-no-pie")),
    "c-static-pie": Program(c_program("-O3", "-static-pie")),
    "rust-static": Program(rust_program("-Copt-level=3", "-Ctarget-feature=+crt-static"), size=4),
}
LINKED_DYNAMICALLY = {
    "c-fixed": Program(c_program("-O2", "-no-pie")),
    "rust-stripped": Program(rust_program("-Copt-level=3", "-Cstrip=symbols"), size=4),
} | {
    name: PROGRAMS[name]
    for name in ("c-O0-frame-pointer", "c-O3", "c++-exceptions", "rust-lto", "python3", "perl", "sqlite3")
}

# Where gdb goes on although the stack has ended (see test_stacks.py).
PAST_THE_START = {"_dl_start_user", "__start_context"}


@pytest.mark.parametrize("name", [*STATICALLY_LINKED, *LINKED_DYNAMICALLY])
def test_stacks_from_outside_are_those_that_gdb_shows(build, folder, start, name):
    if not SERVE.exists():
        pytest.skip(f"{SERVE} was not built")
    program = (STATICALLY_LINKED | LINKED_DYNAMICALLY)[name]
    result = folder / "gdb.json"
    job = {
        "scripts": str(IN_GDB.parent),
        "serve": str(SERVE),
        "statically_linked": name in STATICALLY_LINKED,
        "stacks": STACKS,
        "step": 7,
        "result": str(result),
    }
    gdb = [need("gdb"), "-nx", "-q", "-batch", "-ex", f"python job = {job}", "-x", IN_GDB, "--args"]
    output, complaint, _ = play(start, program, gdb, build, folder, 8 * program.size)
    assert result.exists(), (output + complaint).decode(errors="replace")
    found = json.loads(result.read_text())
    assert not found["differences"], json.dumps(found["differences"], indent=1)
    assert found["stacks"] == STACKS and found["distinct"] >= 20
    assert found["ends"].get("lost", 0) == 0
    assert set(found["past"]) <= PAST_THE_START
