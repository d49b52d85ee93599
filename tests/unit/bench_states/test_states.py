#!/usr/bin/env python3
"""The states that flag exchanges of a machine form, from synthetic probes."""

import random
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "bench" / "common_py"))

import machine  # noqa: E402
import states  # noqa: E402

SEEDS = range(20)


def uniform(seed, count, low, high):
    chance = random.Random(seed)
    return [chance.uniform(low, high) for _ in range(count)]


def mixture(seed, near, far, *others):
    probes = [*uniform(seed, near, 60, 100), *uniform(seed + 1000, far, 250, 370), *others]
    random.Random(seed).shuffle(probes)
    return probes


class States(unittest.TestCase):
    def names(self, probes):
        return [state.name for state in states.states_of(probes).found]

    def test_epyc_near_only_is_one_state(self):
        for seed in SEEDS:
            found = states.states_of(uniform(seed, 60, 60, 100))
            self.assertEqual([state.name for state in found.found], [states.ONE], f"seed {seed}")
            self.assertEqual(found.of_bracket(61, 99), states.ONE)
            self.assertIsNone(found.of_bracket(80, 250))

    def test_two_speeds_within_near_are_one_state(self):
        self.assertEqual(self.names([62] * 30 + [98] * 30), [states.ONE])

    def test_epyc_near_and_far(self):
        for seed in SEEDS:
            for near, far in ((30, 30), (8, 52), (52, 8)):
                found = states.states_of(mixture(seed, near, far))
                self.assertEqual([state.name for state in found.found], [states.NEAR, states.FAR], f"seed {seed}")
                self.assertEqual(found.of_bracket(65, 95), states.NEAR)
                self.assertEqual(found.of_bracket(260, 350), states.FAR)
                self.assertIsNone(found.of_bracket(65, 350))
                self.assertIsNone(found.of_bracket(350, 65))

    def test_probes_during_a_change_are_in_neither_state(self):
        found = states.states_of(mixture(7, 30, 30, 120, 150, 180, 210))
        self.assertEqual([state.name for state in found.found], [states.NEAR, states.FAR])
        self.assertIsNone(found.of(158))

    def test_a_steady_xeon_is_one_state(self):
        for seed in SEEDS:
            found = states.states_of(uniform(seed, 70, 150, 160))
            self.assertEqual([state.name for state in found.found], [states.ONE], f"seed {seed}")
            self.assertEqual(found.of_bracket(150, 160), states.ONE)
            self.assertIsNone(found.of(260))
        self.assertEqual(self.names([155.0] * 20), [states.ONE])

    def test_outliers_form_no_state(self):
        outliers = (400, 900, 2500, 11_000)
        for seed in SEEDS:
            self.assertEqual(self.names(uniform(seed, 60, 150, 160) + list(outliers)), [states.ONE], f"seed {seed}")
            self.assertEqual(self.names(mixture(seed, 30, 30, *outliers)), [states.NEAR, states.FAR], f"seed {seed}")
        found = states.states_of(uniform(1, 60, 150, 160) + list(outliers))
        self.assertIsNone(found.of(900))

    def test_noise_forms_no_state_and_says_so(self):
        chance = random.Random(3)
        found = states.states_of([60 * 100 ** chance.random() for _ in range(70)])
        self.assertEqual(found.found, ())
        self.assertIn("not steady", found.text)
        self.assertIsNone(found.of(100))

    def test_probes_that_waited_for_a_core_form_no_state(self):
        for seed in SEEDS:
            waited = uniform(seed, 12, 9000, 17_000)
            self.assertEqual(self.names(uniform(seed, 40, 60, 100) + waited), [states.ONE], f"seed {seed}")
            self.assertEqual(self.names(mixture(seed, 25, 25, *waited)), [states.NEAR, states.FAR], f"seed {seed}")
        self.assertEqual(self.names([80] * 4 + [13_000] * 20), [])

    def test_few_probes_form_no_state(self):
        self.assertIn("3 flag exchanges", states.states_of([155, 155, 155]).text)
        self.assertEqual(self.names([]), [])

    def test_words(self):
        text = states.states_of([80] * 20 + [300] * 20).text
        self.assertEqual(text, "near 80 ns (64-100), far 300 ns (240-375)")

    def test_any_state_holds_everything(self):
        self.assertEqual(states.any_state([60, 9000]).of_bracket(1, 1e9), states.ONE)


class Machine(unittest.TestCase):
    def test_the_processor_has_a_name(self):
        self.assertEqual(machine.processor_of("processor\t: 0\nmodel name\t: Some CPU @ 2 GHz\nmodel\t: 1\n"), "Some CPU @ 2 GHz")
        self.assertEqual(machine.processor_of(""), "unknown processor")


if __name__ == "__main__":
    unittest.main()
