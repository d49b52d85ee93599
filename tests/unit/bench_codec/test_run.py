"""The pure parts of bench/codec."""

import re
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "bench" / "codec"))

import rows  # noqa: E402
from goals import verdict  # noqa: E402


def row_of(key):
    return next(row for row in rows.ROWS if row.key == key)


class Rows(unittest.TestCase):
    def test_every_codec_of_the_library_has_goals(self):
        header = (Path(__file__).resolve().parents[3] / "src" / "codec" / "format.h").read_text()
        names = re.search(r"enum class Codec : \S+ \{([^}]*)\}", header)[1]
        self.assertEqual(rows.CODECS, tuple(name.strip() for name in names.split(",")))
        self.assertEqual(set(rows.CODECS), set(rows.OF_MEMCPY))

    def test_names_of_our_program(self):
        entry = lambda name: {"name": name, "bytes_per_second": 2e9}  # noqa: E731
        names = ["memcpy/64MiB", "encode/fp16/float/256KiB/cached", "encode/fp16/float/64MiB/cached", "decode/int4/float/64MiB/past_cache"]
        names += ["encode/fp16/double/256KiB/cached", "accumulate/fp16/float/256KiB/cached"]
        figures = rows.ours_of({"benchmarks": [entry(name) for name in names]})
        self.assertEqual(
            figures,
            {("memcpy", "", "64MiB"): 2.0, ("fp16", "encode", "256KiB"): 2.0, ("int4", "decode", "64MiB"): 2.0},
        )

    def test_cases(self):
        row = next(row for row in rows.CASE_ROWS if row.key == "bits")
        document = lambda *tests: {"testsuites": [{"testsuite": list(tests)}]}  # noqa: E731
        self.assertEqual(verdict(rows.judge_cases(row, document({"cases": "6000"}, {"cases": "4000"}))), "met")
        self.assertEqual(verdict(rows.judge_cases(row, document({"cases": "6000"}))), "missed")
        self.assertEqual(verdict(rows.judge_cases(row, document({"cases": "20000", "failures": [{}]}))), "missed")
        self.assertEqual(verdict(rows.judge_cases(row, None)), "not measured")

    def test_against_memcpy(self):
        row = row_of("memcpy-fp16-encode")
        rounds = [({("memcpy", "", "64MiB"): 20.0, ("fp16", "encode", "64MiB"): speed}, {}) for speed in (15.0, 16.5, 30.0)]
        self.assertEqual(verdict(rows.judge(row, rounds)), "met")
        self.assertEqual(verdict(rows.judge(row, rounds[:1])), "missed")

    def test_against_the_best_peer(self):
        row = row_of("peers-int8-decode-256KiB")
        key = ("int8", "decode", "256KiB")
        peers = {"numpy": {key: 10.0}, "torch": {key: 40.0}}
        self.assertAlmostEqual(rows.ratio_of(row, {key: 50.0}, peers), 1.25)
        self.assertEqual(verdict(rows.judge(row, [({key: 50.0}, peers)])), "missed")
        self.assertEqual(verdict(rows.judge(row, [({key: 60.0}, peers)])), "met")

    def test_without_a_peer_nothing_is_met(self):
        row = row_of("peers-int4-encode-64MiB")
        self.assertIsNone(rows.ratio_of(row, {("int4", "encode", "64MiB"): 5.0}, {"torch": {}}))
        self.assertEqual(verdict(rows.judge(row, [({("int4", "encode", "64MiB"): 5.0}, {})])), "not measured")

    def test_over_slow_links(self):
        entry = lambda codec, time: {"codec": codec, "out_of_place": {"time": str(time)}}  # noqa: E731
        times = rows.times_of({"results": [entry("none", 400), entry("fp16", 208), entry("int8", 116)]})
        row = next(row for row in rows.LINK_ROWS if row.codec == "fp16" and row.hosts == 2)
        self.assertEqual(verdict(rows.judge_link(row, [times, times])), "met")
        row = next(row for row in rows.LINK_ROWS if row.codec == "int8" and row.hosts == 2)
        self.assertEqual(verdict(rows.judge_link(row, [times, times])), "missed")
        self.assertEqual(verdict(rows.judge_link(row, [{}])), "not measured")

    def test_keys_are_unique(self):
        self.assertEqual(len(rows.KEYS), len(set(rows.KEYS)))


if __name__ == "__main__":
    unittest.main()
