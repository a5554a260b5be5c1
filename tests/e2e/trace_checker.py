"""What the trace viewer of Chrome asks of memory dumps, as its importer (catapult, tracing/extras/importer) has it.

`read_trace` says what the viewer would show, and what it would complain about, throw away or show wrongly. It is
compared with the importer itself in test_chrome.py, where that can be had.
"""

import re

LEVELS = ("background", "light", "detailed")
BYTE_STATISTICS = ("pc", "pd", "sc", "sd", "pss", "sw")


class Wrong(Exception):
    """Something that the importer does not understand."""


def demand(condition, message):
    if not condition:
        raise Wrong(message)


def number_from_hex(value, what):
    demand(isinstance(value, str) and re.fullmatch(r"[0-9a-f]+", value), f"{what} is not hexadecimal text: {value!r}")
    return int(value, 16)


def whole_number(value, what):
    demand(isinstance(value, int) and not isinstance(value, bool) and value >= 0, f"{what} is not a count: {value!r}")
    return value


def field(owner, name, kind, what):
    demand(isinstance(owner, dict), f"{what} is not an object")
    demand(isinstance(owner.get(name), kind), f"{what} has no proper '{name}': {owner.get(name)!r}")
    return owner[name]


def read_trace(trace):
    """Dumps as [{"id", "time", "name", "processes": {pid: {"allocators", "regions", "heaps"}}}], by time. A heap is
    {(path from the root, type): (bytes, objects)}: what is on the path and below it, of all types if that is None."""
    events = field(trace, "traceEvents", list, "the trace")
    frames, types, names = {}, {}, {}
    dumps = {}
    for event in events:
        # The importer reads large traces as a stream, in which it knows an event by these.
        phase, _ = field(event, "ph", str, "an event"), field(event, "cat", str, "an event")
        name = field(event, "name", str, "an event")
        pid, time = field(event, "pid", int, name), field(event, "ts", (int, float), name)
        arguments = field(event, "args", dict, name)
        demand(time >= 0, f"{name} is before the beginning")
        if phase == "M" and name == "stackFrames":
            demand(pid not in frames, f"stack frames of {pid} are given twice")
            frames[pid] = read_stack_frames(field(arguments, "stackFrames", dict, name))
        elif phase == "M" and name == "typeNames":
            demand(pid not in types, f"type names of {pid} are given twice")
            types[pid] = field(arguments, "typeNames", dict, name)
        elif phase == "M":
            demand(name in ("process_name", "process_labels"), f"metadata '{name}' is not known")
            names[pid] = names.get(pid) or arguments.get("name")
        elif phase == "C":
            demand(all(isinstance(value, (int, float)) for value in arguments.values()), "a counter without a number")
        else:
            demand(phase == "v", f"events of phase '{phase}' are not known")
            # A number would do for the importer, but objects of that id are told apart by text.
            identity = field(event, "id", str, name)
            group = dumps.setdefault(identity, {"id": identity, "time": time, "name": name, "raw": {}})
            demand(pid not in group["raw"], f"two dumps of {pid} have the id {identity}")
            group["time"] = min(group["time"], time)
            group["raw"][pid] = field(arguments, "dumps", dict, name)

    known_paths = {}
    result = []
    for dump in sorted(dumps.values(), key=lambda dump: dump["time"]):
        raw = dump.pop("raw")
        demand(len({content.get("level_of_detail") for content in raw.values()}) == 1, "the levels of detail differ")
        guids = {}
        dump["processes"] = {
            pid: read_process(content, pid, frames, types, guids, known_paths) for pid, content in raw.items()
        }
        result.append(dump)
    for dump in result:
        for pid in dump["processes"]:
            demand(names.get(pid), f"process {pid} has no name")
    return result


def read_process(dumps, pid, frames, types, guids, known_paths):
    demand(dumps.get("level_of_detail") in LEVELS, f"no level of detail: {dumps.get('level_of_detail')!r}")
    allocators = read_allocators(field(dumps, "allocators", dict, "a dump"), guids)
    read_edges(dumps.get("allocators_graph", []), guids)
    if "heaps" in dumps:
        demand(pid in types, "without type names the heaps are thrown away")
        heaps = {
            name: read_heap_v1(heap, frames.get(pid, {}), types[pid]) for name, heap in dumps["heaps"].items()
        }
    else:
        heaps = read_heaps_v2(field(dumps, "heaps_v2", dict, "a dump"), known_paths.setdefault(pid, {}))
    for name, heap in heaps.items():
        demand(name in allocators, f"heap '{name}' cannot be shown without an allocator of that name")
        demand(allocators[name]["size"] == heap[(), None][0], f"heap '{name}' is not as large as its allocator")
    return {"allocators": allocators, "regions": read_regions(dumps), "heaps": heaps}


def read_allocators(raw, guids):
    allocators = {}
    for name, allocator in raw.items():
        guid = field(allocator, "guid", str, f"allocator '{name}'")
        demand(guid not in guids, f"the guid {guid} stands for two allocators")
        guids[guid] = name
        attributes = allocators[name] = {}
        for key, attribute in field(allocator, "attrs", dict, f"allocator '{name}'").items():
            demand(attribute.get("type") in ("scalar", "string"), f"attribute '{key}' has no type")
            if attribute["type"] == "string":
                continue
            unit = field(attribute, "units", str, f"attribute '{key}'")
            demand(unit == "bytes" or "size" not in key, f"sizes are in bytes, not in {unit}")
            attributes[key] = number_from_hex(attribute.get("value"), f"'{key}' of '{name}'")
    for name, attributes in allocators.items():
        inside = [
            other["size"]
            for path, other in allocators.items()
            if path.rpartition("/")[0] == name and "size" in other
        ]
        demand(sum(inside) <= attributes.get("size", sum(inside)), f"the parts of '{name}' are larger than all of it")
    return allocators


def read_edges(edges, guids):
    owners = set()
    for edge in edges:
        demand(edge.get("type") in ("ownership", "retention"), f"edges of type {edge.get('type')!r} are not known")
        for end in ("source", "target"):
            demand(edge.get(end) in guids, f"no allocator has the guid of an edge's {end}")
        if edge["type"] == "ownership":
            demand(edge["source"] not in owners, "an allocator owns two others")
            owners.add(edge["source"])


def read_regions(dumps):
    regions = []
    for region in field(field(dumps, "process_mmaps", dict, "a dump"), "vm_regions", list, "process_mmaps"):
        start, size = (number_from_hex(region.get(key), f"'{key}' of a region") for key in ("sa", "sz"))
        protection = whole_number(region.get("pf"), "the protection of a region")
        demand(protection <= 7 + 128, f"there is no protection {protection}")
        for statistic, value in region.get("bs", {}).items():
            demand(statistic in BYTE_STATISTICS, f"there is no byte statistic '{statistic}'")
            number_from_hex(value, f"'{statistic}' of a region")
        regions.append((start, size, protection, field(region, "mf", str, "a region")))
    return regions


def path_of(identity, parents, names):
    path, met = [], set()
    while identity is not None:
        demand(identity not in met, f"frame {identity} is among its own callers")
        demand(identity in names, f"frame {identity} is not defined")
        met.add(identity)
        path.append(names[identity])
        identity = parents.get(identity)
    return tuple(reversed(path))


def add_to(heap, path, kind, size, count):
    before = heap.get((path, kind), (0, 0))
    heap[path, kind] = (before[0] + size, before[1] + count)


# --- heaps_v2: what was allocated at each path; everything is defined in the event ---


def read_map(raw, name):
    entries = {}
    for entry in field(raw, name, list, "maps"):
        identity = whole_number(entry.get("id"), f"the id of one of the {name}")
        demand(identity not in entries, f"{name} has {identity} twice")
        entries[identity] = entry
    return entries


def read_heaps_v2(raw, known_paths):
    demand(raw.get("version") == 1, f"version {raw.get('version')!r} of the heaps is not known")
    maps = field(raw, "maps", dict, "heaps_v2")
    strings = {key: field(entry, "string", str, "a string") for key, entry in read_map(maps, "strings").items()}

    def name_of(entry):
        demand(entry.get("name_sid") in strings, f"string {entry.get('name_sid')!r} is not defined")
        return strings[entry["name_sid"]]

    nodes = read_map(maps, "nodes")
    names = {key: name_of(entry) for key, entry in nodes.items()}
    parents = {key: entry["parent"] for key, entry in nodes.items() if "parent" in entry}
    demand(0 not in parents.values(), "a parent with the id 0 is taken for none")
    kinds = {key: name_of(entry) for key, entry in read_map(maps, "types").items()}
    for node in nodes:
        path = path_of(node, parents, names)
        # The importer keeps the first path that a process has under an id.
        demand(known_paths.setdefault(node, path) == path, f"node {node} was another one in an earlier dump")

    heaps = {}
    for name, columns in field(raw, "allocators", dict, "heaps_v2").items():
        heap = heaps[name] = {((), None): (0, 0)}
        lists = [field(columns, key, list, f"heap '{name}'") for key in ("nodes", "types", "sizes", "counts")]
        demand(len(set(map(len, lists))) == 1, f"the columns of heap '{name}' are not of one length")
        for node, kind, size, count in zip(*lists):
            demand(node in nodes, f"node {node!r} is not defined")
            demand(kind in kinds, f"type {kind!r} is not defined")
            size, count = whole_number(size, "a size"), whole_number(count, "a count")
            path = known_paths[node]
            for depth in range(len(path) + 1):
                add_to(heap, path[:depth], kinds[kind], size, count)
                add_to(heap, path[:depth], None, size, count)
    return heaps


# --- heaps: totals at each path; paths and types are defined for the process ---


def read_stack_frames(raw):
    names = {key: field(frame, "name", str, f"frame {key}") for key, frame in raw.items()}
    parents = {key: frame["parent"] for key, frame in raw.items() if "parent" in frame}
    return {key: path_of(key, parents, names) for key in raw}


def read_heap_v1(raw, frames, types):
    entries = field(raw, "entries", list, "a heap")
    demand(entries, "a heap without entries is thrown away")
    heap = {}
    for entry in entries:
        frame = field(entry, "bt", str, "an entry")
        demand(frame == "" or frame in frames, f"frame {frame!r} is not defined")
        kind = entry.get("type")
        demand(kind is None or kind in types, f"type {kind!r} is not defined")
        key = (frames[frame] if frame else (), None if kind is None else types[kind])
        demand(key not in heap, f"{key} is there twice: the viewer would add it up")
        heap[key] = tuple(number_from_hex(entry.get(what), f"'{what}' of an entry") for what in ("size", "count"))
    demand(((), None) in heap, "a heap has no total")
    for (path, kind), (size, count) in heap.items():
        if path:
            whole = heap.get((path[:-1], kind))
            demand(whole and whole[0] >= size and whole[1] >= count, f"{path} is larger than what calls it")
        if kind is not None:
            whole = heap.get((path, None))
            demand(whole and whole[0] >= size and whole[1] >= count, f"{kind} is larger than all types at {path}")
    return heap
