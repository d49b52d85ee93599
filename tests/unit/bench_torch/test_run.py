"""The pure parts of bench/torch."""

import sys
import unittest
import xml.dom.minidom
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "bench" / "torch"))

import rows  # noqa: E402
import quality  # noqa: E402
from goals import verdict  # noqa: E402


def entry(collective, size, number, backend, us):
    return {"collective": collective, "size": size, "round": number, "backend": backend, "us": us}


class Rows(unittest.TestCase):
    def test_ratios_are_of_one_round(self):
        entries = [entry("all_reduce", 4, 0, "seto", 10), entry("all_reduce", 4, 0, "gloo", 30)]
        entries += [entry("all_reduce", 4, 1, "seto", 20), entry("all_reduce", 4, 1, "gloo", 20), entry("all_reduce", 4, 2, "seto", 5)]
        self.assertEqual(rows.ratios_of(entries), {("all_reduce", 4): [3.0, 1.0]})

    def test_means_and_the_worst_point(self):
        ratios = {("all_reduce", 4): [4.0, 1.0], ("all_gather", 1 << 20): [1.0, 1.0, 0.5]}
        self.assertEqual(rows.means_by_round(ratios), [2.0, 1.0])
        self.assertEqual(rows.worst_of_points(ratios), (("all_gather", 1 << 20), 1.0))
        self.assertEqual(rows.name_of_point(("all_gather", 1 << 20)), "all_gather 1M")
        self.assertIsNone(rows.worst_of_points({}))
        self.assertEqual(rows.means_by_round({}), [])

    def test_goals_are_bounds(self):
        self.assertEqual(verdict(rows.MEANS[2].judged([1.9, 2.0, 2.5])), "met")
        self.assertEqual(verdict(rows.MEANS[2].judged([1.9, 1.99, 2.5])), "missed")
        self.assertEqual(verdict(rows.WORST[4].judged([0.94])), "missed")
        self.assertEqual(verdict(rows.STEPS["ddp"].judged([0.85])), "met")
        self.assertEqual(verdict(rows.OVERHEAD.judged([3.1])), "missed")
        self.assertEqual(verdict(rows.QUALITY["fp16"].judged([0.09])), "met")
        self.assertEqual(verdict(rows.QUALITY["fp16"].judged([])), "not measured")

    def test_sizes_and_keys(self):
        self.assertEqual((rows.SIZES[0], rows.SIZES[-1], len(rows.SIZES)), (4, 64 << 20, 13))
        self.assertEqual(len(set(rows.KEYS)), 9)
        self.assertEqual([rows.share_fits(share) for share in (0.29, 0.3, 0.5, 0.51)], [False, True, True, False])

    def test_a_lower_loss_is_as_far_as_a_higher_one(self):
        self.assertAlmostEqual(rows.distance(0.99, 1.0), 1.0)
        self.assertAlmostEqual(rows.distance(1.01, 1.0), 1.0)


class Quality(unittest.TestCase):
    def test_the_final_loss_is_a_mean(self):
        self.assertEqual(quality.final([9.0] * 100 + [1.0, 3.0] * 10), 2.0)

    def test_the_picture(self):
        curves = {what: [3.0 - step / 100 for step in range(200)] for what in quality.RUNS}
        picture = xml.dom.minidom.parseString(quality.picture_of(curves))
        self.assertEqual(len(picture.getElementsByTagName("polyline")), len(quality.RUNS))
        texts = [node.firstChild.data for node in picture.getElementsByTagName("text")]
        self.assertTrue(any(text.startswith("int8 with error feedback: 1.1") for text in texts), texts)


if __name__ == "__main__":
    unittest.main()
