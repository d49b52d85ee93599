#!/usr/bin/env python3
"""Tests of ./dev lab wan. Needs root.

    two_sites_test.py [TEST...]     LAB_BUILD names the build folder; exit 77 if all were skipped
"""

import os
import subprocess
import sys
from pathlib import Path

from lab import clean_environment
from lab_support import BUILD, LabCase, main

PROGRAM = Path(__file__).with_name("two_sites.py")


class TwoSites(LabCase):
    def run_it(self, **settings):
        command = [sys.executable, "-B", PROGRAM, "--build", BUILD, "--largest", "1M", "--delay", "5ms", "--backup", "rate=100m delay=8ms"]
        return subprocess.run(command, capture_output=True, text=True, env=clean_environment(settings), timeout=100)

    def test_the_table_has_each_codec_and_the_status_is_that_of_the_job(self):
        done = self.run_it()
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        for pattern in (r"(?m)^ +1048576  fp32 +[\d.]+ +[\d.]+ +[\d.]+$", r"(?m)^ +1048576  fp16 ", "over the backup path", "all results were right"):
            self.assertRegex(done.stdout, pattern)

    def test_a_job_that_fails_is_no_success(self):
        done = self.run_it(SETO_TCP_STREAMS="17")
        self.assertNotIn(done.returncode, (0, 77), done.stdout)
        self.assertIn("SETO_TCP_STREAMS", done.stderr)
        self.assertNotIn("all results were right", done.stdout)


if __name__ == "__main__":
    os.environ.pop("SETO_LOG", None)
    sys.exit(main())
