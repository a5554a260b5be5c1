"""Who is measured: the plain program, a bare pass-through, malloscope, and its peers.

A variant turns a program's command into the command and environment that run it under that variant, and says
why it cannot when something is not installed.
"""
import ctypes.util
import glob
import os
import shutil
import subprocess

from measure import stop


class Variant:
    """The plain program; the base of the others."""
    column = "plain"
    about = "the program as it is"
    baseline = None   # the key of the variant to compare with besides plain
    core = True       # measured in every round; others in the first rounds only
    slow = False      # so slow that a quick look has to do
    missing = None    # why it cannot run here
    only = None       # the workloads it is for, if not for all
    most_rounds = None

    def __init__(self, key):
        self.key = key

    def command(self, argv, folder):
        """The environment to add and the command to run; what is recorded goes into `folder`."""
        return {}, argv

    def begin(self, folder):
        """Called before the program starts."""

    def end(self):
        """Called after the program has ended; returns when nothing of the run is left working."""

    def recorded(self, folder):
        """Bytes on disk of what was recorded; None if the variant records nothing."""
        return None

    def unpacked(self, folder):
        """The same before it was compressed; None if it was not."""
        return None

    def archived(self, folder):
        """Bytes of what was recorded when it is packed, for whom that is a step of its own; None for others."""
        return None

    def is_for(self, program):
        return self.only is None or program.name in self.only


def size_on_disk(pattern):
    files = glob.glob(pattern)
    if not files:
        raise RuntimeError("no recording was written (%s)" % os.path.basename(pattern))
    return sum(os.stat(name).st_blocks * 512 for name in files)


class Preload(Variant):
    def __init__(self, key, column, about, library, package=None, only=None):
        super().__init__(key)
        self.column, self.about, self.library, self.core = column, about, library, package is None
        self.only = only
        if library is None or not os.path.exists(library):
            self.missing = "not installed (apt install %s)" % package if package else "not built"

    def command(self, argv, folder):
        return {"LD_PRELOAD": self.library}, argv


class Malloscope(Variant):
    def __init__(self, key, column, rate, build, about=None, only=None):
        super().__init__(key)
        self.column, self.rate, self.only = column, rate, only
        self.about = about or "malloscope, " + ("every allocation" if rate == 1 else "one sample per %s" % column)
        self.tool, self.library = os.path.join(build, "malloscope"), os.path.join(build, "libmalloscope.so")
        if not (os.path.exists(self.tool) and os.path.exists(self.library)):
            self.missing = "not built in %s (./dev build)" % build

    def command(self, argv, folder):
        rate = ["--exact"] if self.rate == 1 else ["--rate", str(self.rate)]
        return {}, [self.tool, "run", "-q", "-o", os.path.join(folder, "out.mscope")] + rate + ["--"] + argv

    def preload(self, folder):
        """The environment that does the same without the command, for valgrind."""
        return {"LD_PRELOAD": self.library, "MALLOSCOPE_OUTPUT": os.path.join(folder, "out.mscope"),
                "MALLOSCOPE_RATE": str(self.rate)}

    def recorded(self, folder):
        return size_on_disk(os.path.join(folder, "*.mscope"))

    def archived(self, folder):
        if self.rate != 1:
            return None
        archive = os.path.join(folder, "out.mscar")
        recordings = glob.glob(os.path.join(folder, "*.mscope"))
        subprocess.run([self.tool, "archive", "-q", "-o", archive, *recordings], check=True,
                       env={**os.environ, "XDG_CACHE_HOME": os.path.dirname(folder)})
        return os.path.getsize(archive)


class Heaptrack(Variant):
    """Does what the heaptrack script does, so that the program's own time can be told from its interpreter's."""
    column, about, core = "heaptrack", "heaptrack, every allocation", False

    def __init__(self, key):
        super().__init__(key)
        root = os.path.dirname(os.path.dirname(os.path.realpath(shutil.which("heaptrack") or "/usr/bin/heaptrack")))
        self.library = os.path.join(root, "lib/heaptrack/libheaptrack_preload.so")
        self.interpreter = os.path.join(root, "lib/heaptrack/libexec/heaptrack_interpret")
        if not (os.path.exists(self.library) and os.path.exists(self.interpreter)):
            self.missing = "not installed (apt install heaptrack)"
        self.reader = None

    def command(self, argv, folder):
        return {"LD_PRELOAD": self.library, "DUMP_HEAPTRACK_OUTPUT": os.path.join(folder, "fifo")}, argv

    def begin(self, folder):
        os.mkfifo(os.path.join(folder, "fifo"))
        compress = "zstd -qc" if shutil.which("zstd") else "gzip -c"
        self.reader = subprocess.Popen(["sh", "-c", '"$0" < fifo | %s > out.heaptrack' % compress, self.interpreter],
                                       cwd=folder, stderr=subprocess.DEVNULL, start_new_session=True)

    def end(self):
        try:
            self.reader.wait(timeout=120)
        except subprocess.TimeoutExpired:  # the program did not get as far as opening the pipe
            stop(self.reader)

    def recorded(self, folder):
        return size_on_disk(os.path.join(folder, "out.heaptrack"))

    def unpacked(self, folder):
        unpack = "zstd -dc" if shutil.which("zstd") else "gzip -dc"
        return int(subprocess.run(unpack + " out.heaptrack | wc -c", shell=True, cwd=folder, check=True,
                                  stdout=subprocess.PIPE).stdout)


class TcmallocProfiler(Preload):
    baseline, slow, most_rounds = "tcmalloc", True, 1

    def command(self, argv, folder):
        # The intervals would write a profile per GiB allocated: switched off, so that only tracking is measured.
        return {"LD_PRELOAD": self.library, "HEAPPROFILE": os.path.join(folder, "out"),
                "HEAP_PROFILE_ALLOCATION_INTERVAL": "0", "HEAP_PROFILE_INUSE_INTERVAL": "0"}, argv

    def recorded(self, folder):
        return size_on_disk(os.path.join(folder, "out*.heap"))


class TcmallocSampler(Preload):
    """tcmalloc keeps its samples in memory for programs that ask for them; nothing is written."""
    baseline = "tcmalloc"

    def command(self, argv, folder):
        return {"LD_PRELOAD": self.library, "TCMALLOC_SAMPLE_PARAMETER": str(512 << 10)}, argv


class Valgrind(Variant):
    """The program on a simulated processor: a few points, to know the order of magnitude."""
    core, slow, only, most_rounds = False, True, ("sqlite3", "maps"), 1

    def __init__(self, key, column, about, tool):
        super().__init__(key)
        self.column, self.about, self.tool = column, about, tool
        if not shutil.which("valgrind"):
            self.missing = "not installed (apt install valgrind)"

    def command(self, argv, folder):
        output = "--%s-out-file=%s" % (self.tool, os.path.join(folder, "out"))
        return {}, ["valgrind", "-q", "--tool=" + self.tool, output] + argv

    def recorded(self, folder):
        return size_on_disk(os.path.join(folder, "out"))


class JemallocProfiler(Preload):
    baseline = "jemalloc"

    def __init__(self, *arguments):
        super().__init__(*arguments)
        if not self.missing and not self.built_in():
            self.missing = "profiler not built into %s" % self.library

    def built_in(self):
        """A library without it refuses the option, and says so."""
        done = subprocess.run(["sh", "-c", ":"], stderr=subprocess.PIPE, text=True,
                              env={"LD_PRELOAD": self.library, "MALLOC_CONF": "prof:true,prof_active:false"})
        return "Invalid conf" not in done.stderr

    def command(self, argv, folder):
        return {"LD_PRELOAD": self.library, "MALLOC_CONF": "prof:true,lg_prof_sample:19,prof_final:true,prof_prefix:"
                + os.path.join(folder, "out")}, argv

    def recorded(self, folder):
        return size_on_disk(os.path.join(folder, "out*.heap"))


def library(name):
    """The path of a shared library, or None."""
    soname = ctypes.util.find_library(name)
    places = ["/usr/lib/%s-linux-gnu" % os.uname().machine, "/usr/lib64", "/usr/lib", "/usr/local/lib"]
    return next((os.path.join(place, soname) for place in places
                 if soname and os.path.exists(os.path.join(place, soname))), None)


def all_variants(build, workloads):
    tcmalloc, jemalloc = library("tcmalloc"), library("jemalloc")
    return [
        Variant("plain"),
        Preload("pass", "pass", "a preload library that only jumps on",
                os.path.join(workloads, "libpassthrough.so")),
        Preload("fence", "fence", "the same, but each call waits for earlier loads; only where these miss the caches",
                os.path.join(workloads, "libfence.so"), only=("replace",)),
        Malloscope("512K", "512 KiB", 512 << 10, build),
        Malloscope("64K", "64 KiB", 64 << 10, build),
        Malloscope("exact", "exact", 1, build),
        Malloscope("each", "each", 2, build,
                   "malloscope, sampled so often that each allocation is, for what a sample costs", only=()),
        Heaptrack("heaptrack"),
        Preload("tcmalloc", "tcmalloc", "tcmalloc, not profiled", tcmalloc, "libgoogle-perftools4"),
        TcmallocProfiler("tcmalloc-prof", "+prof", "tcmalloc's heap profiler (HEAPPROFILE), every allocation",
                         tcmalloc, "libgoogle-perftools4"),
        TcmallocSampler("tcmalloc-sampler", "+sampler", "tcmalloc's own samples, one per 512 KiB", tcmalloc,
                        "libgoogle-perftools4"),
        Preload("jemalloc", "jemalloc", "jemalloc, not profiled", jemalloc, "libjemalloc2"),
        JemallocProfiler("jemalloc-prof", "+prof", "jemalloc's heap profiler, one sample per 512 KiB",
                         jemalloc, "libjemalloc2"),
        Valgrind("massif", "massif", "valgrind's massif, every allocation", "massif"),
        Valgrind("dhat", "DHAT", "valgrind's DHAT, every allocation and access", "dhat"),
    ]
