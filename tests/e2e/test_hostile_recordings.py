"""Recordings that were made to harm their reader: it ends soon, says what is wrong, and takes no more memory than the
file is worth."""

import resource
import subprocess

import pytest

import harness
from harness import MALLOSCOPE, ROOT

KINDS = [
    "many-heaps", "many-modules", "deep-stack", "deep-tree", "long-names", "same-place", "sparse",
]  # fmt: skip
DAMAGED = {"many-heaps", "deep-stack", "long-names", "same-place"}
COMMANDS = [
    ["stats", "--json"], ["report"], ["tree"], ["info"], ["flame", "-o", "-"], ["archive", "-f", "-q", "-o", "out"],
    ["export", "-o", "-", "--format", "pprof"], ["export", "-o", "-", "--format", "collapsed"],
    ["export", "-o", "-", "--format", "chrome"],
]  # fmt: skip
SECONDS = 20  # of the processor's: what goes through all pairs takes more
MEMORY = 3 << 30


@pytest.fixture(scope="module")
def crafted(build, session_folder):
    tool = build(str(ROOT / "tests" / "tools" / "craft_recording.c"), "-D_GNU_SOURCE", f"-I{ROOT / 'src'}")
    folder = session_folder / "crafted"
    folder.mkdir()
    for kind in KINDS:
        harness.run([tool, kind, folder / f"{kind}.mscope"])
    return folder


def limit():
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


@pytest.mark.parametrize("kind", KINDS)
def test_no_command_is_led_astray(crafted, kind):
    for command in COMMANDS:
        result = subprocess.run(
            [MALLOSCOPE, *command, crafted / f"{kind}.mscope"], cwd=crafted, env=harness.clean_environment(),
            stdin=subprocess.DEVNULL, capture_output=True, preexec_fn=limit, timeout=harness.PATIENCE,
        )  # fmt: skip
        what = (kind, command, result.returncode, result.stderr[-500:])
        # A terabyte finds no room within the limit; otherwise it is nearly all hole, and read in no time.
        expected = {5} if kind in DAMAGED else {1} if kind == "sparse" else {0}
        assert result.returncode in expected, what
        if result.returncode:
            assert b"damaged" in result.stderr or b"cannot map" in result.stderr, what
            assert b"hint: " in result.stderr, what


def test_a_file_that_is_nearly_all_hole_is_read_in_no_time(crafted):
    """If the address space is large enough to map it."""
    result = harness.malloscope("stats", "--json", crafted / "sparse.mscope", expect=None)
    assert result.returncode in (0, 1, 5)
    if result.returncode == 0:
        assert harness.json.loads(result.stdout)["totals"]["total_objects"] == 1
