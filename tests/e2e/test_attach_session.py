"""`malloscope attach` comes and goes: the target is as before, and what it does meanwhile is followed."""

import json
import os
import re
import shutil
import signal
import subprocess
import time

import pytest

import attach
import attaching
import harness
from attaching import GATE, Attached, Gated
from counters import Counters
from harness import MALLOSCOPE, PROGRAMS, figures_of_site, report, stats, wait_until
from test_ground_truth import assert_ledger

pytestmark = pytest.mark.probes

THREADS = 2


@pytest.fixture(autouse=True, scope="module")
def probes():
    if attaching.why_not():
        pytest.skip(attaching.why_not())


@pytest.fixture
def busy(build, start, folder):
    """A program at full load, and the file with what it counts."""
    counters = folder / "counters"
    process = start(["nice", "-n", "5", build("busy.c", "-O1"), THREADS, counters, 0], stdout=subprocess.PIPE)
    wait_until(lambda: counters.exists() and Counters(counters).objects > 1000, process)
    return process, counters


def changed_code(pid):
    """Places in a process's code that are not as in the files they come from: breakpoints of probes."""
    changed = []
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb") as memory:
        for line in maps:
            found = re.match(r"(\w+)-(\w+) r-xp (\w+) \S+ \S+ +(/\S+)$", line)
            if not found:
                continue
            begin, end, offset = (int(number, 16) for number in found.groups()[:3])
            memory.seek(begin)
            now = memory.read(end - begin)
            with open(found.group(4), "rb") as file:
                file.seek(offset)
                was = file.read(end - begin)
            if now != was:
                changed += [hex(begin + i) for i, (one, other) in enumerate(zip(now, was)) if one != other]
    return changed


def kernel_objects(kind, pid):
    """The numbers of the programs or links of the kernel that a process holds."""
    held = set()
    for descriptor in harness.Path(f"/proc/{pid}/fdinfo").iterdir():
        held |= {int(number) for number in re.findall(rf"^{kind}_id:\s+(\d+)", descriptor.read_text(), re.M)}
    return held


def all_kernel_objects(kind):
    return {one["id"] for one in json.loads(harness.run(["bpftool", "-j", kind, "list"]).stdout)}


def assert_at_work(process, counters):
    """It is still allocating, on every thread."""
    before = Counters(counters).objects
    wait_until(lambda: Counters(counters).objects > before + 1000, process)


def is_stopped(pid):
    """Whether all threads of the process are stopped."""
    tasks = harness.Path(f"/proc/{pid}/task").glob("*/stat")
    states = [path.read_text().rsplit(")", 1)[1].split()[0] for path in tasks]
    return set(states) == {"T"}


def assert_ends_well(process):
    process.send_signal(signal.SIGTERM)
    assert process.communicate(timeout=harness.PATIENCE)[0] == b"ended well\n"
    assert process.returncode == 0


# ---- coming and going ----


def test_nothing_is_left_behind(busy, start, folder):
    process, counters = busy
    assert not changed_code(process.pid)
    attached = Attached(start, folder, process.pid, "--exact")
    assert changed_code(process.pid), "there are no probes to be found"
    held = {kind: kernel_objects(kind, attached.process.pid) for kind in ("prog", "link")}
    assert held["prog"] and held["link"]
    attached.stop()
    assert not changed_code(process.pid)
    for kind, mine in held.items():
        wait_until(lambda: not mine & all_kernel_objects(kind), process)  # the kernel frees them a little later
    assert_at_work(process, counters)
    assert_ends_well(process)


def test_attached_a_hundred_times_at_full_load(busy, folder):
    """Ten at a time, at odd moments, exact and sampled: never disturbs the program, leaves nothing."""
    process, counters = busy
    for turn in range(10):
        tools = []
        for number in range(10):
            options = [["--exact"], ["--rate", "64K"]][number % 2]
            command = [MALLOSCOPE, "attach", "-q", "-f", "-d", f"{1 + 7 * number + turn}ms",
                       "-o", folder / f"{number}.mscope", *options, process.pid]
            tools.append(subprocess.Popen(
                [str(part) for part in command], env=harness.clean_environment(), stderr=subprocess.PIPE
            ))
        for tool in tools:
            text = tool.communicate(timeout=harness.PATIENCE)[1].decode()
            assert tool.returncode == 0, text
        assert process.poll() is None, f"the program ended in turn {turn}: {process.returncode}"
    assert not changed_code(process.pid)
    assert_at_work(process, counters)
    assert_ends_well(process)
    for number in range(10):
        assert stats(folder / f"{number}.mscope")["totals"]["samples"] >= 0


def test_stopped_at_full_load_the_live_blocks_are_those_of_the_program(busy, start, folder):
    process, counters = busy
    attached = Attached(start, folder, process.pid, "--exact")
    # A thread has 512 slots and fills or empties one of them at random: after this many rounds more than half of its
    # blocks are new.
    begin = Counters(counters).objects
    wait_until(lambda: Counters(counters).objects > begin + 5 * 512 * THREADS, process)
    process.send_signal(signal.SIGSTOP)
    wait_until(lambda: is_stopped(process.pid), process)
    truth = Counters(counters)
    totals = stats(attached.stop())["totals"]
    process.send_signal(signal.SIGCONT)
    live = truth.objects - truth.frees
    assert totals["drops"] == 0, attached.said
    assert 0.5 * live < totals["live_objects"] <= live + THREADS
    assert_ends_well(process)


def test_frees_of_older_blocks_are_counted_the_same_everywhere(busy, start, folder):
    """The summary and the recording name one number, although frees go on while the probes are being removed."""
    process, counters = busy
    for _ in range(3):
        attached = Attached(start, folder, process.pid, "--exact")
        assert_at_work(process, counters)
        recording = attached.stop()
        pattern = r"([\d.<>]+%), ([\d,]+), of the frees were of blocks that were allocated before"
        told = harness.malloscope("info", recording).stdout.decode()
        said, shown = re.search(pattern, attached.said), re.search(pattern, told)
        assert said.groups() == shown.groups()
        totals = stats(recording)["totals"]
        assert int(said.group(2).replace(",", "")) == totals["older_frees"] == totals["unknown_frees"] < totals["frees"]
    assert_ends_well(process)


@pytest.mark.parametrize("older", [0, 20000, 60000])
def test_a_sampled_recording_estimates_the_share_of_frees_of_older_blocks(build, start, folder, older):
    target = attach.Target(start, [build("attach_older.c", "-O1"), older, 40000])
    attached = Attached(start, folder, target.pid, "--rate", "4K")
    target.work()
    recording = attached.stop()
    assert target.end() == 0
    totals = stats(recording)["totals"]
    assert totals["frees"] == pytest.approx(older + 40000, abs=10)
    # Twice the 95 % interval: hardly one of ten thousand runs lies outside.
    assert abs(totals["older_frees"] - older) <= 2 * totals["older_frees_error"] + 10
    assert 0 < totals["older_frees_error"] < 4000
    assert (totals["call_sites"], totals["active_call_sites"]) == (1, 0)
    words = "about" if older else "at most"
    pattern = rf"{words} [\d.]+%.* of the frees were of blocks that were allocated before"
    for text in (attached.said, harness.malloscope("report", recording).stdout.decode()):
        assert re.search(pattern, text.replace("\n", " ")), text


def test_two_at_the_same_time_see_the_same(build, start, folder):
    target = Gated(start, folder, [build("attach_exchange.c", "-O1", str(GATE))])
    first = Attached(start, folder, target.pid, "--exact")
    (folder / "second").mkdir()
    second = Attached(start, folder / "second", target.pid, "--exact")
    target.let_go()
    sites = json.loads(target.wait())["sites"]
    for one in (first, second):
        rows = report(one.wait())["rows"]
        for name, truth in sites.items():
            found = figures_of_site(rows, PROGRAMS / "attach_exchange.c", name)
            assert (found["total_bytes"], found["frees"]) == (truth["total_bytes"], truth["frees"]), name


# ---- what happens meanwhile ----


def test_reading_while_it_records(busy, start, folder):
    process, counters = busy
    attached = Attached(start, folder, process.pid, "--rate", "16K")
    before = 0
    for _ in range(3):
        totals = report(process.pid)["totals"]
        assert totals["total_bytes"] >= before and totals["rate"] == 16384
        before = totals["total_bytes"]
        time.sleep(0.2)
    assert before > 0
    attached.stop()
    assert_ends_well(process)


@pytest.fixture
def known(build, start, folder):
    """attach_known, which waits for the file `go`; and what it will allocate and keep."""
    process = start([build("attach_known.c", "-O1"), folder / "go", folder / "done"], stdout=subprocess.PIPE)
    return process, *(int(word) for word in process.stdout.readline().split())


def test_baseline(known, start, folder):
    process, _, _ = known
    attached = Attached(start, folder, process.pid, "--exact", "--baseline", "4s")
    (folder / "go").touch()
    wait_until(lambda: stats(attached.recording)["totals"]["total_bytes"] > 0, process)
    time.sleep(4)
    totals = report(attached.stop())["totals"]
    assert totals["total_bytes"] == 0 and totals["live_bytes"] == 0 and totals["samples"] == 0
    assert totals["exact_total_bytes"] == 0


def test_stops_by_itself_after_its_time(known, start, folder):
    process, allocated, live = known
    attached = Attached(start, folder, process.pid, "--exact", "-d", "3s")
    (folder / "go").touch()
    totals = report(attached.wait())["totals"]
    assert (totals["total_bytes"], totals["live_bytes"]) == (allocated, live)
    assert (totals["call_sites"], totals["active_call_sites"]) == (4, 4)
    assert process.poll() is None


def test_the_target_becomes_another_program(build, start, folder):
    go = folder / "go"
    script = f"while [ ! -e {go} ]; do sleep 0.02; done; exec {build('hello.c', '-O1')}"
    shell = start(["sh", "-c", script], stdout=subprocess.DEVNULL)
    attached = Attached(start, folder, shell.pid, "--exact")
    go.touch()
    recording = attached.wait()
    assert "became another program by exec" in attached.said
    assert shell.wait() == 0
    assert not [row for row in report(recording)["rows"] if row["file"] and row["file"].endswith("hello.c")]


def test_children_get_their_own_recordings(build, start, folder):
    output = folder / "attached"
    output.mkdir()
    target = Gated(start, folder, [build("attach_children.c", "-O1", str(GATE))])
    tool = start([MALLOSCOPE, "attach", "--exact", "--follow", "-o", output, target.pid], stderr=subprocess.PIPE)
    assert b"attached to process" in tool.stderr.readline()
    target.let_go()
    children = [int(line) for line in target.wait().split()]
    assert tool.wait(harness.PATIENCE) == 0
    source = PROGRAMS / "attach_children.c"
    whole = {path.name.split(".")[-2]: report(path)["rows"] for path in output.iterdir()}
    assert sorted(whole) == sorted(map(str, [target.pid, *children]))
    for number, pid in enumerate(children):
        found = figures_of_site(whole[str(pid)], source, "child")
        assert (found["total_objects"], found["total_bytes"]) == (10, 10 * (1000 + number))
        assert figures_of_site(whole[str(pid)], source, "parent")["total_objects"] == 0
    assert figures_of_site(whole[str(target.pid)], source, "parent")["total_bytes"] == 7 * 500
    assert figures_of_site(whole[str(target.pid)], source, "child")["total_objects"] == 0


@pytest.fixture
def family(build, start, folder):
    """family(mode, …) follows attach_family; returns the tool, its folder of recordings, and the program."""

    def follow(*mode):
        output = folder / "attached"
        output.mkdir()
        command = [build("attach_family.c", "-O1", "-pthread", str(GATE)), *mode]
        target = Gated(start, folder, command, env={"ALLOCATE": str(folder / "allocate")})
        attached = Attached(start, folder, target.pid, "--exact", "--follow", "-o", output)
        target.let_go()
        return attached, output, target

    return follow


def figures_of_family(output, pid, site):
    [path] = [path for path in output.iterdir() if path.name.split(".")[-2] == str(pid)]
    found = figures_of_site(report(path)["rows"], PROGRAMS / "attach_family.c", site)
    return found["total_objects"], found["total_bytes"]


def test_of_short_lived_children_nothing_is_missed_silently(family):
    """A child runs without probes until the tool has attached to it: what is missed is counted and told."""
    attached, output, target = family("short", 40)
    target.wait()
    parent = output / f"malloscope.attach_family.{target.pid}.mscope"
    attached.wait()
    children = [path for path in output.iterdir() if path != parent]
    missed = stats(parent)["totals"]["drops_by_kind"]["child"]
    everything = harness.malloscope("report", *output.iterdir()).stdout.decode()
    assert len(children) + missed == 40, attached.said
    assert "what they allocated then is missing" in attached.said and "every allocation" not in everything
    for path in children:
        assert stats(path)["totals"]["partial"] and "INCOMPLETE" in harness.malloscope("report", path).stdout.decode()
    if missed:
        assert f"dropped {missed} child processes" in everything and ", exact" not in attached.said


def test_a_child_of_a_child_that_was_not_attached_to_yet_is_followed(family):
    attached, output, target = family("grandchild")
    grandchild = int(target.wait())
    attached.wait()
    assert figures_of_family(output, grandchild, "child") == (10, 10 * 1001)
    assert "could not be followed" not in attached.said


def test_what_a_program_does_while_a_child_shares_its_memory_counts_once(family):
    attached, output, target = family("vfork")
    target.wait()
    attached.wait()
    assert figures_of_family(output, target.pid, "meanwhile") == (400, 400 * 1002)


def test_many_children_at_the_same_time(family, folder):
    count = 270
    attached, output, target = family("many", count)
    wait_until(lambda: len(list(output.iterdir())) == count + 1, target.process)
    wait_until(lambda: changed_code(int(target.output.read_text().split()[-1])), target.process)
    (folder / "allocate").touch()
    children = target.wait().split()
    attached.wait()
    assert len(children) == count
    assert figures_of_family(output, children[-1], "child") == (10, 10 * 1003)
    parent = output / f"malloscope.attach_family.{target.pid}.mscope"
    all_of_them, own = (stats(path)["totals"]["total_objects"] for path in (output, parent))
    assert all_of_them - own == 10 * count
    assert "could not be followed" not in attached.said


@pytest.mark.parametrize("output", ["folder", "file"])
def test_a_child_that_becomes_another_program_is_followed(build, start, folder, output):
    """Each of its programs has a recording of its own; of those that allocated nothing there is none."""
    place = folder / "attached"
    place.mkdir()
    go, program, done = folder / "go", build("attach_loads.c", "-O1", str(GATE)), folder / "done"
    library = build("plugin.c", "-shared", "-fPIC", target="plugin.so")
    script = f"while [ ! -e {go} ]; do sleep 0.02; done; {program} {library} {done} & wait; true"
    shell = start(["sh", "-c", script], env={"ATTACH_GO": str(folder / "child-go")})
    name = place if output == "folder" else place / "a"
    attached = Attached(start, folder, shell.pid, "--exact", "--follow", "-o", name)
    go.touch()
    child = harness.child_of(shell.pid, "attach_loads")
    try:
        wait_until(lambda: any(str(child) in path.name for path in place.iterdir()), attached.process)
        wait_until(lambda: changed_code(child), attached.process)
        (folder / "child-go").touch()
        wait_until(done.is_symlink, attached.process)
        attached.stop()
    finally:
        os.kill(child, signal.SIGKILL)
    rows = [row for path in place.iterdir() if str(child) in path.name for row in report(path)["rows"]]
    found = figures_of_site(rows, PROGRAMS / "plugin.c", "plugin")
    assert (found["total_objects"], found["total_bytes"], found["live_objects"]) == (20, 20 * 321, 10)


def test_a_library_that_is_loaded_later_has_names(build, start, folder):
    library = build("plugin.c", "-shared", "-fPIC", target="plugin.so")
    target = Gated(start, folder, [build("attach_loads.c", "-O1", str(GATE)), library, folder / "done"])
    attached = Attached(start, folder, target.pid, "--exact")
    target.let_go()
    wait_until((folder / "done").is_symlink, target.process)
    rows = report(attached.stop())["rows"]
    found = figures_of_site(rows, PROGRAMS / "plugin.c", "plugin")
    assert (found["total_objects"], found["total_bytes"], found["live_objects"]) == (20, 20 * 321, 10)
    assert {row["function"] for row in rows if row["file"] and row["file"].endswith("plugin.c")} == {"plugin_allocate"}


def told_stack_ends(pid):
    """What the tool has told the kernel of stacks: thread → end."""
    maps = json.loads(harness.run(["bpftool", "-j", "map", "list"]).stdout)
    ours = kernel_objects("map", pid)
    [number] = [one["id"] for one in maps if one.get("name") == "stack_ends" and one["id"] in ours]
    entries = json.loads(harness.run(["bpftool", "-j", "map", "dump", "id", str(number)]).stdout)
    word = lambda text: int.from_bytes(bytes(int(byte, 16) for byte in text), "little")  # noqa: E731
    return {word(entry["key"]): word(entry["value"]) for entry in entries}


def test_no_more_than_the_frames_is_copied_of_a_stack(build, start, folder):
    """The kernel side copies a stack only up to the end of its outermost frame, which the tool tells it."""
    program = build("attach_ends.c", "-O1", "-pthread", "-fno-omit-frame-pointer", str(GATE))
    target = Gated(start, folder, [program, folder / "done"])
    attached = Attached(start, folder, target.pid, "--exact")
    target.let_go()
    wait_until((folder / "done").is_symlink, target.process)
    wait_until(lambda: stats(attached.recording)["totals"]["total_objects"] >= 30, target.process)
    ends = told_stack_ends(attached.process.pid)
    threads = [[int(word) for word in line.split()] for line in target.output.read_text().splitlines()]
    assert len(threads) == 3
    for thread, frame, local in threads:
        assert frame < ends[thread] <= local, thread
    rows = report(attached.stop())["rows"]
    found = figures_of_site(rows, PROGRAMS / "attach_ends.c", "thread")
    assert (found["total_objects"], found["total_bytes"]) == (30, 30 * 1234)


def test_namespaces(build, start, folder):
    """A program that sees another process number and another root folder has its names all the same."""
    root = folder / "root"
    root.mkdir()
    program = build("truth.c", "-O1", str(GATE))
    needed = re.findall(r"(/\S+) \(0x", harness.run(["ldd", program]).stdout.decode())
    for path in map(harness.Path, needed):
        place = root / path.relative_to("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, place)
    shutil.copy(program, root / "program")
    command = ["unshare", "--pid", "--mount", "--fork", "--kill-child", "chroot", root, "/program"]
    outer = start(command, env={"ATTACH_GO": "/go"}, stdout=subprocess.PIPE)
    pid = harness.child_of(outer.pid, "program")
    wait_until(lambda: "nanosleep" in harness.Path(f"/proc/{pid}/wchan").read_text(), outer)
    attached = Attached(start, folder, pid, "--exact")
    (root / "go").touch()
    ledger = json.loads(outer.communicate(timeout=harness.PATIENCE)[0])
    recording = attached.wait()
    assert_ledger(ledger, report(recording)["rows"], PROGRAMS / "truth.c")
