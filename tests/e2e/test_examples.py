"""The programs in examples/ show what they are meant to show: exact figures by heap, type and scope; and they do the
same without the profiler."""

import re
import socket
import subprocess

import pytest

import api
import harness

EXAMPLES = harness.ROOT / "examples"
BUILT = harness.BUILD / "examples"


def built(name):
    if not (BUILT / name).exists():
        pytest.skip(f"{name} was not built here")
    return BUILT / name


def record_and_compare(record, program, *arguments, **options):
    """Records a program that also runs by itself, with the same outcome."""
    plain = harness.run([program, *arguments], **options)
    recording = record(program, *arguments, **options)
    assert recording.stdout == plain.stdout and recording.stderr == plain.stderr
    return recording


# --- arena ---


def test_the_arena_shows_its_objects_and_not_its_blocks(record):
    lines = ["1 + 2 * 3", "(4 - 5) * 6", "7", "8 / (9 - 10) + 11 * 12"]
    recording = record_and_compare(record, built("arena"), input="\n".join(lines).encode())
    assert recording.stdout.decode().split() == ["7", "-6", "7", "124"]
    tokens = sum(len(re.findall(r"\d+|\S", line)) + 1 for line in lines)  # and the end of each
    nodes = sum(len(re.findall(r"\d+|[-+*/]", line)) for line in lines)

    heaps = api.heaps(recording)
    assert heaps["trees"]["live_objects"] == heaps["trees"]["total_objects"] == nodes
    assert heaps["trees"]["live_bytes"] == 32 * nodes
    assert heaps["scratch"]["total_objects"] == heaps["scratch"]["frees"] == tokens
    assert heaps["scratch"]["live_bytes"] == 0
    longest = max(len(re.findall(r"\d+|\S", line)) + 1 for line in lines)
    assert heaps["scratch"]["own_peak_at_most"] == 24 * longest
    # The blocks that the arenas take from malloc, of 1 MiB and of 64 KiB, are not counted: what is left is stdio's.
    assert heaps["malloc"]["total_bytes"] < 64 << 10

    types = api.by(recording, "type")
    assert types["struct node"]["live_objects"] == nodes
    assert types["struct token"]["total_objects"] == tokens
    scopes = api.by(recording, "scope")
    assert scopes["read tokens"]["total_objects"] == tokens
    stacks = [api.names(stack) for stack in api.stacks(recording) if stack["type"] == "struct token"]
    assert stacks
    for stack in stacks:
        assert stack.index("main") < stack.index("[scope line]") < stack.index("[scope read tokens]")


def test_the_arena_needs_few_lines_for_it():
    lines = (EXAMPLES / "arena.c").read_text().splitlines()
    marked = [line for line in lines if re.search(r"/\* malloscope|mscope_", line)]
    assert 8 <= len(marked) < 30


# --- pool ---


def simulate_sparks(steps):
    """How many sparks were struck in all, what is left of them, and the most that there were: pool.c's arithmetic."""
    state = 1

    def dice():
        nonlocal state
        state = (state * 1103515245 + 12345) % 2**32
        return state >> 16 & 0x7FFF

    ages, struck, most = [], 0, 0
    for _ in range(steps):
        for _ in range(20 + dice() % 20):
            dice(), dice()
            ages.append(5 + dice() % 20)
            struck += 1
        most = max(most, len(ages))
        ages = [age - 1 for age in ages if age > 1]
    return struck, len(ages), most


def test_the_pool_shows_what_is_in_use(record):
    recording = record_and_compare(record, built("pool"), "300")
    struck, left, most = simulate_sparks(300)
    size = int(re.search(rb"(\d+) sparks of (\d+) bytes", recording.stdout).group(2))
    assert int(recording.stdout.split()[0]) == left
    heaps = api.heaps(recording)
    sparks = heaps["sparks"]
    assert (sparks["total_objects"], sparks["live_objects"], sparks["frees"]) == (struck, left, struck - left)
    assert (sparks["live_bytes"], sparks["own_peak_at_most"]) == (left * size, most * size)
    assert heaps["malloc"]["total_bytes"] < 256 * size, "the pool's chunks count too"


# --- slab ---


class Client:
    def __init__(self, port):
        self.stream = socket.create_connection(("127.0.0.1", port), timeout=60).makefile("rw", newline="\n")

    def ask(self, line):
        self.stream.write(line + "\n")
        self.stream.flush()
        return self.stream.readline().rstrip("\n")

    def end(self, word="quit"):
        self.stream.write(word + "\n")
        self.stream.flush()
        self.stream.close()


HEADER = 16  # sizeof(struct item): a pointer and an int


def test_the_slab_in_a_server_is_exact_by_class_and_by_request(start, folder):
    path = folder / "slab.mscope"
    command = harness.record_command(path, [built("slab_server")], "exact")
    server = start(command, stdout=subprocess.PIPE)
    port = int(server.stdout.readline())
    clients = [Client(port) for _ in range(4)]  # one for each of its threads
    values = {}
    for number in range(400):
        key, value = f"key{number % 300}", "x" * (number * 7 % 3000)
        assert clients[number % 4].ask(f"set {key} {value or 'x'}") == "stored"
        values[key] = value or "x"
    sizes = [
        HEADER + len(f"key{number % 300}") + 1 + len("x" * (number * 7 % 3000) or "x") + 1 for number in range(400)
    ]
    for number in range(0, 300, 3):
        assert clients[number % 4].ask(f"del key{number}") == "deleted"
        del values[f"key{number}"]
    assert clients[0].ask("get key1") == f"value {values['key1']}"
    assert clients[1].ask("get key0") == "not found"
    for client in clients[1:]:
        client.end()
    clients[0].end("stop")
    assert server.wait(60) == 0

    live = [HEADER + len(key) + 1 + len(value) + 1 for key, value in values.items()]
    heaps = api.heaps(path)
    for bits in range(5, 13):
        in_class = lambda size: (size > 2 ** (bits - 1) or bits == 5) and size <= 2**bits
        figures = heaps[f"slab {2 ** bits}"]
        assert figures["total_objects"] == sum(map(in_class, sizes)), bits
        assert figures["total_bytes"] == sum(filter(in_class, sizes)), bits
        assert figures["live_objects"] == sum(map(in_class, live)), bits
        assert figures["live_bytes"] == sum(filter(in_class, live)), bits
    scopes = api.by(path, "scope")
    assert scopes["set"]["total_objects"] == 400
    assert scopes["get"]["total_bytes"] >= len(values["key1"]) + 1


# --- std::pmr ---


def test_the_pmr_resources_show_their_objects(record):
    long = "antidisestablishmentarianism"
    words = ["the", "of", long, "the", "and", long, "the", long]
    recording = record_and_compare(record, built("pmr"), input=" ".join(words).encode())
    assert recording.stdout.decode().split()[:4] == ["3", long, "3", "the"]
    heaps = api.heaps(recording)
    # A node for each word; a text for each time that a long one was looked up.
    assert heaps["words"]["total_objects"] == len(set(words)) + words.count(long)
    assert heaps["words"]["live_bytes"] == 0
    # All nodes have one size, and the text of the long word is there once at the peak, or twice when it is looked up.
    nodes = heaps["words"]["total_bytes"] - words.count(long) * (len(long) + 1)
    assert nodes % len(set(words)) == 0
    assert heaps["words"]["own_peak_at_most"] == nodes + 2 * (len(long) + 1)
    assert (heaps["sort"]["total_objects"], heaps["sort"]["total_bytes"]) == (1, 16 * len(set(words)))
    scopes = api.by(recording, "scope", heap="words")
    assert scopes["count words"]["total_objects"] == heaps["words"]["total_objects"]


# --- Rust ---


def test_the_global_allocator_of_a_rust_program(build, record):
    program = build(str(EXAMPLES / "global_allocator.rs"), "-O")
    recording = record_and_compare(record, program)
    assert recording.stdout == b"500 lines kept\n"
    scopes = api.by(recording, "scope", heap="rust")
    assert scopes["read lines"]["total_objects"] == scopes["read lines"]["frees"] == 1001
    assert scopes["read lines"]["total_bytes"] == 1000 * 24 + 1000 * 100
    assert scopes["keep even"]["live_objects"] == 501
    assert scopes["keep even"]["live_bytes"] == 500 * 16 + 500 * len("line even")
