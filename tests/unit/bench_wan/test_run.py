#!/usr/bin/env python3
"""The pure parts of the bench between sites: goals, bounds, what is launched for which row; and the program that connects."""

import json
import socket
import subprocess
import sys
import types
import unittest
from pathlib import Path

WAN = Path(__file__).resolve().parents[3] / "bench" / "wan"
sys.path.insert(0, str(WAN))

import rows  # noqa: E402  first: it knows where the common parts are
import contenders  # noqa: E402
import link_labs  # noqa: E402

# Plain sockets over 1 and 4 Gbit/s: what headers leave.
RAW = {rows.raw(rows.PAIR_1G, 8): [120e6], rows.raw(rows.PAIR_4G, 16): [480e6]}


def row_of(key):
    return next(row for row in rows.ROWS if row.key == key)


def verdict_of(key, times, other=None, least=1):
    row = row_of(key)
    return rows.verdict(rows.judge_row({**RAW, row.series: times, **({row.against: other} if other else {})}, row, least))


class Goals(unittest.TestCase):
    def test_keys_are_unique_and_a_quick_run_knows_them(self):
        self.assertEqual(len(set(rows.KEYS)), len(rows.KEYS))
        self.assertLess(set(rows.QUICK_KEYS), set(rows.KEYS))

    def test_every_goal_is_said(self):
        self.assertEqual(row_of("idle-2g").goal, ">= 75% of the bound")
        self.assertEqual(row_of("loss-1").goal, "at most 240 ms more than 1g all_reduce 100 MB")
        self.assertEqual(row_of("tls-1g").goal, "<= 1.1 x the time of 1g all_reduce 100 MB SETO_TLS=off")
        self.assertEqual(row_of("shared").goal, ">= 40% of the rate of the link")
        self.assertEqual(row_of("ddp-gloo").goal, "1g step, gloo takes >= 4 x the time")

    def test_series_that_differ_are_named_differently(self):
        for place in {one.place for row in rows.ROWS for one in row.needs}:
            here = {one for row in rows.ROWS for one in row.needs if one.place == place}
            self.assertEqual(len({one.what for one in here}), len(here))


class Verdicts(unittest.TestCase):
    def test_a_share_of_the_bound_of_all_bytes(self):
        self.assertEqual(verdict_of("warm-1g", [958.0]), "met")  # 100 MB at 120 MB/s, and 30 ms: 863 ms
        self.assertEqual(verdict_of("warm-1g", [961.0]), "missed")
        self.assertEqual(verdict_of("idle-1g", [1150.0]), "met")
        self.assertEqual(verdict_of("warm-4g", [297.0]), "met")  # 238 ms
        self.assertEqual(verdict_of("warm-4g", [299.0]), "missed")

    def test_the_default_travels_in_half_the_bytes(self):
        self.assertAlmostEqual(rows.bound_ms(RAW, row_of("fp16-1g").series), 446.7, delta=0.1)
        self.assertEqual(verdict_of("fp16-1g", [525.0]), "met")
        self.assertEqual(verdict_of("fp16-1g", [526.0]), "missed")

    def test_calls_in_flight_have_the_bound_of_their_sum(self):
        series = row_of("flight-1g").series
        self.assertAlmostEqual(rows.bound_ms(RAW, series), 4 * 25 * rows.MIB / 120e6 * 1e3 + 30)
        self.assertEqual(link_labs.work_of(series, link_labs.CALLS), "all_reduce:26214400:2:5:at-once=4")

    def test_loss_costs_round_trips(self):
        self.assertEqual(verdict_of("loss-0.1", [1019.0], [900.0]), "met")
        self.assertEqual(verdict_of("loss-0.1", [1021.0], [900.0]), "missed")
        self.assertEqual(rows.LOSSY["0.1"].links, ["delay=30ms", "loss=0.1%"])
        self.assertEqual(rows.PAIR_1G.links, ["delay=30ms"])

    def test_other_traffic_keeps_a_share_of_the_link(self):
        self.assertEqual(verdict_of("shared", [0.41 * 125e6]), "met")
        self.assertEqual(verdict_of("shared", [0.39 * 125e6]), "missed")
        self.assertEqual(verdict_of("shared", [0.41 * 125e6] * 9, least=10), "not measured")

    def test_the_worst_break_decides(self):
        self.assertEqual(verdict_of("takeover", [300.0] * 9 + [999.0], least=10), "met")
        self.assertEqual(verdict_of("takeover", [300.0] * 9 + [1001.0], least=10), "missed")
        self.assertEqual(verdict_of("takeover", [300.0] * 9, least=10), "not measured")
        self.assertEqual(row_of("outage").goal, "<= 2000 ms each time")

    def test_calls_that_broke_are_the_longest(self):
        times = [70.0] * 90 + [600.0, 500.0, 650.0, 550.0, 610.0]
        self.assertEqual(rows.longest(times, rows.TAKEOVER, 3000), [500, 550, 600, 610, 650])
        self.assertEqual(rows.longest([70.0, 10_400.0, 10_900.0, 11_000.0, 10_200.0], rows.OUTAGE, 10_000), [200, 400, 900, 1000])

    def test_a_gap_ends_with_a_whole_frame(self):
        gap = rows.Gap(10.0, 1_000_000)
        for now, passed in ((10.1, 1_070_000), (10.4, 1_100_000), (10.8, 1_130_000), (11.0, 1_200_000), (11.2, 1_201_000)):
            gap.look(now, passed)
        self.assertAlmostEqual(gap.longest, 0.9)  # from 10.1 to 11.0 less than 64 KiB came, until the last look
        gap.look(12.5, 1_202_000)
        self.assertAlmostEqual(gap.longest, 1.5, msg="a gap that has not ended counts")

    def test_the_first_frame_after_the_return_in_the_worse_direction(self):
        one, other = rows.Gap(10.0, 1_000_000), rows.Gap(10.0, 2_000_000)
        for now, passed in ((10.2, 1_060_000), (10.5, 1_070_000), (10.9, 1_300_000)):
            one.look(now, passed)
        self.assertAlmostEqual(one.first, 0.5)  # heartbeats alone are less than a frame
        self.assertEqual(rows.first_frame([one, other], 10), 10, "none has passed in the other direction")
        other.look(11.25, 2_065_536)
        self.assertAlmostEqual(rows.first_frame([one, other], 10), 1.25)
        self.assertEqual(verdict_of("return", [1250.0] * 9 + [1999.0], least=10), "met")
        self.assertEqual(verdict_of("return", [1250.0] * 9 + [2001.0], least=10), "missed")

    def test_ratios(self):
        cases = (("tls-2g", 109, 111, 100), ("connections", 109, 111, 100), ("ddp-fp16", 62, 63, 100), ("ddp-gloo", 24, 26, 100))
        for key, good, bad, other in cases:
            self.assertEqual(verdict_of(key, [float(good)], [float(other)]), "met", key)
            self.assertEqual(verdict_of(key, [float(bad)], [float(other)]), "missed", key)
            self.assertEqual(verdict_of(key, [float(good)]), "not measured", key)

    def test_a_step_that_computes_too_long_does_not_count(self):
        self.assertIsNone(rows.step_is_valid({"gradients_mb": 25, "compute_ms": 70}))
        self.assertIn("computes for 71 ms", rows.step_is_valid({"gradients_mb": 25, "compute_ms": 71}))
        self.assertIn("are 24 MB", rows.step_is_valid({"gradients_mb": 24, "compute_ms": 10}))

    def test_rates_are_those_of_the_lines_between(self):
        lines = [{"seconds": 0.5, "bytes": count} for count in (1, 2, 3, 4)]
        self.assertEqual(rows.rates_between(lines, 1, 3), [4.0, 6.0])

    def test_too_few_connections_do_not_count(self):
        self.assertTrue(rows.enough_connections({"seconds": 2.0, "connected": 800}))
        self.assertFalse(rows.enough_connections({"seconds": 2.0, "connected": 799}))


class Launches(unittest.TestCase):
    def launches(self, *keys, quick=False, torch=sys.executable):
        options = types.SimpleNamespace(quick=quick, torch=torch, calls=0)
        self.setup = types.SimpleNamespace(missing={})
        session = types.SimpleNamespace(options=options, build=Path("build"), progress=types.SimpleNamespace(note=lambda text: None))
        return contenders.launches_of([row_of(key) for key in keys], session, self.setup, "python")

    def names(self, *keys, **more):
        return [launch.name for launch in self.launches(*keys, **more)]

    def test_a_quick_run_is_two_launches(self):
        self.assertEqual(self.names(*rows.QUICK_KEYS, quick=True), ["4 plain sockets", "Seto"])

    def test_jobs_with_other_settings_are_launched_apart(self):
        self.assertEqual(self.names("tls-1g"), ["Seto", "Seto SETO_TLS=off", "Seto again"])
        own = [launch for launch in self.launches("warm-4g", "idle-4g") if launch.name.startswith("Seto")]
        self.assertEqual([launch.settings for launch in own], [{"SETO_TLS": "off"}])
        self.assertEqual(own[0].words, ["all_reduce:100000000:2:5", "all_reduce:100000000:2:5:idle=1000"])

    def test_few_rounds_can_have_more_calls(self):
        table = link_labs.table_of(types.SimpleNamespace(quick=False, calls=12))
        self.assertEqual(table, ((1, 5, 12), (10, 3, 12), (100, 2, 12)))

    def test_gloo_is_launched_in_two_rounds(self):
        rounds = {launch.name: launch.rounds for launch in self.launches("gloo-1g")}
        self.assertEqual((rounds["gloo"], rounds["Seto"]), (2, None))

    def test_what_is_special_is_launched_once(self):
        self.assertEqual(self.names("shared"), ["a job beside other traffic"])
        self.assertEqual(self.names("connections"), ["a job while others connect"])
        self.assertEqual(self.names("gap"), self.names("takeover"))
        self.assertEqual(self.names("return"), self.names("outage"))
        self.assertEqual(self.names("takeover", "outage"), [f"a job: {breaks.name}" for breaks in (rows.TAKEOVER, rows.OUTAGE)])

    def test_training_needs_torch(self):
        self.assertEqual(self.names("ddp-fp16"), ["training, step", "training, step SETO_CODEC=none"])
        self.assertEqual(self.names("ddp-gloo"), ["training, step", "training, step, gloo"])
        self.assertEqual(self.names("ddp-gloo", torch="/nowhere/python"), [])
        self.assertIn("/nowhere/python is missing", self.setup.missing["torch"])


class Connecting(unittest.TestCase):
    def wait_for_bytes(self, listener):
        """The connections that look for a port send none."""
        listener.settimeout(60)
        got = b""
        while not got:
            connection = listener.accept()[0]
            with connection:
                connection.settimeout(60)
                got = connection.recv(1)

    def test_it_finds_the_port_and_counts_what_it_did(self):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            port = listener.getsockname()[1]
            words = [sys.executable, "-B", WAN / "connections.py", "200", f"{port}-{port}", "127.0.0.1"]
            with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
                self.assertEqual(process.stdout.readline(), "found\n")
                self.wait_for_bytes(listener)
                process.stdin.close()
                found = json.loads(process.stdout.readline())
        self.assertGreater(found["seconds"], 0)
        self.assertGreaterEqual(found["connected"], 1)
        self.assertEqual(process.returncode, 0)


if __name__ == "__main__":
    unittest.main()
