#!/usr/bin/env python3
"""The help of ./dev: it installs and builds nothing, and names what exists."""

import os
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


class Help(unittest.TestCase):
    def dev(self, *words):
        """A run in which installing and building are recorded and fail."""
        with tempfile.TemporaryDirectory() as folder:
            record = Path(folder) / "record"
            for name in ("cmake", "apt-get", "sudo", "dpkg-query"):
                fake = Path(folder) / name
                fake.write_text(f'#!/bin/sh\necho "$0" >>{record}\nexit 1\n')
                fake.chmod(0o755)
            environment = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "PYTHONDONTWRITEBYTECODE": "1"}
            done = subprocess.run([ROOT / "dev", *words], capture_output=True, text=True, env=environment, timeout=60)
            self.assertFalse(record.exists(), "it tried to install or to build")
            return done

    def test_of_a_table_installs_and_builds_nothing(self):
        done = self.dev("bench", "host", "--help")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("--rounds", done.stdout)

    def test_of_bench_names_the_common_options(self):
        done = self.dev("bench", "--help")
        self.assertEqual(done.returncode, 0, done.stderr)
        for option in ("--quick", "--rows", "--rounds"):
            self.assertIn(option, done.stdout)

    def test_an_unknown_table_is_answered_with_tables_only(self):
        done = self.dev("bench", "frob")
        self.assertEqual(done.returncode, 1)
        self.assertIn("'frob' is not a table of goals", done.stderr)
        self.assertNotIn("compare", done.stderr)
        self.assertIn(" host ", done.stderr)

    def test_some_tests_only_stands_under_the_tests(self):
        done = self.dev("test", "--help")
        self.assertIn("./dev test --gpu", done.stdout)
        lines = self.dev("help").stdout.splitlines()
        place = next(index for index, line in enumerate(lines) if "some tests only" in line)
        self.assertTrue(lines[place - 1].startswith("./dev test [preset]"), lines[place - 1])


if __name__ == "__main__":
    unittest.main()
