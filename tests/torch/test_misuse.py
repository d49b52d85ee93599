"""Errors of users and failures of peers: every rank soon gets an error with the reason."""

import datetime
import os
import pickle
import signal
import subprocess
import sys
import time
import unittest
from typing import Any, Callable

import ranks
import torch
import torch.distributed as dist

HERE = os.path.dirname(os.path.abspath(__file__))


def told(call: Callable[[], Any]) -> str:
    try:
        call()
    except Exception as error:  # noqa: B902 - the caller checks every exception
        return f"{type(error).__name__}: {error}"
    return "it worked"


def wrong_arguments(rank: int, size: int) -> list:
    ones = torch.ones(4)
    second_tensor = dist.BroadcastOptions()
    second_tensor.rootTensor = 1
    texts = [
        told(lambda: dist.all_reduce(torch.eye(3).to_sparse(), dist.ReduceOp.MAX)),
        told(lambda: dist.all_reduce(torch.ones(4, dtype=torch.complex64), dist.ReduceOp.PRODUCT)),
        told(lambda: dist.all_reduce(ones, dist.ReduceOp.BXOR)),
        told(lambda: dist.all_gather_into_tensor(torch.ones(5), ones)),
        told(lambda: dist.all_to_all_single(torch.ones(4), ones, [1, 1], [3, 1])),
        told(lambda: dist.reduce_scatter_tensor(torch.ones(3), ones)),
        told(lambda: dist.all_to_all_single(torch.empty(2), ones)),
        told(lambda: dist.all_to_all([ones] * size, [])),
        told(lambda: dist.reduce_scatter(torch.empty(2), [torch.ones(4)] * size)),
        told(lambda: dist.group.WORLD.broadcast([ones], second_tensor)),
        told(lambda: dist.group.WORLD.allreduce([ones, ones], dist.ReduceOp.AVG)),
        told(lambda: dist.send(ones, 1 - rank, tag=-1)),
        told(lambda: dist.all_reduce(ones.int(), dist._make_nccl_premul_sum(0.5))),
        told(lambda: dist.group.WORLD.allreduce([ones.reshape(1, 4), ones.reshape(4, 1)])),
        told(lambda: dist.group.WORLD.allreduce([ones, ones], dist.ReduceOp.BXOR)),
        told(lambda: dist.group.WORLD.allreduce_coalesced([ones, ones.double()])),
    ]
    dist.all_reduce(ones)  # the group stays usable
    assert ones.eq(size).all()
    return texts


def kinds_of_argument_errors(rank: int, size: int) -> list:
    try:
        dist.all_gather_into_tensor(torch.ones(5), torch.ones(4))
    except ValueError as error:
        kinds = (ValueError, RuntimeError, sys.modules["seto.torch"].ArgumentError)
        return [kind.__name__ for kind in kinds if isinstance(pickle.loads(pickle.dumps(error)), kind)]
    return []


def sparse(rank: int, size: int) -> None:
    for shape in ((4,), (4, 5), (4, 5, 3)):
        own = torch.zeros(shape)
        own[rank] = rank + 1.0
        own[0] = 1.0
        total = torch.zeros(shape)
        for r in range(size):
            theirs = torch.zeros(shape)
            theirs[r] = r + 1.0
            theirs[0] = 1.0
            total += theirs
        tensor = own.to_sparse(1)
        dist.all_reduce(tensor)
        assert torch.equal(tensor.to_dense(), total)
        tensor = own.to_sparse(1)
        dist.all_reduce(tensor, dist.ReduceOp.AVG)
        torch.testing.assert_close(tensor.to_dense(), total / size)
    assert "another shape" in told(lambda: dist.all_reduce(torch.ones(4 + rank % 2).to_sparse()))


def from_anybody(rank: int, size: int) -> None:
    if rank != 0:
        for value in range(5):
            dist.send(torch.full((1000,), 10.0 * rank + value), 0)
        return
    # Several receives at once; each message goes to one of them.
    tensors = [torch.empty(1000) for _ in range(5 * (size - 1))]
    works = [dist.irecv(tensor) for tensor in tensors]
    came: dict = {}
    for tensor, work in zip(tensors, works, strict=True):
        work.wait()
        source, value = divmod(int(tensor[0]), 10)
        assert tensor.eq(tensor[0]).all() and work._source_rank() == source
        came.setdefault(source, []).append(value)
    assert came == {source: list(range(5)) for source in range(1, size)}, came


def from_anybody_beside_exchanges(rank: int, size: int) -> None:
    """The messages of an all-to-all are not received by a receive from any rank."""
    store = dist.distributed_c10d._get_default_store()
    if rank == 0:
        tensor = torch.empty(3)
        work = dist.irecv(tensor)
        store.wait([f"begins {r}" for r in range(1, size)])
        assert not any(work.is_completed() for _ in range(1000))
    store.set(f"begins {rank}", "")
    out = torch.empty(size)
    dist.all_to_all_single(out, torch.arange(size).float() + 10 * rank, [1] * size, [1] * size)
    assert torch.equal(out, 10 * torch.arange(size).float() + rank)
    if rank == 1:
        dist.send(torch.ones(3), 0)
    if rank == 0:
        work.wait()
        assert work._source_rank() == 1 and tensor.eq(1).all()


def batches(rank: int, size: int) -> list:
    """A batch that an exception left open, calls that wait inside a batch, and batches of messages that depend on each other."""
    dist.group.WORLD._start_coalescing(torch.device("cpu"))
    texts = [told(lambda: dist.all_gather_into_tensor(torch.ones(5), torch.ones(4)))]
    texts.append(told(lambda: dist.barrier()))  # an exception leaves a batch open, as torch's own manager does
    other = 1 - rank
    if rank == 0:
        received = torch.empty(3)
        first = dist.batch_isend_irecv([dist.P2POp(dist.irecv, received, other)])
        second = dist.batch_isend_irecv([dist.P2POp(dist.isend, torch.ones(3), other)])
        for work in (*first, *second):
            work.wait()
        assert received.eq(2).all()
    else:
        tensor = torch.empty(3)
        dist.recv(tensor, other)
        dist.send(tensor * 2, other)
    dist.group.WORLD._start_coalescing(torch.device("cpu"))
    texts.append(told(lambda: dist.broadcast(torch.ones(2), 0)))
    dist.barrier()
    return texts


def from_nobody(rank: int, size: int) -> str:
    store = dist.distributed_c10d._get_default_store()
    if rank == 1:
        return store.get("given up").decode()
    text = told(lambda: dist.recv(torch.empty(3)))
    store.set("given up", text)
    return text


def absent(rank: int, size: int, milliseconds: int) -> str:
    import seto.torch

    if rank == 1:
        return told(lambda: dist.recv(torch.empty(1), 0))  # until the others have timed out
    return told(lambda: seto.torch.monitored_barrier(timeout=datetime.timedelta(milliseconds=milliseconds)))


def present(rank: int, size: int) -> None:
    import seto.torch

    seto.torch.monitored_barrier()
    seto.torch.monitored_barrier(dist.group.WORLD)


def differing_calls(rank: int, size: int) -> str:
    if rank == 0:
        return told(lambda: dist.all_reduce(torch.ones(4)))
    return told(lambda: dist.broadcast(torch.ones(4), 0))


def group_of_absent(rank: int, size: int) -> str:
    """Rank 1 never makes the group."""
    if rank == 1:
        return dist.distributed_c10d._get_default_store().get("given up").decode()
    began = time.monotonic()
    from seto.torch import _create

    class Asked:
        store = dist.PrefixStore("other", dist.distributed_c10d._get_default_store())
        group_rank, group_size, group_id = rank, size, "other"
        timeout, global_ranks_in_group = datetime.timedelta(seconds=1), [0, 1]

    text = told(lambda: _create(Asked(), None))
    assert time.monotonic() - began < 10
    dist.distributed_c10d._get_default_store().set("given up", text)
    return text


def wrong_options(rank: int, size: int) -> list:
    import seto.torch

    return [
        told(lambda: dist.new_group(pg_options=seto.torch.Options(codec="fp61"))),
        told(lambda: dist.new_group(pg_options="fp16")),
    ]


def destroyed_with_work_pending(rank: int, size: int) -> str:
    tensor = torch.ones(1 << 20)
    work = dist.all_reduce(tensor, async_op=True)
    dist.destroy_process_group()
    text = told(work.wait)
    assert text != "it worked" or tensor.eq(size).all()
    return text


def detail(rank: int, size: int) -> list:
    """TORCH_DISTRIBUTED_DEBUG=DETAIL wraps the group: it compares calls before they are made."""
    group = dist.new_group(backend="seto")
    tensor = torch.ones(8)
    dist.all_reduce(tensor, group=group)
    assert tensor.eq(size).all()
    return [told(lambda: dist.all_reduce(torch.ones(4 + rank), group=group))]


def loaded(rank: int, size: int) -> int:
    """A DataLoader whose workers are forked processes: they must not use or damage the group."""
    data = torch.utils.data.TensorDataset(torch.arange(64.0))
    total = torch.zeros(1)
    for (batch,) in torch.utils.data.DataLoader(data, batch_size=8, num_workers=2):
        part = batch.sum().reshape(1)
        dist.all_reduce(part)
        total += part
    return int(total)


def killed_in_a_step(rank: int, size: int) -> str:
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(200, 200))
    for step in range(1000):
        if rank == 1 and step == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        text = told(lambda: model(torch.ones(4, 200)).sum().backward())
        if text != "it worked":
            return text
    return "it continued"


class Misuse(unittest.TestCase):
    def test_arguments(self):
        parts = (
            "summed and averaged",
            "PRODUCT on complex",
            "bxor of Float",
            "do not fill 5",
            "2 splits of 2",
            "do not give 3",
            "4 elements into 2",
            "input tensor list size 0",
            "4 elements into 2",
            "root tensor: 1 is not one of 1",
            "take one tensor on each rank",
            "tag -1: tags are not negative",
            "a factor that is not an integer",
            "invalid tensor size at index 1",
            "bxor of Float",
            "must all have the same type",
        )
        for texts in ranks.run(wrong_arguments, 2):
            for text, part in zip(texts, parts, strict=True):
                kind = "ValueError" if part == "PRODUCT on complex" else "ArgumentError"  # raised by torch itself
                self.assertRegex(text, f"^{kind}: .*{part}")

    def test_an_argument_error_is_what_other_backends_raise(self):
        self.assertEqual(ranks.run(kinds_of_argument_errors, 2), [["ValueError", "RuntimeError", "ArgumentError"]] * 2)

    def test_sparse_tensors(self):
        ranks.run(sparse, 3)

    def test_receives_from_anybody(self):
        ranks.run(from_anybody, 4)

    def test_receives_from_anybody_beside_exchanges(self):
        ranks.run(from_anybody_beside_exchanges, 3)

    def test_batches(self):
        for wrong, after, inside in ranks.run(batches, 2):
            self.assertIn("do not fill 5", wrong)
            self.assertIn("part of a batch that has not ended", after)
            self.assertIn("part of a batch that has not ended", inside)

    def test_a_receive_from_nobody_ends(self):
        self.assertRegex(ranks.run(from_nobody, 2, timeout_s=3)[0], "DistBackendError: seto: Timed out - .*a message from any rank")

    def test_a_barrier_of_all_that_are_there(self):
        ranks.run(present, 3)

    def test_an_absent_rank_is_named(self):
        told = ranks.run(absent, 2, arguments=(400,))[0]
        self.assertRegex(told, "Rank 0 timed out in monitoredBarrier after 400 ms: .*rank 1 never came")
        # In the words of the rank that timed out first; rank 2 has come by then.
        self.assertIn("rank 1 never came", ranks.run(absent, 3, arguments=(3000,))[0])

    def test_calls_that_differ_are_named(self):
        for text in ranks.run(differing_calls, 2):
            self.assertIn("all_reduce of 4 float", text)
            self.assertIn("broadcast of 4 float", text)

    def test_a_group_that_one_rank_does_not_make(self):
        for text in ranks.run(group_of_absent, 2):
            self.assertRegex(text, "DistNetworkError: .*the store has no data of rank 1")

    def test_options(self):
        codec, kind = ranks.run(wrong_options, 2)[0]
        self.assertRegex(codec, "fp61.*fp16")
        self.assertRegex(kind, "TypeError: pg_options: a seto.torch.Options is expected, not str")

    def test_destroyed_with_work_pending(self):
        for text in ranks.run(destroyed_with_work_pending, 2):
            self.assertRegex(text, "it worked|DistBackendError")

    def test_debug_level_detail(self):
        os.environ["TORCH_DISTRIBUTED_DEBUG"] = "DETAIL"
        try:
            dist.set_debug_level_from_env()
            answers = ranks.run(detail, 2)
        finally:
            del os.environ["TORCH_DISTRIBUTED_DEBUG"]
            dist.set_debug_level_from_env()
        for texts in answers:
            self.assertNotIn("it worked", texts)

    def test_a_loader_that_forks(self):
        self.assertEqual(ranks.run(loaded, 2), [2 * sum(range(64))] * 2)

    def test_a_rank_that_is_killed_in_a_step(self):
        answers = ranks.run(killed_in_a_step, 3, lost=(1,))
        for rank in (0, 2):
            self.assertIn("rank 1", answers[rank])

    def test_groups_one_after_another_over_one_store(self):
        command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", os.path.join(HERE, "again.py")]
        done = subprocess.run(command, capture_output=True, text=True, timeout=90)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_imports_in_any_order(self):
        for order in ("import torch, seto.torch", "import seto.torch, torch", "import seto, torch", "import torch.distributed, seto"):
            code = f"{order}; import ranks; import torch.distributed as dist; print('SETO' in dist.Backend._plugins)"
            done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=90, env={**os.environ, "PYTHONPATH": HERE})
            self.assertEqual(done.stdout.strip(), "True", done.stderr)

    def test_a_program_that_leaves_without_a_word(self):
        """With works under way, a future without a waiter, and no destroy_process_group."""
        command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", os.path.join(HERE, "leaving.py")]
        done = subprocess.run(command, capture_output=True, text=True, timeout=90)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.count("leaving"), 2)  # lines of two ranks may mix


if __name__ == "__main__":
    ranks.main("__main__")
