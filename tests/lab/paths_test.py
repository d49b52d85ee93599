#!/usr/bin/env python3
"""Tests of hosts and sites that several paths join, and of paths that lose large packets only. Needs root.

    paths_test.py [TEST...]     LAB_BUILD names the build folder; exit 77 if all were skipped
"""

import json
import subprocess
import sys

from emulator import is_punctual, lateness_text
from lab import IPV4, IPV6, ROOT, Lab, Site
from lab_support import BUILD, PAYLOAD_SHARE, LabCase, Stream, main
from namespaces import LabError
from paths import Path, paths_of

PRIMARY, BACKUP = ["rate=1g", "delay=2ms"], ["rate=100m", "delay=20ms"]


def stream_over(lab, path, host=1, family=0):
    return Stream(lab, host, lab.hosts[host].addresses(path)[family])


class Paths(LabCase):
    def must_fail(self, stream):
        self.assertNotEqual(stream.start("ping", 1, limit_s=1).wait(20), 0)

    def must_be_punctual(self, lab):
        for counted in (lab.counted, *lab.counted_of_paths):
            if not is_punctual(counted):
                self.skipTest(f"skipped: {lateness_text(counted)}")

    def test_each_path_has_addresses_and_a_delay_of_its_own(self):
        for family in (0, 1):
            with Lab(2, PRIMARY, build=BUILD, paths=[BACKUP]) as lab:
                primary, backup = (stream_over(lab, path, family=family) for path in (0, 1))
                self.assertTrue(4_000 <= primary.run("ping", 5)["least_us"] < 40_000)
                before = [emulator.statistics()["links"] for emulator in lab.emulators]
                self.assertGreaterEqual(backup.run("ping", 5)["least_us"], 40_000)
                backup.run("send", "2M")
                after = [emulator.statistics()["links"] for emulator in lab.emulators]
            self.assertEqual(before[1], {})
            self.assertGreater(after[1]["0>1"]["passed_bytes"], 2 << 20)
            for link in ("0>1", "1>0"):  # the last acknowledgement of the ping may still have been on its way
                self.assertLessEqual(after[0][link]["packets"], before[0][link]["packets"] + 2, "of the backup no packet passes the primary path")

    def test_paths_that_are_only_counted_are_like_the_first(self):
        with Lab(2, ["rate=100m", "delay=3ms"], build=BUILD, paths=3) as lab:
            for path in range(3):
                self.assertTrue(6_000 <= stream_over(lab, path).run("ping", 5)["least_us"] < 40_000)
            lab.link("path 2 * rate=300m delay=20ms")
            self.assertGreaterEqual(stream_over(lab, 2).run("ping", 5)["least_us"], 40_000)
            self.assertLess(stream_over(lab, 1).run("ping", 5)["least_us"], 40_000)

    def test_timing_a_path_has_a_rate_of_its_own(self):
        self.attempt(self.rate_of_a_path)

    def rate_of_a_path(self):
        """Both at once, for 4 s, of which TCP needs the first tenth of a second to find the rate."""
        with Lab(2, ["rate=200m", "delay=5ms"], build=BUILD, paths=[["rate=60m", "delay=10ms"]]) as lab:
            streams = [stream_over(lab, path) for path in (0, 1)]
            running = [(stream, stream.start("send", size)) for stream, size in zip(streams, (100_000_000, 30_000_000))]
            figures = [stream.figures(process)["mbit_s"] for stream, process in running]
        self.must_be_punctual(lab)
        print(f"{figures} Mbit/s, {lab.counted}, {lab.counted_of_paths}")
        for rate, figure in zip((200, 60), figures):
            self.assertLessEqual(figure, 1.02 * rate * PAYLOAD_SHARE, figures)
            self.must_reach(figure, 0.95 * rate * PAYLOAD_SHARE)

    def test_faults_of_one_path_leave_the_other_alone(self):
        with Lab(2, PRIMARY, build=BUILD, paths=[BACKUP, []]) as lab:
            primary, backup = (stream_over(lab, path) for path in (0, 1))
            for fault in ("hole", "cut"):
                lab.link(f"0-1 {fault}=on")
                self.must_fail(primary)
                backup.run("ping", 3)
                lab.link(f"path 0 0-1 {fault}=off")
                lab.link(f"path 1 0-1 {fault}=on loss=5%")
                self.must_fail(backup)
                primary.run("send", "1M")
                lab.link(f"path 1 0-1 {fault}=off")
                backup.run("send", "1M")
            lab.hosts[0].set_interface("down", 1)
            self.must_fail(backup)
            primary.run("ping", 3)
            for wrong in ("path 3 0-1 cut=on", "path x 0-1 cut=on", "path 1"):
                with self.assertRaises(LabError, msg=wrong):
                    lab.link(wrong)
        self.assertEqual(lab.counted["links"]["0>1"]["lost"], 0)
        self.assertGreater(lab.counted_of_paths[0]["links"]["0>1"]["lost"], 0)

    def test_what_is_no_path_is_refused(self):
        sites = [Site(2, "1g"), Site(1)]
        for paths in (0, -1, 9, [[]] * 8, [["uplink="]]):
            with self.assertRaises(LabError, msg=paths):
                paths_of(paths, [], sites)
        with self.assertRaisesRegex(LabError, "want the emulator"):
            paths_of(2, None, sites)
        self.assertEqual(paths_of(2, ["rate=1g"], sites), [Path(["rate=1g"], sites)] * 2)
        of_backup = Path(["delay=9ms"], [Site(2, "1g", "2g"), Site(1, "1g", "2g")])
        self.assertEqual(paths_of([["uplink=1g", "delay=9ms", "downlink=2g"]], [], sites)[1], of_backup)

    def test_a_path_that_loses_large_packets_passes_small_ones(self):
        for family in (0, 1):
            with Lab(2, ["rate=1g", "delay=1ms"], families=((IPV4, IPV6)[family],), build=BUILD, paths=2) as lab:
                primary, backup = (stream_over(lab, path, family=family) for path in (0, 1))
                lab.link("path 1 * largest=1400")
                backup.run("ping", 3)
                self.assertNotEqual(backup.start("send", "1M", limit_s=2).wait(20), 0)
                self.assertGreater(lab.emulators[1].statistics()["links"]["0>1"]["swallowed"], 0)
                primary.run("send", "1M")
                lab.link("path 1 * largest=0")
                backup.run("send", "1M")

    def test_the_command_makes_paths(self):
        told = "ip -o -4 addr show dev wan1"
        for paths in (["--path", "delay=1ms"], ["--paths", "2"]):
            done = self.run_lab(*paths, "--link", "path 1 * loss=1%", "--statistics", "--", "sh", "-c", told)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("10.78.0.1/16", done.stdout)
            self.assertIn("path 1: the emulator was", done.stderr)
            self.assertEqual(len(json.loads(done.stdout.splitlines()[-1])["paths"]), 1)
        for wrong in (["--paths", "2", "--path", "delay=1ms"], ["--veth", "--paths", "2"]):
            self.assertEqual(self.run_lab(*wrong, "--", "true").returncode, 2, wrong)

    def run_lab(self, *words):
        command = [sys.executable, "-B", ROOT / "tests/lab/lab.py", "--build", BUILD, *words]
        return subprocess.run(command, capture_output=True, text=True, timeout=60)


    def test_every_host_of_a_site_is_on_each_path(self):
        """Hosts of one site are near each other on each path, and no packet between them passes an emulator."""
        for family in (0, 1):
            with Lab([Site(2), Site(2)], ["delay=20ms"], families=((IPV4, IPV6)[family],), build=BUILD, paths=[["delay=40ms"]]) as lab:
                for path, round_trip_us in ((0, 40_000), (1, 80_000)):
                    for host, sender in ((2, 0), (3, 0), (3, 1), (1, 2)):
                        stream = stream_over(lab, path, host, family)
                        self.assertGreaterEqual(stream.run("ping", 3, sender)["least_us"], round_trip_us)
                        self.assertLess(stream.run("ping", 20, host ^ 1)["least_us"], 20_000)
                lab.link("0-1 hole=on")
                stream_over(lab, 1, 3, family).run("ping", 2)
                self.must_fail(stream_over(lab, 0, 3, family))
                stream_over(lab, 0, 1, family).run("ping", 2)

    def test_timing_hosts_of_a_site_share_an_uplink_on_each_path(self):
        self.attempt(self.uplinks_of_paths)

    def uplinks_of_paths(self):
        rates, senders = (200, 60), ((0, 2), (1, 3))
        with Lab([Site(2, "200m"), Site(2, "1g")], ["delay=5ms"], build=BUILD, paths=[["uplink=60m", "delay=10ms"]]) as lab:
            streams = [(path, stream_over(lab, path, to), host) for path in (0, 1) for host, to in senders]
            running = [(path, stream, stream.start("send", rates[path] * 125_000, host)) for path, stream, host in streams]
            figures = [(path, stream.figures(process)["mbit_s"]) for path, stream, process in running]
        self.must_be_punctual(lab)
        print(f"{figures} Mbit/s, {lab.counted}, {lab.counted_of_paths}")
        for path, rate in enumerate(rates):
            least = min(figure for of, figure in figures if of == path)
            self.assertLessEqual(2 * least, 1.02 * rate * PAYLOAD_SHARE, "all bytes of a path over the time of the slower stream")
            self.must_reach(2 * least, 0.8 * rate)


if __name__ == "__main__":
    sys.exit(main())
