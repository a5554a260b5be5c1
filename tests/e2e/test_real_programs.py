"""Programs from Debian's packages run unchanged: same output, same exit status, with and without the recorder."""

import glob
import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

import harness
from harness import assert_same_outcome, malloscope, record_command, report, stats

RATES = ["512K", "4K", "exact"]


def need(program):
    path = shutil.which(program)
    if not path:
        pytest.skip(f"{program} is not installed")
    return path


def run_in(place, command, make_folder=None, **options):
    """Runs a command in a new folder, which `make_folder` may fill before."""
    place.mkdir()
    if make_folder:
        make_folder(place)
    return harness.run(command, expect=None, cwd=place, **options)


@pytest.fixture(scope="module")
def plain_runs(session_folder):
    """plain_runs(command, …) runs a command without the recorder, once for all rates; returns result and folder."""
    made = {}

    def run_once(command, env=None, **options):
        key = (*map(str, command), *sorted(pair for pair in (env or {}).items() if pair[0] != "HOME"))
        if key not in made:
            place = session_folder / f"plain{len(made)}"
            made[key] = run_in(place, command, env=env, **options), place
        return made[key]

    return run_once


@pytest.fixture
def compare(folder, plain_runs):
    """compare(command, rate, …) runs a command plain and recorded; returns the folder of the recordings."""
    return lambda command, rate, **options: compare_runs(folder, plain_runs, command, rate, **options)


def compare_runs(folder, plain_runs, command, rate, **options):
    recordings = folder / "recordings"
    recordings.mkdir()
    plain, _ = plain_runs(command, **options)
    line = record_command(recordings / "%e.%p.%n.mscope", command, rate)
    assert_same_outcome(plain, run_in(folder / "recorded", line, **options), what=f"{command[0]} at {rate}")
    assert plain.returncode == 0, plain.stderr.decode()
    made = list(recordings.glob("*.mscope"))
    assert made, "no recording was made"
    for path in made:
        totals = stats(path)["totals"]
        inherited = totals["inherited_bytes"]  # what a forked child took over counts as live alone
        assert totals["live_bytes"] <= (totals["total_bytes"] + inherited) * (1 + 1e-9) + 1
        assert totals["drops"] == 0
    return recordings


def recordings_of(recordings, program):
    """By the name of the executable, which may begin with the name of the machine: x86_64-linux-gnu-as."""
    return [path for path in recordings.glob("*.mscope") if path.name.split(".")[0].split("-")[-1] == program]


PYTHON_SCRIPT = """
import collections, hashlib, json, re, sqlite3, subprocess, sys, threading, zlib
words = [hashlib.md5(str(i).encode()).hexdigest() for i in range(20000)]
text = " ".join(words)
counts = collections.Counter(re.findall("[a-f]+", text))
data = json.loads(json.dumps({word: [word] * 3 for word in words}))
base = sqlite3.connect(":memory:")
base.execute("create table t (a, b)")
base.executemany("insert into t values (?, ?)", enumerate(words))
results = []
threads = [threading.Thread(target=lambda n=n: results.append(sum(len(w) for w in words[n::4]))) for n in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(counts.most_common(3), len(data), base.execute("select sum(a), max(b) from t").fetchone())
print(sorted(results), zlib.crc32(zlib.compress(text.encode())), sys.version_info[:2])
print(subprocess.run([sys.executable, "-c", "print('child')"], capture_output=True).stdout)
sys.exit(0)
"""


def pythons():
    found = ["/usr/bin/python3"] + sorted(glob.glob(os.path.expanduser("~/.pyenv/versions/*/bin/python3")))[:1]
    return [path for path in found if os.path.exists(path)]


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("python", pythons())
def test_python(compare, python, rate):
    env = {"PYTHONHASHSEED": "1"}
    recordings = compare([python, "-c", PYTHON_SCRIPT], rate, env=env)
    assert len(recordings_of(recordings, "python3")) == 2, "the child has a recording of its own"
    largest = max(stats(path)["totals"]["exact_total_bytes"] for path in recordings.glob("*.mscope"))
    assert largest > 5_000_000


def test_python_with_all_objects_in_malloc(compare):
    compare(["/usr/bin/python3", "-c", PYTHON_SCRIPT], "4K", env={"PYTHONHASHSEED": "1", "PYTHONMALLOC": "malloc"})


@pytest.mark.parametrize("rate", RATES)
def test_perl(compare, rate):
    script = """
    my %table; my @list = map { join(",", $_, $_ * 7 % 1013) } 1 .. 60000;
    for my $text (@list) { my ($a, $b) = split /,/, $text; push @{$table{$b}}, $a x 3; }
    my $total = 0; $total += length join "", @{$table{$_}} for sort { $a <=> $b } keys %table;
    print scalar(keys %table), " $total\\n"; print `echo from a shell`; exit 0;
    """
    compare([need("perl"), "-e", script], rate, env={"PERL_HASH_SEED": "1"})


@pytest.mark.parametrize("rate", RATES)
def test_sqlite(compare, rate):
    script = """
    create table t (id integer primary key, name text, value real);
    with recursive n(i) as (select 1 union all select i + 1 from n where i < 60000)
      insert into t select i, printf('name %d', i * 7919 % 60000), i / 3.0 from n;
    create index by_name on t (name);
    select count(*), sum(value), min(name), max(name) from t;
    select name, group_concat(id) from t where id % 9973 = 0 group by name order by name;
    delete from t where id % 3 = 0; vacuum; pragma integrity_check;
    """
    recordings = compare([need("sqlite3"), "test.db"], rate, input=script.encode())
    whole = report(next(recordings.glob("*.mscope")))
    assert any("sqlite" in (row["module"] or "") for row in whole["rows"])


@pytest.mark.parametrize("rate", RATES)
def test_gcc_and_its_children(compare, plain_runs, folder, rate):
    def make(place):
        lines = ["#include <stdio.h>", "#include <stdlib.h>", "#include <string.h>"]
        lines += [f"int f{i}(int a, char *b) {{ return a * {i} + (int)strlen(b) % {i + 1}; }}" for i in range(400)]
        lines += ['int main(void) { printf("%d\\n", f7(3, "abc")); return 0; }']
        (place / "program.c").write_text("\n".join(lines))

    command = ["gcc", "-O2", "-o", "program", "program.c"]
    recordings = compare(command, rate, make_folder=make)
    _, plain = plain_runs(command)
    assert (plain / "program").read_bytes() == (folder / "recorded" / "program").read_bytes()
    # At 512K, nothing of the small ones need be sampled, and then they leave no recording.
    for child in ("cc1",) if rate == "512K" else ("cc1", "as", "collect2"):
        assert recordings_of(recordings, child), f"{child} has no recording"
    compiler = stats(recordings_of(recordings, "cc1")[0])["totals"]
    assert compiler["exact_total_bytes"] > 1_000_000


@pytest.mark.parametrize("rate", ["512K", "exact"])
def test_git(compare, folder, rate):
    script = """
    set -e
    git init -q -b main work && cd work
    for i in 1 2 3 4 5; do seq $i 3000 > file$i; git add .; git commit -q -m "commit $i"; done
    git checkout -q -b other HEAD~2 && echo more >> file1 && git commit -q -am side
    git checkout -q main && git merge -q other -m merged
    git gc -q && git fsck && git log --oneline --graph --stat | cat && git status --short
    git clone -q . ../copy && git -C ../copy rev-parse HEAD && git grep -c 299 | cat
    """
    env = {"HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1"}
    for who in ("AUTHOR", "COMMITTER"):
        env |= {f"GIT_{who}_NAME": "a", f"GIT_{who}_EMAIL": "a@b", f"GIT_{who}_DATE": "2024-01-01T00:00:00Z"}
    recordings = compare(["bash", "-c", script], rate, env=env)
    assert len(recordings_of(recordings, "git")) > 20


@pytest.mark.parametrize("rate", RATES)
def test_shell_pipelines(compare, rate):
    script = """
    seq 1 20000 | awk '{ print $1 * 7 % 1000 }' | sort -n | uniq -c | sort -rn | head -5 | tee out | wc -l
    cat out | sed 's/ /_/g' | tr _ - ; x=$(printf '%s\\n' {1..200} | tac | paste -sd+ | cut -c1-40); echo "$x"
    diff <(echo one) <(echo two); echo "status $?"; (exit 3); echo $?
    tar cf - out | gzip -9n | gunzip | tar tf - ; find . -type f | sort
    """
    recordings = compare(["bash", "-c", script], rate)
    assert recordings_of(recordings, "sort") and recordings_of(recordings, "bash")


def redis_session(start, folder, prefix):
    """Starts a server, loads it, asks it and ends it; returns the answers and the exit status."""
    need("redis-benchmark")
    socket = folder / "s"
    command = [need("redis-server"), "--port", "0", "--unixsocket", socket, "--save", "", "--daemonize", "no",
               "--dir", folder, "--io-threads", "2"]
    server = start([*prefix, *command], stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + harness.PATIENCE
    while harness.run(["redis-cli", "-s", socket, "ping"], expect=None).stdout != b"PONG\n":
        assert server.poll() is None and time.monotonic() < deadline, "redis-server did not start"
        time.sleep(0.05)
    harness.run(["redis-benchmark", "-s", socket, "-q", "-n", "20000", "-c", "20", "-P", "8", "-r", "5000",
                 "-t", "set,get,lpush,sadd,hset,zadd,mset"])
    script = "\n".join(
        ["flushall"]
        + [f"set key{i} {'v' * (i % 300)}" for i in range(2000)]
        + [f"append key{i} tail{i}" for i in range(0, 2000, 3)]
        + [f"hset table field{i} {i}" for i in range(1000)]
        + ["dbsize", "strlen key299", "hlen table", "get key3"]
        + ["eval 'local t = {} for i = 1, 1000 do t[i] = i end return #t' 0"]
    )
    answers = harness.run(["redis-cli", "-s", socket], input=script.encode()).stdout
    harness.run(["redis-cli", "-s", socket, "shutdown", "nosave"], expect=None)
    return answers, server.wait(harness.PATIENCE)


@pytest.fixture(scope="module")
def plain_redis(module_start, session_folder):
    return redis_session(module_start, session_folder, [])


@pytest.mark.parametrize("rate", RATES)
def test_redis_under_load(folder, start, plain_redis, rate):
    assert redis_session(start, folder, record_command(folder / "redis.mscope", [], rate)) == plain_redis
    assert plain_redis[1] == 0
    whole = report(folder / "redis.mscope")
    assert whole["totals"]["exact_total_bytes"] > 1_000_000
    assert any("redis" in (row["module"] or "") for row in whole["rows"])


def test_no_follow_records_the_first_process_alone(folder):
    script = "for i in 1 2 3; do ls / > /dev/null; done; echo done"
    recordings = folder / "r"
    recordings.mkdir()
    result = malloscope("run", "-q", "--no-follow", "-o", recordings / "%e.%p.mscope", "--", "bash", "-c", script)
    assert result.stdout == b"done\n"
    assert [path.name.split(".")[0] for path in recordings.iterdir()] == ["bash"]


def test_a_folder_of_recordings_is_merged(compare):
    recordings = compare(["bash", "-c", "seq 1 1000 | sort | tail -1; ls > /dev/null; :"], "exact")
    parts = [stats(path)["totals"] for path in recordings.iterdir()]
    assert len(parts) >= 4
    merged = report(recordings)["totals"]
    for figure in ("live_bytes", "total_bytes", "total_objects", "frees", "exact_total_bytes"):
        assert merged[figure] == sum(part[figure] for part in parts), figure
