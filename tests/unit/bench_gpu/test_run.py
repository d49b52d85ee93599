#!/usr/bin/env python3
"""The pure parts of the table of goals for GPU memory."""

import importlib.util
import sys
import unittest
from pathlib import Path
from types import SimpleNamespace

BENCH = Path(__file__).resolve().parents[3] / "bench"
sys.path[:0] = [str(BENCH / "gpu"), str(BENCH / "common_py"), str(BENCH / "peers")]

import goals  # noqa: E402
import nccl_perf  # noqa: E402
import rows  # noqa: E402

spec = importlib.util.spec_from_file_location("gpu_run", BENCH / "gpu" / "run.py")
run = importlib.util.module_from_spec(spec)
spec.loader.exec_module(run)

OWN2, ONE2 = rows.Case(rows.OWN, 2), rows.Case(rows.SHARED, 2)


def row_of(key):
    return next(row for row in rows.ROWS if row.key == key)


def verdict(key, rounds):
    return goals.verdict(rows.judge(row_of(key), rounds))


class Rows(unittest.TestCase):
    def test_each_number_of_ranks_has_rows_on_gpus_of_its_own_and_on_one(self):
        self.assertEqual(rows.KEYS[:2] + rows.KEYS[-2:], ("own2-small", "own2-large", "one8-small", "one8-large"))
        self.assertEqual(len(set(rows.KEYS)), 12)
        self.assertEqual(row_of("own4-large").goal, ">= 0.9x NCCL")
        self.assertEqual(row_of("one2-small").what, "all_reduce, 2 ranks, one GPU, 8B - 16K")

    def test_sizes_lie_in_the_ranges_of_the_rows(self):
        self.assertEqual(rows.sizes_up_to(16 * rows.KIB), [8, 32, 128, 512, 2048, 8192])
        self.assertEqual(rows.sizes_up_to(4 * rows.MIB)[-2:], [rows.MIB, 4 * rows.MIB])
        for size in rows.sizes_up_to(1 << 40):
            self.assertTrue(any(row.lower <= size <= row.upper for row in rows.ROWS), size)


class Judging(unittest.TestCase):
    def test_a_time_is_compared_with_the_fastest_peer_of_the_round(self):
        rounds = [{rows.OURS: {8: 5.0, 32: 5.0}, rows.NCCL: {8: 10.0, 32: 6.0}, rows.NCCL_TESTS: {8: 5.0, 32: 8.0}}]
        ratios = rows.ratios_of(row_of("own2-small"), rounds[0])
        self.assertEqual({size: round(ratio, 3) for size, ratio in ratios.items()}, {8: 1.0, 32: 0.833})
        self.assertEqual(verdict("own2-small", rounds), "met")

    def test_a_speed_below_its_share_is_missed(self):
        slow = [{rows.OURS: {rows.MIB: 10.0}, rows.NCCL: {rows.MIB: 8.0}}]
        self.assertEqual(verdict("own2-large", slow), "missed")
        self.assertEqual(verdict("own2-large", [{rows.OURS: {rows.MIB: 8.5}, rows.NCCL: {rows.MIB: 8.0}}]), "met")

    def test_sizes_of_the_other_row_do_not_count(self):
        figures = {rows.OURS: {8: 99.0, rows.MIB: 8.0}, rows.NCCL: {8: 1.0, rows.MIB: 8.0}}
        self.assertEqual(verdict("own2-large", [figures]), "met")
        self.assertEqual(verdict("own2-small", [figures]), "missed")

    def test_without_a_peer_nothing_is_measured(self):
        self.assertEqual(verdict("own2-small", [{rows.OURS: {8: 5.0}}]), goals.NOT_MEASURED)
        self.assertEqual(verdict("own2-small", []), goals.NOT_MEASURED)
        self.assertEqual(verdict("one2-large", [{rows.OURS: {rows.MIB: 5.0}, rows.NCCL: {rows.MIB: 5.0}}]), goals.NOT_MEASURED)

    def test_one_bad_round_of_three_does_not_decide(self):
        good, bad = {rows.OURS: {8: 5.0}, rows.NCCL: {8: 6.0}}, {rows.OURS: {8: 50.0}, rows.NCCL: {8: 6.0}}
        self.assertEqual(verdict("own2-small", [good, bad, good]), "met")
        self.assertEqual(verdict("own2-small", [bad, bad, good]), "missed")

    def test_the_software_gpu_is_never_judged(self):
        taken = {OWN2: [{rows.OURS: {8: 5.0}, rows.NCCL: {8: 6.0}}]}
        for software, expected in ((True, goals.NOT_MEASURED), (False, "met")):
            session = SimpleNamespace(machine=SimpleNamespace(software=software), taken=taken)
            self.assertEqual(goals.verdict(run.judge(session, row_of("own2-small"))), expected)


class Reading(unittest.TestCase):
    def test_a_wrong_result_of_ours_is_an_error(self):
        entry = {"size": 8, "out_of_place": {"time": 4.5, "nwrong": 0}}
        self.assertEqual(rows.ours_of({"results": [entry]}), {8: 4.5})
        entry["out_of_place"]["nwrong"] = 1
        with self.assertRaises(ValueError):
            rows.ours_of({"results": [entry]})

    def test_the_table_of_nccl_tests_is_read(self):
        text = """# nThread 1 nGpus 2 minBytes 8 maxBytes 32 step: 4(factor) warmup iters: 5 iters: 20 agg iters: 1 validation: 0 graph: 20
#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong
           8             2     float     sum      -1     6.51    0.00    0.00     N/A     6.40    0.00    0.00     N/A
          32             8     float     sum      -1    12.00    0.00    0.00     N/A     6.44    0.00    0.00     N/A
# Avg bus bandwidth    : 0.001
"""
        self.assertEqual(rows.times_of_table(text), {8: 6.51, 32: 12.0})

    def test_a_prediction_is_of_calls_as_they_are_cut_now(self):
        document = {"sizes": [{"fastest_first": [{"bytes": 8, "seconds": 1e-6}], "cut_as_now": {"bytes": 8, "seconds": 4e-6}}]}
        self.assertEqual(rows.predicted_of(document), {8: 4.0})

    def test_gpus_or_the_reason_why_there_are_none(self):
        some = {"gpus": {"CUDA driver": {"value": "13.0"}, "GPU 0": {"value": "H100", "remark": "x"}}}
        self.assertEqual(rows.gpus_of(some), (["H100"], ""))
        none = {"gpus": {"CUDA driver": {"value": "none", "remark": "it cannot be opened"}}}
        self.assertEqual(rows.gpus_of(none), ([], "it cannot be opened"))
        self.assertEqual(rows.why_not(rows.Case(rows.OWN, 4), ["a", "b"]), "needs 4 GPUs, this machine has 2")
        self.assertEqual(rows.why_not(rows.Case(rows.SHARED, 8), ["a"]), "")

    def test_bus_bandwidth(self):
        self.assertAlmostEqual(rows.bus_gb_s(8, 1 << 30, 1e4), 1.073741824 / 1e-2 * 1.75, places=6)


class FakeGpu:
    """Counts what is asked of a GPU."""

    def __init__(self, log):
        self.log = log

    def __getattr__(self, name):
        return lambda *arguments: self.log.append(name) or f"graph of {len(self.log)}"


class Peer(unittest.TestCase):
    def test_a_graph_has_all_calls_and_is_launched_as_often_as_asked(self):
        log = []
        gpus = [FakeGpu(log), FakeGpu(log)]
        options = SimpleNamespace(calls=3, launches=4)
        work = SimpleNamespace(issue=lambda size: log.append(f"call of {size}"))
        self.assertGreater(nccl_perf.measure(gpus, work, 64, options), 0)
        begin, end = log.index("begin_capture"), log.index("end_capture")
        self.assertEqual(log[begin:end].count("call of 64"), 3)
        self.assertEqual(log.count("launch"), 2 * (1 + 4))
        self.assertEqual(log.count("drop"), 2)

    def test_a_copy_has_the_bytes_of_all_ranks(self):
        sizes = []
        nccl_perf.Copy(SimpleNamespace(copy=sizes.append), 4).issue(1000)
        self.assertEqual(sizes, [4000])


class Environment(unittest.TestCase):
    def test_the_stand_in_shows_as_many_gpus_as_a_case_uses(self):
        machine = object.__new__(run.Machine)
        machine.software, machine.build = True, Path("/b")
        self.assertEqual(machine.environment(2)["SOFTWARE_GPU_COUNT"], "2")
        self.assertTrue(machine.environment(2)["LD_LIBRARY_PATH"].startswith("/b/tests/driver"))
        machine.software = False
        self.assertEqual(machine.environment(1), {"CUDA_VISIBLE_DEVICES": "0"})
        self.assertEqual(machine.environment(4), {})


if __name__ == "__main__":
    unittest.main()
