#!/usr/bin/env python3
"""Tests of calls on device memory between hosts, with the stand-in for the driver on each. Needs root, and kernels in the build.

    device_test.py [TEST...]     LAB_BUILD names the build folder; exit 77 if all were skipped
"""

import os
import subprocess
import sys

from lab import Lab, Site
from lab_support import BUILD, LabCase, main

# Four processes interpret kernels on all cores, with threads that never sleep: on a busy machine a heartbeat can come seconds late.
STAND_IN = {"LD_LIBRARY_PATH": str(BUILD / "tests" / "driver"), "SOFTWARE_GPU_COUNT": "2", "SETO_LOG": "error", "SETO_LIVENESS_TIMEOUT_MS": "30000"}


class DeviceMemory(LabCase):
    def setUp(self):
        super().setUp()
        told = subprocess.run([BUILD / "seto", "info", "build"], capture_output=True, text=True).stdout
        if not any(line.split()[:3] == ["device", "memory", "yes"] for line in told.splitlines()):
            self.skipTest("skipped: needs nvcc 13 or later, without which the library has no kernels")

    def perf(self, lab, *arguments, extra=None):
        command = [BUILD / "bench" / "all_reduce_perf", "--memory", "device", "-n", "2", "-w", "1", *arguments]
        processes = lab.start_job(command, 2, {**STAND_IN, **(extra or {})})
        codes = [process.wait(120) for process in processes]
        self.assertEqual(codes, [0] * len(codes), [process.error_lines for process in processes])
        self.assertIn("# Out of bounds values : 0 OK", processes[0].output)
        return processes[0].output

    def test_two_sites_of_two_ranks_with_20_ms(self):
        with Lab([Site(1), Site(1)], ["delay=20ms"], build=BUILD) as lab:
            self.assertIn("262144", self.perf(lab, "-b", "64", "-e", "256K", "-f", "64"))
            self.perf(lab, "-b", "128K", "-e", "128K", extra={"SETO_ALGORITHM": "hierarchical", "SETO_CODEC": "world=fp16"})

    def test_two_hosts_of_a_site(self):
        with Lab(2, None, build=BUILD) as lab:
            self.perf(lab, "-b", "64", "-e", "64K", "-f", "32")


if __name__ == "__main__":
    os.environ.pop("SETO_LOG", None)
    sys.exit(main())
