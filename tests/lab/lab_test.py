#!/usr/bin/env python3
"""Tests of the lab itself: its links behave as set, and nothing of it remains afterwards. Needs root.

    lab_test.py [TEST...]     LAB_BUILD names the build folder; exit 77 if all were skipped
"""

import json
import os
import select
import shutil
import signal
import subprocess
import sys
import unittest
from pathlib import Path

from emulator import is_punctual, lateness_text
from lab import IPV4, IPV6, ROOT, Lab, Site
from lab_support import BUILD, PAYLOAD_SHARE, LabCase, Stream, main
from namespaces import NAMESPACES, LabError, names_of
from process import Process


class Links(LabCase):
    def test_timing_round_trip(self):
        for family in (IPV4, IPV6):
            self.attempt(lambda family=family: self.round_trip(family))

    def round_trip(self, family):
        with Lab(2, ["rate=1g", "delay=5ms"], families=(family,), build=BUILD) as lab:
            figures = Stream(lab).run("ping", 100)
        self.must_be_punctual(lab.counted, 10_000, 0.04)
        self.assertGreaterEqual(figures["least_us"], 10_000, figures)
        self.must_stay_below(figures["rtt_us"], 11_000)

    def test_timing_rate(self):
        for rate in (25, 200, 1000):
            self.attempt(lambda rate=rate: self.rate(rate))

    def rate(self, rate):
        with Lab(2, [f"rate={rate}m", "delay=5ms", "bucket=64K"], build=BUILD) as lab:
            figures = Stream(lab).run("send", int(rate * 1e6 / 8 * 2))
        self.must_be_punctual(lab.counted, 10_000)
        print(f"{rate} Mbit/s: {figures}, {lab.counted}")
        self.assertLessEqual(figures["mbit_s"], 1.01 * rate * PAYLOAD_SHARE, "the bucket holds 64 KiB, not more")
        self.must_reach(figures["mbit_s"], 0.85 * rate)

    def must_be_punctual(self, counted, round_trip_us, share=0.01):
        if counted["late_avg_us"] > round_trip_us * share:
            self.skipTest(f"skipped: the machine is too busy, packets are {counted['late_avg_us']} us late")

    def test_every_byte_arrives_through_loss(self):
        cases = [
            (1500, (IPV4,), ["loss=2%"]),
            (1280, (IPV6,), ["burst-loss=0.2%,20%", "jitter=1ms"]),
            (9000, (IPV4,), ["loss=1%", "queue=128K", "rate=200m"]),
        ]
        for mtu, families, options in cases:
            with Lab(2, ["delay=1ms", "rate=1g", *options], mtu, families, BUILD) as lab:
                Stream(lab).run("send", "8M")
            link = lab.counted["links"]["0>1"]
            self.assertGreater(link["lost"], 0, (mtu, link))
            mean = link["bytes"] / link["segments"]
            self.assertTrue(mtu * 0.6 < mean <= mtu, f"segments of {mean} bytes at an MTU of {mtu}")

    def test_each_pair_has_its_own_link(self):
        with Lab(3, ["rate=1g"], build=BUILD) as lab:
            lab.link("0-1 delay=20ms")
            lab.link("2>0 delay=15ms")
            stream = Stream(lab, 0)
            self.assertGreaterEqual(stream.run("ping", 5, 1)["least_us"], 40_000)
            self.assertTrue(15_000 <= stream.run("ping", 5, 2)["least_us"] < 35_000)
            with self.assertRaises(LabError):
                lab.link("0>3 delay=1ms")

    def test_a_black_hole_drops_without_a_word_and_can_end(self):
        with Lab(2, ["rate=1g", "delay=1ms"], build=BUILD) as lab:
            stream = Stream(lab)
            lab.link("0>1 hole=on")
            sender = stream.start("ping", 1, limit_s=1)
            self.assertNotEqual(sender.wait(20), 0)
            self.assertNotRegex(sender.errors, "refused|reset")
            self.assertGreater(lab.emulator.statistics()["links"]["0>1"]["swallowed"], 0)
            lab.link("0>1 hole=off")
            stream.run("ping", 3)

    def test_a_cut_in_the_middle_heals(self):
        with Lab(2, ["rate=100m", "delay=1ms"], build=BUILD) as lab:
            stream = Stream(lab)
            sender = stream.start("send", "32M")  # 2.7 s, within which the link is cut
            self.wait_for_bytes(lab, 1 << 20)
            lab.link("0-1 cut=on")
            before = lab.emulator.statistics()["links"]["0>1"]["passed_bytes"]
            self.wait_for(lambda: lab.emulator.statistics()["links"]["0>1"]["swallowed"] > 0)
            self.assertEqual(lab.emulator.statistics()["links"]["0>1"]["passed_bytes"], before)
            lab.link("0-1 cut=off")
            stream.figures(sender)

    def test_a_host_loses_its_carrier_and_gets_it_back(self):
        with Lab(2, ["rate=100m"], build=BUILD) as lab:
            stream = Stream(lab)
            sender = stream.start("send", "32M")
            self.wait_for_bytes(lab, 1 << 20)
            lab.link("site 0 carrier=off")
            self.assertIn("NO-CARRIER", lab.hosts[0].ip("link", "show", "dev", "wan0"))
            lab.link("site 0 carrier=on")
            stream.figures(sender)
            lab.hosts[0].set_interface("down")
            self.assertNotEqual(stream.start("ping", 1, limit_s=1).wait(20), 0)
            lab.hosts[0].set_interface("up")
            stream.run("ping", 3)

    def wait_for_bytes(self, lab, size):
        self.wait_for(lambda: lab.emulator.statistics()["links"].get("0>1", {}).get("passed_bytes", 0) > size)

    def test_veth_pairs_of_two_and_more(self):
        for hosts in (2, 3):
            with Lab(hosts, None, 9000, build=BUILD) as lab:
                for address in (lab.hosts[-1].ipv4, lab.hosts[-1].ipv6):
                    Stream(lab, hosts - 1, address).run("send", "8M")


class Sites(LabCase):
    """Hosts of one site are near each other and share the links to other sites."""

    def measured(self, lab, senders):
        """Mbit/s of each (from, to), all at once, each over its own time."""
        streams = [(Stream(lab, to), host) for host, to in senders]
        size = 20_000_000
        running = [(stream, stream.start("send", size, host)) for stream, host in streams]
        return [stream.figures(process)["mbit_s"] for stream, process in running]

    def must_be_punctual(self, lab):
        if not is_punctual(lab.counted):
            self.skipTest(f"skipped: {lateness_text(lab.counted)}")

    def test_timing_hosts_of_a_site_share_its_uplink(self):
        self.attempt(lambda: self.shared([Site(2, "200m"), Site(2, "1g")]))

    def test_timing_hosts_of_a_site_share_its_downlink(self):
        self.attempt(lambda: self.shared([Site(2, "1g"), Site(2, "1g", "200m")]))

    def shared(self, sites):
        with Lab(sites, ["delay=5ms"], build=BUILD) as lab:
            alone = self.measured(lab, [(0, 2)])
            both = self.measured(lab, [(0, 2), (1, 3)])
        self.must_be_punctual(lab)
        print(f"alone {alone}, both {both} Mbit/s, {lab.counted}")
        self.assertLessEqual(alone[0], 1.02 * 200 * PAYLOAD_SHARE)
        # All bytes over the time of the slower one; the faster one leaves the rest of its time to the other.
        self.assertLessEqual(2 * min(both), 1.02 * 200 * PAYLOAD_SHARE)
        self.must_reach(alone[0], 0.85 * 200)
        self.must_reach(2 * min(both), 0.8 * 200)

    def test_timing_uplinks_of_one_to_two_to_four(self):
        self.attempt(self.one_to_two_to_four)

    def one_to_two_to_four(self):
        rates = (50, 100, 200)
        with Lab([*(Site(1, f"{rate}m") for rate in rates), Site(3)], ["delay=5ms"], build=BUILD) as lab:
            figures = self.measured(lab, [(0, 3), (1, 4), (2, 5)])
        self.must_be_punctual(lab)
        print(f"{rates}: {figures} Mbit/s, {lab.counted}")
        for rate, figure in zip(rates, figures):
            self.assertLessEqual(figure, 1.02 * rate * PAYLOAD_SHARE)
            self.must_reach(figure, 0.85 * rate)

    def test_hosts_of_a_site_are_near_and_others_are_not(self):
        for family in (IPV4, IPV6):
            with Lab([Site(2, "10m"), Site(2)], ["delay=20ms"], families=(family,), build=BUILD) as lab:
                stream = Stream(lab, 1)
                self.assertLess(stream.run("ping", 20, 0)["least_us"], 20_000, "no packet of a site passes the emulator")
                self.assertGreaterEqual(stream.run("ping", 3, 2)["least_us"], 40_000)
                stream.run("send", "32M", 0)  # more than 25 s over the uplink
                self.assertLess(lab.emulator.statistics()["uplinks"]["0"]["bytes"], 1 << 20)

    def test_every_byte_arrives_through_routers_and_loss(self):
        with Lab([Site(2, "200m"), Site(2, "1g")], ["delay=1ms", "loss=1%"], build=BUILD) as lab:
            for address in (lab.hosts[3].ipv4, lab.hosts[3].ipv6):
                Stream(lab, 3, address).run("send", "4M", 0)
        self.assertGreater(lab.counted["links"]["0>1"]["lost"], 0)
        self.assertGreater(lab.counted["downlinks"]["1"]["passed_bytes"], 8 << 20)

    def test_rates_want_the_emulator(self):
        with self.assertRaisesRegex(LabError, "want the emulator"):
            with Lab([Site(1, "1g"), Site(1)], None, build=BUILD):
                pass
        self.assertEqual(names_of(os.getpid()), [])

    def test_what_is_no_site_is_refused(self):
        for text in ("", "x", "0", "251", "2 speed=1g", "2 uplink=", "uplink=1g 2"):
            with self.assertRaises(LabError, msg=text):
                Site.of_text(text)
        self.assertEqual(Site.of_text("2 downlink=2g", "1g"), Site(2, "1g", "2g"))


class Iperf(LabCase):
    """The rate of a link by a program of others, if it is installed."""

    def test_timing_the_rate_is_that_of_iperf3(self):
        if shutil.which("iperf3") is None:
            self.skipTest("skipped: iperf3 is not installed")
        for rate in (50, 200):
            self.attempt(lambda rate=rate: self.rate(rate))

    def rate(self, rate):
        with Lab(2, [f"rate={rate}m", "delay=5ms"], build=BUILD) as lab:
            server = lab.hosts[1].start(["iperf3", "--server", "--one-off", "--forceflush"])
            server.line("Server listening")
            # The first second, in which TCP finds out what the link carries, does not count.
            client = ["iperf3", "--client", lab.hosts[1].address, "--time", "4", "--omit", "1", "--json"]
            figures = json.loads(lab.hosts[0].run(client))["end"]["sum_received"]
        if not is_punctual(lab.counted):
            self.skipTest(f"skipped: {lateness_text(lab.counted)}")
        measured = figures["bits_per_second"] / 1e6
        print(f"iperf3: {measured} of {rate} Mbit/s, {lab.counted}")
        self.assertLessEqual(measured, 1.03 * rate * PAYLOAD_SHARE)
        self.must_reach(measured, 0.97 * rate * PAYLOAD_SHARE)


class CongestionControl(LabCase):
    def test_what_is_wanted_is_in_force_or_an_error(self):
        with Lab(2, None, build=BUILD, congestion="reno") as lab:
            self.assertEqual(lab.congestion.in_force, "reno")
            self.assertEqual(lab.hosts[1].run(["cat", "/proc/sys/net/ipv4/tcp_congestion_control"]).strip(), "reno")
        with self.assertRaisesRegex(LabError, "because this kernel refused no_such_control"):
            with Lab(2, None, build=BUILD, congestion="no_such_control"):
                pass
        self.assertEqual(names_of(os.getpid()), [])

    def test_the_one_in_force_without_a_wish_is_said(self):
        with Lab(2, None, build=BUILD) as lab:
            in_force = lab.hosts[0].run(["cat", "/proc/sys/net/ipv4/tcp_congestion_control"]).strip()
            self.assertEqual(lab.congestion.in_force, in_force)
            self.assertIn(f"congestion control: {in_force}", lab.congestion.text)


class Traces(LabCase):
    """Nothing remains, however a lab ends."""

    def test_nothing_is_left(self):
        with Lab(2, ["rate=1g"], build=BUILD) as lab:
            server = Stream(lab).server
            deaf = lab.hosts[0].start(["sh", "-c", "trap '' TERM HUP; echo here; exec sleep 600"])
            deaf.line("here")
            self.assertEqual(len(names_of(os.getpid())), 2)
        self.assertEqual(names_of(os.getpid()), [])
        for process in (server, deaf, lab.emulator.process):
            self.assertIsNotNone(process.popen.wait(20))

    def test_a_lab_that_fails_inside_leaves_nothing(self):
        with self.assertRaises(ZeroDivisionError):
            with Lab(2, ["rate=1g"], build=BUILD) as lab:
                _ = 1 / 0
        self.assertEqual(names_of(os.getpid()), [])
        with self.assertRaises(LabError):
            with Lab(2, ["rate=nonsense"], build=BUILD) as lab:
                pass
        self.assertEqual(names_of(os.getpid()), [])
        self.assertIsNotNone(lab)

    def test_a_killed_lab_leaves_nothing(self):
        for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGINT):
            command = [sys.executable, "-B", ROOT / "tests/lab/lab.py", "--build", BUILD, "--rate", "1g", "--"]
            lab = Process([*command, "sh", "-c", "sleep 600 & echo here; wait"])
            self.addCleanup(lab.close)
            lab.line(r"^0\| here")
            lab.line(r"^1\| here")
            inside = descendants(lab.pid)
            self.assertGreaterEqual(len(inside), 6, "two shells with a sleep each, the emulator, the reaper")
            self.assertEqual(len(names_of(lab.pid)), 2)
            lab.signal(number)
            for descriptor in inside.values():
                self.assertTrue(select.select([descriptor], [], [], 20)[0], f"{inside} outlived signal {number}")
                os.close(descriptor)
            lab.close()
            self.assertEqual(names_of(lab.pid), [])

    def test_a_lab_that_ends_leaves_another_of_its_process_alone(self):
        with Lab(2, None, build=BUILD) as lasting:
            with Lab(2, None, build=BUILD):
                pass
            self.assertEqual(len(names_of(os.getpid())), 2)
            lasting.hosts[1].ip("link", "show", "dev", "wan0")

    def test_what_a_killed_reaper_left_is_found_later(self):
        gone = subprocess.Popen(["true"])
        gone.wait()
        name = f"seto-lab-{gone.pid}-dead-0"
        subprocess.run(["ip", "netns", "add", name], check=True)
        with Lab(2, None, build=BUILD):
            self.assertFalse((NAMESPACES / name).exists())


def descendants(pid):
    """{pid: descriptor that is readable once it has ended} of all below."""
    found = {}
    for text in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        found[int(text)] = os.pidfd_open(int(text))
        found.update(descendants(int(text)))
    return found


class Command(LabCase):
    def run_lab(self, *words):
        command = [sys.executable, "-B", ROOT / "tests/lab/lab.py", "--build", BUILD, *words]
        return subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=60)

    def test_each_process_knows_its_rank(self):
        told = "echo $SETO_RANK of $SETO_RANKS at $SETO_ROOT, secret of ${#SETO_SECRET}; echo to the errors >&2"
        done = self.run_lab("--hosts", "2", "--per-host", "2", "--rate", "1g", "--", "sh", "-c", told)
        self.assertEqual(done.returncode, 0, done.stderr)
        wanted = [f"{rank}| {rank} of 4 at 10.77.0.1:20001, secret of 64" for rank in range(4)]
        self.assertEqual(sorted(done.stdout.splitlines()), wanted)
        self.assertEqual(done.stderr.count("to the errors"), 4)

    def test_each_process_knows_its_site(self):
        words = ["--site", "2", "--site", "1 uplink=2g", "--uplink", "1g", "--delay", "1ms", "--statistics"]
        done = self.run_lab(*words, "--", "sh", "-c", "echo $SETO_RANK of $SETO_RANKS in $SETO_SITE_ID")
        self.assertEqual(done.returncode, 0, done.stderr)
        *told, statistics = sorted(done.stdout.splitlines())
        self.assertEqual(told, ["0| 0 of 3 in site0", "1| 1 of 3 in site0", "2| 2 of 3 in site1"])
        self.assertIn(f"congestion control: {json.loads(statistics)['congestion_control']}", done.stderr)
        self.assertIn("us late on average", done.stderr)

    def test_options_that_contradict_each_other_are_refused(self):
        for words in (["--site", "2"], ["--site", "1", "--site", "1", "--hosts", "2"], ["--uplink", "1g"], ["--veth", "--rate", "1g"]):
            self.assertEqual(self.run_lab(*words, "--", "true").returncode, 2, words)

    def test_the_worst_exit_status_is_the_commands(self):
        done = self.run_lab("--veth", "--ipv6-only", "--", "sh", "-c", "echo $SETO_ROOT; exit $((SETO_RANK * 3))")
        self.assertEqual(done.returncode, 3)
        self.assertIn("[fd77:0:0:0::1]:20001", done.stdout)
        self.assertIn("rank 1 ended with 3", done.stderr)

    def test_a_command_that_hangs_is_ended(self):
        done = self.run_lab("--limit", "1", "--veth", "--", "sleep", "600")
        self.assertEqual(done.returncode, 1)
        self.assertIn("did not end within 1 s (--limit)", done.stderr)

    def test_fewer_than_two_hosts_are_refused(self):
        for hosts in ("0", "1", "-1"):
            done = self.run_lab("--hosts", hosts, "--", "true")
            self.assertEqual(done.returncode, 2, hosts)
            self.assertIn("two sites or hosts or more", done.stderr)


if __name__ == "__main__":
    sys.exit(main())
