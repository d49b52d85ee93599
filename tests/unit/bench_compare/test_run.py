#!/usr/bin/env python3
"""The pure parts of the comparison of two builds: rows, placebo, verdicts, options."""

import contextlib
import io
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "bench" / "compare"))

import rows  # noqa: E402  first: it adds the common folder to the path
import run  # noqa: E402

CASE = rows.CASES[0]


def samples(old, new, again, state=rows.NEAR, case=CASE):
    times = {rows.OLD: old, rows.NEW: new, rows.OLD_AGAIN: again}
    return [
        rows.Sample(case.group, name, index, state, {case.size: time}) for name, found in times.items() for index, time in enumerate(found)
    ]


def verdict(found):
    return rows.verdict(rows.judge_case(found, CASE))


class Rows(unittest.TestCase):
    def test_the_rows_are_those_of_every_change(self):
        shared = [f"shm-{ranks}-{size}" for ranks in (2, 4) for size in ("8B", "4K", "1M", "64M")]
        self.assertEqual(list(rows.KEYS), [*shared, "tcp-2-64K", "tcp-2-16M"])
        for case in rows.CASES:
            self.assertEqual(case.group.all_sizes, [case.size])
            self.assertIn(case.group.place, run.TRANSPORTS)

    def test_equal_builds_meet_the_goal(self):
        self.assertEqual(verdict(samples([10, 10.1, 10.2], [10.1, 10, 10.2], [10.2, 10, 10.1])), "met")

    def test_a_slower_build_misses_it(self):
        self.assertEqual(verdict(samples([10] * 4, [10.29] * 4, [10] * 4)), "met")
        self.assertEqual(verdict(samples([10] * 4, [10.31] * 4, [10] * 4)), "missed")
        self.assertEqual(verdict(samples([10] * 4, [5] * 4, [10] * 4)), "met")

    def test_what_equal_builds_differ_by_is_allowed_too(self):
        noisy = [9, 11, 9.5, 10.5, 10]
        self.assertGreater(rows.placebo_spread(noisy * 2), 1.03)
        self.assertEqual(verdict(samples(noisy, [10.5] * 5, noisy)), "met")
        self.assertEqual(verdict(samples(noisy, [12] * 5, noisy)), "missed")

    def test_the_placebo_spread_is_at_least_one_and_repeatable(self):
        self.assertEqual(rows.placebo_spread([7.0] * 6), 1.0)
        times = [10, 11, 12, 13, 14, 15]
        self.assertEqual(rows.placebo_spread(times), rows.placebo_spread(times))

    def test_one_slow_state_misses_the_row(self):
        near = samples([10] * 3, [10] * 3, [10] * 3)
        far = samples([30] * 3, [40] * 3, [30] * 3, rows.FAR)
        judgements = rows.judge_case(near + far, CASE)
        self.assertTrue(judgements[rows.NEAR].met)
        self.assertEqual(judgements[rows.FAR].figures["ratio"], 40 / 30)
        self.assertEqual(rows.verdict(judgements), "missed")

    def test_too_few_samples_are_not_measured(self):
        self.assertEqual(verdict(samples([10] * 3, [90] * 2, [10] * 3)), "not measured")
        self.assertEqual(verdict([]), "not measured")
        few = rows.judge_case(samples([10], [10], [10]), CASE, least=1)
        self.assertEqual(rows.verdict(few), "met")

    def test_samples_of_other_cases_do_not_count(self):
        other = samples([10] * 3, [90] * 3, [10] * 3, case=rows.CASES[1])
        self.assertEqual(verdict(samples([10] * 3, [10] * 3, [10] * 3) + other), "met")

    def test_a_line_tells_both_figures_ratio_and_spread(self):
        line = rows.line_of(CASE.what, rows.GOAL, rows.judge_case(samples([10] * 3, [10] * 3, [10] * 3, rows.ONE), CASE))
        figures = "one state: old 10 us, new 10 us, ratio 1.000, placebo spread 1.000"
        self.assertEqual(line, f"all_reduce 8B, 2 processes, shared memory | time <= 1.03x beyond the placebo | {figures} | met")


class Builds(unittest.TestCase):
    def test_each_build_runs_its_own_program_with_its_own_library(self):
        old, new, again = run.contenders_of(Path("/a"), Path("/b"))
        self.assertEqual([build.name for build in (old, new, again)], [rows.OLD, rows.NEW, rows.OLD_AGAIN])
        self.assertEqual([build.build for build in (old, new, again)], [Path("/a"), Path("/b"), Path("/a")])
        with mock.patch.object(run, "run_process") as started:
            new.start(rows.CASES[-1].group, [str(new.program(CASE.group))], "figures.json")
        command, environment = started.call_args.args
        self.assertEqual(command, ["/b/bench/all_reduce_perf", "--ranks", 2, "-J", "figures.json"])
        self.assertEqual(environment, {"LD_LIBRARY_PATH": "", "SETO_TRANSPORT": "tcp"})

    def test_a_directory_without_programs_is_refused(self):
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stderr(io.StringIO()) as said:
            with self.assertRaises(SystemExit):
                run.parse([folder, folder])
            self.assertIn("all_reduce_perf", said.getvalue())
            (Path(folder) / "bench").mkdir()
            for name in run.PROGRAMS:
                (Path(folder) / "bench" / name).touch()
            options = run.parse([folder, folder, "--quick"])
            self.assertEqual((options.rounds, options.build), (run.QUICK_ROUNDS, Path(folder).resolve()))
            self.assertEqual(run.parse([folder, folder, "--rounds", "4"]).rounds, 4)


if __name__ == "__main__":
    unittest.main()
