"""Tensors on CUDA devices, on the stand-in for the driver: streams, futures, captures, failures. README.md of software_gpu/ says how."""

import copy
import datetime
import gc
import os
import sys
import time
import unittest
from typing import Any, Callable

import device_hooks  # noqa: F401
import ranks
import torch
import torch.distributed as dist

try:
    import software_cuda as gpu
except ImportError as error:
    print(f"skipped: needs the module software_cuda, which tests/torch/software_gpu/build.py makes: {error}")
    sys.exit(77)

import seto.torch

COUNT = 300


def use_software_gpus() -> None:
    """Torch was built without CUDA, so its Python parts ask the stand-in instead."""
    torch.cuda._lazy_init = lambda: None
    torch.accelerator.current_accelerator = lambda *_, **__: torch.device("cuda")
    torch.accelerator.device_count = gpu.device_count
    torch.cuda.get_device_capability = lambda *_: (9, 0)
    torch._C._get_accelerator = lambda *_: torch.device("cuda")


def on_device(rank: int, stream: bool = True) -> torch.device:
    """Makes the device of the rank current, and a stream that is not the default one."""
    gpu.set_device(rank)
    if stream:
        gpu.set_stream(gpu.new_stream())
    return torch.device("cuda", rank)


def full(value: float, device: torch.device, count: int = COUNT, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.full((count,), value, device=device, dtype=dtype)


def equals(tensor: torch.Tensor, value: float) -> bool:
    return bool((tensor.cpu() == value).all())


def poll(work: Any, limit_s: float = 60) -> None:
    until = time.monotonic() + limit_s
    while not work.is_completed():
        assert time.monotonic() < until, "the work has not ended"
        time.sleep(0.001)


def failure_of_a_call(tensor: torch.Tensor) -> str:
    """Of a call after the failure of another rank: it raises, or its work fails if this rank learns of the failure only then. The other
    rank may have given its part of the first call before it failed; that one succeeds, if its news comes late."""
    for _ in range(2):
        try:
            work = dist.all_reduce(tensor, async_op=True)
        except RuntimeError as error:
            return str(error)
        poll(work)
        if not work.is_success():
            return str(work.exception())
    raise AssertionError("two calls succeeded")


def raised(call: Callable[..., Any], *arguments: Any, **named: Any) -> str:
    try:
        call(*arguments, **named)
    except (RuntimeError, ValueError) as error:
        return str(error)
    raise AssertionError("no exception")


# ---- bodies that run on each rank ----


def collectives(rank: int, size: int) -> None:
    device = on_device(rank)
    tensor = full(rank + 1, device)
    dist.all_reduce(tensor)
    assert equals(tensor, 3)
    work = dist.all_reduce(tensor, op=dist.ReduceOp.AVG, async_op=True)
    work.wait()
    assert equals(tensor, 3)
    dist.broadcast(sent := full(rank + 5, device, dtype=torch.int64), src=1)
    assert equals(sent, 6)
    dist.reduce(tensor := full(rank + 1, device), dst=1)
    assert equals(tensor, [1, 3][rank])
    dist.all_gather_into_tensor(gathered := full(0, device, size * COUNT), full(rank, device))
    assert equals(gathered[:COUNT], 0) and equals(gathered[COUNT:], 1)
    parts = torch.arange(size * COUNT, dtype=torch.float32).to(device)
    dist.reduce_scatter_tensor(part := full(0, device), parts)
    assert part.cpu().equal(2 * torch.arange(size * COUNT, dtype=torch.float32)[rank * COUNT :][:COUNT])
    dist.all_to_all_single(taken := full(0, device, 2 * COUNT), torch.cat([full(10 * rank, device), full(10 * rank + 1, device)]))
    assert equals(taken[:COUNT], rank) and equals(taken[COUNT:], 10 + rank)
    dist.barrier(device_ids=[rank])


def lists(rank: int, size: int) -> None:
    device = on_device(rank)
    dist.all_gather(outputs := [full(0, device) for _ in range(size)], full(rank + 1, device))
    assert equals(outputs[0], 1) and equals(outputs[1], 2)
    dist.reduce_scatter(output := full(0, device), [full(rank, device), full(10 * rank, device)])
    assert equals(output, [1, 10][rank])
    dist.gather(tensor := full(rank + 1, device), outputs if rank == 1 else None, dst=1)
    assert equals(outputs[0], 1) and equals(outputs[1], 2)
    dist.scatter(tensor, [full(7, device), full(8, device)] if rank == 0 else None, src=0)
    assert equals(tensor, 7 + rank)


def types(rank: int, size: int) -> None:
    device = on_device(rank)
    for kind in (torch.float64, torch.float16, torch.bfloat16, torch.int32, torch.int16, torch.uint8):
        tensor = full(rank + 2, device, 33, dtype=kind)
        dist.all_reduce(tensor, op=dist.ReduceOp.MAX)
        assert equals(tensor, 3), kind
    truth = torch.tensor([rank == 0, False, True], device=device)
    dist.all_reduce(truth)
    assert truth.cpu().tolist() == [True, False, True]
    scaled = full(rank + 1, device)
    dist.all_reduce(scaled, op=dist._make_nccl_premul_sum(2.0))
    assert equals(scaled, 6)
    native, backend = seto.torch._native(), dist.group.WORLD._get_backend(device)
    coded = full(rank + 1, device, 5000)
    native.all_reduce_coded(backend, coded, dist.ReduceOp.SUM, "fp16", None).wait()
    assert equals(coded, 3)
    assert "tensors in host memory" in raised(native.make_error_feedback, backend, coded)


def not_dense(rank: int, size: int) -> None:
    """The copy of the result is part of the work: it is there for every stream that has waited."""
    device = on_device(rank)
    whole = torch.zeros(20, 20, device=device)
    column = whole[:, 3]
    column.fill_(rank + 1)
    work = dist.all_reduce(column, async_op=True)
    gpu.set_stream(gpu.new_stream())
    work.wait()
    assert equals(whole[:, 3], 3) and equals(whole[:, 4], 0)


def order_of_streams(rank: int, size: int) -> None:
    device = on_device(rank)
    dist.all_reduce(tensor := full(0, device))  # the communicator is there
    gpu.synchronize()
    hold = gpu.Hold()
    tensor.fill_(rank + 1)
    work = dist.all_reduce(tensor, async_op=True)
    gpu.set_stream(gpu.new_stream())
    early, late = full(-1, device), full(-1, device)
    early.copy_(tensor)
    gpu.synchronize()  # this stream does not wait for the other one
    work.wait()  # returns at once
    late.copy_(tensor)
    assert not work.is_completed()
    assert "Timed out" in raised(work.wait, datetime.timedelta(milliseconds=200))
    hold.release()
    assert equals(late, 3) and equals(early, 0)
    assert work.is_completed() and work.is_success()


def memory_is_kept(rank: int, size: int) -> None:
    device = on_device(rank)
    dist.all_reduce(full(0, device))
    tensor = full(1, device, 5000)
    place = tensor.data_ptr()
    del tensor
    assert full(1, device, 5000).data_ptr() == place, "the allocator reuses memory that no other stream uses"
    gpu.synchronize()
    hold = gpu.Hold()
    tensor = full(rank + 1, device, 5000)
    place = tensor.data_ptr()
    work = dist.all_reduce(tensor, async_op=True)
    del tensor, work
    gc.collect()
    others = [full(-1, device, 5000) for _ in range(3)]
    assert all(other.data_ptr() != place for other in others)
    hold.release()
    dist.all_reduce(last := full(1, device), async_op=True).wait(datetime.timedelta(seconds=60))
    assert equals(last, 2)
    until = time.monotonic() + 60
    while full(1, device, 5000).data_ptr() != place:  # now it is free
        others.append(full(-1, device, 5000))
        assert time.monotonic() < until, "the memory was not reused"


def futures(rank: int, size: int) -> None:
    device = on_device(rank)
    dist.all_reduce(full(0, device))
    hold = gpu.Hold()
    work = dist.all_reduce(full(rank + 1, device), async_op=True)
    twice = work.get_future().then(lambda future: full(0, device).copy_(future.value()[0]))
    assert not work.is_completed()
    hold.release()
    assert equals(twice.wait(), 3)


def cpu_and_device(rank: int, size: int) -> None:
    device = on_device(rank)
    for round_ in range(3):
        here, there = torch.full((50,), float(rank)), full(rank + round_, device)
        works = [dist.all_reduce(tensor, async_op=True) for tensor in (here, there, here)]
        for work in works:
            work.wait()
        assert equals(here, 2) and equals(there, 1 + 2 * round_)
    objects = [None] * size
    dist.all_gather_object(objects, {"rank": rank})
    assert objects == [{"rank": 0}, {"rank": 1}]
    dist.barrier()
    assert "invalid tensor device" in raised(dist.all_gather_into_tensor, torch.zeros(2 * COUNT), full(0, device))
    seto.torch.monitored_barrier()
    assert "all_reduce" in seto.torch.dump(device=device) and "all_reduce" in seto.torch.dump()


def batches(rank: int, size: int) -> None:
    device = on_device(rank)
    one, other = full(rank, device), full(rank + 1, device, 77)
    with dist._coalescing_manager(device=device, async_ops=True) as manager:
        dist.all_reduce(one)
        dist.all_reduce(other)
    manager.wait()
    assert equals(one, 1) and equals(other, 3)
    backend = dist.group.WORLD._get_backend(device)
    backend._start_coalescing()
    backend.allreduce([one])
    assert "a batch has calls on one device" in raised(backend.allreduce, [torch.zeros(3)])
    backend._end_coalescing().wait()
    assert equals(one, 2)


def groups(rank: int, size: int) -> None:
    device = on_device(rank)
    alone = dist.new_group([rank], use_local_synchronization=True)
    both = dist.new_group([0, 1], backend="cuda:seto")
    dist.all_reduce(tensor := full(rank + 1, device), group=alone)
    assert equals(tensor, rank + 1)
    dist.all_reduce(tensor, group=both)
    dist.all_reduce(tensor)
    assert equals(tensor, 6)
    assert "all_reduce" in seto.torch.dump(both, device=device)
    dist.destroy_process_group(both)
    assert "no call on cuda:5" in raised(seto.torch.dump, device="cuda:5")


def captured(rank: int, size: int) -> None:
    device = on_device(rank)
    tensor = full(1, device)
    dist.all_reduce(tensor)
    gpu.synchronize()
    capture = gpu.Capture()
    dist.all_reduce(tensor)
    work = dist.all_reduce(tensor, async_op=True)
    assert work.is_completed()  # nothing runs
    work.wait()
    capture.end()
    assert equals(tensor, 2)
    for _ in range(3):
        capture.replay()
    dist.all_reduce(tensor)
    assert equals(tensor, 2 * 4**3 * 2)


def first_call_in_a_capture(rank: int, size: int) -> None:
    device = on_device(rank)
    tensor = full(1, device)
    gpu.synchronize()
    capture = gpu.Capture()
    assert "init_process_group with device_id" in raised(dist.all_reduce, tensor)
    capture.end()
    dist.all_reduce(tensor)
    assert equals(tensor, 2)


def bound(rank: int, size: int) -> None:
    """With device_id the communicator is made at once, so that a capture can have the first call, and barriers are those of the device."""
    device = on_device(rank)
    assert "on cuda:" in seto.torch.dump(device=device)
    tensor = full(1, device)
    gpu.synchronize()
    capture = gpu.Capture()
    dist.all_reduce(tensor)
    capture.end()
    capture.replay()
    assert equals(tensor, 2)
    gpu.synchronize()
    hold = gpu.Hold()
    tensor.fill_(5)
    work = dist.barrier(async_op=True)
    assert not work.is_completed()  # it follows the current stream
    hold.release()
    work.wait()
    assert work.is_completed() and equals(tensor, 5)
    alone = dist.new_group([1])  # rank 0 is not in it
    if rank == 1:
        dist.all_reduce(tensor, group=alone)
        assert equals(tensor, 5)


def a_lost_peer(rank: int, size: int) -> None:
    device = on_device(rank)
    dist.all_reduce(tensor := full(1, device))
    gpu.synchronize()
    if rank == 1:
        os._exit(0)
    work = dist.all_reduce(tensor, async_op=True)
    poll(work)
    assert not work.is_success() and "rank 1" in str(work.exception()), work.exception()
    assert "rank 1" in raised(work.wait)
    assert "rank 1" in raised(dist.all_reduce, tensor)


def a_late_peer(rank: int, size: int) -> str:
    device = on_device(rank)
    dist.all_reduce(tensor := full(1, device))
    gpu.synchronize()
    store = dist.distributed_c10d._get_default_store()
    if rank == 1:  # its second call comes after the failure
        store.wait(["failed"], datetime.timedelta(seconds=60))
        return failure_of_a_call(tensor)
    text = raised(dist.all_reduce(tensor, async_op=True).wait, datetime.timedelta(seconds=60))
    store.set("failed", "")
    return text


def aborted(rank: int, size: int) -> None:
    """A work that cannot end, because the other rank makes no call, is ended by abort of the group."""
    device = on_device(rank)
    dist.all_reduce(tensor := full(1, device))
    gpu.synchronize()
    store = dist.distributed_c10d._get_default_store()
    if rank == 1:
        store.wait(["aborted"], datetime.timedelta(seconds=60))
        assert "rank 0" in failure_of_a_call(tensor)
        return
    work = dist.all_reduce(tensor, async_op=True)
    assert not work.is_completed()
    dist.group.WORLD._get_backend(device).abort()
    assert work.is_completed()
    assert "aborted" in raised(work.wait)
    gpu.set_stream(gpu.new_stream())
    assert equals(full(1, device), 1)  # the device is free
    assert "aborted" in raised(dist.all_reduce, tensor)
    store.set("aborted", "")


def training(rank: int, size: int) -> None:
    """DDP sums gradients in the backward pass: the parameters are those of a model that sees the data of all ranks."""
    device = on_device(rank)
    torch.manual_seed(7)
    alone = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))
    model = torch.nn.parallel.DistributedDataParallel(copy.deepcopy(alone).to(device))
    data = torch.randn(3, size, 4, 8)
    for step in range(3):
        for network, batch in ((model, data[step, rank].to(device)), (alone, data[step].flatten(0, 1))):
            network.zero_grad()
            network(batch).pow(2).mean().backward()
            with torch.no_grad():
                for parameter in network.parameters():
                    parameter -= 0.1 * parameter.grad
    for ours, expected in zip(model.parameters(), alone.parameters()):
        torch.testing.assert_close(ours.cpu(), expected)
    assert "all_reduce" in seto.torch.dump(device=device)  # the gradients did not go through the host


def has_kernels(rank: int, size: int) -> str:
    try:
        dist.all_reduce(full(0, on_device(rank)))
    except RuntimeError as error:
        if "no GPU kernels" in str(error):
            return str(error)
        raise
    return ""


class Devices(unittest.TestCase):
    def test_collectives(self) -> None:
        ranks.run(collectives)

    def test_lists_of_tensors(self) -> None:
        ranks.run(lists)

    def test_types_operations_and_codecs(self) -> None:
        ranks.run(types)

    def test_a_tensor_that_is_not_dense(self) -> None:
        ranks.run(not_dense)

    def test_wait_orders_streams_and_does_not_block(self) -> None:
        ranks.run(order_of_streams)

    def test_memory_is_not_reused_before_the_end(self) -> None:
        ranks.run(memory_is_kept)

    def test_callbacks_of_futures_follow_the_work(self) -> None:
        ranks.run(futures)

    def test_tensors_of_the_host_and_of_a_device_in_one_group(self) -> None:
        ranks.run(cpu_and_device)

    def test_batches(self) -> None:
        ranks.run(batches)

    def test_groups_beside_each_other(self) -> None:
        ranks.run(groups)

    def test_a_captured_graph_is_replayed(self) -> None:
        ranks.run(captured)

    def test_the_first_call_cannot_be_captured(self) -> None:
        ranks.run(first_call_in_a_capture)

    def test_device_id_makes_the_communicator_at_once(self) -> None:
        ranks.run(bound, bind=True)

    def test_data_parallel_training(self) -> None:
        ranks.run(training)

    def test_a_lost_peer_is_named(self) -> None:
        ranks.run(a_lost_peer, lost=(1,))

    def test_a_peer_that_makes_no_call_is_named_after_the_timeout(self) -> None:
        for text in ranks.run(a_late_peer, timeout_s=10):
            self.assertIn("rank 1", text)

    def test_abort_ends_a_work(self) -> None:
        ranks.run(aborted)


if __name__ == "__main__":
    use_software_gpus()
    os.environ.setdefault("SOFTWARE_GPU_COUNT", "2")
    if why := ranks.run(has_kernels, 1)[0]:
        print(f"skipped: needs a library with GPU kernels: {why}")
        sys.exit(77)
    ranks.main(__name__)
