"""Reads the counters that tests/programs/busy.c keeps in a shared file."""

import struct

WORDS = struct.Struct("8Q")


class Counters:
    """What the threads had counted, and the calls that were under way: bounds for what a recording may say."""

    def __init__(self, path):
        self.objects = self.bytes = self.frees = self.freed_bytes = 0
        self.begun_objects = self.begun_bytes = self.begun_frees = self.begun_freed_bytes = 0
        for objects, size, frees, freed, begun_malloc, begun_free, _, _ in WORDS.iter_unpack(path.read_bytes()):
            self.objects += objects
            self.bytes += size
            self.frees += frees
            self.freed_bytes += freed
            if begun_malloc:
                self.begun_objects += 1
                self.begun_bytes += begun_malloc - 1
            if begun_free:
                self.begun_frees += 1
                self.begun_freed_bytes += begun_free - 1
