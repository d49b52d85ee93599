"""PyTorch's own suite for backends, of the installed package, over seto and over gloo:

    python tests/torch/pytorch_suite.py                       # both backends, a table, and what differs
    python tests/torch/pytorch_suite.py --only 'all_reduce'   # tests whose names match
    python tests/torch/pytorch_suite.py --backend seto        # one backend
    python tests/torch/pytorch_suite.py --pytorch DIR         # the suites of a checkout of PyTorch, of the version that is installed

Many of its tests are open to backends of certain names alone: those of `gloo` want a host backend, those of `mpi` an all-to-all
among hosts. Every test is run as if the backend had the name that its gate wants; what it then makes is the backend asked for.
"""

import argparse
import collections
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import unittest

import stand_in

GATES = ("gloo", "mpi")
LIMIT_S = "120"

# These compare the name in their bodies, to know a backend that takes tensors in host memory.
TAKES_THE_NAME_OF_ITS_GATE = "accumulate_gradients_no_sync"


# And these want the name gloo from torch itself, which knows what a plugin makes as "custom": they fail, and are told as known.
WANT_GLOO_OF_TORCH = ("test_ddp_logging_data_cpu", "test_monitored_barrier_gloo", "test_monitored_barrier_gloo_subgroup")


class Outcomes(unittest.TestResult):
    """What became of each test, and a line of progress for each."""

    def __init__(self, total: int) -> None:
        super().__init__()
        self.by_test: "dict[str, tuple[str, str]]" = {}
        self._total, self._began = total, 0.0

    def startTest(self, test: unittest.TestCase) -> None:
        super().startTest(test)
        self._began = time.monotonic()

    def _note(self, test: unittest.TestCase, outcome: str, why: str = "") -> None:
        name = test.id().rsplit(".", 1)[-1]
        if outcome == "pass" and name in self.by_test:  # a part of it has failed
            return
        self.by_test[name] = (outcome, why)
        if outcome == "skip":
            return
        print(f"[{len(self.by_test)}/{self._total}] {outcome:4} {time.monotonic() - self._began:5.1f} s  {name}", flush=True)
        if outcome == "FAIL":
            print("\n".join("    " + line for line in why.splitlines()[-25:]), flush=True)

    def addSuccess(self, test: unittest.TestCase) -> None:
        self._note(test, "pass")

    def addSkip(self, test: unittest.TestCase, reason: str) -> None:
        self._note(test, "skip", reason)

    def addFailure(self, test: unittest.TestCase, err: tuple) -> None:
        self._note(test, "FAIL", self._exc_info_to_string(err, test))

    addError = addFailure

    def addUnexpectedSuccess(self, test: unittest.TestCase) -> None:
        self._note(test, "FAIL", "it was expected to fail, and did not")

    def addSubTest(self, test: unittest.TestCase, subtest: unittest.TestCase, err: "tuple | None") -> None:
        if err is not None:
            self._note(test, "FAIL", self._exc_info_to_string(err, test))


def run_gate(asked: argparse.Namespace) -> "dict[str, tuple[str, str]]":
    """In this process, which is for one backend and one gate: the suite reads both as it is imported."""
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
    """Through all gates. A test that one gate lets in has the outcome it had there."""
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


# Of test/distributed in a checkout: what runs on tensors in host memory over gloo.
OF_A_CHECKOUT = (
    "test_c10d_common.py",
    "test_c10d_object_collectives.py",
    "test_c10d_functional_native.py",
    "test_functional_api.py",
    "test_device_mesh.py",
    "tensor/test_dtensor.py",
    "tensor/test_redistribute.py",
    "_composable/fsdp/test_fully_shard_init.py",
    "_composable/fsdp/test_fully_shard_training.py",
    "algorithms/ddp_comm_hooks/test_ddp_hooks.py",
)
FILE_LIMIT_S = 1800


def run_checkout(folder: str) -> int:
    """Every file with gloo, and with seto in its place. The number of files in which seto passes less."""
    worse = 0
    for name in OF_A_CHECKOUT:
        path = os.path.join(folder, "test", "distributed", name)
        if not os.path.exists(path):
            print(f"{name}: not in this checkout")
            continue
        passed = {}
        with stand_in.folder() as place:
            for backend, first in (("gloo", []), ("seto", [place])):
                environment = {**os.environ, "PYTHONPATH": os.pathsep.join([*first, os.path.dirname(path)])}
                done = subprocess.run([sys.executable, path], env=environment, capture_output=True, text=True, timeout=FILE_LIMIT_S)
                passed[backend] = counts_of(done.stderr)
                print(f"{name}: {backend}: {passed[backend]}", flush=True)
        worse += passed["seto"]["passed"] < max(1, passed["gloo"]["passed"])
    return worse


def counts_of(output: str) -> "dict[str, int]":
    """From the last lines of unittest."""
    run = sum(int(count) for count in re.findall(r"^Ran (\d+) tests?", output, re.M))
    told = {what: sum(int(n) for n in re.findall(rf"\b{what}=(\d+)", output)) for what in ("failures", "errors", "skipped")}
    return {"passed": run - sum(told.values()), "failed": told["failures"] + told["errors"], "skipped": told["skipped"]}


def show(by_backend: "dict[str, dict[str, tuple[str, str]]]") -> int:
    """The counts, what differs, and why tests were skipped. The number of failures that gloo has not."""
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
    parser.add_argument("--gate", choices=GATES, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.pytorch:
        if not os.path.isdir(os.path.join(asked.pytorch, "test", "distributed")):
            print(f"skipped: {asked.pytorch} is no checkout of PyTorch: it has no test/distributed")
            sys.exit(77)
        sys.exit(min(run_checkout(asked.pytorch), 1))
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
