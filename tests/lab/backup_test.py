#!/usr/bin/env python3
"""Tests of jobs whose sites have a backup path (SETO_PATHS). Needs root.

    backup_test.py [TEST...]     LAB_BUILD names the build folder; exit 77 if all were skipped
"""

import sys
import time

from cluster_test import Job
from lab import Lab
from lab_support import BUILD, LabCase, main

PRIMARY = ["rate=400m", "delay=15ms"]
SLOW_PRIMARY = ["rate=100m", "delay=15ms"]  # a tree with ThreadSanitizer fills it, too, so that a run takes as long as the link says
BACKUP = ["rate=200m", "delay=30ms"]
HALF = ["rate=50m", "delay=30ms"]
SETTINGS = {"SETO_LOG": "warn", "SETO_PATHS": "wan0,wan1", "SETO_CODEC": "none"}
MB = 1_000_000
CALL = 20 * MB
TAKES_OVER_S = 1
SOCKETS = 8  # on each path
ON_BACKUP, BACK = "data goes over path 2 of SETO_PATHS", "data goes over path 1 of SETO_PATHS"
MISPLACED = "lie on another path of SETO_PATHS than their own"


class Backups(LabCase):
    """Data goes over the first path; when that stands still or breaks in the middle of a call, the backup takes over."""

    def passed(self, lab, path):
        return lab.emulators[path].statistics()["links"].get("0>1", {}).get("passed_bytes", 0)

    def goes_on(self, job, lab, path, wanted):
        for rank in job.ranks:
            self.assertFalse([line for line in rank.lines if "failed" in line or "wrong" in line], rank.errors)
        return self.passed(lab, path) > wanted

    def wait_for_bytes(self, job, lab, path, more, limit_s=60):
        """Returns how long it took until so many more bytes had passed."""
        begin, before = time.monotonic(), self.passed(lab, path)
        self.wait_for(lambda: self.goes_on(job, lab, path, before + more), limit_s)
        return time.monotonic() - begin

    def sockets_on_backup(self, host):
        """Connected sockets of a host from an address of its own on the second path to another one there."""
        networks = tuple(address.rsplit(".", 2)[0] + "." if "." in address else "[" + address.split(":")[0] + ":" for address in host.addresses(1))
        lines = host.run(["ss", "-tnH", "state", "established"]).replace("[::ffff:", "").splitlines()
        ends = [line.split()[2:4] for line in lines]
        return sum(own.startswith(networks) and peer.startswith(networks) for own, peer in ends)

    def fails_over(self, broken, healed):
        with Lab(2, PRIMARY, build=BUILD, paths=[BACKUP]) as lab:
            job = Job(lab, extra=SETTINGS)
            job.expect("^ready$", 30)
            job.work(CALL, 2, 60)
            self.assertLess(self.passed(lab, 1), MB, "a backup carries no data while the first path works")
            job.say(f"run {CALL} 30")
            self.wait_for_bytes(job, lab, 0, 2 * CALL)
            lab.link(broken)
            took = self.wait_for_bytes(job, lab, 1, MB)
            print(f"{broken}: the backup carries data {took:.2f} s later")
            self.must_stay_below(took, TAKES_OVER_S)
            self.wait_for_bytes(job, lab, 1, CALL)
            lab.link(healed)
            back = self.wait_for_bytes(job, lab, 0, 2 * CALL)
            print(f"{healed}: the first path carried {2 * CALL // MB} MB within {back:.1f} s")
            job.expect("^done$", 90)
            for rank in job.ranks:
                self.assertIn(rank.errors.count(ON_BACKUP), (1, 2), f"data goes to and fro: {rank.errors}")
                self.assertIn(BACK, rank.errors)
            job.leave()

    def test_timing_the_backup_takes_over_when_the_first_path_is_a_black_hole(self):
        self.attempt(lambda: self.fails_over("0-1 hole=on", "0-1 hole=off"))

    def test_timing_the_backup_takes_over_when_the_first_path_is_cut(self):
        self.attempt(lambda: self.fails_over("0-1 cut=on", "0-1 cut=off"))

    def test_a_path_that_large_packets_do_not_pass_is_left(self):
        """As where the MTU of a tunnel is smaller than the host believes, and no router says so. Data takes the backup until the sockets
        of the first path were dialed again with short segments, which may be soon."""
        with Lab(2, SLOW_PRIMARY, build=BUILD, paths=[BACKUP]) as lab:
            job = Job(lab, extra=SETTINGS)
            job.expect("^ready$", 30)
            job.say(f"run {CALL} 8")
            self.wait_for_bytes(job, lab, 0, CALL)
            before = self.passed(lab, 1)
            lab.link("0-1 largest=1400")
            job.expect("^done$", 90)
            self.assertGreater(self.passed(lab, 1) - before, MB)
            job.leave()

    def test_the_job_begins_where_only_the_backup_works(self):
        with Lab(2, SLOW_PRIMARY, build=BUILD, paths=[BACKUP]) as lab:
            lab.link("0-1 hole=on")
            job = Job(lab, extra={**SETTINGS, "SETO_ROOT": f"{lab.hosts[0].addresses(1)[0]}:7000"})
            job.expect("^ready$", 60)
            job.work(CALL, 2, 60)
            self.assertGreater(self.passed(lab, 1), CALL)
            lab.link("0-1 hole=off")
            job.say(f"run {CALL} 10")
            self.wait_for_bytes(job, lab, 0, CALL)
            job.expect("^done$", 90)
            job.leave()

    def test_a_backup_that_is_down_when_the_job_begins_serves_later(self):
        """Else its sockets would lie on the first path for the whole job, and take nothing over."""
        with Lab(2, SLOW_PRIMARY, build=BUILD, paths=[BACKUP]) as lab:
            lab.link("path 1 0-1 hole=on")
            job = Job(lab, extra=SETTINGS)
            job.expect("^ready$", 60)
            job.work(CALL, 2, 60)
            self.assertTrue(any(MISPLACED in rank.errors for rank in job.ranks))
            lab.link("path 1 0-1 hole=off")
            job.say(f"run {CALL} 16")
            self.wait_for(lambda: all(self.sockets_on_backup(host) >= SOCKETS for host in lab.hosts), 60)
            lab.link("0-1 hole=on")
            self.wait_for_bytes(job, lab, 1, CALL)
            lab.link("0-1 hole=off")
            job.expect("^done$", 90)
            job.leave()

    def test_timing_paths_that_are_used_together_carry_what_both_carry(self):
        """100 Mbit/s and 30 ms beside 50 Mbit/s and 60 ms: each path takes as much as it carries, and what it had when it breaks."""
        calls, alone_s = 4, CALL * 8 / 100e6

        def attempt():
            with Lab(2, SLOW_PRIMARY, build=BUILD, paths=[HALF]) as lab:
                job = Job(lab, extra={**SETTINGS, "SETO_PATHS_USE": "together"})
                job.expect("^ready$", 30)
                job.work(CALL, 3, 60)
                before = [self.passed(lab, path) for path in (0, 1)]
                begin = time.monotonic()
                job.work(CALL, calls, 60)
                took = (time.monotonic() - begin) / calls
                first, second = (self.passed(lab, path) - before[path] for path in (0, 1))
                print(f"together: {took:.2f} s a call of {CALL // MB} MB, the first path alone at least {alone_s:.2f} s; {100 * second / (first + second):.0f} % over the second")
                self.must_stay_below(took, 0.9 * alone_s)
                self.must_stay_below(second / first, 0.8)
                self.must_stay_below(first / second, 4)
                job.say(f"run {CALL} 24")
                self.wait_for_bytes(job, lab, 1, CALL / 4)
                lab.link("path 1 0-1 hole=on")
                self.wait_for_bytes(job, lab, 0, 3 * CALL)
                lab.link("path 1 0-1 hole=off")
                back = self.wait_for_bytes(job, lab, 1, CALL / 2)
                print(f"healed: the second path carried {CALL // 2 // MB} MB within {back:.1f} s")
                job.expect("^done$", 90)
                job.leave()

        self.attempt(attempt)


if __name__ == "__main__":
    sys.exit(main())
