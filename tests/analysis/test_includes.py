#!/usr/bin/env python3
"""The includes of src/ keep to the rules of includes.py; and one that does not, planted into a copy, is found."""
import shutil
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True  # the source folder stays as it is
import includes

ROOT = Path(__file__).resolve().parents[2]


class Includes(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.copy = Path(temporary.name)
        for folder in ("src", "include"):
            shutil.copytree(ROOT / folder, self.copy / folder)

    def plant(self, file, text):
        path = self.copy / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return includes.check(self.copy)

    def test_the_sources_keep_to_the_rules(self):
        self.assertEqual(includes.check(ROOT), [])

    def test_what_includes_a_folder_above_it_is_found(self):
        for folder, header in (("base", "platform/pages.h"), ("core", "model/model.h"),
                               ("record/api", "base/../view/view.h"), ("attach/remote", "attach/bpf/probe.h"),
                               ("model", "symbol/symbol.h"), ("cli/run", "record/sample/mark.h"),
                               ("record/sample", "record/life/options.h"), ("record/dump", "record/api/scopes.h")):
            with self.subTest(folder=folder, header=header):
                file = f"src/{folder}/planted.c"
                faults = self.plant(file, f'/* planted */\n#include "{header}"\n')
                (self.copy / file).unlink()
                self.assertEqual(len(faults), 1, faults)
                self.assertTrue(faults[0].startswith(f"{file}:2: "), faults)

    def test_what_includes_a_folder_below_it_is_not(self):
        below = '#include "core/recording.h"\n#include "format/format.h"\n'
        self.assertEqual(self.plant("src/format/planted.c", below), [])
        self.assertEqual(self.plant("src/record/api/planted.S", '# include "record/sample/mark.h"\n'), [])

    def test_a_folder_without_a_rule_is_found(self):
        self.assertEqual(len(self.plant("src/new/planted.h", '#include "base/problem.h"\n')), 1)
        self.assertEqual(len(self.plant("src/record/new/planted.h", '#include "record/sample/mark.h"\n')), 2)

    def test_the_public_header_is_for_the_library_alone(self):
        self.assertEqual(len(self.plant("src/model/planted.c", '#include "malloscope.h"\n')), 1)

    def test_a_permission_that_nobody_needs_is_found(self):
        file, header, _ = includes.RECORD_UPWARD[0]
        path = self.copy / "src/record" / file
        path.write_text(path.read_text().replace(f'#include "record/{header}"', ""))
        self.assertEqual(len(includes.check(self.copy)), 1)


if __name__ == "__main__":
    unittest.main()
