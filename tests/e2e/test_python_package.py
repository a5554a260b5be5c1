"""The Python package: recording a process that was started without the recorder, and driving one that is there."""

import json
import subprocess
import sys
import textwrap
import zipfile
from pathlib import Path

import pytest

import harness
from harness import BUILD, MALLOSCOPE, ROOT
from pythons import SUPPORTED, besides

PACKAGE = ROOT / "python"
IN_PACKAGE = {"PYTHONPATH": str(PACKAGE), "MALLOSCOPE_BUILD": str(BUILD), "PYTHONDONTWRITEBYTECODE": "1"}

every_python = pytest.mark.parametrize("python", SUPPORTED.values(), ids=list(SUPPORTED))


def has_module(python, name):
    return subprocess.run([python, "-c", f"import {name}"], stderr=subprocess.DEVNULL).returncode == 0


def script(folder, text):
    """The text in a file, with the line numbers of its comments `@NAME`."""
    path = folder / "script.py"
    text = "import json, malloscope\n" + textwrap.dedent(text)
    path.write_text(text)
    lines = {}
    for number, line in enumerate(text.splitlines(), 1):
        if "# @" in line:
            lines[line.split("# @")[1].strip()] = number
    return path, lines


def told_by(python, path, *before, env=None, expect=0):
    """What the script prints as JSON in its last line."""
    result = harness.run([*before, python, path], env={**IN_PACKAGE, **(env or {})}, expect=expect, cwd=path.parent)
    return json.loads(result.stdout.decode().splitlines()[-1]), result


@every_python
def test_lines_without_a_preload(python, folder):
    path, lines = script(
        folder,
        """
        kept = []
        def take():
            kept.append(bytearray(3_000_000))  # @take
        with malloscope.MemoryProfiler(sampling_rate_kb=16) as profiler:
            for _ in range(20):
                take()
            del kept[::2]
            import decimal, sqlite3
            database = sqlite3.connect(":memory:")
            database.execute("create table t (x)")
            database.executemany("insert into t values (?)", [("x" * 500,) for _ in range(4000)])
        rows = profiler.snapshot.top_allocators(200)
        frames = [frame for sample in profiler.snapshot.samples for frame in sample.stack]
        print(json.dumps({
            "rows": rows, "peak": profiler.peak_bytes, "native": sum(not f.is_python for f in frames),
            "unnamed": sum(f.function == "[unknown]" for f in frames), "frames": len(frames),
            "confidence": profiler.snapshot.frame_pointer_health.confidence,
            "sqlite": sum(sample.weight for sample in profiler.snapshot.samples
                          if any(frame.function == "sqlite3_step" for frame in sample.stack))}))
        """,
    )
    told, _ = told_by(python, path)
    row = next(row for row in told["rows"] if row["line"] == lines["take"])
    assert row["function"] == "take" and row["file"] == str(path) and row["is_python"]
    assert row["estimated_bytes"] == pytest.approx(30_000_000, rel=0.01) and row["samples"] == 10
    assert told["peak"] >= 60_000_000
    assert told["native"] > 0 and told["unnamed"] < told["frames"] / 2, "stacks are resolved"
    assert told["confidence"] == "high"
    assert told["sqlite"] > 1_000_000, "a library that was loaded after the start is seen"


@every_python
def test_a_c_extension(python, folder):
    include = subprocess.run(
        [python, "-c", "import sysconfig; print(sysconfig.get_paths()['include'])"], stdout=subprocess.PIPE, text=True
    ).stdout.strip()
    if not Path(include, "Python.h").exists():
        pytest.skip(f"no headers of {python} (Debian: apt install python3-dev)")
    (folder / "taker.c").write_text(
        """
        #include <Python.h>
        #include <stdlib.h>
        static PyObject *take(PyObject *self, PyObject *size) {
            void *block = calloc(1, PyLong_AsSize_t(size));
            return PyLong_FromVoidPtr(block);
        }
        static PyMethodDef methods[] = {{"take", take, METH_O, ""}, {NULL, NULL, 0, NULL}};
        static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "taker", NULL, -1, methods};
        PyMODINIT_FUNC PyInit_taker(void) { return PyModule_Create(&module); }
        """
    )
    harness.run(["gcc", "-g", "-shared", "-fPIC", f"-I{include}", folder / "taker.c", "-o", folder / "taker.so"])
    path, lines = script(
        folder,
        """
        malloscope.start(sampling_rate_kb=0)
        import taker
        where = taker.take(1_234_567)  # @take
        malloscope.stop()
        snapshot = malloscope.get_snapshot()
        sample = next(sample for sample in snapshot.samples if sample.size == 1_234_567)
        print(json.dumps({"address": sample.address == where,
                          "stack": [[f.function, f.line, f.is_python] for f in sample.stack]}))
        """,
    )
    told, _ = told_by(python, path)
    assert told["address"]
    assert told["stack"][0][0] == "take" and not told["stack"][0][2]
    assert told["stack"][1:][[f[2] for f in told["stack"][1:]].index(True)][:2] == ["<module>", lines["take"]]


@every_python
def test_numpy(python, folder):
    if not has_module(python, "numpy"):
        pytest.skip(f"no numpy for {python} (Debian: apt install python3-numpy)")
    path, lines = script(
        folder,
        """
        import numpy
        malloscope.start()
        array = numpy.empty(10_000_000)  # @empty
        print(json.dumps(malloscope.get_snapshot().top_allocators(1)))
        """,
    )
    (row,), _ = told_by(python, path)
    assert row["line"] == lines["empty"] and row["estimated_bytes"] == pytest.approx(80_000_000, rel=0.01)


@every_python
def test_states(python, folder):
    """Each call in each state: it works, or raises and changes nothing."""
    path, _ = script(
        folder,
        """
        from malloscope import State
        def refused(*calls):
            names, before = [], malloscope.state()
            for call in calls:
                try:
                    call()
                except malloscope.StateError as error:
                    assert before.name in str(error), error
                    names.append(call.__name__)
                assert malloscope.state() == before
            return names
        start, stop, shutdown = malloscope.start, malloscope.stop, malloscope.shutdown
        get_stats, get_snapshot = malloscope.get_stats, malloscope.get_snapshot
        def set_rate():
            malloscope.set_rate(64)
        told = {}
        assert malloscope.state() == State.UNINITIALIZED
        told["uninitialized"] = refused(stop, set_rate, get_stats, get_snapshot, shutdown)
        try:
            start(-1)
        except ValueError:
            told["negative"] = True
        start(64)
        assert malloscope.state() == State.ACTIVE
        told["active"] = refused(start)
        get_stats(), get_snapshot(), set_rate(), stop()
        assert malloscope.state() == State.STOPPED
        told["stopped"] = refused(stop)
        get_stats(), get_snapshot(), set_rate()
        start()
        assert get_stats().sampling_rate_bytes == 65536
        stop(), shutdown()
        assert malloscope.state() == State.TERMINATED
        told["terminated"] = refused(start, stop, set_rate, get_stats, get_snapshot, shutdown)
        print(json.dumps(told))
        """,
    )
    told, _ = told_by(python, path)
    assert told == {
        "uninitialized": ["stop", "set_rate", "get_stats", "get_snapshot", "shutdown"],
        "negative": True,
        "active": ["start"],
        "stopped": ["stop"],
        "terminated": ["start", "stop", "set_rate", "get_stats", "get_snapshot", "shutdown"],
    }


@every_python
def test_another_rate_while_it_records(python, folder):
    """More samples from then on, and the weight of each is that of its own rate."""
    path, lines = script(
        folder,
        """
        def refused(rate):
            try:
                malloscope.set_rate(rate)
            except (ValueError, malloscope.StateError) as error:
                return type(error).__name__
        kept = []
        def take():
            kept.extend(bytearray(2000) for _ in range(5000))  # @take
        malloscope.start(256)
        told, counts = {"wrong": [refused(rate) for rate in (0, -1, 2**60)]}, []
        for rate in (256, 4, 256):
            malloscope.set_rate(rate)
            assert malloscope.get_stats().sampling_rate_bytes == rate * 1024
            before = malloscope.get_stats().total_samples
            take()
            counts.append(malloscope.get_stats().total_samples - before)
        malloscope.stop()
        told.update(counts=counts, rows=malloscope.get_snapshot().top_allocators(3))
        told["error"] = malloscope.get_stats().estimated_error_bytes
        print(json.dumps(told))
        """,
    )
    told, _ = told_by(python, path)
    assert told["wrong"] == ["ValueError"] * 3
    few, many, again = told["counts"]
    assert few < 200 and 1500 < many < 3500 and again < 200, "of 10 MB each"
    row = next(row for row in told["rows"] if row["line"] == lines["take"])
    assert abs(row["estimated_bytes"] - 3 * 5000 * (2000 + besides(python))) < 5 / 1.96 * told["error"]


def test_an_exact_recording_keeps_its_rate(folder):
    path, _ = script(
        folder,
        """
        malloscope.start(0)
        malloscope.set_rate(0)
        try:
            malloscope.set_rate(64)
        except malloscope.StateError as error:
            print(json.dumps([str(error), malloscope.get_stats().sampling_rate_bytes]))
        """,
    )
    (error, rate), _ = told_by(sys.executable, path)
    assert "ACTIVE and records every allocation" in error and rate == 1


@every_python
def test_stop_keeps_watching_frees(python, folder):
    path, _ = script(
        folder,
        """
        malloscope.start(sampling_rate_kb=0)
        kept = [bytearray(1_000_000) for _ in range(4)]
        malloscope.stop()
        first = malloscope.get_snapshot()
        other = bytearray(5_000_000)  # not recorded
        del kept[:3]
        second = malloscope.get_snapshot()
        malloscope.start()
        more = bytearray(2_000_000)
        third = malloscope.get_snapshot()
        sizes = lambda snapshot: sorted(s.size for s in snapshot.samples if s.size > 900_000)
        print(json.dumps([sizes(first), sizes(second), sizes(third), [d.bytes for d in third.diff(first)][:2]]))
        """,
    )
    (first, second, third, changes), _ = told_by(python, path)
    one, two = 1_000_000 + besides(python), 2_000_000 + besides(python)
    assert first == [one] * 4 and second == [one] and third == [one, two]
    assert changes == [-3 * one, two]


@pytest.mark.parametrize(
    "python, cycles",
    [(python, 1000 if number == 0 else 100) for number, python in enumerate(SUPPORTED.values())],
    ids=list(SUPPORTED),
)
def test_many_cycles_under_load(python, cycles, folder):
    """A thousand on the first interpreter. On the others a hundred: what is started and stopped is the library, which
    is the same for all of them, and test_takeover.py starts it a thousand times without Python."""
    path, _ = script(
        folder,
        f"""
        import threading
        over = False
        def load():
            while not over:
                blocks = [bytearray(5000) for _ in range(50)]
        threads = [threading.Thread(target=load) for _ in range(3)]
        for thread in threads:
            thread.start()
        for _ in range({cycles}):
            malloscope.start(sampling_rate_kb=4)
            bytearray(100_000)
            malloscope.stop()
        over = True
        for thread in threads:
            thread.join()
        stats = malloscope.get_stats()
        live = [s for s in malloscope.get_snapshot().samples if s.size // 100 in (50, 1000)]
        malloscope.shutdown()
        print(json.dumps(dict(samples=stats.total_samples, drops=stats.dropped_samples, live=len(live))))
        """,
    )
    told, _ = told_by(python, path)
    assert told["samples"] >= 0.9 * cycles and told["drops"] == 0 and told["live"] == 0


@every_python
def test_shutdown_restores_every_slot(python, build, folder):
    slots = build("takeover.c", f"-I{ROOT / 'include'}", "-fPIC", "-shared", target="slots.so")
    path, _ = script(
        folder,
        f"""
        import ctypes, decimal, hashlib, sqlite3
        slots = ctypes.CDLL({str(slots)!r})
        malloscope.state()  # opens the library
        noted = slots.slots_note()
        malloscope.start()
        by_start = slots.slots_different()
        import bz2, lzma, socket
        malloscope.stop(), malloscope.start(), malloscope.shutdown()
        print(json.dumps([noted, by_start, slots.slots_different()]))
        """,
    )
    (noted, by_start, by_shutdown), _ = told_by(python, path, env={"LD_BIND_NOW": "1"})
    assert noted > 1000 and by_start > 30 and by_shutdown == 0


@every_python
def test_under_run_the_recorder_there_is_driven(python, folder):
    path, lines = script(
        folder,
        """
        assert malloscope.state() == malloscope.State.ACTIVE
        with malloscope.MemoryProfiler(sampling_rate_kb=512) as profiler:
            kept = bytearray(5_000_000)  # @kept
        assert malloscope.state() == malloscope.State.STOPPED
        print(json.dumps(profiler.snapshot.top_allocators(1)))
        """,
    )
    (row,), _ = told_by(python, path, MALLOSCOPE, "run", "-q", "-o", folder / "run.mscope")
    assert row["line"] == lines["kept"] and row["estimated_bytes"] == pytest.approx(5_000_000, rel=0.01)
    rows = harness.report(folder / "run.mscope")["rows"]
    assert any(row["line"] == lines["kept"] and row["total_bytes"] > 4_900_000 for row in rows)
    assert len(list(folder.glob("*.mscope"))) == 1, "the command that reads snapshots is not recorded"


@every_python
def test_few_samples_warn_and_many_do_not(python, folder):
    path, _ = script(
        folder,
        """
        import warnings
        def warned(snapshot):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                snapshot.resolve()
            return [w.category.__name__ for w in caught]
        malloscope.start(sampling_rate_kb=64)
        few = [bytearray(1_000_000) for _ in range(60)]
        first = warned(malloscope.get_snapshot(resolve=False))
        many = [bytearray(1_000_000) for _ in range(60)]
        print(json.dumps([first, warned(malloscope.get_snapshot(resolve=False))]))
        """,
    )
    told, _ = told_by(python, path)
    assert told == [["FewSamplesWarning"], []]


def test_confidence_is_as_specified():
    text = """
        import json, sys
        from malloscope import FramePointerHealth
        print(json.dumps([FramePointerHealth(n, 1000, 10.0, 3).confidence for n in (0, 49, 50, 200, 201, 1000)]))
    """
    result = harness.run(["/usr/bin/python3", "-c", textwrap.dedent(text)], env=IN_PACKAGE)
    assert json.loads(result.stdout) == ["high", "high", "medium", "medium", "low", "low"]


@every_python
@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_multiprocessing(python, folder, method):
    """A forked child records on, by itself; one that is spawned begins without a recorder."""
    path, _ = script(
        folder,
        f"""
        import multiprocessing
        def work(queue):
            before = malloscope.state().name
            kept = bytearray(7_000_000)
            if before == "ACTIVE":
                megabytes = [s.size // 1_000_000 for s in malloscope.get_snapshot().samples]
            else:
                with malloscope.MemoryProfiler() as profiler:
                    other = bytearray(7_000_000)
                megabytes = [s.size // 1_000_000 for s in profiler.snapshot.samples]
            queue.put([before, megabytes.count(7), megabytes.count(3)])
        if __name__ == "__main__":
            context = multiprocessing.get_context({method!r})
            malloscope.start()
            kept = bytearray(3_000_000)
            queue = context.Queue()
            child = context.Process(target=work, args=(queue,))
            child.start()
            told = queue.get()
            child.join()
            megabytes = [s.size // 1_000_000 for s in malloscope.get_snapshot().samples]
            print(json.dumps({{"child": told, "code": child.exitcode,
                              "parent": [megabytes.count(7), megabytes.count(3)]}}))
        """,
    )
    told, _ = told_by(python, path)
    assert told["code"] == 0 and told["parent"] == [0, 1]
    assert told["child"] == (["ACTIVE", 1, 1] if method == "fork" else ["UNINITIALIZED", 1, 0])


@every_python
def test_frames_stand_where_they_are_interpreted(python, folder):
    path, _ = script(
        folder,
        """
        kept = []
        def key(x):
            kept.append(bytearray(3_000_000))
            return x
        def rank():
            return sorted([2, 1], key=key)
        with malloscope.MemoryProfiler(sampling_rate_kb=0) as profiler:
            rank()
        sample = next(s for s in profiler.snapshot.samples if s.size >= 3_000_000)
        print(json.dumps([[f.function, f.is_python] for f in sample.stack]))
        """,
    )
    told, _ = told_by(python, path)
    key, rank, module = (told.index([name, True]) for name in ("key", "rank", "<module>"))
    assert 0 < key and key + 1 < rank < module < len(told) - 1 and told[-1] == ["_start", False]


def test_greenlets_have_their_own_frames(folder):
    python = next((path for path in SUPPORTED.values() if has_module(path, "greenlet")), None)
    if not python:
        pytest.skip("no greenlet for any interpreter here (Debian: apt install python3-greenlet)")
    path, _ = script(
        folder,
        """
        import greenlet
        kept = []
        def leaf(size):
            kept.append(bytearray(size))
        def loop(size):
            for _ in range(5):
                leaf(size)
                main.switch()
        def alpha(): loop(1_000_000)
        def beta(): loop(2_000_000)
        main = greenlet.getcurrent()
        greenlets = [greenlet.greenlet(alpha), greenlet.greenlet(beta)]
        with malloscope.MemoryProfiler(sampling_rate_kb=0) as profiler:
            for _ in range(5):
                for one in greenlets:
                    one.switch()
        print(json.dumps([[s.size, [f.function for f in s.stack if f.is_python]]
                          for s in profiler.snapshot.samples if s.size > 999_999]))
        """,
    )
    told, _ = told_by(python, path)
    expected = [[1_000_001, ["leaf", "loop", "alpha"]], [2_000_001, ["leaf", "loop", "beta"]]]
    assert sorted(told) == sorted(expected * 5)


def test_functions_that_go_on_later_are_recorded_whole(folder):
    path, _ = script(
        folder,
        """
        import asyncio
        profiler = malloscope.MemoryProfiler(sampling_rate_kb=0)

        @profiler
        async def work():
            await asyncio.sleep(0)
            return bytearray(1_000_001)

        kept = asyncio.run(work())
        sizes = [sample.size for sample in profiler.snapshot.samples if sample.size > 999_999]

        @profiler
        def steps():
            yield 1
            yield bytearray(2_000_001)

        kept = list(steps())
        sizes += [sample.size for sample in profiler.snapshot.samples if sample.size > 1_999_999]

        async def endless():
            yield 1
        try:
            profiler(endless)
        except TypeError as error:
            print(json.dumps([sizes, str(error)]))
        """,
    )
    (sizes, error), _ = told_by("/usr/bin/python3", path)
    assert sizes == [1_000_002, 2_000_002] or sizes == [1_000_001, 2_000_001]
    assert "asynchronous generator" in error


def test_every_format_is_saved(folder):
    path, _ = script(
        folder,
        """
        malloscope.start(sampling_rate_kb=0)
        kept = bytearray(1_000_000)
        snapshot = malloscope.get_snapshot()
        for format in malloscope.FORMATS:
            snapshot.save("out." + format, format)
        for name in ("by_name.html", "by_name.csv", "by_name.mscope", "by_name.pb.gz", "by_name.json"):
            snapshot.save(name)
        try:
            snapshot.save("out.x", "nothing")
        except ValueError as error:
            loaded = malloscope.HeapSnapshot.load("out.mscope")
            print(json.dumps([str(error), loaded.live_samples == snapshot.live_samples]))
        """,
    )
    (error, same), _ = told_by("/usr/bin/python3", path)
    assert "'nothing'" in error and "speedscope" in error and same
    for name in [*harness.export_formats(), "mscope"]:
        assert (folder / f"out.{name}").stat().st_size > 0, name
    assert json.loads((folder / "out.speedscope").read_text())["profiles"]
    assert (folder / "by_name.html").read_text().startswith("<!doctype html>")
    assert (folder / "by_name.csv").read_text().startswith("function,")
    assert (folder / "by_name.pb.gz").read_bytes()[:2] == b"\x1f\x8b"
    assert harness.report(folder / "by_name.mscope")["rows"]
    assert json.loads((folder / "by_name.json").read_text())["profiles"], "speedscope, if the name says no more"


def test_the_module_runs_scripts_and_reads_recordings(folder):
    path, lines = script(folder, "import sys\nkept = bytearray(5_000_000)  # @kept\nprint(json.dumps(sys.argv[1:]))\n")
    python = "/usr/bin/python3"
    result = harness.run(
        [python, "-m", "malloscope", "run", "-q", "-o", "a.mscope", path, "--rate", "x"], env=IN_PACKAGE, cwd=folder
    )
    assert json.loads(result.stdout) == ["--rate", "x"], "what follows the script is its own"
    report = harness.run([python, "-m", "malloscope", "report", "a.mscope"], env=IN_PACKAGE, cwd=folder).stdout.decode()
    assert f"script.py:{lines['kept']}" in report
    wrong = harness.run([python, "-m", "malloscope", "run"], env=IN_PACKAGE, expect=2)
    assert b"run" in wrong.stderr


def test_nothing_stays_behind(folder):
    path, _ = script(
        folder,
        """
        import os, tempfile
        malloscope.start()
        snapshot = malloscope.get_snapshot(resolve=False)
        pid = os.fork()
        if pid == 0:
            os._exit(0)
        os.waitpid(pid, 0)
        print(json.dumps(os.listdir(os.environ["TMPDIR"])))
        """,
    )
    (folder / "tmp").mkdir()
    during, _ = told_by("/usr/bin/python3", path, env={"TMPDIR": str(folder / "tmp")})
    assert len(during) == 1 and not list((folder / "tmp").iterdir())


def test_the_wheel_carries_library_and_command(folder):
    if not has_module("/usr/bin/python3", "setuptools") or not has_module("/usr/bin/python3", "wheel"):
        pytest.skip("no setuptools here (Debian: apt install python3-setuptools python3-wheel)")
    source = folder / "python"
    harness.run(["cp", "-r", PACKAGE, source])
    build = {"MALLOSCOPE_BUILD": str(BUILD), "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    pip = ["/usr/bin/python3", "-m", "pip"]
    harness.run([*pip, "wheel", "--no-build-isolation", "--no-index", "--no-deps", "-w", folder, source], env=build)
    (wheel,) = folder.glob("malloscope-*.whl")
    assert "-py3-none-" in wheel.name
    names = zipfile.ZipFile(wheel).namelist()
    parts = {"malloscope", "malloscope-commands", "libmalloscope.so"}
    assert {"malloscope/py.typed", *(f"malloscope/_bin/{part}" for part in parts)} <= set(names)

    harness.run([*pip, "install", "--no-index", "--no-deps", "--target", folder / "site", wheel])
    installed = {"PYTHONPATH": str(folder / "site"), "PATH": "/usr/bin:/bin"}
    text = "import malloscope._parts as p; print(p.library_path()); print(p.command_path())"
    told = harness.run(["/usr/bin/python3", "-c", text], env=installed).stdout.decode().splitlines()
    assert all(line.startswith(str(folder / "site")) for line in told)
    harness.run(["/usr/bin/python3", "-m", "malloscope", "--version"], env=installed)
    command = [folder / "site" / "bin" / "malloscope", "run", "-q", "-o", folder / "x.mscope", "/bin/true"]
    harness.run(command, env=installed)


TESTS_WITH_LIMITS = """
    import pytest
    kept = []
    def take(size):
        return bytearray(size)  # @take

    @pytest.mark.limit_memory("24 MB")
    def test_within(): take(20_000_000)

    @pytest.mark.limit_memory("24 MB")
    def test_beyond(): take(30_000_000)

    @pytest.mark.limit_leaks("1 MB")
    def test_clean(): take(30_000_000)

    @pytest.mark.limit_leaks("1 MB")
    def test_leaking(): kept.append(take(2_000_000))

    @pytest.mark.limit_leaks("1 MB")
    def test_own_failure(): assert take(1) is None

    @pytest.mark.limit_memory("much")
    def test_wrong_mark(): pass
"""


def test_limits_in_pytest(folder):
    path = folder / "test_limits.py"
    path.write_text(textwrap.dedent(TESTS_WITH_LIMITS))
    result = harness.run(
        ["/usr/bin/python3", "-m", "pytest", "-p", "malloscope.pytest_plugin", "-p", "no:cacheprovider", "-rA", path],
        env=IN_PACKAGE, cwd=folder, expect=None,
    )
    text = result.stdout.decode()
    outcome = {line.split("::")[1].split(" ")[0]: line.split()[0] for line in text.splitlines()
               if line.startswith(("PASSED ", "FAILED ", "ERROR "))}
    assert outcome == {"test_within": "PASSED", "test_beyond": "FAILED", "test_clean": "PASSED",
                       "test_leaking": "FAILED", "test_own_failure": "FAILED", "test_wrong_mark": "FAILED"}, text
    assert "the heap grew by 30 MB during the test; limit_memory allows 24 MB" in text
    assert "the test left 2 MB behind; limit_leaks allows 1 MB" in text
    assert text.count("take  " + str(path) + ":5") == 2, "the lines are named"
    assert "'much' is no size; write it as '24 MB'" in text


def test_the_magic(folder):
    python = next((path for path in SUPPORTED.values() if has_module(path, "IPython")), None)
    if not python:
        pytest.skip("no IPython for any interpreter here")
    (folder / "cell.py").write_text(textwrap.dedent("""
        from IPython.core.interactiveshell import InteractiveShell
        shell = InteractiveShell.instance()
        shell.run_line_magic("load_ext", "malloscope")
        shell.run_cell_magic("malloscope", "--rate 0 -n 3", "kept = bytearray(6_000_000)")
        assert len(shell.user_ns["kept"]) == 6_000_000
        from malloscope import get_snapshot
        from malloscope.ipython import flame_graph
        page = flame_graph(get_snapshot())
        assert page.startswith("<iframe srcdoc=") and "&lt;html" in page and len(page) > 10_000
    """))
    text = harness.run([python, folder / "cell.py"], env={**IN_PACKAGE, "IPYTHONDIR": str(folder)}).stdout.decode()
    assert "the cell holds 6" in text and "<module>" in text
    assert "IPython.core.display.HTML" in text, "the flame graph follows"
