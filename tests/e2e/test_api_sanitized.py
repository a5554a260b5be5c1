"""Everything of the API under the sanitizers. The recorder is compiled into the test programs, as libmalloscope.a
would be: its hooks stand in front of the sanitizer's malloc."""

import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import api
import harness

SANITIZERS = {
    "thread": ["-fsanitize=thread", "-Wno-tsan"],  # fences: it does not know them, and would rather report too much
    "address": ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"],
}
WRAPPED = ("malloc free calloc realloc malloc_usable_size reallocarray posix_memalign aligned_alloc memalign valloc "
           "pvalloc _exit _Exit").split()

HEAPS = "shared apart across on_malloc rates many same_address enumerate fork bad resize".split()
SCOPES = "nesting unbalanced places jump threads signals start_inside ignoring child names types".split()
LIFE = "states end_initialized end_stopped again options late race load_exact load_sampled shutdown_load".split()
REPORTS = ("ThreadSanitizer", "ERROR: AddressSanitizer", "runtime error")


def sources():
    """What libmalloscope.a is made of."""
    commands = json.loads((harness.BUILD / "compile_commands.json").read_text())
    return sorted(
        {
            os.path.normpath(os.path.join(command["directory"], command["file"]))
            for command in commands
            if "libmalloscope_parts.a.p" in command.get("output", "")
        }
    )


@pytest.fixture(scope="session")
def sanitized(session_folder):
    """sanitized(sanitizer, program): the path of the program with the recorder in it."""
    made = {}

    def flags(sanitizer):
        includes = [f"-I{harness.ROOT / 'src'}", api.INCLUDE]
        return ["-g", "-O1", "-D_GNU_SOURCE", "-pthread", *includes, *SANITIZERS[sanitizer]]

    def recorder(sanitizer):
        if sanitizer not in made:
            folder = session_folder / f"recorder-{sanitizer}"
            folder.mkdir()

            def compile_one(source):
                target = folder / (Path(source).parent.name + "_" + Path(source).name + ".o")
                version = '-DMALLOSCOPE_VERSION="test"'
                harness.run(["gcc", "-c", *flags(sanitizer), "-DMALLOSCOPE_STATIC", version, source, "-o", target])
                return target

            with ThreadPoolExecutor(os.cpu_count()) as pool:
                made[sanitizer] = list(pool.map(compile_one, sources()))
            assert len(made[sanitizer]) > 30
        return made[sanitizer]

    def build(sanitizer, program):
        key = (sanitizer, program)
        if key not in made:
            target = session_folder / f"{Path(program).stem}-{sanitizer}"
            wraps = [f"-Wl,--wrap={name}" for name in WRAPPED]
            harness.run(["gcc", *flags(sanitizer), "-DMSCOPE_LINKED", harness.PROGRAMS / program,
                         *recorder(sanitizer), *wraps, "-o", target])
            made[key] = target
        return made[key]

    return build


def run_clean(command, env=None):
    """Returns what was printed; the program's own checks passed and no sanitizer had anything to say."""
    result = harness.run(command, expect=None, env={"ASAN_OPTIONS": "detect_leaks=0", **(env or {})})
    said = result.stderr.decode(errors="replace")
    assert result.returncode == 0 and not any(word in said for word in REPORTS), said[:4000]
    return result.stdout


@pytest.mark.parametrize("sanitizer", SANITIZERS)
@pytest.mark.parametrize(
    "program,case", [("api_heaps.c", case) for case in HEAPS] + [("api_scopes.c", case) for case in SCOPES]
)
def test_heaps_and_scopes(sanitized, folder, sanitizer, program, case):
    path = folder / "%p.mscope"
    run_clean([sanitized(sanitizer, program), case], {"MALLOSCOPE_OUTPUT": str(path), "MALLOSCOPE_RATE": "1"})
    recordings = list(folder.glob("*.mscope"))
    assert len(recordings) == (2 if case in ("fork", "child") else 1)
    for recording in recordings:
        assert harness.report(recording)["totals"]["total_objects"] > 0


@pytest.mark.parametrize("sanitizer", SANITIZERS)
@pytest.mark.parametrize("case", LIFE)
def test_life(sanitized, folder, sanitizer, case):
    run_clean([sanitized(sanitizer, "api_life.c"), case, folder / "own.mscope"], {})


def test_the_figures_are_exact_there_too(sanitized, folder):
    path = folder / "x.mscope"
    told = run_clean([sanitized("thread", "api_heaps.c"), "across"],
                     {"MALLOSCOPE_OUTPUT": str(path), "MALLOSCOPE_RATE": "1"})
    heap, truth = api.heaps(path)["exchanged"], json.loads(told)["exchanged"]
    assert (heap["total_objects"], heap["total_bytes"]) == (truth["objects"], truth["bytes"])
    assert (heap["live_objects"], heap["live_bytes"]) == (truth["live_objects"], truth["live_bytes"])


@pytest.mark.parametrize("sanitizer,source", [
    ("thread", "static int shared; static void *add(void *x) { for (int i = 0; i < 1000; i++) shared++; return x; }\n"
               "int main(void) { pthread_t t; pthread_create(&t, 0, add, 0); add(0); pthread_join(t, 0); return 0; }"),
    ("address", "int main(void) { char *volatile block = malloc(10); free(block); return block[3]; }"),
])
def test_a_fault_of_the_program_would_be_seen(sanitized, folder, sanitizer, source):
    """The tests above can fail: the sanitizer is at work, and knows the blocks that come through the hooks."""
    program = folder / "faulty.c"
    program.write_text("#include <pthread.h>\n#include <stdlib.h>\n" + source)
    result = harness.run([sanitized(sanitizer, program)], expect=None)
    assert result.returncode != 0
    assert "data race" in result.stderr.decode() or "heap-use-after-free" in result.stderr.decode()
