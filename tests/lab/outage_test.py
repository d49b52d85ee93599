#!/usr/bin/env python3
"""Tests of jobs whose sites are cut off from each other for a while. Needs root.

    outage_test.py [TEST...]     LAB_BUILD names the build folder; exit 77 if all were skipped
"""

import re
import sys
import time

from cluster_test import DEATH_LIMIT_S, MIB, SILENCE_LIMIT_S, Job
from lab import Lab, Site
from lab_support import BUILD, LabCase, main

LINK = ("rate=1g", "delay=5ms")
SILENCE_S = 2.0  # until a site counts as cut off
WAITS = {"SETO_LOG": "warn", "SETO_LIVENESS_TIMEOUT_MS": int(1000 * SILENCE_S)}


class Outages(LabCase):
    """A site of which no process answers is waited for; a process that is lost is named as within a site."""

    def passed(self, lab):
        return lab.emulator.statistics()["links"].get("0>1", {}).get("passed_bytes", 0)

    def expect_line(self, rank, pattern, limit_s):
        self.wait_for(lambda: any(pattern in line for line in rank.error_lines), limit_s)

    def outage(self, broken, healed, extra=None, says=(0, 1)):
        """Calls are under way when the link breaks; these ranks say that the other site is cut off; then all calls end well."""
        with Lab(2, LINK, build=BUILD) as lab:
            job = Job(lab, extra={**WAITS, **(extra or {})})
            job.expect("^ready$")
            job.say(f"run {4 * MIB} 40")
            self.wait_for(lambda: self.passed(lab) > 16 * MIB)
            lab.link(broken)
            for rank in says:
                self.expect_line(job.ranks[rank], "it is cut off, and waited for (SETO_LINK_PATIENCE)", SILENCE_LIMIT_S)
            before, start = self.passed(lab), time.monotonic()
            lab.link(healed)
            self.wait_for(lambda: self.passed(lab) > before + MIB)
            print(f"{broken}: data moves again {time.monotonic() - start:.1f} s after its end")
            job.expect("^done$", 60)
            for rank in says:
                self.expect_line(job.ranks[rank], "answers again, after", 10)
                told = re.findall(r"answers again, after ([0-9.]+) s", "\n".join(job.ranks[rank].error_lines))
                self.assertGreaterEqual(float(told[-1]), SILENCE_S)  # counted from the last sign of life
            job.leave()

    def test_a_cut_is_survived(self):
        self.outage("0-1 cut=on", "0-1 cut=off")

    def test_a_black_hole_in_one_direction_is_survived(self):
        self.outage("1>0 hole=on", "1>0 hole=off", says=(0,))  # the other one still hears it

    def test_a_site_without_carrier_is_survived(self):
        self.outage("site 1 carrier=off", "site 1 carrier=on")

    def test_connections_on_first_use_survive_too(self):
        self.outage("0-1 cut=on", "0-1 cut=off", {"SETO_CONNECT": "used"})

    def test_long_packets_that_pass_no_more_become_short(self):
        """As where the route changes to a tunnel that is narrower than the host believes, and no router says so."""
        with Lab(2, ("rate=400m", "delay=15ms"), build=BUILD) as lab:
            job = Job(lab, extra=WAITS)
            job.expect("^ready$")
            job.say(f"run {16 * MIB} 10")
            self.wait_for(lambda: self.passed(lab) > 32 * MIB)
            before, start = self.passed(lab), time.monotonic()
            lab.link("0-1 largest=1400")
            self.wait_for(lambda: self.passed(lab) > before + 16 * MIB, 60)
            print(f"data moves again {time.monotonic() - start:.1f} s after long packets ceased to pass")
            job.expect("^done$", 90)
            job.leave()

    def failure_of(self, job, ranks, limit_s):
        return [match[0] for match in job.expect("^failed after (.*)", limit_s, ranks)]

    def test_patience_ends(self):
        with Lab(2, LINK, build=BUILD) as lab:
            job = Job(lab, extra={**WAITS, "SETO_LINK_PATIENCE": 4})
            job.expect("^ready$")
            job.say(f"loop {4 * MIB}")
            job.expect("^working$", 30)
            start = time.monotonic()
            lab.link("0-1 cut=on")
            for text in self.failure_of(job, [0, 1], SILENCE_LIMIT_S):
                self.assertIn("was cut off, with all of its site", text)
            self.assertGreater(time.monotonic() - start, 3.5)

    def test_a_host_whose_site_answers_is_lost(self):
        with Lab([Site(1), Site(2)], LINK, build=BUILD) as lab:
            job = Job(lab, extra=WAITS)
            job.expect("^ready$")
            job.say(f"loop {4 * MIB}")
            job.expect("^working$", 30)
            lab.hosts[2].set_interface("down")
            for text in self.failure_of(job, [0, 1], SILENCE_LIMIT_S):
                self.assertRegex(text, r"\brank 2\b.*(gave no sign of life|is not acknowledged)")

    def test_timing_a_killed_process_of_another_site_is_found_at_once(self):
        with Lab(2, LINK, build=BUILD) as lab:
            job = Job(lab, extra=WAITS)
            job.expect("^ready$")
            job.say(f"loop {4 * MIB}")
            job.expect("^working$", 30)
            job.ranks[1].kill()
            start = time.monotonic()
            self.assertRegex(self.failure_of(job, [0], SILENCE_LIMIT_S)[0], r"\brank 1\b")
            self.assertLess(time.monotonic() - start, DEATH_LIMIT_S)


if __name__ == "__main__":
    sys.exit(main())
