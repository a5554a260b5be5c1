"""Who attaches to the target: malloscope, bcc's memleak and bpftrace, each with the probes of its own choice."""
import glob
import json
import os
import shutil
import subprocess

EVERY = 1000  # of the allocations; about one sample per 512 KiB, at the 520 bytes that the target's blocks have


class Tracer:
    """No tracer: the target as it is. Subclasses give the command that attaches to a process."""
    column, about, baseline, missing = "plain", "nobody attached", None, None
    preload = None  # a library that the target needs to have

    def __init__(self, key="plain"):
        self.key = key

    def command(self, pid, library, folder):
        """Attaches to the process, whose malloc is in the file `library`, until SIGINT; None: nothing does."""
        return None

    def environment(self):
        return {}

    def lost(self, folder):
        """How many allocations it says that it lost."""
        return 0


class Malloscope(Tracer):
    def __init__(self, key, column, rate, build):
        super().__init__(key)
        self.column, self.rate = column, rate
        self.about = "malloscope attach, " + ("every allocation" if rate == 1 else "one sample per 512 KiB")
        self.tool = os.path.join(build, "malloscope")
        if not os.path.exists(self.tool):
            self.missing = "not built in %s (./dev build)" % build

    def command(self, pid, library, folder):
        return [self.tool, "attach", "--via", "bpf", "-f", "-o", os.path.join(folder, "out.mscope"),
                "--rate", str(self.rate), str(pid)]

    def lost(self, folder):
        shown = subprocess.run([self.tool, "stats", "--json", os.path.join(folder, "out.mscope")],
                               check=True, capture_output=True, text=True).stdout
        return json.loads(shown)["totals"]["drops"]


class Memleak(Tracer):
    """It compiles its probes against the headers of a kernel, of which it uses what all kernels have alike. Where
    those of the running one are not there, Debian's will do."""

    def __init__(self, key, column, options, folder, preload=None):
        super().__init__(key)
        self.column, self.options, self.folder, self.preload = column, options, folder, preload
        self.about = "bcc's memleak" + (", about one allocation of %d" % EVERY if options else "") + \
            (", on functions that begin with a nop" if preload else "")
        self.tool = shutil.which("memleak-bpfcc")
        if not self.tool:
            self.missing = "not installed (apt install bpfcc-tools)"
        elif not has_own_headers() and not debian_headers():
            self.missing = "no kernel headers (apt install linux-headers-cloud-amd64)"

    def command(self, pid, library, folder):
        # memleak must be told how often to print what is live: every hour, so that it does not during the measurement.
        return [self.tool, "-p", str(pid), "-O", library, *self.options, "3600"]

    def environment(self):
        return {} if has_own_headers() else {"BCC_KERNEL_SOURCE": merged_headers(self.folder)}


class Bpftrace(Tracer):
    """The live blocks and their sizes, without stacks."""
    column = "bpftrace"
    about = "bpftrace, one line: the size of each live block, without stacks"

    def __init__(self, key):
        super().__init__(key)
        self.tool = shutil.which("bpftrace")
        if not self.tool:
            self.missing = "not installed (apt install bpftrace)"

    def command(self, pid, library, folder):
        return [self.tool, "-e",
                "uprobe:%s:malloc { @size[tid] = arg0; } "
                "uretprobe:%s:malloc /@size[tid]/ { @live[retval] = @size[tid]; delete(@size[tid]); } "
                "uprobe:%s:free { delete(@live[arg0]); }" % (library, library, library)]


def has_own_headers():
    """Whether the headers of the running kernel are where bcc looks for them."""
    return os.path.isdir("/lib/modules/%s/build" % os.uname().release)


def debian_headers():
    """The folder of what Debian's newest headers have for this machine; the rest is in one called "common"."""
    return max(glob.glob("/usr/src/linux-headers-*-cloud-amd64"), default=None)


def merged_headers(folder):
    """The headers of a Debian kernel as one folder, as bcc wants them."""
    machine = debian_headers()
    merged = os.path.join(folder, os.path.basename(machine))
    if not os.path.isdir(merged):
        shutil.rmtree(merged + ".new", ignore_errors=True)
        os.makedirs(merged + ".new")
        for part in (machine.replace("-cloud-amd64", "-common"), machine):
            subprocess.run(["cp", "-rs", part + "/include", part + "/arch", merged + ".new"], check=True)
        os.rename(merged + ".new", merged)
    return merged


def why_not():
    """Why nothing can be attached here; None if it can."""
    return None if os.geteuid() == 0 else "attaching takes root"


def all_tracers(build, folder, workloads):
    every, nop = ["-s", str(EVERY)], os.path.join(workloads, "libnop.so")
    return [
        Tracer("plain"),
        Malloscope("attach-512K", "512 KiB", 512 << 10, build),
        Malloscope("attach-exact", "exact", 1, build),
        Memleak("memleak-sampled", "memleak -s", every, folder),
        Memleak("memleak", "memleak", [], folder),
        Memleak("memleak-nop-sampled", "nop, -s", every, folder, nop),
        Memleak("memleak-nop", "nop", [], folder, nop),
        Bpftrace("bpftrace"),
    ]
