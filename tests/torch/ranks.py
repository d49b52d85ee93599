"""Ranks of a job as processes that run one function each, and their results."""

import datetime
import multiprocessing
import os
import sys
import tempfile
import traceback
import unittest
from typing import Any, Callable

import torch
import torch.distributed as dist

LIMIT_S = 90
TORCH = tuple(int(part) for part in torch.__version__.split(".")[:2])

if TORCH < (2, 5):  # these versions load no plugins by themselves
    import seto.torch  # noqa: F401


def needs_torch(major: int, minor: int) -> Callable[..., Any]:
    return unittest.skipIf(TORCH < (major, minor), f"skipped: needs torch {major}.{minor}")


def _run(body: Callable[..., Any], arguments: tuple, rank: int, size: int, store_file: str, timeout_s: float, bind: bool, answers: Any) -> None:
    torch.set_num_threads(1)
    torch.manual_seed(rank)
    try:
        store = dist.FileStore(store_file, size)
        timeout = datetime.timedelta(seconds=timeout_s)
        device = {"device_id": torch.device("cuda", rank)} if bind else {}
        dist.init_process_group("seto", store=store, rank=rank, world_size=size, timeout=timeout, **device)
        try:
            answer = body(rank, size, *arguments)
        finally:
            if dist.is_initialized():
                dist.destroy_process_group()
        answers.put((rank, answer, None))
    except BaseException:  # noqa: B902 - the parent reports every exception
        answers.put((rank, None, traceback.format_exc()))
    answers.close()
    answers.join_thread()


def run(body: Callable[..., Any], size: int = 2, *, arguments: tuple = (), timeout_s: float = 30, lost: tuple = (), bind: bool = False) -> list:
    """The result of `body(rank, size, *arguments)` on each rank. Fails with the trace of the first failed rank; ranks of `lost` need not answer.

    `bind`: the group is made with the device_id of the rank.
    """
    context = multiprocessing.get_context("fork")  # the parent imports torch once for all ranks, and makes no group itself
    answers = context.Queue()
    with tempfile.TemporaryDirectory(prefix="seto_torch_") as folder:
        common = (size, os.path.join(folder, "store"), timeout_s, bind, answers)
        processes = [context.Process(target=_run, args=(body, arguments, rank, *common)) for rank in range(size)]
        return collect(processes, answers, lost)


def collect(processes: list, answers: Any, lost: tuple = ()) -> list:
    """Starts the processes, each of which puts (rank, answer, trace of a failure) once. Returns the answers by rank."""
    for process in processes:
        process.start()
    results: dict = {}
    try:
        while len(results) < len(processes) - len(lost):
            rank, answer, problem = answers.get(timeout=LIMIT_S)
            if problem is not None:
                raise AssertionError(f"rank {rank}:\n{problem}")
            results[rank] = answer
        for rank, process in enumerate(processes):
            if rank not in lost:
                process.join(LIMIT_S)
                assert process.exitcode == 0, f"a rank ended with {process.exitcode}"
    finally:
        for process in processes:
            if process.is_alive():
                process.kill()
            process.join()
    return [results.get(rank) for rank in range(len(processes))]


def main(module: str) -> None:
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    unittest.main(module=module, verbosity=2)
