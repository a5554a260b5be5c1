"""Ways to break a trace for Chrome, each of which its viewer refuses, throws away or shows wrongly."""

import copy


def dump_events(trace):
    return [event for event in trace["traceEvents"] if event["ph"] == "v"]


def first_dump(trace):
    return dump_events(trace)[0]["args"]["dumps"]


def metadata(trace, name):
    return next(event for event in trace["traceEvents"] if event["name"] == name)


def inner_node(trace):
    return next(node for node in first_dump(trace)["heaps_v2"]["maps"]["nodes"] if "parent" in node)


def columns(trace):
    return first_dump(trace)["heaps_v2"]["allocators"]["malloc"]


def entries(trace):
    return first_dump(trace)["heaps"]["malloc"]["entries"]


def size_of(trace, allocator):
    return first_dump(trace)["allocators"][allocator]["attrs"]["size"]


def remove_metadata(trace, name):
    trace["traceEvents"].remove(metadata(trace, name))


def put(owner, key, value):
    owner[key] = value


BREAKS = {
    "no id": lambda t: dump_events(t)[0].pop("id"),
    "no dumps": lambda t: dump_events(t)[0]["args"].pop("dumps"),
    "no such phase": lambda t: put(dump_events(t)[0], "ph", "w"),
    "no such metadata": lambda t: put(metadata(t, "process_name"), "name", "process_nickname"),
    "no such level of detail": lambda t: put(first_dump(t), "level_of_detail", "full"),
    "no guid": lambda t: first_dump(t)["allocators"]["malloc"].pop("guid"),
    "one guid for two": lambda t: put(
        first_dump(t)["allocators"]["tracing"], "guid", first_dump(t)["allocators"]["malloc"]["guid"]
    ),
    "no attributes": lambda t: first_dump(t)["allocators"]["malloc"].pop("attrs"),
    "no such type of attribute": lambda t: put(size_of(t, "malloc"), "type", "vector"),
    "a size that is not in bytes": lambda t: put(size_of(t, "malloc"), "units", "objects"),
    "a size as a number": lambda t: put(size_of(t, "malloc"), "value", int(size_of(t, "malloc")["value"], 16)),
    "a part larger than all": lambda t: put(size_of(t, "malloc/allocated_objects"), "value", "7fffffff"),
    "an edge to nowhere": lambda t: put(first_dump(t)["allocators_graph"][0], "target", "fffff"),
    "no such edge": lambda t: put(first_dump(t)["allocators_graph"][0], "type", "friendship"),
    "no such byte statistic": lambda t: put(
        first_dump(t)["process_mmaps"]["vm_regions"][0], "bs", {"resident": "1000"}
    ),
    "a mapping's size as a number": lambda t: put(first_dump(t)["process_mmaps"]["vm_regions"][0], "sz", 4096),
}
BREAKS_V2 = {
    "no version": lambda t: first_dump(t)["heaps_v2"].pop("version"),
    "no such node": lambda t: put(columns(t)["nodes"], 0, 99999),
    "no such type": lambda t: put(columns(t)["types"], 0, 99999),
    "a column that is too short": lambda t: columns(t)["sizes"].pop(),
    "a size as text": lambda t: put(columns(t)["sizes"], 0, hex(columns(t)["sizes"][0])),
    "an entry of a map without an id": lambda t: inner_node(t).pop("id"),
    "no such parent": lambda t: put(inner_node(t), "parent", 99999),
    "parent 0": lambda t: put(inner_node(t), "parent", 0),
    "no such string": lambda t: put(inner_node(t), "name_sid", 99999),
    "a heap without an allocator": lambda t: put(
        first_dump(t)["heaps_v2"]["allocators"], "pool", first_dump(t)["heaps_v2"]["allocators"].pop("malloc")
    ),
}
BREAKS_V1 = {
    "no names of types": lambda t: remove_metadata(t, "typeNames"),
    "names of types twice": lambda t: t["traceEvents"].append(metadata(t, "typeNames")),
    "no frames": lambda t: remove_metadata(t, "stackFrames"),
    "no such frame": lambda t: put(entries(t)[1], "bt", "99999"),
    "no such type": lambda t: put(entries(t)[1], "type", "99999"),
    "an entry without a frame": lambda t: entries(t)[1].pop("bt"),
    "a first entry without a frame": lambda t: entries(t)[0].pop("bt"),
    "no entries": lambda t: entries(t).clear(),
    "a size as a number": lambda t: put(entries(t)[1], "size", int(entries(t)[1]["size"], 16)),
    "an entry twice": lambda t: entries(t).append(entries(t)[1]),
    "a path larger than its caller": lambda t: put(entries(t)[1], "size", "7fffffff"),
}
# The viewer shows these without a word, though not what was meant.
UNNOTICED = {
    "chrome": {
        "another node of the same id": lambda t: [
            put(node, "name_sid", node["name_sid"] % 3 + 1)
            for node in dump_events(t)[-1]["args"]["dumps"]["heaps_v2"]["maps"]["nodes"]
        ],
    },
    "chrome-v1": {"no total": lambda t: entries(t).pop(0)},
}
ALL_BREAKS = {"chrome": {**BREAKS, **BREAKS_V2}, "chrome-v1": {**BREAKS, **BREAKS_V1}}


def broken(trace, break_it):
    damaged = copy.deepcopy(trace)
    break_it(damaged)
    assert damaged != trace
    return damaged
