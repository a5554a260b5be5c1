"""How long each part of ./dev test takes, by name: "unit tests", "fuzzers", "tests/e2e/test_top.py::test_history".

The table beside this file is from a quiet machine with two cores. A run writes what it has measured into the build
folder, from where the next run takes it.
"""

import json
from pathlib import Path

COMMITTED = Path(__file__).parent / "times.json"
SHORT = 0.3  # seconds for a test that is in no table
START = 1.0  # seconds that pytest takes to begin


class Times:
    def __init__(self, build):
        self.path = build / "test-times.json"
        self.table = json.loads(COMMITTED.read_text())
        if self.path.exists():
            self.table.update(json.loads(self.path.read_text()))
        self.measured = {}

    def of(self, name, default=SHORT):
        return self.table.get(name, default)

    def of_cases(self, names):
        """The seconds of tests; the table knows functions, of whose cases each takes its share."""
        functions = {}
        for name in names:
            functions[function_of(name)] = functions.get(function_of(name), 0) + 1
        return sum(self.of(function, SHORT * cases) for function, cases in functions.items())

    def note(self, name, seconds):
        self.measured[name] = self.measured.get(name, 0.0) + seconds

    def write(self):
        """Moves each time of the table half way to what was measured, as one run may be an odd one."""
        for name, seconds in self.measured.items():
            self.table[name] = round((self.table[name] + seconds) / 2 if name in self.table else seconds, 2)
        self.path.write_text(json.dumps(dict(sorted(self.table.items())), indent=0))


def function_of(test):
    """The function of a case: tests/e2e/test_top.py::test_history[64] is one of tests/e2e/test_top.py::test_history."""
    return test.split("[", 1)[0]
