"""Beside other libraries that are preloaded, in both orders: each program runs as it does with that library alone.

The libraries are Debian's (tests/preloads/fetch, which ./dev test runs), and some that are worse than these."""

import os
import re
import shutil
import sys
from pathlib import Path

import pytest

import harness
from harness import BUILD, LIBRARY, ROOT, tool_output

FETCHED = BUILD / "preloads"
SYSTEM = [Path("/usr/lib/x86_64-linux-gnu"), Path("/lib/x86_64-linux-gnu"), Path("/usr/lib/aarch64-linux-gnu")]

# library: what it needs in the environment. FOLDER: see `needs`.
LIBRARIES = {
    "libfaketime.so.1": {"FAKETIME": "2020-01-01 00:00:00"},
    "libfaketimeMT.so.1": {"FAKETIME": "-1d"},
    "datefudge.so": {"DATEFUDGE": "1000000", "DATEFUDGE_DOSTATIC": "0"},
    "nocache.so": {},
    "libtorsocks.so.0": {},
    "libtsocks.so.1.8": {"TSOCKS_CONF_FILE": "FOLDER/proxies"},
    "libproxychains.so.4": {"PROXYCHAINS_QUIET_MODE": "1", "PROXYCHAINS_CONF_FILE": "FOLDER/proxies"},
    "libcowdancer.so": {"COWDANCER_ILISTFILE": "FOLDER/inodes"},
    "libfakeroot-sysv.so": {},
    "libfakechroot.so": {"FAKECHROOT_BASE": "/"},
    "libeatmydata.so.1": {},
    "installwatch.so": {"INSTW_LOGFILE": "/dev/null"},
    "libsnoopy.so": {},
    "libauthbind.so.1.0": {},
    "libkeepalive.so": {},
    "libnss_wrapper.so": {"NSS_WRAPPER_PASSWD": "/etc/passwd", "NSS_WRAPPER_GROUP": "/etc/group"},
    "libuid_wrapper.so": {"UID_WRAPPER": "1", "UID_WRAPPER_ROOT": "1"},
    "libsocket_wrapper.so": {"SOCKET_WRAPPER_DIR": "/tmp"},
    "libsocket_wrapper_noop.so": {},
    "libpam_wrapper.so": {},
    "libresolv_wrapper.so": {},
    "libgamemodeauto.so.0": {},
    "libaoss.so.0.0.0": {},
    "libgtk3-nocsd.so.0": {"GTK_CSD": "0"},
    "libhugetlbfs.so.0": {"HUGETLB_MORECORE": "yes"},
    "fiu_run_preload.so": {},
    "fiu_posix_preload.so": {},
    "liblttng-ust-fork.so.1": {},
    "liblttng-ust-fd.so.1": {},
    "liblttng-ust-libc-wrapper.so.1": {},
    "liblttng-ust-pthread-wrapper.so.1": {},
    "libMangoHud_dlsym.so": {},
    "libtokencap.so": {"AFL_TOKEN_FILE": "/dev/null"},
    "libdislocator.so": {},
    "libheaptrack_preload.so": {"DUMP_HEAPTRACK_OUTPUT": "/dev/null"},
    "libefence.so.0.0": {"EF_DISABLE_BANNER": "1", "EF_ALLOW_MALLOC_0": "1"},
    "libduma.so.0.0.0": {"DUMA_DISABLE_BANNER": "1", "DUMA_OUTPUT_STDERR": "0"},
    "libjemalloc.so.2": {},
    "libtcmalloc_minimal.so.4": {},
    "libtcmalloc_minimal_debug.so.4": {},
    "libmimalloc.so.2": {},
    "libtbbmalloc_proxy.so.2": {},
    "libmemusage.so": {"MEMUSAGE_NO_TIMER": "1"},
    "libpcprofile.so": {},
    "libc_malloc_debug.so.0": {"MALLOC_CHECK_": "3"},
}
A_PAGE_FOR_EACH_BLOCK = {"libefence.so.0.0", "libduma.so.0.0.0", "libdislocator.so"}


def find(name):
    places = [*FETCHED.rglob(name), *(folder / name for folder in SYSTEM)]
    found = next((place for place in places if place.is_file()), None)
    if not found:
        pytest.skip(f"{name} is not there: run tests/preloads/fetch {FETCHED}")
    return found


def needs(name, folder):
    """The environment in which the library does what it is for, and the files that it reads."""
    of_chains, of_socks = "[ProxyList]\nsocks5 127.0.0.1 9050\n", "server_type = 5\n"
    (folder / "proxies").write_text(of_chains if "proxychains" in name else of_socks)
    (folder / "runs").mkdir()
    make_inodes = FETCHED / "cowdancer" / "usr" / "bin" / "cowdancer-ilistcreate"
    if name == "libcowdancer.so":
        harness.run([make_inodes, folder / "inodes", "find . -xdev -type f -print0"], cwd=folder)
    neighbours = [str(place) for place in (*FETCHED.glob("*/usr/lib"), *FETCHED.glob("*/usr/lib/*-linux-gnu"))]
    env = {key: value.replace("FOLDER", str(folder)) for key, value in LIBRARIES[name].items()}
    return {**env, "LD_LIBRARY_PATH": ":".join(neighbours)}


@pytest.fixture(scope="module")
def program(build):
    return build("preloads.c", "-O1", "-pthread", "-ldl")


def in_front(library, folder, command, rate):
    """LIBRARY malloscope run PROGRAM: the command itself runs with the library, too."""
    return harness.record_command(folder / "a.mscope", command, rate), {"LD_PRELOAD": str(library)}


def behind(library, folder, command, rate):
    """malloscope run LIBRARY PROGRAM"""
    preload = f"LD_PRELOAD={library}:{LIBRARY}"
    return harness.record_command(folder / "a.mscope", ["/usr/bin/env", preload, *command], rate), {}


def assert_same(library, env, folder, command, objects):
    plain = harness.run(command, expect=None, env={**env, "LD_PRELOAD": str(library)})
    if plain.returncode or b"cannot be preloaded" in plain.stderr or b"symbol lookup error" in plain.stderr:
        pytest.skip(f"it does not run by itself: {plain.stderr[-300:].decode(errors='replace')}")
    for order in (in_front, behind):
        for rate in ("exact", "4K"):
            place = folder / f"{order.__name__}-{rate}"
            place.mkdir()
            wrapped, more = order(library, place, command, rate)
            result = harness.run(wrapped, expect=None, env={**env, **more})
            what = f"{order.__name__}, {rate}: {result.stderr[-1000:].decode(errors='replace')}"
            assert (result.returncode, result.stdout) == (plain.returncode, plain.stdout), what
            if b"cannot record" in result.stderr:
                assert order is behind, what  # the library has a malloc of its own, in front of ours
                continue
            recordings = list(place.glob("*.mscope"))
            totals = [harness.stats(recording)["totals"] for recording in recordings]
            assert rate != "exact" or max(figures["total_objects"] for figures in totals) >= objects, what
            assert max(figures["exact_total_bytes"] for figures in totals) >= 16 * objects, what


@pytest.mark.parametrize("name", LIBRARIES)
def test_a_program_runs_as_it_does_with_that_library_alone(program, folder, name):
    count = 300 if name in A_PAGE_FOR_EACH_BLOCK else 150_000  # more than the file has room for at first
    assert_same(find(name), needs(name, folder), folder / "runs", [program, count], count)


@pytest.mark.parametrize("wrapper", [["faketime", "2020-01-01"], ["nocache"], ["torsocks"]], ids=lambda words: words[0])
def test_the_wrapping_commands_themselves(program, folder, wrapper):
    """For those who have them installed: the libraries above are what they preload."""
    if not shutil.which(wrapper[0]):
        pytest.skip(f"{wrapper[0]} is not installed")
    command = [program, 1000]
    plain = harness.run([*wrapper, *command])
    for number, wrapped in enumerate((
        [*wrapper, *harness.record_command(folder / "0.mscope", command, "exact")],
        harness.record_command(folder / "1.mscope", [*wrapper, *command], "exact"),
    )):
        assert harness.run(wrapped).stdout == plain.stdout
        assert list(folder.glob(f"{number}*.mscope"))


# Every function that asks the system for something allocates, under a lock, and asks for its successor by dlsym each
# time: whoever calls one of these while it allocates comes back to it, and never gets further.
ILL_MANNERED = r"""
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void *successor(const char *name) {
    pthread_mutex_lock(&lock);
    void *volatile block = malloc(strlen(name) + 1);
    void *found = dlsym(RTLD_NEXT, name);
    free(block);
    pthread_mutex_unlock(&lock);
    return found;
}
#define WRAP(type, name, parameters, arguments) \
    type name parameters { return ((type (*) parameters)successor(#name)) arguments; }
WRAP(pid_t, getpid, (void), ())
WRAP(pid_t, getppid, (void), ())
WRAP(pid_t, gettid, (void), ())
WRAP(int, close, (int file), (file))
WRAP(ssize_t, read, (int file, void *bytes, size_t size), (file, bytes, size))
WRAP(ssize_t, write, (int file, const void *bytes, size_t size), (file, bytes, size))
WRAP(ssize_t, readlink, (const char *path, char *text, size_t size), (path, text, size))
WRAP(char *, getcwd, (char *text, size_t size), (text, size))
WRAP(int, unlink, (const char *path), (path))
WRAP(int, fstat, (int file, struct stat *status), (file, status))
WRAP(int, ftruncate, (int file, off_t size), (file, size))
WRAP(int, ftruncate64, (int file, off_t size), (file, size))
WRAP(int, fallocate, (int file, int mode, off_t from, off_t size), (file, mode, from, size))
WRAP(int, fallocate64, (int file, int mode, off_t from, off_t size), (file, mode, from, size))
WRAP(int, posix_fallocate, (int file, off_t from, off_t size), (file, from, size))
WRAP(int, posix_fallocate64, (int file, off_t from, off_t size), (file, from, size))
WRAP(int, getrlimit, (__rlimit_resource_t what, struct rlimit *limit), (what, limit))
WRAP(int, getrlimit64, (__rlimit_resource_t what, struct rlimit64 *limit), (what, limit))
WRAP(int, clock_gettime, (clockid_t clock, struct timespec *time), (clock, time))
WRAP(time_t, time, (time_t *ret), (ret))
WRAP(ssize_t, getrandom, (void *bytes, size_t size, unsigned flags), (bytes, size, flags))
WRAP(int, uname, (struct utsname *name), (name))
WRAP(int, madvise, (void *memory, size_t size, int advice), (memory, size, advice))
WRAP(int, munmap, (void *memory, size_t size), (memory, size))
WRAP(int, mprotect, (void *memory, size_t size, int protection), (memory, size, protection))
WRAP(void *, mmap, (void *at, size_t size, int protection, int flags, int file, off_t offset),
     (at, size, protection, flags, file, offset))
WRAP(void *, mmap64, (void *at, size_t size, int protection, int flags, int file, off_t offset),
     (at, size, protection, flags, file, offset))
WRAP(int, open, (const char *path, int flags, ...), (path, flags, 0600))
WRAP(int, open64, (const char *path, int flags, ...), (path, flags, 0600))
WRAP(int, sigaction, (int number, const struct sigaction *action, struct sigaction *former), (number, action, former))
WRAP(int, pthread_setcancelstate, (int state, int *former), (state, former))
"""

# dlsym asks its real self for itself, in a block from the heap; what it hands out for malloc counts calls.
WRAPS_DLSYM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
void *dlsym(void *handle, const char *name) {
    char *volatile copy = malloc(strlen(name) + 1);
    strcpy(copy, name);
    static void *(*real)(void *, const char *);
    if (!real) real = (void *(*)(void *, const char *))dlvsym(RTLD_NEXT, "dlsym", VERSION);
    void *found = real(handle, copy);
    free(copy);
    return found;
}
"""


def library_of(folder, name, text, *options):
    (folder / f"{name}.c").write_text(text)
    target = folder / f"lib{name}.so"
    source = folder / f"{name}.c"
    harness.run(["gcc", "-D_GNU_SOURCE", "-O1", "-fno-builtin", "-shared", "-fPIC", source, "-o", target, *options])
    return target


def test_a_library_whose_every_function_allocates_under_a_lock(program, folder):
    (folder / "runs").mkdir()
    library = library_of(folder, "ill_mannered", "#include <signal.h>\n" + ILL_MANNERED)
    env = {"MALLOSCOPE_SIGNAL": "USR2"}
    assert_same(library, env, folder / "runs", [program, 150_000], 150_000)


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="names the version of glibc's dlsym on x86-64")
def test_a_library_that_wraps_dlsym(program, folder):
    """Also around the command itself, which looks for the allocator behind its own."""
    (folder / "runs").mkdir()
    library = library_of(folder, "wraps_dlsym", WRAPS_DLSYM, '-DVERSION="GLIBC_2.2.5"')
    assert_same(library, {}, folder / "runs", [program, 1000], 1000)
    preloaded = {"LD_PRELOAD": f"{library}:{LIBRARY}", "MALLOSCOPE_OUTPUT": str(folder / "b.mscope")}
    harness.run([program, 1000], env=preloaded)
    for command in (["report", folder / "b.mscope"], ["flame", folder / "b.mscope", "-o", folder / "b.html"]):
        assert harness.malloscope(*command, env={"LD_PRELOAD": str(library)}).returncode == 0


def test_no_allocator_behind_the_recorder_is_said(folder):
    """A program that lacks what it cannot run without: here a C library that does not define realloc."""
    libc = Path(next(line.split()[2] for line in tool_output("ldd", LIBRARY).splitlines() if "libc.so" in line))
    (folder / "libs").mkdir()
    symbols = int(re.search(r" \.dynsym +DYNSYM +\w+ (\w+)", tool_output("readelf", "-SW", libc))[1], 16)
    number = int(re.search(r"^ *(\d+): .* realloc@", tool_output("readelf", "--dyn-syms", "-W", libc), re.M)[1])
    image = bytearray(libc.read_bytes())
    section = symbols + 24 * number + 6  # st_shndx of Elf64_Sym
    image[section : section + 2] = b"\0\0"  # SHN_UNDEF
    (folder / "libs" / libc.name).write_bytes(image)
    (folder / "libs" / libc.name).chmod(0o755)
    result = harness.run(["/bin/true"], expect=1,
                         env={"LD_LIBRARY_PATH": str(folder / "libs"), "LD_PRELOAD": str(LIBRARY),
                              "MALLOSCOPE_OUTPUT": str(folder / "a.mscope")})
    assert result.stderr == (
        b"malloscope: no allocator found: the symbol 'realloc' is defined nowhere behind the recorder. "
        b"Run the program without malloscope and report this.\n")


SYMBOLS = ROOT / "tests" / "analysis" / "symbols.py"


def test_the_library_asks_nobody_but_the_kernel(folder):
    """Every name by which the recorder reaches code of others is on a list, with a reason."""
    assert harness.run([sys.executable, SYMBOLS, LIBRARY]).stdout == b"clean\n"
    library = library_of(folder, "asks", "#include <unistd.h>\nint one(void) { return getpid(); }\n"
                                         "int two(void) { return one() + 1; }\n")
    result = harness.run([sys.executable, SYMBOLS, library], expect=1).stdout.decode()
    assert "getpid" in result and "one" in result
