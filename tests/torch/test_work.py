"""Works: futures, waits, messages in both directions, ends of groups."""

import datetime
import os
import signal
import threading
import time
import unittest
from typing import Any

import ranks
import torch
import torch.distributed as dist


def futures(rank: int, size: int) -> None:
    mine = torch.full((1000,), float(rank))
    work = dist.all_reduce(mine, async_op=True)
    then = work.get_future().then(lambda future: future.value()[0] * 2)
    assert then.wait().eq(2 * sum(range(size))).all()
    assert work.is_completed() and work.wait() and work.is_success()
    assert work.result()[0].data_ptr() == mine.data_ptr()
    late = dist.all_reduce(mine, async_op=True)
    late.wait()
    assert late.get_future().done()

    # A callback may wait for another call.
    def chained(future: torch.futures.Future) -> torch.Tensor:
        tensor = future.value()[0]
        dist.all_reduce(tensor)
        return tensor

    mine = torch.ones(10)
    assert dist.all_reduce(mine, async_op=True).get_future().then(chained).wait().eq(size * size).all()


def dropped(rank: int, size: int) -> None:
    sums = []
    for step in range(200):
        tensor = torch.full((5000,), float(step))
        sums.append(tensor)
        dist.all_reduce(tensor, async_op=True)
        if step % 3 == 0:
            dist.all_reduce(torch.ones(1 << 16), async_op=True)  # no other reference to the tensor
    dist.barrier()
    for step, tensor in enumerate(sums):
        assert tensor.eq(step * size).all()


def crossing(rank: int, size: int) -> None:
    other = 1 - rank
    elements = 4 << 20  # far more than all buffers on the path
    sent, received = torch.full((elements,), float(rank)), torch.empty(elements)
    sending = dist.isend(sent, other)
    receiving = dist.irecv(received, other)
    sending.wait()
    receiving.wait()
    assert received.eq(other).all()
    received.zero_()
    for work in dist.batch_isend_irecv([dist.P2POp(dist.isend, sent, other), dist.P2POp(dist.irecv, received, other)]):
        work.wait()
    assert received.eq(other).all()
    if rank == 0:
        for value in range(20):
            dist.send(torch.full((3,), float(value)), 1)
    else:
        for value in range(20):
            tensor = torch.empty(3)
            dist.recv(tensor, 0)
            assert tensor.eq(value).all()


def on_lent_memory(rank: int, size: int) -> int:
    """Collectives on tensors of seto.torch.empty. Returns the number of peers whose memory this rank has mapped."""
    import seto.torch

    count = 1 << 17
    mine, result = seto.torch.empty(2, count // 2), seto.torch.empty(count)
    assert mine.shape == (2, count // 2) and mine.dtype == torch.get_default_dtype() and mine.eq(0).all()
    mine.requires_grad_()
    loss = (mine * 2).sum()
    loss.backward()
    assert mine.grad.eq(2).all()
    # Calls are repeated, because other processes map the memory during the first one.
    for call in range(20):
        with torch.no_grad():
            mine.fill_(rank + call)
        result.copy_(mine.detach().view(-1))
        dist.all_reduce(result)
        assert result.eq(sum(range(size)) + size * call).all(), call
        parts = seto.torch.empty(size, count)
        dist.all_gather_into_tensor(parts, mine.detach().view(-1))
        assert all(parts[other].eq(other + call).all() for other in range(size)), call
    for dtype in (torch.bfloat16, torch.int64, torch.bool, torch.complex64):
        some = seto.torch.empty([3, 5], dtype=dtype)
        like = seto.torch.empty_like(some.t())
        assert (some.shape, like.shape, like.dtype) == ((3, 5), (5, 3), dtype)
    assert seto.torch.empty(0).numel() == 0 and seto.torch.empty().shape == ()
    try:
        seto.torch.empty(2, -1)
    except ValueError as error:
        assert "negative" in str(error), error
    else:
        raise AssertionError("a negative size")
    # The control threads map the memory in their own time. All ranks end with the same call, because they know the least of all.
    for _call in range(2000):
        with open("/proc/self/maps") as maps:
            mapped = sum(" r--s " in line and "/memfd:seto" in line for line in maps)
        least = torch.tensor(mapped)
        dist.all_reduce(least, dist.ReduceOp.MIN)
        if least == size - 1:
            break
        dist.all_reduce(result)
    return mapped


def tagged(rank: int, size: int) -> str:
    """Messages match in order, with the tags of both sides. A message with another tag is never delivered, also in a batch."""
    other = 1 - rank
    received = torch.empty(2, 3)
    operations = [dist.P2POp(dist.isend, torch.full((3,), 10.0 * rank + tag), other, tag=tag) for tag in (1, 2)]
    operations += [dist.P2POp(dist.irecv, received[tag - 1], other, tag=tag) for tag in (1, 2)]
    for work in dist.batch_isend_irecv(operations):
        work.wait()
    assert torch.equal(received, torch.tensor([10.0 * other + 1, 10.0 * other + 2]).unsqueeze(1).expand(2, 3))
    if rank == 0:
        dist.send(torch.ones(3), 1, tag=5)
        return "sent"
    tensor = torch.zeros(3)
    try:
        dist.recv(tensor, 0, tag=6)
    except dist.DistBackendError as error:
        assert tensor.eq(0).all()
        return str(error)
    return "received"


def late_rank(rank: int, size: int) -> str:
    if rank == 1:
        dist.distributed_c10d._get_default_store().get("enough")
        return ""
    work = dist.all_reduce(torch.ones(4), async_op=True)
    try:
        work.wait(datetime.timedelta(milliseconds=300))
    except RuntimeError as error:
        assert not work.is_completed()
        dist.distributed_c10d._get_default_store().set("enough", "1")
        return f"{type(error).__name__}: {error}"
    return "it came"


def interrupted(rank: int, size: int) -> float:
    """The wait ends, but the call continues."""
    store, mine = dist.distributed_c10d._get_default_store(), torch.full((4,), rank + 1.0)
    if rank == 1:
        store.get("interrupted")
        dist.all_reduce(mine)
        return 0
    work = dist.all_reduce(mine, async_op=True)
    began = time.monotonic()
    try:
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
        work.wait()
        raise AssertionError("nothing interrupted it")
    except KeyboardInterrupt:
        took = time.monotonic() - began
    store.set("interrupted", "1")
    work.wait()
    assert mine.eq(3).all()
    return took


def interrupted_for_good(rank: int, size: int) -> Any:
    """The peer never calls, and the end of the group does not wait for it."""
    store = dist.distributed_c10d._get_default_store()
    if rank == 1:
        store.get("left")
        try:
            dist.all_reduce(torch.ones(4))  # all its data may have arrived before its peer left
            dist.barrier()
        except RuntimeError as error:
            return str(error)
        return "it succeeded"
    began = time.monotonic()
    try:
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
        dist.all_reduce(torch.ones(4))
    except KeyboardInterrupt:
        dist.destroy_process_group()
        store.set("left", "1")
        return time.monotonic() - began
    return "nothing interrupted it"


def calls_that_differ(rank: int, size: int) -> list:
    told = []
    for elements in (4 + rank, 4):
        try:
            dist.all_reduce(torch.ones(elements))
            told.append("nothing")
        except RuntimeError as error:
            told.append(f"{type(error).__name__}: {error}")
    return told


def killed(rank: int, size: int) -> tuple:
    dist.all_reduce(torch.ones(4))
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    began = time.monotonic()
    try:
        dist.all_reduce(torch.ones(4))
    except dist.DistBackendError as error:
        return str(error), time.monotonic() - began
    return "nothing", 0


def aborted(rank: int, size: int) -> str:
    if rank == 0:
        work = dist.all_reduce(torch.ones(4), async_op=True)
        dist.group.WORLD._get_backend(torch.device("cpu")).abort()
        try:
            work.wait()
        except RuntimeError as error:
            return str(error)
        return "it succeeded"
    try:
        dist.all_reduce(torch.ones(8), op=dist.ReduceOp.MAX)
    except RuntimeError as error:
        return str(error)
    return "it succeeded"


def groups(rank: int, size: int) -> tuple:
    dist.barrier()
    began, before = time.monotonic(), resident()
    made = [dist.new_group(list(range(size))) for _ in range(100)]
    took = time.monotonic() - began
    for group in made:
        tensor = torch.ones(1000)
        dist.all_reduce(tensor, group=group)
        assert tensor.eq(size).all()
    pair = dist.new_group([0, size - 1])
    if rank in (0, size - 1):
        tensor = torch.full((2,), float(rank))
        dist.broadcast(tensor, size - 1, group=pair)
        assert tensor.eq(size - 1).all()
    return took, (resident() - before) >> 20


def resident() -> int:
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def splits(rank: int, size: int) -> None:
    # dist.split_group needs a group that is bound to an accelerator; this is the function that it calls.
    half = dist.group.WORLD.split_group([0, 1] if rank < 2 else [2, 3])
    tensor = torch.full((3,), float(rank))
    half.allreduce([tensor]).wait()
    assert tensor.eq(1 if rank < 2 else 5).all()


def forked(rank: int, size: int) -> str:
    store = dist.distributed_c10d._get_default_store()
    if rank == 1:
        store.get("forked")
        dist.all_reduce(torch.ones(1))
        return ""
    work = dist.all_reduce(torch.ones(1), async_op=True)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        for call in (work.wait, lambda: dist.all_reduce(torch.ones(1))):
            try:
                call()
                os.write(writing, b"it worked. ")
            except RuntimeError as error:
                os.write(writing, str(error).encode())
        os._exit(0)
    os.waitpid(child, 0)
    os.close(writing)
    store.set("forked", "1")
    work.wait()
    with os.fdopen(reading, encoding="utf-8") as told:
        return told.read()


def named(rank: int, size: int) -> tuple:
    import json

    import seto.torch

    dist.all_gather_into_tensor(torch.empty(size * 4), torch.ones(4))
    dist.broadcast(torch.ones(4), 0)
    calls = json.loads(seto.torch.dump(json=True))["recorder"]["calls"]
    return [call.get("label") for call in calls], seto.torch.dump()


class Works(unittest.TestCase):
    def test_names_of_calls_in_dumps(self):
        for labels, text in ranks.run(named, 2):
            self.assertEqual(labels[-2:], ["seto:_all_gather_base", "seto:broadcast"])
            self.assertIn("the caller's seto:broadcast, tag 2", text)

    def test_futures(self):
        ranks.run(futures, 2)

    def test_dropped_works(self):
        ranks.run(dropped, 2)

    def test_tensors_in_memory_that_peers_read(self):
        self.assertEqual(ranks.run(on_lent_memory, 3), [2, 2, 2])

    def test_messages_that_cross(self):
        ranks.run(crossing, 2)

    def test_messages_of_different_tags(self):
        told = ranks.run(tagged, 2)[1]
        self.assertRegex(told, "receive of 3 float from rank 0, tag 6.*send of 3 float to rank 1, tag 5")

    def test_a_wait_that_is_too_short(self):
        self.assertRegex(ranks.run(late_rank, 2)[0], "seto:all_reduce has not ended within 300 ms")

    def test_ctrl_c_ends_a_wait(self):
        self.assertLess(ranks.run(interrupted, 2)[0], 5)

    @ranks.needs_torch(2, 6)
    def test_ctrl_c_ends_a_group(self):
        seconds, text = ranks.run(interrupted_for_good, 2)
        self.assertLess(seconds, 5)
        self.assertIn("rank 0", text)

    def test_calls_that_differ(self):
        for answer, after in ranks.run(calls_that_differ, 2):
            self.assertIn("DistBackendError: seto: operation 1", answer)
            self.assertIn("DistBackendError: seto: this group has failed before; destroy it", after)
            for call in ("rank 0 calls all_reduce of 4 float, sum", "rank 1 calls all_reduce of 5 float, sum"):
                self.assertIn(call, answer)

    def test_a_rank_that_is_killed(self):
        text, seconds = ranks.run(killed, 3, lost=(1,))[0]
        self.assertIn("rank 1", text)
        self.assertLess(seconds, 10)

    @ranks.needs_torch(2, 6)
    def test_an_abort(self):
        answers = ranks.run(aborted, 2)
        for answer in answers:
            self.assertIn("seto: ", answer)

    def test_groups_share_what_there_is(self):
        for seconds, mebibytes in ranks.run(groups, 4):
            print(f"100 groups of 4: {seconds:.2f} s, {mebibytes} MiB")
            self.assertLess(mebibytes, 64)

    @ranks.needs_torch(2, 8)
    def test_splits(self):
        ranks.run(splits, 4)

    def test_a_fork_is_told(self):
        self.assertEqual(ranks.run(forked, 2)[0].count("was forked from one that uses the library"), 2)


if __name__ == "__main__":
    ranks.main("__main__")
