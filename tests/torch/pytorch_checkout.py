"""The suites in test/distributed of a checkout of PyTorch, of the installed version: each file over gloo, and over seto in its place."""

import argparse
import collections
import importlib
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

import stand_in
from outcomes import Outcomes

# The files that run on tensors in host memory over gloo. Newer versions have DTensor's files in tensor/.
DTENSOR = ("api", "dtensor", "redistribute", "init", "tensor_ops", "view_ops", "math_ops", "embedding_ops", "optimizers", "random_ops", "dtensor_compile")
FILES = (
    "test_c10d_common.py",
    "test_c10d_gloo.py",
    "test_c10d_spawn_gloo.py",
    "test_pg_wrapper.py",
    "test_c10d_object_collectives.py",
    "test_c10d_functional_native.py",
    "test_functional_api.py",
    "test_device_mesh.py",
    *(f"{folder}/test_{name}.py" for folder in ("_tensor", "tensor") for name in DTENSOR),
    "tensor/parallel/test_tp_examples.py",
    "tensor/parallel/test_tp_style.py",
    "tensor/parallel/test_parallelize_api.py",
    "_composable/test_replicate.py",
    "_composable/fsdp/test_fully_shard_init.py",
    "_composable/fsdp/test_fully_shard_training.py",
    "algorithms/ddp_comm_hooks/test_ddp_hooks.py",
    "algorithms/test_join.py",
    "checkpoint/test_state_dict.py",
    "checkpoint/test_checkpoint.py",
    "checkpoint/test_dtensor_checkpoint.py",
    "checkpoint/test_file_system_checkpoint_cpu.py",
    "checkpoint/test_tp_checkpoint.py",
)
FILE_LIMIT_S = 1800
WHOLE = "the file"

ByTest = "dict[str, tuple[str, str]]"


def run(folder: str, names: "list[str] | None", only: str) -> int:
    """Prints the outcomes of each file over gloo and seto. Returns the number of tests that pass over gloo only."""
    lost, passed = 0, 0
    for name in names or FILES:
        path = os.path.join(folder, "test", "distributed", name)
        if not os.path.exists(path):
            print(f"{name}: not in this checkout", flush=True)
            continue
        gloo = outcomes_of(path, only, [])
        with stand_in.folder() as place:
            seto = outcomes_of(path, only, [place])
        print(f"{name}: gloo {counted(gloo)}; seto {counted(seto)}")
        for test in sorted({*gloo, *seto}):
            theirs, (own, why) = gloo.get(test, ("not run", ""))[0], seto.get(test, ("not run", ""))
            if own != theirs or test == WHOLE:
                print("\n".join([f"  {test}: seto {own}, gloo {theirs}", *("      " + line for line in said(why))]))
            lost += theirs == "pass" and own != "pass"
            passed += own == "pass"
        reasons = collections.Counter(why.splitlines()[0] if why else "no reason" for own, why in seto.values() if own == "skip")
        for why, count in reasons.most_common():
            print(f"  skipped {count}: {why}")
        sys.stdout.flush()
    print(f"{passed} tests passed over seto; {lost} that pass over gloo did not")
    return lost if passed else 1


def outcomes_of(path: str, only: str, first_on_path: "list[str]") -> ByTest:
    """Runs a file in a separate process. If the file ends the process, or never ends, that is its one outcome."""
    own = os.path.dirname(os.path.abspath(__file__))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([*first_on_path, os.path.dirname(path), own])}
    with tempfile.TemporaryDirectory(prefix="seto_torch_") as folder:
        answer = os.path.join(folder, "outcomes.json")
        command = [sys.executable, "-W", "ignore", __file__, path, answer, only]
        try:
            ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=FILE_LIMIT_S)
        except subprocess.TimeoutExpired:
            return {WHOLE: ("FAIL", f"it did not end within {FILE_LIMIT_S} s")}
        if not os.path.exists(answer):
            return {WHOLE: ("FAIL", ended.stderr)}
        with open(answer, encoding="utf-8") as file:
            return {test: (outcome, why) for test, (outcome, why) in json.load(file).items()}


def said(why: str) -> "list[str]":
    """The last lines of a failure, without the command that repeats it."""
    lines = why.split("To execute this test")[0].splitlines()
    return [line for line in lines if line.strip()][-4:]


def counted(outcomes: ByTest) -> str:
    counts = collections.Counter(outcome for outcome, _ in outcomes.values())
    return f"{counts['pass']} passed, {counts['FAIL']} failed, {counts['skip']} skipped"


def tests_in(suite: unittest.TestSuite) -> "list[unittest.TestCase]":
    found: "list[unittest.TestCase]" = []
    for one in suite:
        found += tests_in(one) if isinstance(one, unittest.TestSuite) else [one]
    return found


def run_inside(path: str, answer: str, only: str) -> None:
    import torch
    from torch.testing._internal.common_distributed import MultiProcessTestCase

    # A new process would import torch for each rank of each test, which takes ten times as long as the test.
    fork = torch.multiprocessing.get_context("fork").Process
    MultiProcessTestCase._spawn_processes = lambda self: self._start_processes(fork)
    made_by = torch.distributed.distributed_c10d.ProcessGroupGloo.__module__
    assert (made_by == "stand_in") == (stand_in.PREFIX in os.environ["PYTHONPATH"]), f"groups of gloo are made by {made_by}"
    sys.argv[0] = path  # as a script, which some suites require
    module = importlib.import_module(os.path.splitext(os.path.basename(path))[0])  # processes that a test starts import it too
    tests = [test for test in tests_in(unittest.defaultTestLoader.loadTestsFromModule(module)) if re.search(only, test.id())]
    outcomes = Outcomes(len(tests), parts_of_name=2)
    unittest.TestSuite(tests).run(outcomes)
    with open(answer, "w", encoding="utf-8") as file:
        json.dump(outcomes.by_test, file)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Runs one file in this process, for run().")
    for name in ("path", "answer", "only"):
        parser.add_argument(name)
    asked = parser.parse_args()
    run_inside(asked.path, asked.answer, asked.only)
