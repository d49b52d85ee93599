#!/usr/bin/env python3
"""Tests of the virtual machine with RDMA devices, and of the list of programs. Exit 77: no machine can be booted here.

    rdma_lab_test.py [TEST...]     LAB_BUILD names the build folder
"""

import os
import signal
import subprocess
import sys
import time
import types
import unittest
from pathlib import Path
from unittest import mock

import machine
import patience
import programs
import rdma_lab
from machine_image import HERE, ROOT

BUILD = Path(os.environ.get("LAB_BUILD", ROOT / "build"))
OF_GTEST = """[ RUN      ] Writes.Arrive
[       OK ] Writes.Arrive (3 ms)
[  SKIPPED ] Writes.Far (0 ms)
[  FAILED  ] Writes.Big (5 ms)
[  FAILED  ] Writes.Big
"""


def is_alive(pid):
    """A process that has ended, but which its parent has not looked at, is not alive."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def wait_for(condition, limit_s=20):
    """Returns whether the condition became true."""
    end = time.monotonic() + limit_s
    while not condition() and time.monotonic() < end:
        time.sleep(0.02)
    return condition()


class List(unittest.TestCase):
    PROGRAM = programs.Program("writes", 5, "run")

    def test_a_line_is_a_name_a_limit_and_a_command(self):
        self.assertEqual(programs.parse("# a comment\n\nwrites 5 run --all\n"), [programs.Program("writes", 5, "run --all")])
        for wrong in ("writes 5", "writes soon run", "writes 0 run", "writes 5 run\nwrites 6 other"):
            with self.assertRaises(ValueError, msg=wrong):
                programs.parse(wrong)

    def test_the_list_of_the_repository_can_be_read(self):
        self.assertIn("verbs_probe", [program.name for program in programs.parse((HERE / "programs.txt").read_text())])

    def test_tests_of_googletest_are_counted_once_each(self):
        counts = programs.count(self.PROGRAM, 1, OF_GTEST)
        self.assertEqual((counts.passed, counts.failed, counts.skipped), (1, ["writes: Writes.Big"], ["writes: Writes.Far"]))

    def test_a_program_that_ends_badly_has_failed_whatever_it_printed(self):
        passed = "[       OK ] Writes.Arrive (3 ms)\n"
        for status, output in ((1, ""), (1, passed), (139, passed), (124, passed), (0, OF_GTEST)):
            self.assertTrue(programs.count(self.PROGRAM, status, output).failed, f"status {status}")
        self.assertIn("exceeded", programs.count(self.PROGRAM, 124, "").failed[0])
        self.assertEqual(programs.count(self.PROGRAM, 0, "done").text, "1 passed, 0 failed, 0 skipped")
        self.assertEqual(programs.count(self.PROGRAM, 77, "a\nneeds b").skipped, ["writes: needs b"])


class Patience(unittest.TestCase):
    def clock(self, steps):
        """Steps: (time on the wall, time that a thread waited for a processor)."""
        now, waited = iter([wall for wall, _ in steps]), iter([wait for _, wait in steps])
        return patience.OwnTime(1, now=lambda: next(now), waited=lambda pid: next(waited))

    def test_time_without_a_processor_does_not_count(self):
        clock = self.clock([(100, 7), (110, 7), (120, 15), (130, 16)])
        self.assertEqual([clock.seconds() for _ in range(3)], [10, 12, 21])

    def test_some_of_the_time_always_counts(self):
        clock = self.clock([(0, 0), (100, 100), (200, 300)])
        self.assertEqual([round(clock.seconds(), 6) for _ in range(2)], [5, 10])

    def test_a_thread_that_ended_gives_no_time_back(self):
        clock = self.clock([(0, 50), (10, 0), (20, 4)])
        self.assertEqual([clock.seconds() for _ in range(2)], [10, 16])

    def test_the_kernel_tells_how_long_a_process_waited(self):
        """Two processes on one core wait for each other."""
        if not Path("/proc/self/schedstat").exists():
            self.skipTest("skipped: needs a kernel that tells how long threads wait (CONFIG_SCHED_INFO)")
        work = "import os, sys\nos.sched_setaffinity(0, [int(sys.argv[1])])\nwhile True: pass"
        core = str(min(os.sched_getaffinity(0)))
        both = [subprocess.Popen([sys.executable, "-c", work, core]) for _ in range(2)]
        try:
            self.assertTrue(wait_for(lambda: patience.waited_s(both[0].pid) > 0.5, 120))
        finally:
            for one in both:
                one.kill()
                one.wait()
        self.assertEqual(patience.waited_s(2**22 + 1), 0, "no such process")


class MachineCase(unittest.TestCase):
    def setUp(self):
        if reason := machine.why_not():
            self.skipTest(f"skipped: {reason}")


class Machines(MachineCase):
    def test_commands_run_one_after_another_with_their_status_and_output(self):
        with machine.Machine(BUILD) as made:
            print(f"booted in {made.boot_s:.1f} s")
            outcome = made.run("echo out; echo error >&2; pwd; exit 7")
            self.assertEqual((outcome.status, outcome.output), (7, f"out\nerror\n{ROOT}\n"))
            self.assertEqual(made.run("echo x >seto_written && cat seto_written").output, "x\n")
            self.assertFalse((ROOT / "seto_written").exists(), "what the machine writes stays in its memory")
            self.assertIn("Linux", made.run("uname -s").output)
            self.limits(made)
            pid = made.pid
            self.assertTrue(is_alive(pid))
        self.assertFalse(is_alive(pid))

    def limits(self, made):
        """A command over its limit is killed with all processes that it has started, and the next one runs."""
        outcome = made.run("sleep 1000 & sleep 1000", limit_s=1)
        self.assertIn(outcome.status, programs.OVER_LIMIT)
        self.assertLess(outcome.seconds, 1 + machine.GRACE_S)
        self.assertLessEqual(outcome.seconds, outcome.wall_s)
        self.assertEqual(made.run("grep -l sleep /proc/[0-9]*/comm").output, "")
        self.assertEqual(made.run("true").status, 0)

    def test_a_machine_may_have_two_numa_nodes(self):
        with machine.Machine(BUILD, nodes=2) as made:
            folder = "/sys/devices/system/node"
            self.assertEqual(made.run(f"cat {folder}/has_memory {folder}/node0/cpulist {folder}/node1/cpulist").output, "0-1\n0\n1\n")

    def test_a_machine_that_dies_says_so_with_its_console(self):
        with machine.Machine(BUILD) as made, self.assertRaises(machine.MachineLost) as caught:
            made.run("echo before; echo c >/proc/sysrq-trigger; sleep 100", limit_s=50)
        self.assertIn("the virtual machine died", str(caught.exception))
        self.assertIn("before", str(caught.exception))
        self.assertIn("sysrq triggered crash", str(caught.exception))

    def test_an_agent_that_hangs_is_noticed(self):
        """The command stops the agent, so its end is not told."""
        with mock.patch.object(machine, "GRACE_S", 3), machine.Machine(BUILD) as made, self.assertRaises(machine.MachineLost) as caught:
            made.run("kill -STOP $PPID", limit_s=1)
        self.assertIn("no end within 1 + 3 s", str(caught.exception))

    def test_a_boot_that_hangs_is_retried_once_and_shows_its_console(self):
        made = machine.Machine(BUILD, boot_limit_s=8, kernel_options="loglevel=7 rdinit=/bin/busybox -- sleep 1000")
        with self.assertRaises(machine.MachineLost) as caught:
            made.__enter__()
        self.assertEqual(made.boots, machine.BOOTS)
        self.assertRegex(str(caught.exception), r"(?s)ran no command within 8 s, 2 times.*\[ +\d+\.\d+\] ")
        self.assertIsNone(made.process)

    def test_a_second_boot_replaces_one_that_failed(self):
        words = machine.command_line
        with mock.patch.object(machine, "command_line") as fake:
            fake.side_effect = lambda *arguments: ["echo", "no kernel"] if fake.call_count == 1 else words(*arguments)
            with machine.Machine(BUILD) as made:
                self.assertEqual((made.boots, made.run("exit 3").status), (2, 3))
                self.assertIn("no kernel", made.consoles[0])

    def test_the_machine_dies_with_the_process_that_started_it(self):
        text = f"import machine, signal\nwith machine.Machine('{BUILD}') as made:\n  print(made.pid, flush=True)\n  signal.pause()\n"
        owner = subprocess.Popen([sys.executable, "-B", "-c", text], cwd=HERE, stdout=subprocess.PIPE, text=True)
        with owner.stdout:
            pid = int(owner.stdout.readline())
            self.assertTrue(is_alive(pid))
            owner.send_signal(signal.SIGKILL)
            owner.wait()
        self.assertTrue(wait_for(lambda: not is_alive(pid)))
        machine.remove_stale()
        self.assertEqual(list(machine.job_folders(owner.pid)), [])


class Programs(MachineCase):
    def test_after_a_failure_the_next_program_has_links_as_new(self):
        leaves = programs.Program("leaves", 30, "$RDMA_LAB_LINK netem 0 loss 50%; exit 3")
        finds = programs.Program("finds", 30, "! tc qdisc show dev veth0 | grep netem")
        run = rdma_lab.Run(types.SimpleNamespace(build=BUILD, devices=2, netem=""), [leaves, finds])
        run.all_of()
        self.assertEqual((run.counts.passed, run.counts.failed), (1, ["leaves: ended with 3"]))


class Command(MachineCase):
    def test_the_status_is_that_of_the_command_which_has_devices(self):
        words = ["--devices", "3", "--netem", "delay 1ms", "--", 'echo "$RDMA_LAB_DEVICES / $RDMA_LAB_ADDRESSES"; tc qdisc show dev veth2; exit 5']
        done = subprocess.run([sys.executable, "-B", HERE / "rdma_lab.py", "--build", BUILD, *words], capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 5, done.stdout + done.stderr)
        self.assertRegex(done.stdout, r"(?m)^rxe0:1:\d+ rxe1:1:\d+ rxe2:1:\d+ / 10.9.0.1 10.9.0.2 10.9.0.3$")
        self.assertIn("delay 1ms", done.stdout)


def main():
    program = unittest.main(argv=[sys.argv[0], *sys.argv[1:]], exit=False)
    result = program.result
    for test, reason in result.skipped:
        print(f"{test}: {reason}", file=sys.stderr)
    if not result.wasSuccessful():
        return 1
    return programs.SKIPPED if result.skipped else 0


if __name__ == "__main__":
    sys.exit(main())
