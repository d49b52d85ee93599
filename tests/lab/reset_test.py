#!/usr/bin/env python3
"""Tests of jobs whose TCP connections break while calls run. Needs root.

    reset_test.py [TEST...]     LAB_BUILD names the build folder; exit 77 if all were skipped
"""

import re
import sys
import time

from cluster_test import Job
from lab import Lab
from lab_support import BUILD, LabCase, main

LINK = ("rate=1g", "delay=30ms")
CODE_POINT = 10  # marks data sockets: control sockets have none
SOCKETS = 8
SETTINGS = {"SETO_LOG": "info", "SETO_DSCP_DATA": CODE_POINT, "SETO_TCP_STREAMS": SOCKETS}
MB = 1_000_000
HOLE_S = 3
LINE = re.compile(r":(\d+) +\S+:(\d+)(?=\s|$)")
DATA_LINE = re.compile(rf":(\d+) +\S+:(\d+) .*\b(?:tos|tclass):{4 * CODE_POINT:#x}\b")


class Resets(LabCase):
    """Sockets between two sites are reset in the middle of calls: the calls end with right sums, and the sockets are dialed again."""

    def data_sockets(self, host):
        """The ports of the data connections of a host, its own and the other. One of them is that of a listener."""
        return DATA_LINE.findall(host.run(["ss", "-tnH", "--tos", "state", "established"]))

    def control_sockets(self, host):
        """The same of the control connections."""
        return sorted(set(LINE.findall(host.run(["ss", "-tnH", "state", "established"]))) - set(self.data_sockets(host)))

    def reset(self, host, sockets):
        """As a firewall does that forgets connections: both ends get a reset, if the link carries it."""
        for here, there in sockets:
            host.run(["ss", "-K", "-tnH", f"( sport = :{here} and dport = :{there} )"])

    def passed(self, lab):
        return lab.emulator.statistics()["links"].get("0>1", {}).get("passed_bytes", 0)

    def goes_on(self, lab, job, wanted):
        """Whether so many bytes have passed."""
        for rank in job.ranks:
            self.assertFalse([line for line in rank.lines if "failed" in line or "wrong" in line], rank.errors)
        return self.passed(lab) > wanted

    def start(self, lab, extra=None):
        job = Job(lab, extra={**SETTINGS, **(extra or {})})
        job.expect("^ready$", 30)
        job.work(MB, 2)
        self.assertGreater(len(self.data_sockets(lab.hosts[0])), 1, "a far pair has several sockets")
        probe = self.data_sockets(lab.hosts[0])[0]
        self.reset(lab.hosts[0], [probe])
        if probe in self.data_sockets(lab.hosts[0]):
            self.skipTest("skipped: this kernel resets no connection of others (ss -K)")
        return job

    def finish(self, lab, job):
        job.expect("^done$", 90)
        self.wait_for(lambda: self.work_over(lab, job, SOCKETS), 30)
        job.leave()

    def work_over(self, lab, job, sockets):
        """A call, because no thread looks at sockets between calls, and whether it had so many sockets."""
        job.work(MB, 1)
        return all(len(self.data_sockets(host)) == sockets for host in lab.hosts)

    def run_while(self, break_them, extra=None):
        """100 MB sums; `break_them` is called in the middle of each second one."""
        with Lab(2, LINK, build=BUILD) as lab:
            job = self.start(lab, extra)
            self.wait_for(lambda: self.work_over(lab, job, SOCKETS), 30)
            job.say(f"run {100 * MB} 5")
            for turn in range(3):
                before = self.passed(lab)
                self.wait_for(lambda: self.goes_on(lab, job, before + 60 * MB), 60)
                break_them(lab, turn)
            self.finish(lab, job)

    def test_some_sockets_are_reset(self):
        self.run_while(lambda lab, turn: self.reset(lab.hosts[turn % 2], self.data_sockets(lab.hosts[turn % 2])[:3]))

    def test_all_sockets_are_reset(self):
        self.run_while(self.reset_all)

    def test_connections_on_first_use_are_dialed_again_too(self):
        self.run_while(self.reset_all, {"SETO_CONNECT": "used"})

    def test_control_connections_are_reset_too(self):
        self.run_while(self.reset_control)

    def reset_control(self, lab, turn):
        """All of both kinds, or only the control connection."""
        host = lab.hosts[turn % 2]
        control = self.control_sockets(host)
        self.assertTrue(control, "the two processes have a control connection")
        self.reset(host, control)
        if turn != 1:
            self.reset_all(lab, turn)
        self.wait_for(lambda: self.control_sockets(host) not in ([], control), 30)

    def test_every_connection_is_lost_at_one_end_in_a_black_hole(self):
        self.run_while(lambda lab, turn: self.lose(lab, turn, self.control_sockets(lab.hosts[turn % 2])))

    def reset_all(self, lab, turn):
        host = lab.hosts[turn % 2]
        self.reset(host, self.data_sockets(host))

    def lose(self, lab, turn, control=()):
        """The link loses everything for a while; meanwhile one end loses its sockets, and the other does not learn it."""
        lab.link("0-1 hole=on")
        self.reset(lab.hosts[turn % 2], control)
        self.reset_all(lab, turn)
        time.sleep(HOLE_S)
        lab.link("0-1 hole=off")

    def test_sockets_are_lost_at_one_end_in_a_black_hole(self):
        self.run_while(self.lose)


if __name__ == "__main__":
    sys.exit(main())
