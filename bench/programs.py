"""What is run: the small loops of workloads/ and real programs of the system."""
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time

from measure import checked_output, stop


class Program:
    """A program that runs to its end by itself. Its size can be chosen: long for the clock, short for callgrind."""
    real = True
    instruction_bar = 1.01
    stdin = None
    seconds = None  # after which it is stopped; otherwise that depends on how long the plain program took

    def __init__(self, name, about, executable, package, arguments, environment=None):
        self.name, self.about, self.arguments, self.environment = name, about, arguments, environment or {}
        self.executable = shutil.which(executable) if executable else None
        self.missing = None if self.executable or not executable else "not installed (apt install %s)" % package
        self.size = 1

    def argv(self, bench):
        return [self.executable] + self.arguments(bench, self.size)

    def execute(self, bench, command, seconds):
        """Runs a command made from argv; gives its output, and its time where that is not the command's."""
        return checked_output(command, bench.environment, self.stdin, seconds), None

    def sized(self, size):
        copy = type(self).__new__(type(self))
        copy.__dict__.update(self.__dict__, size=size)
        return copy


class Own(Program):
    """One of workloads/."""

    def __init__(self, name, about, file, arguments):
        super().__init__(name, about, None, None, arguments)
        self.file = file

    def argv(self, bench):
        return [os.path.join(bench.workloads, self.file)] + [str(word) for word in self.arguments(bench, self.size)]


# Where a quarter of the program's instructions or more are the allocator's.
ALLOCATION_DOMINATES = 1.02


class Maps(Own):
    instruction_bar = ALLOCATION_DOMINATES


class PythonWithoutPools(Program):
    instruction_bar = ALLOCATION_DOMINATES


class Loop(Own):
    """A loop that runs for a given time and prints nanoseconds per step. `size` is the time in milliseconds."""
    real = False

    def __init__(self, name, about, file, *arguments, held=0, everyone=True):
        super().__init__(name, about, file, lambda bench, milliseconds: [milliseconds, *arguments])
        self.held, self.everyone = held, everyone


class Server(Program):
    """A server and its load. The time is that of the load, memory and instructions those of the server."""

    def execute(self, bench, command, seconds):
        self.prepare(bench)
        with subprocess.Popen(command, env=bench.environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                              text=True, start_new_session=True) as server:
            try:
                with self.connect(bench, server) as connection:
                    begin = time.monotonic_ns()
                    self.load(bench, connection, seconds)
                    wall = time.monotonic_ns() - begin
                    self.end(bench, connection)
                    server.wait(timeout=120)
            except BaseException:
                stop(server)
                raise
        return "", wall

    def connect(self, bench, server):
        until = time.monotonic() + 30
        while time.monotonic() < until and server.poll() is None:
            family, address = self.address(bench)
            connection = socket.socket(family)
            try:
                connection.connect(address)
                return connection
            except OSError:
                connection.close()
                time.sleep(0.005)
        raise RuntimeError("the server did not start: " + (server.stderr.read() if server.poll() is not None else ""))

    @staticmethod
    def await_lines(connection, lines):
        while lines > 0:
            received = connection.recv(65536)
            if not received:
                raise RuntimeError("the server closed the connection")
            lines -= received.count(b"\n")


class Redis(Server):
    def __init__(self):
        super().__init__("redis", "redis-server", "redis-server", "redis-server", self.server_arguments)
        if not self.missing and not shutil.which("redis-benchmark"):
            self.missing = "redis-benchmark not installed (apt install redis-tools)"

    @staticmethod
    def server_arguments(bench, size):
        # Work done by the clock (rehashing, snapshots, expiry) is kept small: it would differ from run to run.
        return ["--port", "0", "--unixsocket", os.path.join(bench.scratch, "redis"), "--save", "", "--appendonly", "no",
                "--dir", bench.scratch, "--loglevel", "warning", "--hz", "1", "--dynamic-hz", "no",
                "--activerehashing", "no"]

    def prepare(self, bench):
        path = self.address(bench)[1]
        if os.path.exists(path):  # of a server that was stopped, and that may still be dying
            os.unlink(path)

    @staticmethod
    def address(bench):
        return socket.AF_UNIX, os.path.join(bench.scratch, "redis")

    @staticmethod
    def end(bench, connection):
        connection.sendall(b"SHUTDOWN NOSAVE\r\n")

    def load(self, bench, connection, seconds):
        command = ["redis-benchmark", "-s", self.address(bench)[1], "-q", "-n", str(self.size), "-c", "20", "-P", "16",
                   "-r", "50000", "-d", "100", "-t", "set,get,incr,lpush,lpop,sadd,hset"]
        checked_output(command, bench.environment, seconds=seconds)


class RedisScript(Redis):
    """The same commands in the same packets every time, so that instructions can be compared."""

    def load(self, bench, connection, seconds):
        seed = 1
        for _ in range(self.size):
            batch, replies = [], 100
            for _ in range(replies // 5):
                seed = (seed * 1103515245 + 12345) & 0x7FFFFFFF
                key = seed % 5000
                batch += ["SET key:%d %s" % (key, "v" * (seed % 200 + 1)), "GET key:%d" % key,
                          "LPUSH list:%d %s" % (key % 50, "e" * (seed % 60 + 1)),
                          "HSET hash:%d field:%d %d" % (key % 50, key, seed), "DEL key:%d" % (key + 1)]
            connection.sendall("".join(command + "\r\n" for command in batch).encode())
            # One reply a line, but for GET's, which has two: its length, then its text.
            self.await_lines(connection, replies + replies // 5)


NGINX_SETTINGS = """
daemon off; master_process off; pid %(place)s/pid; error_log %(place)s/errors crit;
events { worker_connections 64; }
http {
    access_log off; keepalive_requests 1000000; gzip on; gzip_http_version 1.0; gzip_types text/plain;
    ssi on; ssi_types text/plain;
    client_body_temp_path %(place)s/t1; proxy_temp_path %(place)s/t2; fastcgi_temp_path %(place)s/t3;
    uwsgi_temp_path %(place)s/t4; scgi_temp_path %(place)s/t5;
    server { listen 127.0.0.1:%(port)d; root %(place)s; default_type text/plain; }
}
"""


class Nginx(Server):
    """A page put together from parts (SSI), for each request. One process, as under a supervisor of containers."""

    def __init__(self):
        super().__init__("nginx", "nginx, pages of parts", "nginx", "nginx-light", self.server_arguments)
        if not self.missing and not shutil.which("ab"):
            self.missing = "ab not installed (apt install apache2-utils)"
        self.port = None

    @staticmethod
    def place(bench):
        return os.path.join(bench.scratch, "nginx")

    def server_arguments(self, bench, size):
        return ["-c", os.path.join(self.place(bench), "settings"), "-e", os.path.join(self.place(bench), "errors")]

    def prepare(self, bench):
        place = self.place(bench)
        os.makedirs(place, exist_ok=True)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        with open(os.path.join(place, "settings"), "w", encoding="ascii") as file:
            file.write(NGINX_SETTINGS % {"place": place, "port": self.port})
        with open(os.path.join(place, "part"), "w", encoding="ascii") as file:
            file.write("a part of the page\n" * 20)
        with open(os.path.join(place, "page"), "w", encoding="ascii") as file:
            file.write('<!--# include virtual="/part" -->\n' * 8)

    def address(self, bench):
        return socket.AF_INET, ("127.0.0.1", self.port)

    def load(self, bench, connection, seconds):
        connection.close()
        checked_output(["ab", "-q", "-k", "-c", "8", "-n", str(self.size), "-H", "Accept-Encoding: gzip",
                        "http://127.0.0.1:%d/page" % self.port], bench.environment, seconds=seconds)

    def end(self, bench, connection):
        with open(os.path.join(self.place(bench), "pid"), encoding="ascii") as file:
            os.kill(int(file.read()), signal.SIGTERM)


class NginxScript(Nginx):
    """One request after another on one connection, so that instructions can be compared."""

    def load(self, bench, connection, seconds):
        for _ in range(self.size):
            connection.sendall(b"GET /page HTTP/1.1\r\nHost: a\r\n\r\n")
            self.await_end(connection)

    @staticmethod
    def await_end(connection):
        """The reply is chunked, since its length is not known before: it ends with an empty chunk."""
        reply = b""
        while not reply.endswith(b"0\r\n\r\n"):
            received = connection.recv(65536)
            if not received:
                raise RuntimeError("the server closed the connection")
            reply = reply[-8:] + received


def compiler_input(workloads, functions):
    """A preprocessed C file with that many functions, made once."""
    path = os.path.join(workloads, "compile-%d.i" % functions)
    if os.path.exists(path):
        return path
    text = ["#include <%s.h>" % name for name in ("stdio", "stdlib", "string", "math", "pthread", "unistd", "signal")]
    text.append("struct node { struct node *left, *right; int key; double weight; char name[32]; };")
    for i in range(functions):
        text.append("""
static int compare_%(i)d(const void *a, const void *b) {
    const struct node *left = a, *right = b;
    return left->key != right->key ? left->key - right->key + %(i)d : strcmp(left->name, right->name);
}
double work_%(i)d(struct node *tree, int count, double *out) {
    double sum = 0;
    if (!tree) return 0;
    qsort(tree, (size_t)count, sizeof *tree, compare_%(i)d);
    for (int i = 0; i < count; i++) {
        switch ((tree[i].key + %(i)d) %% 7) {
        case 0: sum += tree[i].weight * %(i)d; break;
        case 1: sum -= sqrt(fabs(tree[i].weight)); break;
        case 2: out[i] = sum; sum /= 2; break;
        case 3: snprintf(tree[i].name, sizeof tree[i].name, "node %%d of %(i)d", i); break;
        default: out[i] = tree[i].left ? tree[i].left->weight : work_%(previous)d(tree[i].right, i, out);
        }
    }
    return sum;
}""" % {"i": i, "previous": max(i - 1, 0)})
    preprocessed = checked_output(["gcc", "-E", "-"], None, "\n".join(text) + "\n")
    with tempfile.NamedTemporaryFile("w", dir=workloads, delete=False, encoding="utf-8") as file:
        file.write(preprocessed)
    os.replace(file.name, path)  # several runs may ask for it at once
    return path


class Compiler(Program):
    """gcc's compiler proper, without the driver and assembler around it."""

    def __init__(self):
        super().__init__("cc1", "gcc's cc1 -O2", "gcc", "gcc", lambda bench, functions: [
            "-quiet", "-fpreprocessed", "-O2", compiler_input(bench.workloads, functions), "-o", "/dev/null"])
        if not self.missing:
            self.executable = subprocess.run(["gcc", "-print-prog-name=cc1"], stdout=subprocess.PIPE, text=True,
                                             check=True).stdout.strip()


class Rust(Own):
    instruction_bar = ALLOCATION_DOMINATES

    def __init__(self):
        super().__init__("rust", "Rust, trees of strings", "trees", lambda bench, rounds: [rounds])
        if not shutil.which("rustc"):
            self.missing = "rustc not installed (apt install rustc)"


class Sqlite(Program):
    def __init__(self, here):
        super().__init__("sqlite3", "sqlite3 in memory", "sqlite3", "sqlite3",
                         lambda bench, rows: [":memory:"])
        self.script = os.path.join(here, "workloads", "orders.sql")

    def execute(self, bench, command, seconds):
        with open(self.script, encoding="ascii") as file:
            return checked_output(command, bench.environment, file.read().replace("ROWS", str(self.size)),
                                  seconds), None


def loops():
    pairs = "malloc+free pairs, "
    rows = [
        Loop("pairs", pairs + "16-1024 B", "pairs", 16, 1024, 1, 0),
        Loop("pairs-2t", pairs + "2 threads", "pairs", 16, 1024, 2, 0),
    ]
    rows += [Loop("pairs-%d" % size, pairs + "%d B" % size, "pairs", size, size, 1, 0, everyone=False)
             for size in (16, 64, 256, 1024)]
    rows += [Loop("held-" + label, "… %s live samples" % label, "pairs", 16, 1024, 1, held, held=held, everyone=False)
             for label, held in (("1k", 1000), ("50k", 50000), ("500k", 500000))]
    rows += [
        Loop("replace", "replace among 10⁶ live", "replace", 1000000, 16, 512),
        Loop("handoff", "one allocates, one frees", "handoff", 16, 1024),
    ]
    return rows


def real_programs(here):
    """Each with its size for the clock and for callgrind, quick and full."""
    workloads = os.path.join(here, "workloads")
    python = lambda bench, rounds: ["-s", "-S", os.path.join(workloads, "records.py"), str(rounds)]
    perl = lambda bench, rounds: [os.path.join(workloads, "words.pl"), str(rounds)]
    return [
        (Sqlite(here), None, (50000, 15000), (200000, 30000)),
        (Program("python3", "python3", "/usr/bin/python3", "python3", python), None, (25, 8), (100, 16)),
        (PythonWithoutPools("python3-malloc", "python3, PYTHONMALLOC=malloc", "/usr/bin/python3", "python3", python,
                            {"PYTHONMALLOC": "malloc"}), None, (25, 8), (100, 16)),
        (Program("perl", "perl", "/usr/bin/perl", "perl", perl), None, (40, 12), (150, 24)),
        (Compiler(), None, (30, 8), (120, 16)),
        (Redis(), RedisScript(), (20000, 150), (150000, 300)),
        (Nginx(), NginxScript(), (3000, 1000), (20000, 2000)),
        (Rust(), None, (20, 6), (80, 12)),
        (Maps("maps", "C++ maps of strings", "maps", lambda bench, rounds: [rounds]), None, (200, 60), (600, 120)),
    ]
