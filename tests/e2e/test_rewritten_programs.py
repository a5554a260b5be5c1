"""Programs and libraries whose program headers a tool has moved out of their first page, as BOLT does: stacks are
whole, and the file is known by its build-id."""

import shutil
import struct

import pytest

import attaching
import harness
from harness import malloscope

PHDR, LOAD, HEADER = 6, 1, "<IIQQQQQQ"
BOLTS = ["llvm-bolt", *(f"llvm-bolt-{version}" for version in range(30, 13, -1))]
BOLT = next((path for path in map(shutil.which, BOLTS) if path), None)


def use_bolt(source, target):
    harness.run([BOLT, "--update-debug-sections", source, "-o", target])


def move_headers(source, target, gap=0):
    """Puts the program headers at the end of the file, into a segment of their own: `gap` bytes further in memory than
    in the file."""
    data = bytearray(source.read_bytes())
    (start,) = struct.unpack_from("<Q", data, 32)
    size, count = struct.unpack_from("<HH", data, 54)
    headers = [list(struct.unpack_from(HEADER, data, start + size * number)) for number in range(count)]
    place = 2 << 20
    assert len(data) < place and all(header[3] + header[6] < place for header in headers)
    length = size * (count + 1)
    for header in headers:
        if header[0] == PHDR:
            header[2:7] = [place, place + gap, place + gap, length, length]
    last = max(number for number, header in enumerate(headers) if header[0] == LOAD)
    headers.insert(last + 1, [LOAD, 4, place, place + gap, place + gap, length, length, 4096])
    data += bytes(place - len(data)) + b"".join(struct.pack(HEADER, *header) for header in headers)
    struct.pack_into("<Q", data, 32, place)
    struct.pack_into("<H", data, 56, count + 1)
    target.write_bytes(data)
    target.chmod(0o755)


def rewrite(how, source, target):
    if how == "bolt":
        if not BOLT:
            pytest.skip("no llvm-bolt here (Debian: apt install bolt-19)")
        use_bolt(source, target)
    else:
        move_headers(source, target, gap=1 << 20 if how == "moved away" else 0)


def assert_whole(recording, outermost):
    result = malloscope("export", "--format", "collapsed", "--value", "total", recording, "-o", "-")
    lines = [line for line in result.stdout.decode().splitlines() if ";leaf " in line or ";leaf;" in line]
    assert lines and all(f"{outermost};outer;middle;leaf" in line for line in lines), result.stdout.decode()
    report = malloscope("report", recording)
    assert b"has changed" not in report.stderr and b"rewritten.c" in report.stdout
    stats = harness.stats(recording)
    assert stats["health"]["complete"] > 0.99, stats["health"]


@pytest.fixture
def rewritten(build, folder):
    """rewritten(how, flag, ...) makes the program, or with -DLIBRARY the library."""

    def make(how, *flags):
        source = build("rewritten.c", "-O1", "-g", "-Wl,-q", "-Wl,--build-id", *flags)
        rewrite(how, source, folder / f"rewritten-{len(flags)}")
        return folder / f"rewritten-{len(flags)}"

    return make


@pytest.mark.parametrize("how", ["bolt", "moved", "moved away"])
@pytest.mark.parametrize("rate", ["exact", "1K"])
def test_a_rewritten_program_has_whole_stacks(rewritten, record, how, rate):
    assert_whole(record(rewritten(how), rate=rate).path, "main")


@pytest.mark.parametrize("how", ["bolt", "moved"])
def test_so_has_a_library_that_is_opened_late(build, rewritten, record, how):
    library = rewritten(how, "-DLIBRARY", "-fPIC", "-shared")
    assert_whole(record(build("rewritten.c", "-O1", "-g"), library).path, "main")


@pytest.mark.probes
@pytest.mark.parametrize("how", ["bolt", "moved"])
def test_so_has_a_program_that_is_attached_to(rewritten, start, folder, how):
    if attaching.why_not():
        pytest.skip(attaching.why_not())
    recording, _ = attaching.record_gated(start, folder, [rewritten(how, str(attaching.GATE))])
    assert_whole(recording, "main")
