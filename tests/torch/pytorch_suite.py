"""PyTorch's own suite for backends, of the installed package, over seto and over gloo:

    python tests/torch/pytorch_suite.py                       # both backends, a table, and the differences
    python tests/torch/pytorch_suite.py --only 'all_reduce'   # tests whose names match
    python tests/torch/pytorch_suite.py --backend seto        # one backend
    python tests/torch/pytorch_suite.py --pytorch DIR         # the suites of a checkout instead: pytorch_checkout.py

Many of its tests accept only backends of certain names: those for `gloo` need a host backend, those for `mpi` an all-to-all
between hosts. Every test runs as if the backend had the name that its gate requires; the groups that it makes are of the requested backend.
"""

import argparse
import collections
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

import pytorch_checkout
from outcomes import Outcomes

GATES = ("gloo", "mpi")
LIMIT_S = "120"

# The bodies of these tests compare the name, to detect a backend for tensors in host memory.
TAKES_THE_NAME_OF_ITS_GATE = "accumulate_gradients_no_sync"


# These tests need the name gloo from torch itself, which calls every plugin "custom". They fail, and are reported as known.
WANT_GLOO_OF_TORCH = ("test_ddp_logging_data_cpu", "test_monitored_barrier_gloo", "test_monitored_barrier_gloo_subgroup")


def run_gate(asked: argparse.Namespace) -> "dict[str, tuple[str, str]]":
    """Runs the tests of one gate in this process, which serves one backend and one gate, because the suite reads both when it is imported."""
    os.environ["BACKEND"] = asked.gate
    os.environ["WORLD_SIZE"] = str(asked.ranks)
    os.environ.setdefault("DISTRIBUTED_TESTS_DEFAULT_TIMEOUT", LIMIT_S)
    import torch
    from torch.testing._internal.common_utils import TestCase
    from torch.testing._internal.distributed import distributed_test as suite

    make_group = torch.distributed.init_process_group
    torch.distributed.init_process_group = lambda *positional, **named: make_group(*positional, **{**named, "backend": asked.backend})
    for supported in (suite.PROFILING_SUPPORTED_BACKENDS, suite.SEND_RECV_PROFILING_SUPPORTED_BACKENDS):
        supported.append(asked.backend)
    torch.set_num_threads(1)

    class Suite(suite.TestDistBackend, suite.DistributedTest._DistTestBase):
        def setUp(self) -> None:
            super().setUp()
            self._start_processes(torch.multiprocessing.get_context("fork").Process)

    assert issubclass(Suite, TestCase)
    names = [name for name in unittest.TestLoader().getTestCaseNames(Suite) if re.search(asked.only, name)]
    outcomes = Outcomes(len(names))
    for name in names:
        suite.BACKEND = asked.gate if TAKES_THE_NAME_OF_ITS_GATE in name else asked.backend
        Suite(name).run(outcomes)
    return outcomes.by_test


def run_backend(backend: str, asked: argparse.Namespace) -> "dict[str, tuple[str, str]]":
    """Runs all gates. A test that one gate accepts has the outcome of that run."""
    merged: "dict[str, tuple[str, str]]" = {}
    for gate in GATES:
        left = [name for name, (outcome, _) in merged.items() if outcome == "skip"]
        only = asked.only if not merged else "^(" + "|".join(left) + ")$"
        if merged and not left:
            break
        with tempfile.TemporaryDirectory(prefix="seto_torch_") as folder:
            answer = os.path.join(folder, "outcomes.json")
            command = [sys.executable, "-W", "ignore", __file__, "--backend", backend, "--gate", gate, "--ranks", str(asked.ranks)]
            subprocess.run([*command, "--only", only, "--json", answer], check=True, stderr=subprocess.DEVNULL)
            with open(answer, encoding="utf-8") as file:
                found = json.load(file)
        merged.update({name: tuple(outcome) for name, outcome in found.items() if outcome[0] != "skip" or name not in merged})
    return merged


def show(by_backend: "dict[str, dict[str, tuple[str, str]]]") -> int:
    """Prints the counts, the differences, and the reasons of skipped tests. Returns the number of failures that gloo does not have."""
    for backend, outcomes in by_backend.items():
        counts = collections.Counter(outcome for outcome, _ in outcomes.values())
        print(f"{backend:5} {counts['pass']} passed, {counts['FAIL']} failed, {counts['skip']} skipped of {len(outcomes)}")
    own, other = by_backend.get("seto", {}), by_backend.get("gloo", {})
    for name, (outcome, why) in sorted(own.items()):
        theirs = other.get(name, ("not run", ""))[0]
        if outcome == "FAIL" or (theirs != outcome and other):
            known = " (torch asks for the name gloo)" if name in WANT_GLOO_OF_TORCH else ""
            print(f"  {name}: seto {outcome}, gloo {theirs}{known}")
    reasons = collections.Counter(why for outcome, why in own.values() if outcome == "skip")
    for why, count in reasons.most_common():
        print(f"  skipped {count}: {why}")
    if not any(outcome == "pass" for outcome, _ in own.values()) and own:
        print("no test passed")
        return 1
    unknown = ((name, outcome) for name, (outcome, _) in own.items() if name not in WANT_GLOO_OF_TORCH)
    return sum(outcome == "FAIL" and other.get(name, ("pass",))[0] == "pass" for name, outcome in unknown)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", choices=("seto", "gloo"), help="only this one")
    parser.add_argument("--only", default="", help="a regular expression that a test's name must match")
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--json", help="write the outcomes to this file")
    parser.add_argument("--pytorch", metavar="DIR", help="a checkout of PyTorch, whose suites are run instead")
    parser.add_argument("--file", action="append", metavar="NAME", help="run only this file of the checkout's test/distributed; repeatable")
    parser.add_argument("--gate", choices=GATES, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.pytorch:
        if not os.path.isdir(os.path.join(asked.pytorch, "test", "distributed")):
            print(f"skipped: {asked.pytorch} is not a checkout of PyTorch: it has no test/distributed")
            sys.exit(77)
        sys.exit(min(pytorch_checkout.run(asked.pytorch, asked.file, asked.only), 1))
    if asked.gate:
        answer: dict = run_gate(asked)
    else:
        answer = {backend: run_backend(backend, asked) for backend in ([asked.backend] if asked.backend else ["seto", "gloo"])}
    if asked.json:
        with open(asked.json, "w", encoding="utf-8") as file:
            json.dump(answer, file, indent=1)
    if not asked.gate:
        sys.exit(min(show(answer), 1))


if __name__ == "__main__":
    main()
