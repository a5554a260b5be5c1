#!/usr/bin/env python3
"""No two files of src/ define one name, by the rules of names.py; and two that do, planted and compiled, are found.

usage: tests/analysis/test_names.py BUILD"""
import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True  # the source folder stays as it is
import names


class Names(unittest.TestCase):
    build = None

    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.root = Path(temporary.name).resolve()

    def plant(self, *files, stand_ins=()):
        """Compiles files, given as (path, text), and checks them; a file that is given twice is in two targets."""
        commands = []
        for number, (path, text) in enumerate(files):
            (self.root / path).parent.mkdir(parents=True, exist_ok=True)
            (self.root / path).write_text(text)
            subprocess.run(["cc", "-c", self.root / path, "-o", self.root / f"{number}.o"], check=True)
            commands.append({"directory": str(self.root), "file": path, "output": f"{number}.o"})
        (self.root / "compile_commands.json").write_text(json.dumps(commands))
        return names.check(self.root, self.root, stand_ins)

    def test_the_sources_keep_to_the_rules(self):
        self.assertEqual(names.check(Path(self.build).resolve()), [])

    def test_a_name_in_two_files_is_found(self):
        for text in ("void planted(void) {}", "int planted;", "const char planted[] = \"x\";"):
            with self.subTest(text=text):
                faults = self.plant(("src/base/a.c", "void planted(void) {}"), ("src/view/b.c", text))
                self.assertEqual(faults, ["planted: defined in src/base/a.c and in src/view/b.c"])

    def test_a_name_in_assembly_is_found(self):
        faults = self.plant(("src/a.c", "void planted(void) {}"), ("src/b.S", ".globl planted\nplanted: nop\n"))
        self.assertEqual(len(faults), 1, faults)

    def test_names_that_no_other_file_sees_are_not(self):
        for text in ("static void planted(void) {} void *user = planted;", "extern int planted; int *user = &planted;",
                     "__attribute__((weak)) void planted(void) {}"):
            with self.subTest(text=text):
                self.assertEqual(self.plant(("src/a.c", "void planted(void) {}"), ("src/b.c", text)), [])

    def test_a_file_of_two_targets_is_one_file(self):
        self.assertEqual(self.plant(("src/a.c", "int planted;"), ("src/a.c", "int planted;")), [])

    def test_other_folders_do_not_count(self):
        self.assertEqual(self.plant(("src/a.c", "int planted;"), ("tests/a.c", "int planted;")), [])

    def test_stand_ins_are_permitted_where_they_are_needed(self):
        files = [("src/a.c", "int planted;"), ("src/a_static.c", "int planted;")]
        rows = [("src/*_static.c", "plan*", "")]
        self.assertEqual(self.plant(*files, stand_ins=rows), [])
        self.assertEqual(len(self.plant(*files, stand_ins=[("src/*_static.c", "other", "")])), 2)
        self.assertEqual(len(self.plant(*files, ("src/b.c", "int planted;"), stand_ins=rows)), 1)
        self.assertEqual(len(self.plant(files[0], stand_ins=rows)), 1)

    def test_a_folder_without_objects_is_a_fault(self):
        self.assertEqual(len(self.plant()), 1)


if __name__ == "__main__":
    Names.build = sys.argv.pop(1)
    unittest.main()
