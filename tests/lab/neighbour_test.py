#!/usr/bin/env python3
"""Tests of jobs that share the links between their sites with other traffic. Needs root.

    neighbour_test.py [TEST...]     LAB_BUILD names the build folder; exit 77 if all were skipped
"""

import os
import re
import sys
import time

from cluster_test import QUIET, Job
from lab import IPV4, IPV6, Lab, Site
from lab_support import BUILD, LabCase, main


class GoodNeighbour(LabCase):
    """Jobs that share the links between their sites with other traffic."""

    LIMIT = 200
    SIZE = 15_000_000  # 0.6 s for each of two ranks at half the limit

    def sent_mbit(self, lab, job, senders):
        """Mbit/s with headers that leave the first site, while its ranks send to their partners at the other one."""
        passed = lambda: lab.emulator.statistics()["links"]["0>1"]["passed_bytes"]  # noqa: E731
        before, start = passed(), time.monotonic()
        for sender in senders:
            job.say(f"receive {self.SIZE} {sender}", [sender + 2])
            job.say(f"send {self.SIZE} {sender + 2}", [sender])
        job.expect("^done$", 60, [rank for sender in senders for rank in (sender, sender + 2)])
        return (passed() - before) * 8e-6 / (time.monotonic() - start)

    def test_timing_the_ranks_of_a_site_stay_below_its_limit(self):
        self.attempt(self.stays_below)

    def stays_below(self):
        with Lab([Site(2, "1g"), Site(2, "1g")], ["delay=6ms"], build=BUILD) as lab:
            job = Job(lab, extra={"SETO_SITE_PACING_MBIT": self.LIMIT})
            job.expect("^ready$", 30)
            both = [self.sent_mbit(lab, job, (0, 1)) for _ in range(3)]
            alone = self.sent_mbit(lab, job, (0,))
            job.work(calls=2)
            job.leave()
        print(f"both ranks {both}, one {alone} Mbit/s of {self.LIMIT}, {lab.counted}")
        self.assertLessEqual(max(both), self.LIMIT)
        self.assertLessEqual(alone, self.LIMIT / 2, "a rank has half of the limit of its site")
        self.must_reach(max(both), 0.85 * self.LIMIT)

    def test_limits_that_differ_within_a_site_are_refused(self):
        with Lab([Site(2), Site(1)], [], build=BUILD) as lab:
            ranks = []
            for rank, (host, environment) in enumerate(lab.job_environments(1, QUIET)):
                ranks.append(host.start([BUILD / "tests" / "lab_rank"], {**environment, "SETO_SITE_PACING_MBIT": 100 + rank}))
            for rank in ranks:
                said = rank.line("^failed after (.*)", 30)[0]
                self.assertIn("SETO_SITE_PACING_MBIT is 100 on rank 0 and 101 on rank 1 of the same site", said)

    def controls(self, lab, extra):
        """The congestion controls of the data sockets on the first host."""
        job = Job(lab, extra=extra)
        job.expect("^ready$", 30)
        job.work(4 << 20, 2)
        sockets = lab.hosts[0].run(["ss", "-tin", "state", "established"])
        job.leave()
        return set(re.findall(r"\b(bbr|cubic|reno)\b", sockets))

    def test_far_sockets_take_bbr_where_the_kernel_grants_it(self):
        with Lab(2, ["rate=1g", "delay=5ms"], build=BUILD) as lab:
            offered = lab.hosts[0].run(["cat", "/proc/sys/net/ipv4/tcp_available_congestion_control"]).split()
            if "bbr" not in offered:
                self.skipTest("skipped: this kernel has no bbr")
            self.assertIn("bbr", self.controls(lab, {}))
            self.assertEqual(self.controls(lab, {"SETO_CONGESTION": "system"}), {lab.congestion.in_force})

    def test_control_and_data_are_marked_as_set(self):
        for families in ((IPV4,), (IPV6,)):
            for connect in ("all", "used"):
                with Lab(2, ["rate=1g", "delay=1ms"], families=families, build=BUILD) as lab:
                    settings = {"SETO_DSCP_CONTROL": 46, "SETO_DSCP_DATA": 10, "SETO_CONNECT": connect}
                    job = Job(lab, extra=settings)
                    job.expect("^ready$")
                    job.work(4 << 20, 5)
                    job.leave()
                for link in ("0>1", "1>0"):
                    seen = lab.counted["links"][link]["segments_by_dscp"]
                    self.assertGreater(seen.get("46", 0), 10, seen)
                    self.assertGreater(seen.get("10", 0), 1000, "20 MiB are data: " + str(seen))
                    self.assertLess(sum(seen.values()) - seen["46"] - seen["10"], 100, "only the kernel's own packets have no mark: " + str(seen))

    def test_nothing_is_marked_unless_it_is_set(self):
        with Lab(2, ["rate=1g", "delay=1ms"], build=BUILD) as lab:
            job = Job(lab)
            job.expect("^ready$")
            job.work(calls=1)
            job.leave()
        self.assertEqual(list(lab.counted["links"]["0>1"]["segments_by_dscp"]), ["0"])


if __name__ == "__main__":
    os.environ.pop("SETO_LOG", None)
    sys.exit(main())
