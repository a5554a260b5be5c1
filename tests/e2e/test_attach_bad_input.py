"""What `malloscope attach` says and does when it cannot do what was asked for."""

import json
import os
import shutil
import signal
import struct
import subprocess
import time

import pytest

import attaching
import harness
from attaching import Attached
from harness import MALLOSCOPE, malloscope, report, stats, wait_until
from test_bad_input import AS_NOBODY, FAILURE, MISSING, PERMISSION, USAGE, assert_explained

pytestmark = pytest.mark.probes


@pytest.fixture(autouse=True, scope="module")
def probes():
    if attaching.why_not():
        pytest.skip(attaching.why_not())


@pytest.fixture
def known(build, start, folder):
    """attach_known, which waits for the file `go`, allocates, makes `done`, and waits to be killed."""
    process = start([build("attach_known.c", "-O1"), folder / "go", folder / "done"], stdout=subprocess.PIPE)
    assert process.stdout.readline()
    return process


def attach(*arguments, expect=0, **options):
    return malloscope("attach", *arguments, expect=expect, **options)


# ---- processes that cannot be attached to ----


@pytest.mark.parametrize("option", ["--exact", "--plan", "--via=smaps"])
def test_no_such_process(folder, option):
    ended = subprocess.Popen(["true"])
    ended.wait()
    assert_explained(attach(option, ended.pid, expect=MISSING, cwd=folder), ended.pid)
    assert not list(folder.iterdir())


@pytest.mark.parametrize("number", ["abc", "0", "99999999999999999999", "1.5", ""])
def test_not_a_number(number):
    assert_explained(attach(number, expect=USAGE), f"'{number}' is not a process number")


def test_no_number():
    assert_explained(attach(expect=USAGE), "attach")


def test_a_part_of_the_kernel(folder):
    if not os.path.exists("/proc/2") or os.readlink("/proc/self/ns/pid") != os.readlink("/proc/2/ns/pid"):
        pytest.skip("no kernel threads to be seen here")
    assert_explained(attach(2, expect=FAILURE, cwd=folder), "process 2 is a part of the kernel")
    assert not list(folder.iterdir())


def test_a_zombie(start, folder):
    zombie = start(["true"])
    wait_until_zombie(zombie.pid)
    assert_explained(attach(zombie.pid, expect=MISSING, cwd=folder), zombie.pid, "zombie", os.getpid())
    assert not list(folder.iterdir())


def wait_until_zombie(pid):
    while harness.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z":
        time.sleep(0.01)


def test_without_rights(known, folder):
    os.chmod(folder, 0o777)
    command = [*AS_NOBODY, MALLOSCOPE, "attach", "-d", "100ms", "-o", folder / "nobody.mscope", known.pid]
    result = harness.run(command, expect=PERMISSION)
    assert_explained(result, "no permission", "root", f"process {known.pid}")
    assert not (folder / "nobody.mscope").exists()


def test_without_rights_to_the_kernel_the_size_is_watched(start, folder):
    os.chmod(folder, 0o777)
    own = start([*AS_NOBODY, "sleep", "60"])
    wait_until(lambda: harness.Path(f"/proc/{own.pid}/comm").read_text() == "sleep\n", own)
    command = [*AS_NOBODY, MALLOSCOPE, "attach", "-d", "300ms", "-o", folder / "nobody.mscope"]
    result = harness.run([*command, own.pid])
    assert_explained(result, "no permission", "without attribution")
    assert timeline(folder / "nobody.mscope")
    harness.run([*command, "-f", "--via", "bpf", own.pid], expect=PERMISSION)


WITH_TWO_RIGHTS = [*AS_NOBODY, "--inh-caps=+bpf,+perfmon", "--ambient-caps=+bpf,+perfmon"]


@pytest.fixture
def of_nobody(build, start, folder):
    """attach_known as another user, and the tool with the rights for eBPF alone."""
    if harness.run([*WITH_TWO_RIGHTS, "true"], expect=None).returncode:
        pytest.skip("setpriv does not know these rights")
    folder.chmod(0o777)
    command = [*AS_NOBODY, build("attach_known.c", "-O1"), folder / "go", folder / "done"]
    process = start(command, stdout=subprocess.PIPE)
    assert process.stdout.readline()
    return process, [*WITH_TWO_RIGHTS, MALLOSCOPE, "attach", "--exact", "-d", "2s", "-o", folder / "of.mscope"]


def test_with_the_rights_for_probes_and_no_others(of_nobody, start, folder):
    """CAP_BPF and CAP_PERFMON are enough for the user's own programs, where the kernel has multi links."""
    process, command = of_nobody
    best = json.loads(harness.run([harness.BUILD / "tests" / "attach_events", "--check"]).stdout)["method"]
    if best == "perf events":
        pytest.skip("perf events need more rights")
    tool = start([*command, process.pid], stderr=subprocess.PIPE)
    assert b"attached to process" in tool.stderr.readline()
    (folder / "go").touch()
    assert tool.wait(harness.PATIENCE) == 0
    totals = stats(folder / "of.mscope")["totals"]
    assert totals["total_objects"] == 700 and totals["drops"] == 0
    assert {row["function"] for row in report(folder / "of.mscope")["rows"]} >= {"by_malloc", "by_calloc"}


def test_with_the_rights_for_probes_another_user_s_program_is_not_looked_into(known, of_nobody, folder):
    _, command = of_nobody
    result = harness.run([*command, known.pid], expect=PERMISSION)
    assert_explained(result, f"process {known.pid}", "Permission denied", "root")
    assert not (folder / "of.mscope").exists()


CAP_DAC_OVERRIDE, CAP_SYS_PTRACE, CAP_SYS_ADMIN, CAP_PERFMON, CAP_BPF = 1, 19, 21, 38, 39


@pytest.fixture
def tool_with(folder):
    """tool_with(rights): the tool in a copy whose file has capabilities, as setcap gives them; run as nobody."""

    def copied(*rights):
        if os.statvfs(folder).f_flag & os.ST_NOSUID:
            pytest.skip("the file system of the tests ignores capabilities of files")
        folder.chmod(0o777)
        for name in ("malloscope", "malloscope-commands"):
            shutil.copy(harness.BUILD / name, folder / name)
            (folder / name).chmod(0o755)
        permitted, effective = sum(1 << right for right in rights), 0x02000001  # revision 2, effective at once
        words = struct.pack("<5I", effective, permitted & 0xFFFFFFFF, 0, permitted >> 32, 0)
        os.setxattr(folder / "malloscope-commands", "security.capability", words)
        return [*AS_NOBODY, folder / "malloscope", "attach", "-d", "2s", "-f", "-o", folder / "of.mscope"]

    return copied


@pytest.mark.parametrize("way", [["--via", "bpf"], ["--via", "smaps"], ["--plan"], ["--follow"]], ids=" ".join)
@pytest.mark.parametrize("rights", [[CAP_BPF, CAP_PERFMON],
                                    [CAP_BPF, CAP_PERFMON, CAP_SYS_PTRACE, CAP_SYS_ADMIN, CAP_DAC_OVERRIDE]],
                         ids=["as advised", "too many"])
def test_rights_of_the_tools_file_open_no_other_users_process(known, tool_with, folder, rights, way):
    """Whoever may execute the file would get at everybody's memory."""
    result = harness.run([*tool_with(*rights), *way, known.pid], expect=PERMISSION)
    assert_explained(result, f"process {known.pid}", "Permission denied", "root")
    assert not (folder / "of.mscope").exists() and not result.stdout


def test_rights_of_the_tools_file_are_enough_for_ones_own_process(of_nobody, tool_with, start, folder):
    """The rights that the tool advises, and no others."""
    process, _ = of_nobody
    command = tool_with(CAP_BPF, CAP_PERFMON)
    if b"perf events" in harness.run([harness.BUILD / "tests" / "attach_events", "--check"]).stdout:
        pytest.skip("perf events need more rights")
    tool = start([*command, "--exact", process.pid], stderr=subprocess.PIPE)
    assert b"attached to process" in tool.stderr.readline()
    (folder / "go").touch()
    assert tool.wait(harness.PATIENCE) == 0
    assert stats(folder / "of.mscope")["totals"]["total_objects"] == 700


def test_the_advice_gives_no_more_rights_than_needed(start, folder):
    """To a group, and only for the kernel's programs: not for other users' processes or files."""
    own = start([*AS_NOBODY, "sleep", "60"])
    result = harness.run([*AS_NOBODY, MALLOSCOPE, "attach", "--via", "bpf", own.pid], expect=PERMISSION)
    advice = result.stderr.decode()
    assert "setcap cap_bpf,cap_perfmon+ep" in advice and "chgrp" in advice and "chmod 750" in advice


def test_a_kernel_that_does_not_describe_its_types(known, folder):
    """The file with the kernel's types (BTF) is hidden from the tool: it watches the size, unless asked for eBPF."""
    hidden = f'mount -t tmpfs none /sys/kernel/btf && exec "$@"'
    command = ["unshare", "--mount", "sh", "-c", hidden, "sh", MALLOSCOPE, "attach", "-d", "300ms"]
    result = harness.run([*command, "-o", folder / "size.mscope", known.pid])
    assert_explained(result, "does not describe its types", "CONFIG_DEBUG_INFO_BTF", "without attribution")
    assert timeline(folder / "size.mscope")
    result = harness.run([*command, "--via", "bpf", "-o", folder / "none.mscope", known.pid], expect=FAILURE)
    assert_explained(result, "does not describe its types")
    assert not (folder / "none.mscope").exists()


def test_a_32_bit_program(start, folder):
    """One that calls pause(2) for ever."""
    (folder / "pause.s").write_text(".globl _start\n_start: movl $29, %eax\nint $0x80\njmp _start\n")
    harness.run(["as", "--32", "-o", folder / "pause.o", folder / "pause.s"])
    harness.run(["ld", "-m", "elf_i386", "-o", folder / "pause", folder / "pause.o"])
    try:
        process = start([folder / "pause"])
    except OSError as error:
        pytest.skip(f"this kernel does not run 32-bit programs: {error}")
    for options in ([], ["--plan"], ["--via", "bpf"]):
        result = attach(*options, "-o", folder / "none.mscope", process.pid, expect=FAILURE)
        assert_explained(result, f"process {process.pid} (pause) is not a 64-bit x86 program", "--via smaps")
        assert not (folder / "none.mscope").exists()
    attach("--via", "smaps", "-q", "-d", "200ms", "-o", folder / "size.mscope", process.pid)
    assert process.poll() is None and timeline(folder / "size.mscope")


# ---- options ----


@pytest.mark.parametrize("options", [
    ["--ring", "3"], ["--ring", "100K"], ["--ring", "8G"], ["--ring", "0"], ["--stack", "1M"], ["--stack", "0"],
    ["--blocks", "0"], ["--blocks", "5000000000"], ["--depth", "1"], ["--rate", "0"], ["--exact", "--rate", "7"],
    ["--via", "magic"], ["-d", "soon"], ["--baseline", "-1"],
])
def test_impossible_options(known, folder, options):
    assert_explained(attach(*options, known.pid, expect=USAGE, cwd=folder))
    assert not [path for path in folder.iterdir() if path.suffix == ".mscope"]


def test_output_into_a_missing_folder(known, folder):
    result = attach("-o", folder / "missing" / "a.mscope", known.pid, expect=MISSING)
    assert_explained(result, folder / "missing" / "a.mscope")


def test_an_existing_recording_is_kept_unless_forced(known, folder):
    path = folder / "kept.mscope"
    path.write_text("precious")
    assert_explained(attach("-d", "10ms", "-o", path, known.pid, expect=FAILURE), path, "-f")
    assert path.read_text() == "precious"
    attach("-d", "10ms", "-f", "-o", path, known.pid)
    assert stats(path)["totals"]["rate"] == 512 << 10


def test_quiet_says_nothing(known, folder):
    result = attach("-q", "-d", "10ms", "-o", folder / "quiet.mscope", known.pid)
    assert result.stdout == result.stderr == b""


def test_without_a_name_the_recording_is_named_after_the_program(known, folder):
    attach("-q", "-d", "10ms", known.pid, cwd=folder)
    attach("-q", "-d", "10ms", "-f", "-o", folder, known.pid)
    assert [path.name for path in folder.glob("*.mscope")] == [f"malloscope.attach_known.{known.pid}.mscope"]


def test_the_plan_tells_every_probe(known, folder):
    text = attach("--plan", known.pid, cwd=folder).stdout.decode()
    for function in ("malloc", "free", "calloc", "realloc", "posix_memalign"):
        assert f"\n  {function} " in text
    assert f"process {known.pid}" in text and "libc.so.6+0x" in text and "reallocarray in libc.so.6" in text
    assert not list(folder.glob("*.mscope"))


# ---- what goes wrong on the way ----


def test_the_target_ends_in_the_middle(known, start, folder):
    attached = Attached(start, folder, known.pid, "--exact")
    (folder / "go").touch()
    wait_until((folder / "done").is_symlink, known)
    known.kill()
    totals = stats(attached.wait())["totals"]
    assert f"process {known.pid} has ended" in attached.said
    assert totals["total_objects"] == 700 and totals["drops"] == 0


def test_the_tool_is_killed(known, start, folder):
    """What was recorded until then can be read, and the target runs on."""
    attached = Attached(start, folder, known.pid, "--exact")
    (folder / "go").touch()
    wait_until((folder / "done").is_symlink, known)
    wait_until(lambda: stats(attached.recording)["totals"]["total_objects"] == 700, known)
    attached.process.kill()
    attached.process.wait()
    assert stats(attached.recording)["totals"]["total_objects"] == 700
    assert known.poll() is None


@pytest.mark.parametrize("signal_number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_end_it_well(known, start, folder, signal_number):
    attached = Attached(start, folder, known.pid, "--exact")
    attached.process.send_signal(signal_number)
    attached.wait()
    assert "recorded" in attached.said and known.poll() is None


def test_more_blocks_than_can_be_tracked(known, start, folder):
    """Those that are left out are counted, and the figures are marked."""
    attached = Attached(start, folder, known.pid, "--exact", "--blocks", "50")
    (folder / "go").touch()
    wait_until((folder / "done").is_symlink, known)
    recording = attached.stop()
    totals = stats(recording)["totals"]
    assert totals["drops_by_kind"]["tracked"] > 0
    assert totals["total_objects"] + totals["drops"] == 700
    assert totals["live_objects"] <= 50
    for text in (attached.said, malloscope("report", recording).stdout.decode()):
        assert "INCOMPLETE" in text and "--blocks" in text
        assert "exact, every allocation" not in text


def timeline(recording):
    return json.loads(malloscope("export", recording, "--format", "json").stdout)["timeline"]


def test_size_only(known, start, folder):
    recording = folder / "size.mscope"
    result = attach("--via", "smaps", "-d", "500ms", "-o", recording, known.pid)
    text = result.stderr.decode()
    assert text.count("without attribution") == 1 and "no attribution in this recording" in text
    levels = [point["live_last"] for point in timeline(recording)]
    known_from = next(i for i, level in enumerate(levels) if level)  # nothing is known before the first look
    assert len(levels) - known_from > 10 and min(levels[known_from:]) > 10_000
    assert report(recording)["rows"] == []


def test_a_report_of_sizes_only_does_not_claim_to_be_exact(known, folder):
    recording = folder / "size.mscope"
    attach("--via", "smaps", "-q", "-d", "100ms", "-o", recording, known.pid)
    shown = malloscope("report", recording).stdout.decode()
    assert "exact, every allocation" not in shown and "no attribution" in shown


def test_baseline_after_the_end(start):
    sleeper = start(["sleep", "60"])
    refused = harness.malloscope("attach", sleeper.pid, "--baseline", "10s", "-d", "2s", expect=2)
    assert b"--baseline" in refused.stderr and b"--duration" in refused.stderr
