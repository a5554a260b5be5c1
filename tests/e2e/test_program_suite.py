"""The cheap ones of tests/real_programs: real programs do and print the same, plain, sampled and exact."""

import sys
from pathlib import Path

import pytest

import harness

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "real_programs"))

import program_runs  # noqa: E402
import program_list  # noqa: E402

CHEAP = [program for program in program_list.PROGRAMS if program.cheap]


@pytest.fixture(scope="module")
def plain_runs(session_folder):
    made = {}

    def run_once(program):
        if program.name not in made:
            made[program.name] = program_runs.run_script(program, session_folder / f"plain-{program.name}")
        return made[program.name]

    return run_once


@pytest.mark.parametrize("mode", program_runs.MODES)
@pytest.mark.parametrize("program", CHEAP, ids=lambda program: program.name)
def test_same_output_and_status(program, mode, folder, plain_runs):
    if missing := program_runs.missing_packages(program):
        pytest.skip(f"no {' '.join(missing)} (Debian: apt install {' '.join(missing)})")
    recorded = program_runs.record(program, mode, folder / mode, harness.MALLOSCOPE)
    assert not program_runs.differences(program, plain_runs(program), recorded)
