"""glibc's own tests of malloc, built from its sources against the C library that is installed.

Each runs as glibc's makefile has it: by itself, with MALLOC_CHECK_=3 and with libmcheck (both work through
libc_malloc_debug.so, which is preloaded), and with two settings of huge pages.
"""

import re
import subprocess

from comparing import Program, by_status
from sources import WORK, all_at_once, call, source

PACKAGES = ("gcc", "libc6-dev", "libc-devtools", "dpkg-dev")
AT_ONCE = 2
# They damage freed blocks and expect glibc to notice. A sampled block begins behind its mark: what they overwrite is
# not where glibc keeps its own words about that block.
CORRUPTING = ("tst-malloc-backtrace", "tst-safe-linking")
EXPECTED = {
    f"{test}{variant}": "it damages a freed block where glibc would have its own words, and a sampled one its contents"
    for test in CORRUPTING
    for variant in ("", "-hugetlb1", "-hugetlb2")
}

# glibc's own headers that work outside of it; its folder of headers as a whole would hide those of the system.
HEADERS = (
    "include/libc-diag.h", "include/array_length.h", "include/libc-pointer-arith.h", "include/intprops.h",
    "include/scratch_buffer.h", "include/alloc_buffer.h", "sysdeps/generic/malloc-size.h",
    "sysdeps/generic/malloc-alignment.h",
)  # fmt: skip
COMPAT_HEADER = """\
#define TEST_COMPAT(library, from, to) 1
#define compat_symbol_reference(library, local, symbol, version) \\
    __asm__(".symver " #local ", " #symbol "@GLIBC_2.2.5")
"""
PLACES = ("SRCDIR_PATH", "OBJDIR_PATH", "OBJDIR_ELF_LDSO_PATH", "INSTDIR_PATH", "LIBDIR_PATH", "SLIBDIR_PATH",
          "BINDIR_PATH", "SBINDIR_PATH", "ROOTSBINDIR_PATH", "COMPLOCALEDIR_PATH", "SYSCONFDIR_PATH")  # fmt: skip
FLAGS = (
    "-std=gnu11", "-O2", "-g", "-w", "-pthread", "-D_GNU_SOURCE", "-DTEST_NO_MALLOPT", "-DTIMEOUTFACTOR=1",
    "-DMODULE_NAME=testsuite", "-Dattribute_hidden=", "-Dlibc_hidden_proto(name)=", "-include", "limits.h",
    *(f'-D{place}="/usr"' for place in PLACES),
)  # fmt: skip

HELPERS = ("tst-interpose-aux", "tst-interpose-skeleton")
STATIC = {"tst-interpose-static-nothread", "tst-interpose-static-thread"}
# They have a malloc of their own, which `malloscope run` refuses; what is started by another program is not asked.
INTERPOSING = {*STATIC, "tst-interpose-nothread", "tst-interpose-thread"}

DEBUG = {"LD_PRELOAD": "libc_malloc_debug.so.0"}
ENVIRONMENTS = {
    "tst-malloc-check": {"MALLOC_CHECK_": "3", **DEBUG},
    "tst-malloc-usable": {"MALLOC_CHECK_": "3", **DEBUG},
    "tst-malloc-usable-tunables": {"GLIBC_TUNABLES": "glibc.malloc.check=3", **DEBUG},
    "tst-mxfast": {"GLIBC_TUNABLES": "glibc.malloc.tcache_count=0:glibc.malloc.mxfast=0"},
    "tst-compathooks-on": DEBUG,
    "tst-mallocstate": DEBUG,
    "tst-mtrace": DEBUG,
}
# The makefile's name for each variant, and what it sets.
VARIANTS = {
    "malloc-check": {"MALLOC_CHECK_": "3", **DEBUG},
    "mcheck": DEBUG,
    "hugetlb1": {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"},
    "hugetlb2": {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=2"},
}


def excluded(makefile, variant):
    """The tests that the makefile leaves out of a variant."""
    text = makefile.read_text().replace("\\\n", " ")
    words = re.search(rf"^tests-exclude-{variant} = (.*)$", text, re.MULTILINE)[1].split()
    if "$(tests-exclude-hugetlb1)" in words:
        words += excluded(makefile, "hugetlb1")
    return {*words, *STATIC, "tst-mtrace"}


def make_headers(glibc, folder):
    folder.mkdir()
    for header in HEADERS:
        (folder / header.split("/")[-1]).symlink_to(glibc / header)
    for part in ("support", "malloc"):
        (folder / part).symlink_to(glibc / part)
    (folder / "shlib-compat.h").write_text(COMPAT_HEADER)
    (folder / "libc-symbols.h").write_text("")


def works(command):
    return subprocess.run([str(part) for part in command], stderr=subprocess.DEVNULL).returncode == 0


def link(folder, test):
    parts = [folder / f"{test}.o"]
    if test in INTERPOSING:
        parts.append(folder / f"tst-interpose-aux-{test.split('-')[-1]}.o")
    support = ["-Wl,--start-group", folder / "libsupport.a", "-Wl,--end-group", "-pthread"]
    if test == "tst-mallocstate":  # its functions are there alone
        support.append(f"-l:{DEBUG['LD_PRELOAD']}")
    static = ["-static"] if test in STATIC else []
    made = works(["gcc", *static, *parts, "-o", folder / test, *support])
    if made and test not in STATIC:
        works(["gcc", *parts, "-o", folder / f"{test}-mcheck", *support, "-lmcheck"])


def build(glibc, folder):
    """The support library, then the tests. What needs more of glibc's build than this is not made."""
    call(["rm", "-rf", folder], WORK, WORK / "glibc.log")
    folder.mkdir()
    make_headers(glibc, folder / "include")

    def compile_file(file):
        include = (f"-I{folder}/include", f"-I{folder}/include/support")
        works(["gcc", *FLAGS, *include, "-c", file, "-o", folder / f"{file.stem}.o"])

    files = (glibc / "support").glob("*.c")
    support = [file for file in files if not file.stem.startswith(("tst-", "README", "test-"))]
    all_at_once(compile_file, support)
    objects = [folder / f"{file.stem}.o" for file in support if (folder / f"{file.stem}.o").exists()]
    call(["ar", "rcs", folder / "libsupport.a", *objects], folder, WORK / "glibc.log")
    tests = [*(glibc / "malloc").glob("tst-*.c"), glibc / "malloc/mallocbug.c"]
    all_at_once(compile_file, tests)
    all_at_once(lambda file: link(folder, file.stem), tests)
    (folder / "built").touch()


def outcomes(name):
    """The test driver's statuses."""
    words = {77: "unsupported", 1: "failed"}
    return lambda status, output: {name: words.get(status, by_status(status))}


def program(folder, test, variant=None):
    name = f"{test}-{variant}" if variant else test
    file = folder / (name if variant == "mcheck" else test)
    if test == "tst-mtrace":
        trace = f'MALLOC_TRACE="$TMPDIR/trace" {file} && mtrace "$TMPDIR/trace"'
        command = ["sh", "-c", trace]
    else:
        command = ["env", file] if test in INTERPOSING else [file]
    environment = {"TIMEOUTFACTOR": "20", **ENVIRONMENTS.get(test, {}), **VARIANTS.get(variant, {})}
    return Program(name, command, environment=environment, outcomes=outcomes(name))


def programs():
    glibc, folder = source("glibc"), WORK / "glibc"
    if not (folder / "built").exists():
        build(glibc, folder)
    linked = sorted(file.stem for file in folder.glob("*.o") if (folder / file.stem).exists())
    tests = [name for name in linked if not name.startswith(HELPERS)]
    made = [program(folder, test) for test in tests]
    for variant in VARIANTS:
        left_out = excluded(glibc / "malloc/Makefile", variant)
        made += [program(folder, test, variant) for test in tests if test not in left_out]
    return made
