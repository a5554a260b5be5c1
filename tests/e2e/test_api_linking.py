"""The three ways to use the C API: not linked at all, with the shared library, and in a static program."""

import json
import re
import shutil
import subprocess

import pytest

import harness
from harness import BUILD, PROGRAMS, ROOT

SOURCE = PROGRAMS / "api_linked.c"


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The library as a user finds it, and a function that asks pkg-config about it."""
    prefix = tmp_path_factory.mktemp("installed")
    subprocess.run(["meson", "install", "--quiet", "--no-rebuild", "-C", BUILD, "--destdir", prefix], check=True,
                   stdout=subprocess.DEVNULL)
    folders = [path.parent for path in prefix.rglob("malloscope.pc")]
    assert len(folders) == 1

    def flags(*options):
        told = subprocess.run(["pkg-config", *options, "malloscope"], check=True, stdout=subprocess.PIPE, text=True,
                              env={"PKG_CONFIG_LIBDIR": str(folders[0]), "PKG_CONFIG_SYSROOT_DIR": str(prefix),
                                   "PKG_CONFIG_ALLOW_SYSTEM_LIBS": "1", "PATH": "/usr/bin:/bin"})
        return told.stdout.split()

    return flags


def build(target, before=(), after=(), compiler="gcc"):
    harness.run([compiler, "-g", "-O1", *before, SOURCE, "-o", target, *after])
    return target


def ledger(program, *arguments, env=None, cwd=None):
    return json.loads(harness.run([program, *arguments], env=env, cwd=cwd).stdout)


def check_recorded(recording):
    """What api_linked.c allocates between start and stop."""
    rows = {row["function"].removesuffix("()"): row for row in harness.report(recording)["rows"]}
    assert rows["make_buffer"]["total_bytes"] == 3000 and rows["make_buffer"]["live_bytes"] == 2000
    assert rows["fill_arena"]["total_bytes"] == 640 and rows["fill_arena"]["total_objects"] == 10
    assert rows["make_buffer"]["line"] in harness.site_lines(SOURCE)["buffer"]
    assert "main" not in rows  # what is allocated before start and after stop
    health = harness.report(recording)["health"]
    assert health["complete"] == 1
    collapsed = harness.malloscope("export", "--format", "collapsed", recording).stdout.decode()
    assert re.search(r"main;work[^;]*;\[scope phase one\];make_buffer\S* 2000", collapsed)


@pytest.mark.parametrize("options", [["-fPIE", "-pie"], ["-fPIC", "-no-pie"]])
def test_not_linked(tmp_path, options):
    program = build(tmp_path / "program", [f"-I{ROOT}/include", "-Werror", "-Wall", "-Wextra", *options])
    alone = ledger(program)
    assert alone["state"] == ["UNINITIALIZED"] * 5
    assert alone["results"] == {"init": "ABSENT", "start": "ABSENT", "stop": "ABSENT", "shutdown": "ABSENT"}
    assert alone["heap"] == 0 and alone["report"] == "ABSENT"

    path = tmp_path / "x.mscope"
    under = json.loads(harness.malloscope("run", "-q", "--exact", "-o", path, program).stdout)
    assert under["state"] == ["ACTIVE", "ACTIVE", "ACTIVE", "STOPPED", "TERMINATED"]
    assert under["results"] == {"init": "BAD_STATE", "start": "BAD_STATE", "stop": "OK", "shutdown": "OK"}
    rows = {row["function"]: row for row in harness.report(path)["rows"]}
    assert rows["make_buffer"]["total_bytes"] == 3000 and rows["fill_arena"]["total_bytes"] == 640


WAYS = {
    "shared": ((), (), "gcc"),
    "shared, clang": ((), (), "clang"),
    "static": (("-static",), (), "gcc"),
    "static-pie": (("-static-pie",), (), "gcc"),
    "static C++": (("-static", "-x", "c++"), ("-x", "none"), "g++"),
}


@pytest.mark.parametrize("way", WAYS)
def test_linked(tmp_path, installed, way):
    before, after, compiler = WAYS[way]
    if not shutil.which(compiler):
        pytest.skip(f"no {compiler} here")
    static = "static" in way
    libraries = installed("--static", "--libs") if static else installed("--libs")
    program = build(tmp_path / "program", [*installed("--cflags"), *before], [*after, *libraries], compiler)
    library_path = {} if static else {
        "LD_LIBRARY_PATH": next(flag[2:] for flag in libraries if flag.startswith("-L"))}

    path = tmp_path / "own.mscope"
    told = ledger(program, path, env=library_path)
    assert told["state"] == ["UNINITIALIZED", "INITIALIZED", "ACTIVE", "STOPPED", "TERMINATED"]
    assert set(told["results"].values()) == {"OK"}
    assert told["stats"]["live_bytes"] == 2000 + 640
    check_recorded(path)

    # The environment asks for everything, from the first allocation on.
    path = tmp_path / "all.mscope"
    told = ledger(program, env={**library_path, "MALLOSCOPE_OUTPUT": str(path), "MALLOSCOPE_RATE": "1"})
    assert told["state"][0] == "ACTIVE" and told["results"]["init"] == "BAD_STATE"
    assert any(row["function"] == "main" for row in harness.report(path)["rows"])


def test_linked_and_never_asked(tmp_path, installed):
    """A program that never starts the recorder gets no file, and prints what it always prints."""
    source = tmp_path / "quiet.c"
    source.write_text("#include <malloscope.h>\n#include <stdlib.h>\n"
                      "int main(void) { for (int i = 0; i < 100000; i++) free(malloc(100)); return mscope_state(); }\n")
    libraries = installed("--libs")
    harness.run(["gcc", *installed("--cflags"), source, "-o", tmp_path / "quiet", *libraries])
    folder = tmp_path / "here"
    folder.mkdir()
    harness.run([tmp_path / "quiet"], cwd=folder,
                env={"LD_LIBRARY_PATH": next(flag[2:] for flag in libraries if flag.startswith("-L"))})
    assert list(folder.iterdir()) == []


def test_static_library_names(installed):
    """The static library defines no name that a program could also define."""
    names = subprocess.run(["nm", "--defined-only", "--extern-only", BUILD / "libmalloscope.a"], check=True,
                           stdout=subprocess.PIPE, text=True).stdout.split()
    names = [name for name in names[1:] if not name.isupper() or len(name) > 1]
    allowed = ("mscope_", "__wrap_", "free_sized", "free_aligned_sized")
    strangers = [name for name in names if not name.startswith(allowed)
                 and not all(c in "0123456789abcdef" for c in name) and not name.endswith(":")]
    assert strangers == []


@pytest.mark.parametrize("language", ["c", "c++"])
@pytest.mark.parametrize("linked", [False, True], ids=["not linked", "linked"])
def test_arguments_may_hold_commas(tmp_path, installed, language, linked):
    """Where the calls are macros, the preprocessor splits their arguments at commas that a function would not see."""
    program = tmp_path / "program"
    source = ["-x", language, PROGRAMS / "api_commas.c", "-x", "none"]
    flags = [*installed("--cflags")] if linked else [f"-I{ROOT}/include"]
    harness.run(["g++" if language == "c++" else "gcc", "-Wall", "-Wextra", "-Werror", *flags, *source, "-o", program,
                 *(installed("--libs") if linked else [])])
    path = tmp_path / "x.mscope"
    told = json.loads(harness.malloscope("run", "-q", "--exact", "-o", path, program).stdout)
    assert told == {"heap": 1, "result": 0}
    assert {heap["name"]: heap["total_objects"] for heap in harness.report(path)["heaps"]}["h"] == 7
