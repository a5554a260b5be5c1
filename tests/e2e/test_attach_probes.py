"""Attach to running programs whose every allocation is known: what the kernel tells is that, and no more."""

import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

import attach
import harness
import programs

pytestmark = [
    pytest.mark.probes,
    pytest.mark.skipif(os.geteuid() != 0, reason="loading programs into the kernel takes root"),
]

LIBRARIES = Path("/usr/lib/x86_64-linux-gnu")
NO_LOSS = (
    "lost_ring",
    "lost_live",
    "lost_calls",
    "lost_threads",
    "lost_notices",
    "late_frees",
    "forgotten_frees",
    "replaced",
    "foreign",
)


def assert_nothing_lost(totals):
    counters = totals["counters"]
    assert {name: counters[name] for name in NO_LOSS} == dict.fromkeys(NO_LOSS, 0)
    assert totals["strange_frees"] == 0


def assert_told(start, command, *options, env=None):
    """Runs a program that logs what it does, attached; the kernel must tell the same."""
    target = attach.Target(start, command, env=env)
    probes = attach.Probes(start, target.pid, *options)
    log = target.work()
    totals = probes.stop()
    assert target.end() == 0
    assert probes.story() == log
    assert_nothing_lost(totals)
    return target, probes, totals, log


@pytest.fixture(params=attach.METHODS)
def method(request):
    if request.param not in attach.methods():
        pytest.skip(f"this kernel has no {request.param}")
    return attach.option_of(request.param)


@pytest.mark.parametrize("flags", [["-O1"], ["-O2", "-static"], ["-O2", "-s"], ["-O2", "-static-pie"]], ids=" ".join)
def test_c_functions_in_all_their_outcomes(build, start, method, flags):
    _, _, totals, log = assert_told(start, [build("attach_functions.c", *flags)], *method)
    assert totals["live_blocks"] == 1 and totals["live_bytes"] == 31337
    assert totals["counters"]["frees_unknown"] == 0
    assert sum(thread["bytes"] for thread in totals["threads"]) == sum(
        size for what, _, _, size in log if what in "ar"
    )


def test_blocks_older_than_the_attach_are_counted(build, start):
    attach.require_ebpf()
    _, _, totals, _ = assert_told(start, [build("attach_functions.c"), "old"])
    assert totals["counters"]["frees_unknown"] == 10


@pytest.mark.parametrize("flags", [["-O0"], ["-O2"], ["-O2", "-static"]], ids=" ".join)
def test_a_malloc_whose_functions_call_each_other(build, start, method, flags):
    """Its realloc releases by an inner function, its aligned_alloc gives out part of a block of malloc."""
    _, _, totals, log = assert_told(start, [build("attach_own_malloc.c", "-fno-builtin", *flags)], *method)
    assert totals["live_blocks"] == 0 and totals["counters"]["frees_unknown"] == 0
    assert sum(thread["bytes"] for thread in totals["threads"]) == sum(size for *_, size in log)


OTHER_ALLOCATORS = ["libjemalloc.so.2", "libtcmalloc.so.4", "libtcmalloc_minimal.so.4", "libmimalloc.so.2"]


@pytest.mark.parametrize("library", OTHER_ALLOCATORS)
def test_cplusplus_with_other_allocators(build, start, method, library):
    if not (LIBRARIES / library).exists():
        pytest.skip(f"{library} is not installed")
    # Debian's mimalloc ends the program instead of throwing, attached or not.
    throws = library != "libmimalloc.so.2"
    program = build("attach_cpp.cpp", "-std=c++17")
    check_cplusplus(start, program, method, throws, {"LD_PRELOAD": str(LIBRARIES / library)})


def check_cplusplus(start, program, method, throws=True, env=None):
    """The exceptions that the program throws take memory too, behind what is in the log."""
    target = attach.Target(start, [program, *["throw"] * throws], env=env)
    probes = attach.Probes(start, target.pid, *method)
    log = target.work()
    totals = probes.stop()
    assert target.end() == 0
    assert target.lines == ["caught"] * 20 * throws, "an exception went astray"
    if probes.warnings:
        # Where an exception could not be led past a probe, the operators that throw have none.
        assert probes.method != "session links" and env
        assert [entry for entry in log if entry in probes.story()]
        return
    assert probes.story()[: len(log)] == log
    assert_nothing_lost(totals)
    assert totals["live_blocks"] <= 1  # a static program's unwinder keeps a table
    assert totals["counters"]["frees_unknown"] == 0


@pytest.mark.parametrize("flags", [["-O1"], ["-O2", "-static"]], ids=" ".join)
def test_cplusplus(build, start, method, flags):
    check_cplusplus(start, build("attach_cpp.cpp", "-std=c++17", *flags), method)


RUST_BUILDS = {
    "debug": [],
    "release": ["-O"],
    "fat": ["-O", "-C", "lto=fat"],
    "thin": ["-O", "-C", "lto=thin"],
    "stripped": ["-O", "-C", "strip=symbols"],
}


@pytest.mark.parametrize("flags", RUST_BUILDS.values(), ids=RUST_BUILDS)
@pytest.mark.parametrize("allocator", ["system", "counting"])
def test_rust(build, start, flags, allocator):
    attach.require_ebpf()
    chosen = [] if allocator == "system" else ["--cfg", allocator]
    program = build("attach_rust.rs", *chosen, *flags)
    check_rust(start, program)


@pytest.mark.parametrize("flags", RUST_BUILDS.values(), ids=RUST_BUILDS)
def test_rust_allocator_that_hands_out_part_of_a_block(build, start, flags):
    """Its blocks are freed through another allocator, at other addresses: it is that one that is watched."""
    attach.require_ebpf()
    target = attach.Target(start, [build("attach_rust.rs", "--cfg", "limited", *flags)])
    probes = attach.Probes(start, target.pid)
    log = target.work()
    totals = probes.stop()
    assert target.end() == 0
    addresses = [address for what, _, address, _ in probes.story() if what == "a"]
    made = [address for what, _, address, _ in log if what == "a"]
    assert [address in made for address in addresses] == [False] * len(addresses)
    fronts = [next(front for front in (16, 4096) if address - front in addresses) for address in made]
    assert len(fronts) == len(made)
    assert totals["live_blocks"] == 2  # what it forgets
    assert_nothing_lost(totals)


def check_rust(start, program):
    """Its log comes out through strings on the heap, which are told behind what is in the log."""
    target = attach.Target(start, [program])
    probes = attach.Probes(start, target.pid)
    log = target.work()
    totals = probes.stop()
    assert target.end() == 0
    assert probes.story()[: len(log)] == log
    assert_nothing_lost(totals)
    return totals


@pytest.mark.parametrize("flags", [RUST_BUILDS[name] for name in ("debug", "release", "fat")],
                         ids=["debug", "release", "fat"])
@pytest.mark.parametrize("link", ["shared", "static", "prefixed"])
def test_rust_with_jemalloc(build, start, flags, link):
    attach.require_ebpf()
    if not (LIBRARIES / "libjemalloc_pic.a").exists():
        pytest.skip("libjemalloc-dev is not installed")
    prefixed = prefixed_jemalloc().parent if link == "prefixed" else ""
    options = {
        "shared": ["-l", "dylib=jemalloc"],
        "static": ["-l", "static=jemalloc_pic", "-L", f"{LIBRARIES}", "-l", "stdc++"],
        "prefixed": ["--cfg", "prefixed", "-l", "static=rjem", "-L", f"{prefixed}", "-l", "stdc++"],
    }[link]
    check_rust(start, build("attach_rust.rs", "--cfg", "jemalloc", *options, *flags))


def prefixed_jemalloc():
    """A library: Debian's jemalloc with its public names as the crate tikv-jemalloc-sys has them."""
    names = "malloc calloc realloc free posix_memalign aligned_alloc memalign valloc mallocx rallocx xallocx sallocx "
    names += "dallocx sdallocx nallocx mallctl mallctlnametomib mallctlbymib malloc_stats_print malloc_usable_size "
    names += "malloc_conf malloc_message"
    renames = [option for name in names.split() for option in ("--redefine-sym", f"{name}=_rjem_{name}")]
    original = LIBRARIES / "libjemalloc_pic.a"

    def make(library):
        part = library.parent / "rjem"
        part.mkdir()
        harness.run(["ar", "x", original], cwd=part)
        objects = [path for path in part.iterdir() if "cpp" not in path.name]
        for path in objects:
            harness.run(["objcopy", *renames, path])
        harness.run(["ar", "rcs", library, *objects])

    return programs.kept(programs.key_of(["objcopy", *renames, original]), "librjem.a", make)


@pytest.mark.parametrize("kind", ["debug", "release"])
def test_rust_allocator_that_never_frees(build, start, kind):
    """Where the compiler has seen that its dealloc does nothing, the plan says that frees are not seen."""
    attach.require_ebpf()
    program = build("attach_rust.rs", "--cfg", "arena", *RUST_BUILDS[kind])
    target = attach.Target(start, [program])
    plan = harness.run([attach.DRIVER, "--plan", target.pid]).stdout.decode()
    assert ("frees nothing" in plan) == (kind == "release")
    probes = attach.Probes(start, target.pid)
    log = target.work()
    totals = probes.stop()
    assert target.end() == 0
    assert_nothing_lost(totals)
    if kind == "debug":
        assert probes.story()[: len(log)] == log
    else:
        made = [(address, size) for what, _, address, size in log if what in "ar"]
        assert [(event["address"], event["size"]) for event in probes.of_kind("allocation")][: len(made)] == made


def test_threads_that_free_each_others_blocks(build, start, method):
    target = attach.Target(start, [build("attach_threads.c"), 8, 20000])
    probes = attach.Probes(start, target.pid, *method, "--quiet", "--stack", 512, "--ring", 64 << 20)
    [(_, resizes, blocks, size)] = target.work()
    totals = probes.stop()
    assert target.end() == 0
    assert_nothing_lost(totals)
    # pthread_create takes memory for each thread's table of thread-local storage, and keeps it.
    threads = [event for event in probes.of_kind("thread end")]
    assert len(threads) == 8 and sum(thread["bytes"] for thread in threads) == size
    assert sum(thread["allocations"] for thread in threads) == blocks
    assert totals["ended"] == resizes
    assert totals["counters"]["frees_unknown"] == 0
    assert totals["live_blocks"] <= 8 and totals["allocations"] - blocks <= 8


def test_a_full_table_leaves_no_phantoms(build, start, method):
    """What finds no room is counted, with its bytes; what was tracked is seen to be freed."""
    target = attach.Target(start, [build("attach_threads.c"), 4, 20000])
    probes = attach.Probes(start, target.pid, *method, "--quiet", "--stack", 512, "--live", 100)
    [(_, _, blocks, size)] = target.work()
    totals = probes.stop()
    assert target.end() == 0
    counters = totals["counters"]
    assert counters["lost_live"] > 0 and counters["lost_ring"] == 0
    assert totals["live_blocks"] <= 4 and totals["strange_frees"] == 0
    main = [thread["bytes"] for thread in totals["threads"]]
    assert totals["bytes"] + counters["lost_live_bytes"] == size + sum(main)


def test_a_full_ring_leaves_no_phantoms(build, start, method):
    """Frees that find the ring full are told late, and nothing that is freed looks live."""
    target = attach.Target(start, [build("attach_threads.c"), 4, 30000])
    probes = attach.Probes(
        start, target.pid, *method, "--quiet", "--stack", 8192, "--ring", 64 << 10, "--slow", 100
    )
    [(_, _, blocks, size)] = target.work()
    totals = probes.stop()
    assert target.end() == 0
    counters = totals["counters"]
    assert counters["lost_ring"] > 0 and counters["forgotten_frees"] == 0
    assert totals["live_blocks"] <= 4 and totals["strange_frees"] == 0
    assert totals["bytes"] + counters["lost_ring_bytes"] == size + sum(t["bytes"] for t in totals["threads"])


def test_frees_that_find_the_ring_full_are_told_late(build, start, method):
    target = attach.Target(start, [build("attach_lives.c"), "hold"])
    probes = attach.Probes(start, target.pid, *method, "--quiet", "--stack", 512, "--ring", 64 << 10)
    target.process.stdin.write(b"\n")
    assert target.line() == "ready"
    probes.process.send_signal(signal.SIGSTOP)
    target.work()
    probes.process.send_signal(signal.SIGCONT)
    totals = probes.stop()
    assert target.end() == 0
    counters = totals["counters"]
    assert counters["late_frees"] > 1000 and counters["forgotten_frees"] == 0
    assert totals["allocations"] == totals["frees"] == counters["sampled"]
    assert totals["live_blocks"] == 0 and totals["strange_frees"] == 0


@pytest.mark.parametrize("place", ["main", "thread", "coroutine"])
@pytest.mark.parametrize("depth", [3, 100])
def test_copied_stacks_hold_all_frames(build, start, place, depth):
    attach.require_ebpf()
    target = attach.Target(start, [build("attach_stack.c", "-O1"), depth, place])
    probes = attach.Probes(start, target.pid, "--stacks", "--stack", 32 << 10)
    log = target.work()
    probes.stop()
    assert target.end() == 0
    [told] = [event for event in probes.of_kind("allocation") if event["size"] == 4242]
    marks = [address for what, _, address, _ in log if what == "m"]
    returns = [old for what, old, _, _ in log if what == "m"]
    assert [word for word in told["stack"] if word >> 48 == 0xFEED] == marks[::-1]
    for address in returns:
        assert address in told["stack"]
    assert told["stack_kind"] == 1
    if place == "main":
        assert told["stack_flags"] == 0, "the copy goes up to the end of the stack"


def test_frames_behind_memory_that_is_not_there_yet_are_copied(build, start):
    attach.require_ebpf()
    target = attach.Target(start, [build("attach_stack.c", "-O1"), 6, "hole"])
    probes = attach.Probes(start, target.pid, "--stacks", "--stack", 60 << 10)
    log = target.work()
    totals = probes.stop()
    assert target.end() == 0
    [told] = probes.of_kind("allocation")
    marks = [address for what, _, address, _ in log if what == "m"]
    assert [word for word in told["stack"] if word >> 48 == 0xFEED] == marks[::-1]
    assert told["stack_flags"] == 2 and totals["counters"]["stack_holes"] == 1


def test_a_short_copy_says_that_it_was_cut(build, start):
    attach.require_ebpf()
    target = attach.Target(start, [build("attach_stack.c", "-O1"), 100, "main"])
    probes = attach.Probes(start, target.pid, "--stacks", "--stack", 1024)
    target.work()
    totals = probes.stop()
    assert target.end() == 0
    [told] = probes.of_kind("allocation")
    assert told["stack_size"] == 1024 and told["stack_flags"] == 1 and totals["counters"]["stacks_cut"] == 1


def test_frame_pointers_give_the_callers(build, start):
    attach.require_ebpf()
    target = attach.Target(start, [build("attach_stack.c", "-O1", "-fno-omit-frame-pointer"), 20, "main"])
    probes = attach.Probes(start, target.pid, "--stacks", "--frames")
    log = target.work()
    probes.stop()
    assert target.end() == 0
    [told] = probes.of_kind("allocation")
    returns = [old for what, old, _, _ in log if what == "m"][::-1]
    assert told["stack_kind"] == 2 and told["stack"][0] == told["ip"]
    # leaf returns into the last descend, and that into the one before it, …
    assert told["stack"][2 : 2 + len(returns)] == returns


@pytest.mark.parametrize("rate", [4096, 65536])
def test_sampled_figures_are_unbiased(build, start, method, rate):
    """The sum of several runs lies within 5 standard errors; the threads' own bytes are exact."""
    estimated = variance = truth = 0
    for _ in range(3):
        target = attach.Target(start, [build("attach_threads.c"), 3, 20000])
        probes = attach.Probes(start, target.pid, *method, "--quiet", "--rate", rate)
        [(_, resizes, blocks, size)] = target.work()
        totals = probes.stop()
        assert target.end() == 0
        assert_nothing_lost(totals)
        assert totals["live_blocks"] <= 3
        exact = sum(event["bytes"] for event in probes.of_kind("thread end"))
        assert exact == size
        exact += sum(thread["bytes"] for thread in totals["threads"])
        estimated, variance, truth = estimated + totals["estimated_bytes"], variance + totals["variance"], truth + exact
        counters = totals["counters"]
        assert counters["sampled"] == totals["allocations"] > 100
        if probes.method == "session links":
            # The return of what is not sampled is not caught, but for realloc, which may call malloc.
            assert counters["returns"] <= counters["sampled"] + resizes
    assert abs(estimated - truth) < 5 * variance**0.5, f"{estimated} for {truth}, standard error {variance**0.5:.0f}"


def test_children_are_followed(build, start, method):
    target = attach.Target(start, [build("attach_lives.c"), "fork"])
    probes = attach.Probes(start, target.pid, *method, "--follow")
    target.process.stdin.write(b"\n")
    assert target.line() == "ready"
    fork = probes.wait_for("fork")
    assert probes.wait_for("attached")["pid"] == fork["child"]
    target.work()
    totals = probes.stop()
    assert target.end() == 0
    sizes = {pid: [] for pid in (target.pid, fork["child"])}
    for event in probes.of_kind("allocation"):
        sizes[event["pid"]].append(event["size"])
    assert sizes[fork["child"]] == [2002] * 5
    assert [size for size in sizes[target.pid] if size in (1001, 1003)] == [1001, 1003]
    assert [event["pid"] for event in probes.of_kind("process end")] == [fork["child"]]
    assert totals["counters"]["foreign"] == 0


def test_exec_is_noticed_and_followed(build, start, method):
    target = attach.Target(start, [build("attach_lives.c"), "exec"])
    probes = attach.Probes(start, target.pid, *method, "--follow")
    target.process.stdin.write(b"\n")
    assert target.line() == "ready"
    assert probes.wait_for("exec")["image"] == 1
    probes.wait_for("attached")
    target.work()
    probes.stop()
    assert target.end() == 0
    told = [(event["size"], event["image"]) for event in probes.of_kind("allocation") if event["size"] in (5005, 4004)]
    assert told == [(5005, 0), (4004, 1)]


def test_libraries_loaded_later_get_probes(build, start, method):
    plugin = build("attach_plugin.c", "-shared", "-fPIC", target="libplugin.so")
    target = attach.Target(start, [build("attach_lives.c"), "dlopen", plugin])
    probes = attach.Probes(start, target.pid, *method)
    target.process.stdin.write(b"\n")
    assert target.line() == "ready"
    while probes.wait_for("extended")["probes"] == 0:
        continue
    [made, freed] = target.work()
    totals = probes.stop()
    assert target.end() == 0
    assert made in probes.story() and freed in probes.story()
    assert_nothing_lost(totals)


def test_a_target_that_ends_is_told_to_the_last(build, start, method):
    target = attach.Target(start, [build("attach_lives.c"), "exit"])
    probes = attach.Probes(start, target.pid, *method)
    target.process.stdin.write(b"\n")
    totals = probes.wait_for("totals")
    assert probes.process.wait(harness.PATIENCE) == 0 and target.process.wait(harness.PATIENCE) == 7
    assert [event["size"] for event in probes.of_kind("allocation")] == [6006] * 100
    [end] = probes.of_kind("process end")
    [thread] = probes.of_kind("thread end")
    assert end["pid"] == target.pid and thread["bytes"] == 100 * 6006
    assert_nothing_lost(totals)


def test_two_at_once(build, start, method):
    target = attach.Target(start, [build("attach_functions.c")])
    first, second = (attach.Probes(start, target.pid, *method) for _ in range(2))
    log = target.work()
    for probes in (first, second):
        totals = probes.stop()
        assert probes.story() == log
        assert_nothing_lost(totals)
    assert target.end() == 0


def libc_in_memory_and_file(pid):
    """The code of the C library as the process has it, and as its file has it."""
    with open(f"/proc/{pid}/maps") as maps:
        for line in maps:
            place, access, offset, _, _, *path = line.split()
            if access == "r-xp" and path and path[0].endswith("/libc.so.6"):
                break
    begin, end = (int(number, 16) for number in place.split("-"))
    with open(f"/proc/{pid}/mem", "rb") as memory, open(path[0], "rb") as file:
        memory.seek(begin)
        file.seek(int(offset, 16))
        return memory.read(end - begin), file.read(end - begin)


def test_detaching_many_times_at_full_load_leaves_nothing(build, start, method):
    """A hundred times is for the command itself: test_attach_session.py."""
    target = start([build("attach_churn.c")], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert target.stdout.readline() == b"ready\n"
    # The other methods come to the same in the kernel, and perf events take 0.1 s each.
    times = 25 if "session" in method else 10
    result = harness.run([attach.DRIVER, *method, "--repeat", times, "--rate", 1000, target.pid]).stdout
    repeated = json.loads(result.splitlines()[-1])
    assert repeated["before"] == repeated["behind"] and repeated["allocations"] > 0
    in_memory, in_file = libc_in_memory_and_file(target.pid)
    assert in_memory == in_file, "a breakpoint was left behind"
    assert attach.wait_until_gone() in ([], None)
    target.stdin.close()
    assert target.stdout.readline() == b"unharmed\n"
    assert target.wait(harness.PATIENCE) == 0


def test_a_killed_tool_leaves_nothing(build, start):
    attach.require_ebpf()
    target = start([build("attach_churn.c")], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert target.stdout.readline() == b"ready\n"
    probes = attach.Probes(start, target.pid, "--quiet")
    time.sleep(0.2)
    probes.process.send_signal(signal.SIGKILL)
    probes.process.wait(harness.PATIENCE)
    assert attach.wait_until_gone() in ([], None)
    in_memory, in_file = libc_in_memory_and_file(target.pid)
    assert in_memory == in_file
    target.stdin.close()
    assert target.stdout.readline() == b"unharmed\n"


@pytest.mark.parametrize("kind", ["static", "dynamic"])
def test_target_in_namespaces_of_its_own(build, start, folder, kind):
    """In a chroot, a pid and a mount namespace; the files that it runs are found all the same."""
    attach.require_ebpf()
    program = build("attach_functions.c", *["-static"] * (kind == "static"))
    shutil.copy(program, folder / "inside")
    if kind == "dynamic":
        for library in ("/lib64/ld-linux-x86-64.so.2", "/lib/x86_64-linux-gnu/libc.so.6"):
            (folder / library[1:]).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(library, folder / library[1:])
    target = attach.Target(start, ["unshare", "--pid", "--mount", "--fork", "chroot", folder, "/inside"])
    pid = harness.child_of(target.pid, "inside")
    probes = attach.Probes(start, pid)
    log = target.work()
    totals = probes.stop()
    assert target.end() == 0
    assert probes.story() == log
    assert {event["pid"] for event in probes.of_kind("allocation")} == {pid}
    assert_nothing_lost(totals)


def test_program_whose_file_was_replaced(build, start, folder, method):
    """As an upgrade does while the program runs: what is mapped counts, not what has its name now."""
    program = folder / "program"
    shutil.copy(build("attach_functions.c", "-static"), program)
    target = attach.Target(start, [program])
    program.unlink()
    shutil.copy("/bin/true", program)
    probes = attach.Probes(start, target.pid, *method)
    log = target.work()
    totals = probes.stop()
    assert target.end() == 0
    assert probes.story() == log
    assert_nothing_lost(totals)


def test_tool_in_a_pid_namespace_tells_the_numbers_it_sees(build):
    """The kernel knows other numbers than the ones in this /proc."""
    attach.require_ebpf()
    script = f'{build("attach_churn.c")} < /dev/zero > /dev/null & sleep 0.3; echo $!;'
    script += ' ls /proc/$!/task | tr "\\n" " "; echo;'
    script += f' sleep 2 | {attach.DRIVER} --quiet $!; kill $!'
    lines = harness.run(["unshare", "--pid", "--mount-proc", "--fork", "sh", "-c", script]).stdout.decode().splitlines()
    pid, tasks, events = int(lines[0]), {int(task) for task in lines[1].split()}, map(json.loads, lines[2:])
    threads = [event for event in events if event["kind"] == "thread"]
    assert {event["pid"] for event in threads} == {pid}
    assert len(threads) == 3 and {event["tid"] for event in threads} <= tasks


# What cannot be attached to.


def problem_of(pid):
    result = harness.run([attach.DRIVER, pid], expect=None)
    problem = json.loads(result.stdout)
    assert problem["kind"] == "problem" and result.returncode == problem["code"]
    return problem


def test_no_such_process():
    attach.require_ebpf()
    problem = problem_of(2**22 - 3)
    assert problem["code"] == 3 and "there is no process" in problem["what"]


def test_a_thread_is_not_a_process(build, start):
    attach.require_ebpf()
    target = start([build("attach_churn.c")], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert target.stdout.readline() == b"ready\n"
    thread = max(int(name) for name in os.listdir(f"/proc/{target.pid}/task"))
    problem = problem_of(thread)
    assert problem["code"] == 3 and f"a thread of process {target.pid}" in problem["what"]


def test_a_zombie(start):
    attach.require_ebpf()
    target = start(["true"])
    os.waitid(os.P_PID, target.pid, os.WEXITED | os.WNOWAIT)  # it has ended, and is not taken leave of
    assert "zombie" in problem_of(target.pid)["what"]


def test_a_part_of_the_kernel():
    attach.require_ebpf()
    if Path("/proc/2/comm").exists() and Path("/proc/2/comm").read_text().strip() == "kthreadd":
        assert "part of the kernel" in problem_of(2)["what"]
    else:
        pytest.skip("the kernel's threads are not visible here")


def test_a_program_without_names_gets_an_answer(build, start):
    attach.require_ebpf()
    target = attach.Target(start, [build("attach_functions.c", "-static", "-s")])
    problem = problem_of(target.pid)
    assert "its names were stripped" in problem["what"] and "symbol table" in problem["remedy"]


def test_without_rights_it_says_what_is_missing(build, start):
    attach.require_ebpf()
    target = attach.Target(start, [build("attach_functions.c")])
    command = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "--inh-caps=-all", attach.DRIVER]
    result = harness.run([*command, "--check"], expect=4)
    check = json.loads(result.stdout)
    assert check["trouble"] == 1 and "permission" in check["what"] and "root" in check["remedy"]
    assert json.loads(harness.run([*command, target.pid], expect=4).stdout)["code"] == 4
