"""The programs whose stacks are tested: compiled in different ways, and from Debian's packages."""

import shutil
import subprocess
import time
from dataclasses import dataclass
from typing import Callable

import pytest

import harness

PYTHON_SCRIPT = """
import collections, json, re, sqlite3, threading
text = " ".join(str(i * 7919 % 1000) for i in range(1000 * {size}))
counts = collections.Counter(re.findall("[0-9]+", text))
data = json.loads(json.dumps({{word: [word] * 3 for word in counts}}))
base = sqlite3.connect(":memory:")
base.execute("create table t (a, b)")
base.executemany("insert into t values (?, ?)", counts.items())
threads = [threading.Thread(target=lambda: sorted(data, key=lambda word: "x" * len(word))) for n in range(3)]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""

PERL_SCRIPT = """
my %table; my @list = map {{ join(",", $_, $_ * 7 % 1013) }} 1 .. 300 * {size};
for my $text (@list) {{ my ($a, $b) = split /,/, $text; push @{{$table{{$b % 50}}}}, $a x 3; }}
my @sorted = sort {{ length $a <=> length $b }} map {{ join "", @$_ }} values %table;
eval {{ die {{ code => scalar @sorted }} }}; print $@->{{code}};
"""

SQL_SCRIPT = """
create table t (id integer primary key, name text, value real);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 200 * {size})
  insert into t select i, printf('name %d', i * 7919 % 60000), i / 3.0 from n;
create index by_name on t (name);
select name, group_concat(id), sum(value) from t where id % 7 = 0 group by name order by name;
delete from t where id % 3 = 0; pragma integrity_check;
"""


def need(program):
    path = shutil.which(program)
    if not path:
        pytest.skip(f"{program} is not installed")
    return path


def script(program, option, text):
    return lambda build, folder, size: [need(program), option, text.format(size=size)]


C_ROUNDS = 4


def c_program(*flags):
    return lambda build, folder, size: [build("stacks.c", *flags), C_ROUNDS * size]


def cpp_program(*flags):
    return lambda build, folder, size: [build("stacks_cpp.cpp", "-std=c++17", *flags), 5 * size]


def rust_program(*flags):
    return lambda build, folder, size: [build("stacks_rust.rs", *flags), 2 * size]


def compiler(build, folder, size):
    """gcc's compiler proper, on a file that the driver has preprocessed."""
    source = folder / "source.c"
    lines = ["#include <stdlib.h>", "#include <string.h>"]
    lines += [f"int f{i}(int a, char *b) {{ return a * {i} + (int)strlen(b) % {i + 1}; }}" for i in range(10 * size)]
    source.write_text("\n".join(lines) + "\n")
    harness.run(["gcc", "-E", source, "-o", folder / "source.i"])
    cc1 = harness.run(["gcc", "-print-prog-name=cc1"]).stdout.decode().strip()
    return [cc1, "-quiet", "-fpreprocessed", "-O2", folder / "source.i", "-o", folder / "source.s"]


def redis(build, folder, size):
    return [need("redis-server"), "--port", "0", "--unixsocket", folder / "socket", "--save", "", "--dir", folder,
            "--daemonize", "no", "--io-threads", "2", "--logfile", folder / "log"]


def talk_to_redis(folder, server, size):
    def cli(*arguments, **options):
        return harness.run(["redis-cli", "-s", folder / "socket", *arguments], **options)

    deadline = time.monotonic() + harness.PATIENCE
    while cli("ping", expect=None).stdout != b"PONG\n":
        assert server.poll() is None and time.monotonic() < deadline, "redis-server did not start"
        time.sleep(0.05)
    script = [f"set key{i} {'v' * (i % 300)}" for i in range(50 * size)]
    script += [f"append key{i} tail{i}" for i in range(0, 50 * size, 3)]
    script += [f"{verb} {verb}s f{i} {i}" for i in range(20 * size) for verb in ("hset", "lpush", "sadd")]
    script += ["eval 'local t = {} for i = 1, 1000 do t[i] = {i} end return #t' 0", "flushall async"]
    cli(input="\n".join(script).encode())
    cli("shutdown", "nosave", expect=None)


@dataclass
class Program:
    """`command(build, folder, size)` makes the command; at every size the program does all that it can do."""

    command: Callable
    talk: Callable = None  # to a server, until it ends
    rate: str = "exact"
    size: int = 5  # at which this rate gives well over a thousand samples


RELEASE_WITH_LTO = ["-Copt-level=3", "-Clto=fat", "-Ccodegen-units=1"]

# Half of them are recorded exactly, where walks are remembered, and half sampled, where each is made.
PROGRAMS = {
    f"c{optimise}{name}": Program(c_program(optimise, pointers), rate=rate)
    for optimise in ("-O0", "-O2", "-O3")
    for name, pointers, rate in (("", "-fomit-frame-pointer", "exact"),
                                 ("-frame-pointer", "-fno-omit-frame-pointer", "40"))
} | {
    "c++-exceptions": Program(cpp_program("-O2")),
    "rust-lto": Program(rust_program(*RELEASE_WITH_LTO), size=4),
    "rust-lto-abort": Program(rust_program(*RELEASE_WITH_LTO, "-Cpanic=abort"), rate="40", size=15),
    "python3": Program(script("/usr/bin/python3", "-c", PYTHON_SCRIPT), rate="500", size=1),
    "perl": Program(script("perl", "-e", PERL_SCRIPT), size=1),
    "sqlite3": Program(script("sqlite3", ":memory:", SQL_SCRIPT), size=2),
    "redis-server": Program(redis, talk_to_redis, rate="500", size=5),
    "cc1": Program(compiler, rate="2000", size=1),
}


def play(start, program, prefix, build, folder, size, env=None):
    """Runs a program behind a prefix, to its end; returns what it printed and its exit status."""
    place = folder / "p"  # a server's socket needs a short path
    place.mkdir()
    process = start([*prefix, *program.command(build, place, size)], env=env, stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if program.talk:
        program.talk(place, process, size)
    output, complaint = process.communicate(timeout=harness.PATIENCE)
    return output, complaint, process.returncode
