#!/usr/bin/env python3
"""Tests of the whole library over hosts made of namespaces: real links that are cut, processes that are frozen. Needs root.

    cluster_test.py [TEST...]     LAB_BUILD names the build folder; exit 77 if all were skipped
"""

import os
import re
import signal
import sys
import time

from emulator import is_punctual
from lab import IPV4, IPV6, Lab, Site
from lab_support import BUILD, LabCase, TooSlow, main

MIB = 1 << 20
QUIET = {"SETO_LOG": "error"}
# By default a silent process is lost after 5 s; heartbeats, reports and a busy machine take some more. Operations may take half an
# hour.
SILENCE_LIMIT_S = 20
DEATH_LIMIT_S = 4  # below the silence after which a process is lost
MOST_CALLS = 12


class Job:
    """A job of one or several lab_rank processes on each host."""

    def __init__(self, lab, per_host=1, extra=None):
        self.lab = lab
        self.ranks = lab.start_job([BUILD / "tests" / "lab_rank"], per_host, {**QUIET, **(extra or {})})
        self.heard = [0] * len(self.ranks)

    def expect(self, pattern, limit_s=20, ranks=None):
        """Returns the next matching line of each rank; earlier lines are skipped."""
        found = []
        for rank in self.all(ranks):
            process = self.ranks[rank]
            match = process.line(pattern, limit_s, after=self.heard[rank])
            self.heard[rank] = 1 + next(
                number for number, text in enumerate(process.lines) if number >= self.heard[rank] and text == match.string
            )
            found.append(match)
        return found

    def say(self, line, ranks=None):
        for rank in self.all(ranks):
            self.ranks[rank].say(line)

    def all(self, ranks):
        return range(len(self.ranks)) if ranks is None else ranks

    def work(self, size=MIB, calls=5, limit_s=30):
        self.say(f"run {size} {calls}")
        self.expect("^done$", limit_s)

    def leave(self):
        """Ends all ranks and expects exit status 0."""
        for process in self.ranks:
            process.popen.stdin.close()
        codes = [process.wait(30) for process in self.ranks]
        assert codes == [0] * len(codes), (codes, [process.lines[-3:] + process.error_lines[-3:] for process in self.ranks])


class Clusters(LabCase):
    """Ranks on several hosts connect and compute correct sums."""

    def perf(self, lab, per_host=1):
        command = [BUILD / "bench" / "all_reduce_perf", "-b", "8", "-e", "4M", "-f", "8", "-n", "3", "-w", "1", "-c", "1"]
        processes = lab.start_job(command, per_host, QUIET)
        codes = [process.wait(60) for process in processes]
        self.assertEqual(codes, [0] * len(codes), [process.error_lines for process in processes])
        return processes[0].output

    def test_all_reduce_perf_over_two_and_four_hosts(self):
        for hosts in (2, 4):
            with Lab(hosts, None, build=BUILD) as lab:
                output = self.perf(lab)
            self.assertIn("4194304", output)
            for rank in range(hosts):
                self.assertRegex(output, rf"(?mi)rank\s+{rank}\b.*(pid|process)\s+\d+", "the header names every rank's process")

    def test_two_hosts_with_two_ranks_each(self):
        with Lab(2, None, build=BUILD) as lab:
            self.perf(lab, per_host=2)
            job = Job(lab, per_host=2)
            job.expect("^ready$")
            job.work()
            job.leave()

    def test_small_packets_and_ipv6_only(self):
        for mtu, families in ((1280, (IPV4, IPV6)), (1500, (IPV6,)), (1280, (IPV6,))):
            with Lab(2, ["rate=1g", "delay=1ms"], mtu, families, BUILD) as lab:
                job = Job(lab)
                job.expect("^ready$")
                job.work()
                job.leave()

    def test_loss_and_jitter_change_no_bit(self):
        with Lab(3, ["rate=500m", "delay=1ms", "jitter=1ms", "burst-loss=0.1%,20%"], build=BUILD) as lab:
            job = Job(lab)
            job.expect("^ready$")
            job.work(4 * MIB, 3)
            job.leave()
        self.assertGreater(lab.counted["links"]["0>1"]["lost"], 0)

    def test_interfaces_that_lead_nowhere_are_passed_over(self):
        with Lab(2, None, build=BUILD) as lab:
            for host in lab.hosts:
                host.add_decoy("docker0", "172.17.0.1/16")
                host.add_decoy("aaa0", f"192.168.{host.index}.1/24")
            job = Job(lab)
            job.expect("^ready$")
            job.work()
            job.leave()

    def test_names_that_cannot_be_resolved_are_said(self):
        for hangs in (False, True):
            with Lab(2, [], build=BUILD) as lab:
                if hangs:  # questions leave and nothing ever answers
                    for host in lab.hosts:
                        host.ip("route", "add", "default", "dev", "wan0")
                start = time.monotonic()
                job = Job(lab, extra={"SETO_ROOT": "no-such-host.invalid:7000", "SETO_INIT_TIMEOUT_MS": 3000})
                # Rank 0 opens the root itself and does not look its name up: it reports that the other rank is missing.
                said = [match[0] for match in job.expect("^failed after (.*)", 20)]
                self.assertRegex(said[0], r"no-such-host\.invalid|\brank 1\b")
                self.assertIn("no-such-host.invalid", said[1])
                self.assertLess(time.monotonic() - start, 12)
                fine = Job(lab)
                fine.expect("^ready$")
                fine.work(calls=1)
                fine.leave()


class LongLinks(LabCase):
    """A link of 60 ms and 1 Gbit/s, with default settings."""

    def open_job(self, lab, extra=None):
        """Returns a job that is ready, and the seconds of its init."""
        start = time.monotonic()
        job = Job(lab, extra=extra)
        job.expect("^ready$", 30)
        return job, time.monotonic() - start

    def test_timing_a_long_link_is_filled(self):
        with Lab(2, ["rate=1g", "delay=30ms"], build=BUILD) as lab:
            job, _ = self.open_job(lab)
            job.work(64 * MIB, 1)  # congestion windows grow
            calls = []
            while len(calls) < 4 or (min(calls) >= 1.5 and len(calls) < MOST_CALLS):
                start = time.monotonic()
                job.work(64 * MIB, 1)
                calls.append(time.monotonic() - start)
            job.leave()
        # 0.59 s at the rate of the link. In lock step, over one socket, a call took 2.9 s. A busy machine delays the emulator, so the
        # best call counts.
        self.assertLess(min(calls), 1.5, calls)

    def seconds_more(self, settings, other):
        """How much longer an init takes with the other settings."""
        seconds = []
        for extra in (settings, other):
            with Lab(2, ["rate=1g", "delay=30ms"], build=BUILD) as lab:
                job, took = self.open_job(lab, extra)
                job.leave()
            seconds.append(took)
        return seconds[1] - seconds[0]

    def test_timing_many_sockets_open_as_fast_as_one(self):
        one, many = ({"SETO_TCP_STREAMS": sockets, "SETO_CALIBRATE": "off"} for sockets in (1, 16))
        # One after another, 16 sockets took 2.65 s more.
        self.attempt(lambda: self.must_stay_below(self.seconds_more(one, many), 1))

    def test_timing_calibration_knows_that_a_link_is_long(self):
        off, auto = ({"SETO_CALIBRATE": calibrate} for calibrate in ("off", "auto"))
        # The kernel has measured the link when it connected. 20 exchanges and two copies took 1.8 s.
        self.attempt(lambda: self.must_stay_below(self.seconds_more(off, auto), 0.5))


class FarSites(LabCase):
    """Hosts 60 ms from each other are two sites without being told, and sums of fp32 travel in fp16 between them."""

    def sums(self, lab, environment):
        """Standard output and standard error of rank 0: sums of 8 bytes, 1 MiB and 4 MiB, each checked."""
        sizes = ["-b", "8", "-e", "4M", "-f", "131072", "-n", "1", "-w", "1", "-c", "1"]
        ranks = lab.start_job([BUILD / "bench" / "all_reduce_perf", *sizes], 1, {"SETO_LOG": "info", **environment})
        self.assertEqual([rank.wait(60) for rank in ranks], [0] * len(ranks), [rank.error_lines for rank in ranks])
        self.assertIn("Out of bounds values : 0 OK", ranks[0].output)
        return ranks[0].output, ranks[0].errors

    def expect_two_sites(self, errors, least_ms):
        """A busy machine makes the measured round trip longer; nothing makes it shorter."""
        self.assertRegex(errors, r"2 sites found by round trips: 0>1 round trip [\d.]+ ms \(measured\)")
        measured_ms = float(re.search(r"0>1 round trip ([\d.]+) ms", errors)[1])
        self.assertTrue(least_ms <= measured_ms < 4 * least_ms, errors)

    def test_sites_are_found_and_sums_between_them_are_encoded(self):
        with Lab(2, ["rate=1g", "delay=30ms"], build=BUILD) as lab:
            output, errors = self.sums(lab, {})
            self.expect_two_sites(errors, 60)
            self.assertIn("travel in fp16 between sites", errors)
            self.assertRegex(output, r"# 1048576 bytes travelled in fp16: an error of at most \S+ % of the largest number of all inputs is accepted")
            self.assertNotIn("# 8 bytes travelled", output, "short sums are exact")
            for exact in ({"SETO_CODEC": "none"}, {"SETO_DETERMINISTIC": "on"}, {"SETO_SITE_ID": "one"}):
                output, errors = self.sums(lab, exact)
                self.assertNotIn("travelled in", output, exact)
                self.assertNotIn("travel in fp16", errors, exact)

    def test_hosts_near_each_other_are_one_site(self):
        with Lab(3, ["delay=3ms"], build=BUILD) as lab:
            lab.link("0-1 delay=0.05ms")
            output, errors = self.sums(lab, {})
            self.expect_two_sites(errors, 6)


class RatesThatChange(LabCase):
    """The rate of the link between two sites changes while a job runs, and choice follows."""

    SIZE = 3 * MIB
    BATCH = 10
    MOST_CALLS = 200

    def rate(self, job):
        """What all ranks know: MB/s, its source, the version, and the round trip in milliseconds."""
        said = job.say("rate") or job.expect(r"^rate (\S+) MB/s \((\w+), version (\d+)\), round trip (\S+) ms *$")
        self.assertEqual(len({match[0] for match in said}), 1, "all ranks know the same")
        return float(said[0][1]), said[0][2], int(said[0][3]), float(said[0][4])

    def follow(self, lab, job, mbit, round_trip_ms=None, most_calls=MOST_CALLS):
        """Calls until what is known is the rate of the link, less the headers, and its round trip. Ranks agree on a new rate when it
        differs by more than a quarter, perhaps while it still rises, so what they know may stay a quarter off. A busy machine does not
        fill the link."""
        expected = mbit / 8 * 0.955
        for _ in range(0, most_calls, self.BATCH):
            job.work(self.SIZE, self.BATCH, 60)
            known, source, _, known_ms = self.rate(job)
            right_delay = round_trip_ms is None or round_trip_ms / 1.3 < known_ms < round_trip_ms * 1.3
            if source == "measured" and expected / 1.3 < known < expected * 1.3 and right_delay:
                return
        if not is_punctual(lab.emulator.statistics()):
            self.skipTest("skipped: the machine is too busy, packets are late")
        raise TooSlow(f"{known} MB/s ({source}), {known_ms} ms after {most_calls} calls; the link carries {expected}, {round_trip_ms} ms")

    def test_timing_choice_follows_the_rate_of_a_link(self):
        self.attempt(self.choice_follows)

    def choice_follows(self):
        with Lab(2, ["rate=400m", "delay=2ms"], build=BUILD) as lab:
            job = Job(lab)
            job.expect("^ready$", 30)
            self.assertEqual(self.rate(job)[1:3], ("assumed", 0))
            self.follow(lab, job, 400)
            lab.link("0-1 rate=200m")
            self.follow(lab, job, 200)
            lab.link("0-1 rate=400m")
            self.follow(lab, job, 400)
            self.assertGreaterEqual(self.rate(job)[2], 3)
            job.leave()

    def test_timing_queued_calls_are_right_while_the_link_changes(self):
        self.attempt(self.queued_calls_are_right)

    def queued_calls_are_right(self):
        """Three communicators, two of them splits, with 1,000 calls in their queues; one change in the middle of each thousand. Rates
        are low, because four processes with TLS on two cores do not fill a faster link. The test above checks how soon
        choice follows; here it has twice as many calls."""
        with Lab([Site(2), Site(2)], ["rate=200m", "delay=10ms"], build=BUILD) as lab:
            job = Job(lab)
            job.expect("^ready$", 30)
            self.follow(lab, job, 200, 20)
            for change, mbit, round_trip_ms in (("rate=100m delay=20ms", 100, 40), ("rate=200m delay=10ms", 200, 20)):
                job.say(f"queue {64 << 10} 1000")
                passed = lambda: lab.emulator.statistics()["links"]["0>1"]["passed_bytes"]  # noqa: E731
                before = passed()
                self.wait_for(lambda: passed() - before > 10 * MIB, 60)  # a third of what the calls send
                lab.link("0-1 " + change)
                job.expect("^done$", 120)
                self.follow(lab, job, mbit, round_trip_ms, 2 * self.MOST_CALLS)
            job.leave()


class Faults(LabCase):
    """Links within a site are cut and processes stopped during an operation: all ranks get the reason soon and make a new
    communicator. Between sites: outage_test.py."""

    LINK = ("rate=1g", "delay=1ms")
    ONE_SITE = {"SETO_SITE_ID": "one"}

    def started(self, lab, size=16 * MIB):
        job = Job(lab, extra=self.ONE_SITE)
        job.expect("^ready$")
        job.say(f"loop {size}")
        job.expect("^working$", 30)
        return job

    def expect_failure(self, job, limit_s, ranks, culprit):
        """Every rank fails within the limit with a text that names the culprit."""
        start = time.monotonic()
        for match in job.expect("^failed after (.*)", limit_s, ranks):
            self.assertRegex(match[0], rf"\brank {culprit}\b" if culprit is not None else r"\brank \d+\b")
        self.assertLess(time.monotonic() - start, limit_s)

    def go_on(self, job):
        """Makes a new communicator in the same processes."""
        job.say("again")
        job.expect("^ready$", 30)
        job.work()
        job.leave()

    def broken_link(self, broken, healed):
        with Lab(2, self.LINK, build=BUILD) as lab:
            job = self.started(lab)
            lab.link(broken)
            for rank in (0, 1):
                self.expect_failure(job, SILENCE_LIMIT_S, [rank], 1 - rank)
            lab.link(healed)
            self.go_on(job)

    def test_a_cut_link(self):
        self.broken_link("0-1 cut=on", "0-1 cut=off")

    def test_a_black_hole(self):
        self.broken_link("0-1 hole=on", "0-1 hole=off")

    def test_a_black_hole_in_one_direction(self):
        self.broken_link("1>0 hole=on", "1>0 hole=off")

    def test_a_host_without_carrier(self):
        self.broken_link("site 1 carrier=off", "site 1 carrier=on")

    def test_a_short_cut_is_survived(self):
        with Lab(2, self.LINK, build=BUILD) as lab:
            job = Job(lab)
            job.expect("^ready$")
            job.say(f"run {16 * MIB} 8")
            self.wait_for(lambda: lab.emulator.statistics()["links"].get("0>1", {}).get("passed_bytes", 0) > 16 * MIB)
            lab.link("0-1 cut=on")
            swallowed = lambda: lab.emulator.statistics()["links"]["0>1"]["swallowed"]  # noqa: E731
            self.wait_for(lambda: swallowed() > 0)
            lab.link("0-1 cut=off")
            job.expect("^done$", 30)
            job.leave()

    def test_a_frozen_process(self):
        with Lab(3, None, build=BUILD) as lab:
            job = self.started(lab)
            job.ranks[2].signal(signal.SIGSTOP)
            self.expect_failure(job, SILENCE_LIMIT_S, [0, 1], 2)
            job.ranks[2].signal(signal.SIGCONT)
            self.expect_failure(job, SILENCE_LIMIT_S, [2], None)
            self.go_on(job)

    def test_timing_a_killed_process_is_found_at_once(self):
        with Lab(3, None, build=BUILD) as lab:
            job = self.started(lab)
            job.ranks[1].kill()
            self.expect_failure(job, DEATH_LIMIT_S, [0, 2], 1)
            for rank in (0, 2):
                job.ranks[rank].popen.stdin.close()
                self.assertEqual(job.ranks[rank].wait(20), 0)

    def test_no_link_at_all_is_said_in_time(self):
        with Lab(2, self.LINK, build=BUILD) as lab:
            lab.link("0-1 hole=on")
            job = Job(lab, extra={"SETO_INIT_TIMEOUT_MS": 3000})
            self.expect_failure(job, 15, [0, 1], None)

    def test_what_was_sent_arrives_though_its_sender_has_left(self):
        with Lab(2, ["rate=3m", "delay=10ms"], build=BUILD) as lab:
            job = Job(lab)
            job.expect("^ready$")
            job.say("receive 200000 0", [1])  # 0.5 s on that link; that the sender has left takes 10 ms
            job.say("send 200000 1", [0])
            job.say("leave", [0])
            job.expect("^done$", 20)
            job.expect("^left$", 20, [0])
            job.leave()

    def test_what_was_lost_after_its_sender_had_ended_is_said(self):
        with Lab(2, ["rate=1m", "delay=5ms"], build=BUILD) as lab:
            job = Job(lab, extra=self.ONE_SITE)
            job.expect("^ready$")
            job.say("broadcast 60000")
            job.expect("^done$", 20, [0])  # it is in the kernel; half a second is left of the way
            lab.link("0-1 cut=on")
            self.expect_failure(job, SILENCE_LIMIT_S + 5, [1], 0)

    def test_processes_without_the_secret_are_rejected(self):
        with Lab(3, None, build=BUILD) as lab:
            host_and_environment = lab.job_environments(1, QUIET)
            ranks = []
            for rank, (host, environment) in enumerate(host_and_environment):
                secret = "wrong" * 8 if rank == 2 else environment["SETO_SECRET"]
                words = {**environment, "SETO_SECRET": secret, "SETO_INIT_TIMEOUT_MS": 3000}
                ranks.append(host.start([BUILD / "tests" / "lab_rank"], words))
            for rank in ranks:
                rank.line("^failed after ", 20)
            self.assertRegex(ranks[2].output, "(?i)secret")
            self.assertRegex(ranks[0].output, r"\brank 2\b|\b2 of 3\b")


if __name__ == "__main__":
    os.environ.pop("SETO_LOG", None)
    sys.exit(main())
