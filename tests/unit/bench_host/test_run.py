#!/usr/bin/env python3
"""The pure parts of the host benchmark: states, sizes, ratios, verdicts, parsing of the contenders' output."""

import contextlib
import io
import json
import sys
import tempfile
import types
import unittest
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "bench" / "host"))

import contenders  # noqa: E402
import picture  # noqa: E402
import rows  # noqa: E402
import run  # noqa: E402
import session as common  # noqa: E402

GROUP = rows.Group("all_reduce", 2, 8, 128, with_limit=True)


def sample(contender, times, state=rows.NEAR, round_index=0, group=GROUP):
    return rows.Sample(group, contender, round_index, state, times)


def speed_row(**changes):
    values = {"key": "k", "what": "w", "groups": (GROUP,), "measure": "speed", "mean": 1.5, **changes}
    return rows.Row(**values)


def all_peers(time, state=rows.NEAR):
    return [sample(peer, dict.fromkeys(GROUP.sizes, time), state) for peer in rows.PEERS]


class Sizes(unittest.TestCase):
    def test_every_second_power_and_the_upper_bound(self):
        self.assertEqual(rows.sizes_of(8, 4096), [8, 32, 128, 512, 2048, 4096])
        self.assertEqual(rows.sizes_of(64 << 10, 64 << 20), [(64 << 10) << (2 * i) for i in range(6)])
        self.assertEqual(rows.sizes_of(8, 8), [8])

    def test_named_sizes_join_the_launch_but_not_the_series(self):
        self.assertIn(32 << 10, rows.ALL_REDUCE_2_MEDIUM.all_sizes)
        self.assertNotIn(32 << 10, rows.ALL_REDUCE_2_MEDIUM.sizes)

    def test_the_call_numbers_cover_each_range(self):
        for group in {group for row in rows.ROWS for group in row.groups}:
            self.assertEqual(group.calls[-1][0], group.upper, group.title)

    def test_names(self):
        self.assertEqual(
            [rows.name_of_size(size) for size in (8, 1024, 1536, 1 << 20, 256 << 20)], ["8B", "1K", "1536B", "1M", "256M"]
        )


class Goals(unittest.TestCase):
    def test_words_and_bounds_are_one(self):
        goals = {row.key: row.goal for row in rows.ROWS + rows.YARDSTICK_ROWS}
        self.assertEqual(goals["ar2-small"], "time <= 0.7x the best peer (mean), time <= 1.0x at each size")
        self.assertEqual(goals["ar2-medium"], ">= 1.2x the best peer (mean), >= 1.0x at each size")
        self.assertEqual(goals["ar2-large"], ">= 1.4x the best peer (mean), >= 93% of the limit (mean), >= 85% of the limit at each size")
        self.assertEqual(goals["threads"], ">= 1.0x Seto from 8M, >= 0.95x below 8M")
        self.assertEqual(goals["yardstick-2"], ">= 0.95x yardstick (mean)")


class Ratios(unittest.TestCase):
    def test_geometric_mean(self):
        self.assertAlmostEqual(rows.geometric_mean([0.5, 2.0]), 1.0)
        self.assertAlmostEqual(rows.geometric_mean([2.0, 8.0]), 4.0)

    def test_medians_stay_within_a_state(self):
        samples = [
            sample("gloo", {8: 1.0}),
            sample("gloo", {8: 3.0}),
            sample("gloo", {8: 2.0}),
            sample("gloo", {8: 99.0}, rows.FAR),
        ]
        self.assertEqual(rows.medians(samples, GROUP, "gloo", rows.NEAR), {8: 2.0})
        self.assertEqual(rows.medians(samples, GROUP, "gloo", rows.FAR), {8: 99.0})

    def test_the_best_peer_is_found_for_each_size(self):
        samples = [sample("gloo", {8: 1.0, 32: 9.0}), sample("MPICH", {8: 2.0, 32: 3.0})]
        self.assertEqual(rows.best_of(samples, GROUP, rows.PEERS, rows.NEAR), {8: (1.0, "gloo"), 32: (3.0, "MPICH")})

    def test_no_best_while_a_measured_peer_is_missing_in_the_state(self):
        samples = [sample("gloo", {8: 1.0}), sample("MPICH", {8: 2.0}, rows.FAR)]
        self.assertIsNone(rows.best_of(samples, GROUP, rows.PEERS, rows.NEAR))

    def test_direction_of_the_measures(self):
        self.assertEqual(rows.ratios_against({8: 2.0}, {8: 4.0}, "time"), {8: 0.5})
        self.assertEqual(rows.ratios_against({8: 2.0}, {8: 4.0}, "speed"), {8: 2.0})
        self.assertTrue(rows.keeps(0.7, 0.7, "time") and rows.keeps(1.1, 1.1, "speed"))
        self.assertFalse(rows.keeps(0.71, 0.7, "time") or rows.keeps(1.09, 1.1, "speed"))


class Verdicts(unittest.TestCase):
    def ours(self, time, state=rows.NEAR):
        return [sample(rows.OURS, dict.fromkeys(GROUP.sizes, time), state, index) for index in range(2)]

    def test_met_only_if_every_seen_state_keeps_the_goal(self):
        near = self.ours(1.0) + all_peers(2.0)
        judgements = rows.judge(near, speed_row())
        self.assertIsNone(judgements[rows.FAR])
        self.assertEqual(rows.verdict(judgements), "met")
        both = near + self.ours(2.0, rows.FAR) + all_peers(2.0, rows.FAR)
        self.assertEqual(rows.verdict(rows.judge(both, speed_row())), "missed")

    def test_a_row_without_samples_is_not_measured(self):
        line = rows.line_of("w", "g", rows.judge(all_peers(1.0), speed_row()))
        self.assertEqual(line, "w | g | too few samples | not measured")
        self.assertEqual(rows.line_of("w", "g", rows.judge_plain([], 1, "x", True)), "w | g | too few samples | not measured")

    def test_a_row_tells_each_state_that_the_machine_has(self):
        near = rows.line_of("w", "g", rows.judge(self.ours(1.0) + all_peers(2.0), speed_row()))
        self.assertEqual(near, "w | g | near: 2.00x (worst 2.00 at 8B) | far: not seen | met")
        one = rows.judge(self.ours(1.0, rows.ONE) + all_peers(2.0, rows.ONE), speed_row())
        self.assertEqual(rows.line_of("w", "g", one), "w | g | one state: 2.00x (worst 2.00 at 8B) | met")

    def test_a_machine_of_one_state_keeps_the_bounds_of_near(self):
        samples = self.ours(2.0, rows.ONE) + all_peers(1.0, rows.ONE)
        for state, met in ((rows.NEAR, False), (rows.FAR, True)):
            row = speed_row(mean=0.0, each=(rows.Floor(0, 0.7, states=(state,)),))
            self.assertEqual(rows.judge(samples, row)[rows.ONE].met, met)
        judgements = rows.judge_single({rows.ONE: [30.0, 50.0, 50.0]}, {rows.NEAR: 40.0, rows.FAR: 80.0}, "ns")
        self.assertFalse(judgements[rows.ONE].met)

    def test_one_sample_of_ours_is_not_enough(self):
        self.assertIsNone(rows.judge(self.ours(1.0)[:1] + all_peers(2.0), speed_row())[rows.NEAR])
        self.assertIsNotNone(rows.judge(self.ours(1.0)[:1] + all_peers(2.0), speed_row(), least_samples=1)[rows.NEAR])

    def test_one_size_below_its_floor_misses_the_row(self):
        ours = [sample(rows.OURS, {8: 0.1, 32: 0.1, 128: 2.5}, round_index=index) for index in range(2)]
        row = speed_row(each=(rows.Floor(64, 0.95),))
        judgement = rows.judge(ours + all_peers(2.0), row)[rows.NEAR]
        self.assertFalse(judgement.met)
        self.assertIn("below the bound at 128B", judgement.text)
        far_only = speed_row(each=(rows.Floor(64, 0.95, states=(rows.FAR,)),))
        self.assertTrue(rows.judge(ours + all_peers(2.0), far_only)[rows.NEAR].met)

    def test_the_limit_binds_at_each_size_or_as_a_mean(self):
        limit = [sample(rows.LIMIT, {8: 1.0, 32: 1.0, 128: 0.8})]
        samples = self.ours(1.0) + all_peers(2.0) + limit
        self.assertFalse(rows.judge(samples, speed_row(limit_each=0.85))[rows.NEAR].met)
        self.assertTrue(rows.judge(samples, speed_row(limit_mean=0.9))[rows.NEAR].met)
        self.assertIsNone(rows.judge(self.ours(1.0) + all_peers(2.0), speed_row(limit_mean=0.9))[rows.NEAR])

    def test_a_row_of_several_groups_needs_all_of_them(self):
        other = rows.Group("all_reduce", 2, 512, 512)
        row = speed_row(groups=(GROUP, other), against=(rows.PLACEBO,))
        samples = self.ours(1.0) + [sample(rows.PLACEBO, dict.fromkeys(GROUP.sizes, 2.0))]
        self.assertIsNone(rows.judge(samples, row)[rows.NEAR])
        samples += [sample(rows.OURS, {512: 1.0}, group=other, round_index=index) for index in range(2)]
        samples += [sample(rows.PLACEBO, {512: 1.0}, group=other)]
        self.assertFalse(rows.judge(samples, row)[rows.NEAR].met)

    def test_single_figures(self):
        judgements = rows.judge_single({rows.NEAR: [30.0, 90.0, 35.0]}, {rows.NEAR: 40.0, rows.FAR: 80.0}, "ns")
        self.assertTrue(judgements[rows.NEAR].met)
        self.assertIsNone(judgements[rows.FAR])

    def test_rotation_gives_everybody_each_place(self):
        self.assertEqual([rows.rotated("abc", by)[0] for by in range(4)], ["a", "b", "c", "a"])
        self.assertEqual(rows.rotated([], 3), [])


class Rounds(unittest.TestCase):
    def session(self, limit_s):
        options = types.SimpleNamespace(build="build", rounds=3, quick=False)
        session = common.Run(options, common.Progress(limit_s))
        session.look_around = lambda: session.busy.append(0.0)
        return session

    def steps(self, session):
        taken = []
        with contextlib.redirect_stderr(io.StringIO()):
            for index in session.rounds(2):
                for name in "ab":
                    session.step(index, "group", name, lambda: taken.append((index, name)))
        return taken

    def test_every_step_of_every_round_is_taken(self):
        session = self.session(1000)
        self.assertEqual(self.steps(session), [(index, name) for index in range(3) for name in "ab"])
        self.assertEqual((session.rounds_done, session.progress.done, session.progress.total), (3, 6, 6))

    def test_a_round_without_time_does_not_count(self):
        session = self.session(0)
        self.assertEqual(self.steps(session), [])
        self.assertEqual((session.rounds_done, session.stopped), (0, True))

    def test_what_fails_twice_is_left_alone(self):
        def fail():
            tried.append(1)
            raise contenders.Unavailable("no")

        session, tried = self.session(1000), []
        with contextlib.redirect_stderr(io.StringIO()) as said:
            self.assertEqual([session.attempt("x", fail) for _ in range(4)], [None] * 4)
        self.assertEqual((len(tried), said.getvalue().count("x: no")), (2, 1))

    def test_the_document_holds_every_row(self):
        session, judged = self.session(1000), [("k", "w", "g", rows.judge_plain([3.0], 4, "MiB", True)), ("l", "w", "g", {})]
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "a.json"
            run.write_json(path, session, {"gloo": "no"}, judged, {"more": 1})
            document = json.loads(path.read_text())
        self.assertEqual([row["verdict"] for row in document["rows"]], ["met", "not measured"])
        self.assertEqual((document["not_available"], document["more"]), ({"gloo": "no"}, 1))
        self.assertEqual((run.exit_status(judged), run.exit_status(judged[:1])), (1, 0))


class Brackets(unittest.TestCase):
    """Samples of a session with given probes."""

    XEON = (155, 152, 158, 154, 156, 151, 159, 155, 150, 157)
    EPYC = (60, 95, 70, 260, 340, 81, 300, 75, 280, 350, 66, 310)

    WILD = tuple(60 * 100 ** (index / 40) for index in range(41))

    def session(self, *probes, first=XEON, quick=False):
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "bench").mkdir()
            (Path(folder) / "bench" / "flag_probe").touch()
            session = common.Session(types.SimpleNamespace(build=folder, rounds=3, quick=quick), common.Progress(1000))
        given = iter([*first, *probes])
        session.probe = lambda: {"exchange_ns": next(given)}
        with contextlib.redirect_stderr(io.StringIO()) as self.said, mock.patch.multiple(common, LOOK_S=0, LOOK_PAUSE_S=0):
            with mock.patch.object(common.states, "LEAST_PROBES", len(first)):
                session.find_states()
        return session

    def take(self, session, samples):
        contender = types.SimpleNamespace(name=rows.OURS, measure=lambda group, scale: {8: 1.0})
        with contextlib.redirect_stderr(self.said):
            for index in range(samples):
                session.sample_all([GROUP], lambda group: [contender], index)
        return [sample.state for sample in session.samples]

    def test_a_steady_machine_keeps_every_sample(self):
        session = self.session(*[154, 157] * 64)
        self.assertEqual(self.take(session, 64), [rows.ONE] * 64)
        self.assertEqual(session.dropped, {})

    def test_a_sample_across_a_change_is_repeated(self):
        session = self.session(70, 300, 300, 310, first=self.EPYC)
        self.assertEqual(self.take(session, 1), [rows.FAR])

    def test_it_is_dropped_and_counted_after_three_repetitions(self):
        session = self.session(*[70, 300] * 4, 80, 80, first=self.EPYC)
        self.assertEqual(self.take(session, 2), [rows.NEAR])
        self.assertEqual(list(session.dropped.values()), [1])
        self.assertIn("1 dropped", session.kept())

    def test_a_second_state_may_show_itself_later(self):
        near = (70, 75, 80, 72, 77, 81, 69, 74)
        session = self.session(71, 73, *[300, 310] * 8, first=near)
        self.assertEqual(session.states.of(70), rows.ONE)
        self.assertEqual(self.take(session, 6)[:2], [rows.NEAR, rows.FAR])
        self.assertIn("second state", self.said.getvalue())

    def test_nothing_is_measured_where_exchanges_are_not_steady(self):
        session = self.session(first=self.WILD)
        self.assertEqual(self.take(session, 3), [])
        self.assertIn("no samples can be taken", self.said.getvalue())
        self.assertIn("not steady: 120 to 3007 ns", session.kept())

    def test_a_quick_run_goes_on_all_the_same(self):
        self.assertEqual(self.take(self.session(60, 9000, first=self.WILD, quick=True), 1), [rows.ONE])

    def test_a_run_that_only_drops_samples_says_so_soon(self):
        session = self.session(*[70, 300] * 64, first=self.EPYC)
        self.assertEqual(self.take(session, 16), [])
        self.assertEqual(sum(session.dropped.values()), common.HOPELESS)
        self.assertIn("the first 8 samples were dropped", self.said.getvalue())


class Reading(unittest.TestCase):
    def test_the_fastest_line_of_a_size_counts(self):
        text = '# noise\n{"size": 8, "time_us": 3, "wrong": 0}\n{"size": 8, "time_us": 2, "wrong": 0}\n'
        self.assertEqual(contenders.times_of_lines(text), {8: 2})

    def test_wrong_results_and_silence_are_errors(self):
        for text in ('{"size": 8, "time_us": 3, "wrong": 1}', ""):
            with self.assertRaises(contenders.Unavailable):
                contenders.times_of_lines(text)

    def test_broadcast_is_compared_in_place(self):
        entry = {"out_of_place": {"time": 2.0}, "in_place": {"time": 1.0}}
        ours = contenders.Ours("X", Path("build"))
        self.assertEqual(ours.figure_of(entry, GROUP), 2.0)
        self.assertEqual(ours.figure_of(entry, rows.Group("broadcast", 2, 8, 8)), 1.0)

    def test_a_failing_or_hanging_program_is_unavailable(self):
        with self.assertRaisesRegex(contenders.Unavailable, "ended with 3: reason"):
            contenders.run_process(["sh", "-c", "echo reason >&2; exit 3"])
        with self.assertRaisesRegex(contenders.Unavailable, "did not end"):
            contenders.run_process(["sh", "-c", "while :; do :; done"], limit_s=0.2)

    def test_fused_step_in_nanoseconds(self):
        text = '{"benchmarks": [{"real_time": 0.006, "time_unit": "us"}, {"real_time": 1, "time_unit": "ms", "step_ns": 7}]}'
        self.assertEqual(run.read_step(text), 7)

    def test_row_filter(self):
        known = ["ar2-small", "ar2-large", "call-8"]
        self.assertEqual(run.wanted_keys("ar2-*", known), known[:2])
        self.assertEqual(run.wanted_keys(None, known), known)
        with self.assertRaises(SystemExit):
            run.wanted_keys("nothing", known)

    def test_the_picture_holds_every_contender_that_was_measured(self):
        text = picture.draw(all_peers(2.0) + [sample(rows.OURS, {8: 1.0, 32: 1.0})])
        self.assertTrue(text.startswith("<svg"))
        self.assertEqual(text.count("<polyline"), 5)
        self.assertIsNone(picture.draw([]))

    def test_no_picture_leaves_the_old_one(self):
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stderr(io.StringIO()) as said:
            path = Path(folder) / "a.svg"
            path.write_text("old")
            run.write_picture(path, picture.draw([]))
            self.assertEqual(path.read_text(), "old")
        self.assertIn("no picture", said.getvalue())


if __name__ == "__main__":
    unittest.main()
