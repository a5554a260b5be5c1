"""Programs with another allocator than libc's."""

import signal
from pathlib import Path

import pytest

import harness
from harness import PROGRAMS, ROOT, figures_of_site, report, stats

ALLOCATORS = ["jemalloc", "tcmalloc", "tcmalloc_minimal"]
RATES = ["64", "4K", "512K", "exact"]


def need_library(name):
    found = list(Path("/usr/lib").glob(f"*/lib{name}.so"))
    if not found:
        pytest.skip(f"lib{name}.so is not installed (Debian: libjemalloc-dev, libgoogle-perftools-dev)")


def linked_with(name):
    need_library(name)
    return ["-Wl,--no-as-needed", f"-l{name}"]


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("allocator", ALLOCATORS)
def test_c_program(build, record, allocator, rate):
    program = build("integrity.c", "-O1", "-DWITHOUT_PVALLOC", *linked_with(allocator))
    for threads, operations in ((1, 10000), (16, 1500)):
        plain = harness.run([program, threads, operations, 1])
        recording = record(program, threads, operations, 1, rate=rate)
        assert recording.stdout == plain.stdout
        totals = stats(recording)["totals"]
        assert totals["exact_total_bytes"] > 1_000_000 and totals["unknown_frees"] == 0


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("allocator", ALLOCATORS)
def test_cpp_program(build, record, allocator, rate):
    """Both allocators bring their own operator new: what goes through it is recorded too."""
    program = build("containers.cpp", "-std=c++17", "-O1", *linked_with(allocator))
    plain = harness.run([program, 20000])
    recording = record(program, 20000, rate=rate)
    assert recording.stdout == plain.stdout
    with_libc = record(build("containers.cpp", "-std=c++17", "-O1"), 20000, rate="exact")
    expected = stats(with_libc)["totals"]["total_bytes"]
    totals = stats(recording)["totals"]
    assert totals["exact_total_bytes"] == pytest.approx(expected, rel=0.02) and totals["unknown_frees"] == 0


@pytest.mark.parametrize("allocator", ALLOCATORS)
def test_ground_truth_of_cpp(build, record, allocator):
    recording = record(build("truth_cpp.cpp", "-std=c++17", "-O1", *linked_with(allocator)))
    assert stats(recording)["totals"]["unknown_frees"] == 0
    rows = report(recording)["rows"]
    for name in ("new_object", "new_array", "new_aligned", "new_nothrow", "vector_growth", "map_nodes"):
        truth = recording.ledger["sites"][name]
        found = figures_of_site(rows, PROGRAMS / "truth_cpp.cpp", name)
        for figure in ("total_objects", "total_bytes", "live_objects", "live_bytes"):
            assert found[figure] == truth[figure], f"{name}: {figure}"


def assert_no_phantoms(record, program, rate):
    """The program frees all it allocates, one way or another: nothing of it may stay in the figures."""
    recording = record(program, rate=rate)
    assert recording.stdout == harness.run([program]).stdout
    totals = stats(recording)["totals"]
    assert totals["recorder_bytes"] <= 16 << 20, "the tables grew"
    # The libraries keep some 300 KiB for themselves: hardly ever more than five samples of 512 KiB.
    kept = 5 * (512 << 10) if rate == "512K" else 600_000
    assert totals["live_bytes"] <= 0.02 * totals["total_bytes"] + kept, "blocks that were freed are called live"


@pytest.mark.parametrize("rate", RATES)
def test_jemalloc_functions_on_blocks_from_malloc(build, record, rate):
    if not Path("/usr/include/jemalloc/jemalloc.h").exists():
        pytest.skip("libjemalloc-dev is not installed")
    assert_no_phantoms(record, build("jemalloc_api.c", *linked_with("jemalloc")), rate)


@pytest.mark.parametrize("rate", RATES)
def test_tcmalloc_functions_on_blocks_from_malloc(build, record, rate):
    if not Path("/usr/include/gperftools/tcmalloc.h").exists():
        pytest.skip("libgoogle-perftools-dev is not installed")
    assert_no_phantoms(record, build("tcmalloc_api.c", *linked_with("tcmalloc")), rate)


@pytest.mark.parametrize("rate", ["4K", "exact"])
@pytest.mark.parametrize("library", ["libjemalloc.so.2", "libtcmalloc.so.4", "libtcmalloc_minimal.so.4"])
def test_allocator_that_is_preloaded(build, record, library, rate):
    """An LD_PRELOAD of the user's is kept, and the allocator in it is the one that is used."""
    found = list(Path("/usr/lib").glob(f"*/{library}"))
    if not found:
        pytest.skip(f"{library} is not installed")
    program = build("integrity.c", "-O1", "-DWITHOUT_PVALLOC")
    plain = harness.run([program, 4, 3000, 1])
    recording = record(program, 4, 3000, 1, rate=rate, env={"LD_PRELOAD": str(found[0])})
    assert recording.stdout == plain.stdout
    assert library.split(".")[0] in harness.malloscope("info", recording).stdout.decode()
    assert stats(recording)["totals"]["unknown_frees"] == 0


@pytest.mark.parametrize("rate", ["4K", "exact"])
def test_a_wrapper_that_calls_the_c_librarys_malloc_by_its_own_name(build, record, rate):
    """Its calls of __libc_malloc must not be taken for the program's: that would lead back to it, for ever."""
    wrapper = build(
        str(ROOT / "tests" / "tools" / "fail_memory.c"), "-D_GNU_SOURCE", "-shared", "-fPIC", target="libfail_memory.so"
    )
    program = build("integrity.c", "-O1")
    plain = harness.run([program, 4, 3000, 1])
    recording = record(program, 4, 3000, 1, rate=rate, env={"LD_PRELOAD": str(wrapper)})
    assert recording.stdout == plain.stdout
    assert "libfail_memory" in harness.malloscope("info", recording).stdout.decode()
    if rate == "exact":
        without = stats(record(program, 4, 3000, 1))["totals"]
        found = stats(recording)["totals"]
        assert found["total_objects"] == without["total_objects"] and found["live_objects"] == without["live_objects"]


@pytest.mark.parametrize("rate", ["64", "4K", "exact"])
def test_a_block_counts_once_whatever_its_allocator_asks_of_itself(build, record, rate):
    """Its posix_memalign calls its aligned_alloc, and that its memalign: each call by name reaches the recorder."""
    options = ("-D_GNU_SOURCE", "-fno-builtin", "-O2", "-shared", "-fPIC")
    library = build(str(ROOT / "tests" / "tools" / "by_public_names.c"), *options, target="libby_public_names.so")
    program = build("integrity.c", "-O1", "-DWITHOUT_PVALLOC")
    plain = record(program, 4, 3000, 1, rate=rate)
    recording = record(program, 4, 3000, 1, rate=rate, env={"LD_PRELOAD": str(library)})
    assert recording.stdout == plain.stdout
    assert "libby_public_names" in harness.malloscope("info", recording).stdout.decode()
    expected, found = stats(plain)["totals"], stats(recording)["totals"]
    assert found["exact_total_bytes"] == expected["exact_total_bytes"]
    if rate == "exact":
        assert (found["total_objects"], found["live_bytes"]) == (expected["total_objects"], expected["live_bytes"])
    else:
        assert found["samples"] == pytest.approx(expected["samples"], rel=0.1)


@pytest.mark.parametrize("rate", ["4K", "exact"])
def test_static_allocator_inside_a_library(folder, build, record, rate):
    """A library that allocates while the program is still being loaded."""
    source = folder / "early.c"
    source.write_text(
        "#include <stdlib.h>\n#include <string.h>\nstatic void *kept[100];\n"
        "__attribute__((constructor(101))) static void early(void) {\n"
        "    for (int i = 0; i < 100; i++) kept[i] = memset(calloc(1, 500), i, 500);\n}\n"
        "__attribute__((destructor(101))) static void late(void) {\n"
        "    for (int i = 0; i < 100; i++) { if (*(char *)kept[i] != i) abort(); free(kept[i]); }\n}\n"
    )
    library = folder / "libearly.so"
    harness.run(["gcc", "-shared", "-fPIC", "-g", source, "-o", library])
    program = build("hello.c", "-O1")
    recording = record(program, rate=rate, env={"LD_PRELOAD": str(library)})
    assert recording.stdout == b"hello\n"
    if rate == "exact":
        early = [row for row in report(recording)["rows"] if row["function"] == "early"]
        assert sum(row["total_objects"] for row in early) == 100
        assert sum(row["live_objects"] for row in early) == 0


@pytest.mark.parametrize("rate", RATES)
def test_checks_of_libc_malloc_debug(build, record, rate):
    """glibc's library for MALLOC_CHECK_ has its functions under old versions alone: it must not be passed by."""
    environment = {"LD_PRELOAD": "libc_malloc_debug.so.0", "MALLOC_CHECK_": "3"}
    program = build("checked_heap.c")
    assert harness.run([program], env=environment).stdout == b"done\n"
    assert harness.run([program, "overrun"], env=environment, expect=None).returncode == -signal.SIGABRT
    recording = record(program, rate=rate, env=environment)
    assert recording.stdout == b"done\n"
    assert "libc_malloc_debug" in harness.malloscope("info", recording).stdout.decode()
    assert record(program, "overrun", rate=rate, env=environment, expect=None).status == -signal.SIGABRT


@pytest.mark.parametrize("rate", RATES)
def test_library_in_front_of_libc(folder, build, record, rate):
    """One that is preloaded to look on, and goes to the C library by its other names."""
    source = folder / "onlooker.c"
    source.write_text(
        "#include <stdio.h>\n#include <stddef.h>\nstatic _Atomic long count;\n"
        "void *__libc_malloc(size_t); void __libc_free(void *); void *__libc_calloc(size_t, size_t);\n"
        "void *__libc_realloc(void *, size_t); void *__libc_memalign(size_t, size_t);\n"
        "void *malloc(size_t n) { count++; return __libc_malloc(n); }\n"
        "void free(void *p) { count++; __libc_free(p); }\n"
        "void *calloc(size_t n, size_t m) { count++; return __libc_calloc(n, m); }\n"
        "void *realloc(void *p, size_t n) { count++; return __libc_realloc(p, n); }\n"
        "void *memalign(size_t a, size_t n) { count++; return __libc_memalign(a, n); }\n"
        "void *aligned_alloc(size_t a, size_t n) { return memalign(a, n); }\n"
        "int posix_memalign(void **r, size_t a, size_t n) { *r = memalign(a, n); return *r ? 0 : 12; }\n"
        "__attribute__((destructor)) static void end(void)"
        ' { fprintf(stderr, "%s\\n", count > 10000 ? "many" : "few"); }\n'
    )
    library = folder / "libonlooker.so"
    harness.run(["gcc", "-shared", "-fPIC", "-fno-builtin", "-O1", source, "-o", library])
    program = build("integrity.c", "-O1", "-DWITHOUT_PVALLOC")
    environment = {"LD_PRELOAD": str(library)}
    plain = harness.run([program, 4, 3000, 1], env=environment)
    recording = record(program, 4, 3000, 1, rate=rate, env=environment)
    assert recording.stdout == plain.stdout
    assert b"many" in recording.stderr, "the library saw nothing of it"
    assert stats(recording)["totals"]["exact_total_bytes"] > 1_000_000
