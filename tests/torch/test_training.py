"""The features that torch builds on collectives, over seto: DDP and its hook, FSDP2, HSDP, tensor parallel, functional collectives."""

import copy
import os
import tempfile
import unittest

import ranks
import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.nn.parallel import DistributedDataParallel

if ranks.TORCH >= (2, 6):
    from torch.distributed.fsdp import fully_shard

STEPS = 4


def model_of(seed: int = 5) -> nn.Module:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(24, 64), nn.GELU(), nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 8))


def batch_of(rank: int, step: int) -> torch.Tensor:
    return torch.randn(6, 24, generator=torch.Generator().manual_seed(100 * step + rank))


def train(model: nn.Module, batch) -> list:
    """Trains and returns the losses; `batch(step)` gives the input."""
    optimiser = torch.optim.SGD(model.parameters(), lr=0.05)
    losses = []
    for step in range(STEPS):
        loss = model(batch(step)).square().mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    return losses


def alone(size: int) -> nn.Module:
    """The expected result of all ranks: one process trains on the whole batch."""
    model = model_of()
    train(model, lambda step: torch.cat([batch_of(rank, step) for rank in range(size)]))
    return model


def expect_close(parameters, others) -> None:
    for own, other in zip(parameters, others, strict=True):
        torch.testing.assert_close(own, other, rtol=1e-4, atol=1e-6)


def equal_everywhere(tensors: list, size: int) -> bool:
    own = torch.cat([tensor.detach().reshape(-1) for tensor in tensors])
    gathered = [torch.empty_like(own) for _ in range(size)]
    dist.all_gather(gathered, own)
    return all(torch.equal(own, other) for other in gathered)


def ddp(rank: int, size: int) -> None:
    model = DistributedDataParallel(model_of(), bucket_cap_mb=0.01)
    train(model, lambda step: batch_of(rank, step))
    assert equal_everywhere(list(model.parameters()), size)
    expect_close(model.parameters(), alone(size).parameters())


def hook(rank: int, size: int, codec: str, feedback: bool) -> float:
    """The largest difference of the parameters from those of a run without the hook."""
    import seto.torch

    models = [DistributedDataParallel(model_of(), bucket_cap_mb=0.01) for _ in range(2)]
    models[0].register_comm_hook(None, seto.torch.compress_hook(codec, feedback))
    for model in models:
        train(model, lambda step: batch_of(rank, step))
        assert equal_everywhere(list(model.parameters()), size)
    return max((own - other).abs().max().item() for own, other in zip(models[0].parameters(), models[1].parameters()))


def hook_state(rank: int, size: int) -> None:
    """A run that is saved and continued elsewhere ends with the same bits."""
    import seto.torch

    batch = lambda step: batch_of(rank, step)  # noqa: E731
    own_hook = seto.torch.compress_hook("int4", error_feedback=True)
    model = DistributedDataParallel(model_of())
    model.register_comm_hook(None, own_hook)
    train(model, batch)
    saved, feedback = copy.deepcopy(model.module.state_dict()), own_hook.state_dict()
    assert feedback and all(any(state) for state in feedback.values())
    other_hook = seto.torch.compress_hook("int4", error_feedback=True)
    other = DistributedDataParallel(model_of(6))
    other.module.load_state_dict(saved)
    other.register_comm_hook(None, other_hook)
    train(other, batch)  # buckets take their final form
    other.module.load_state_dict(saved)
    other_hook.load_state_dict(feedback)
    assert train(model, batch) == train(other, batch)


def hook_of_a_wrong_state(rank: int, size: int) -> list:
    """The error text of each state that does not fit, and its step."""
    import seto.torch

    batch = lambda step: batch_of(rank, step)  # noqa: E731
    own_hook = seto.torch.compress_hook("int4", error_feedback=True)
    model = DistributedDataParallel(model_of())
    model.register_comm_hook(None, own_hook)
    train(model, batch)
    saved = own_hook.state_dict()
    told = []
    for wrong in ({0: saved[0][:-1]}, {0: saved[0][:-1] + bytes([saved[0][-1] ^ 1])}, {7: saved[0]}):
        other_hook = seto.torch.compress_hook("int4", error_feedback=True)
        other_hook.load_state_dict(wrong)
        assert other_hook.state_dict() == wrong
        other = DistributedDataParallel(model_of())
        other.register_comm_hook(None, other_hook)
        try:
            train(other, batch)
            told.append("nothing")
        except ValueError as error:
            told.append(str(error))
    try:
        own_hook.load_state_dict({"0": saved[0]})
    except TypeError as error:
        told.append(str(error))
    return told


def hook_of_narrow_numbers(rank: int, size: int) -> None:
    """bfloat16 is not wider than fp16, so it is sent exactly."""
    import seto.torch

    models = [DistributedDataParallel(model_of().bfloat16()) for _ in range(2)]
    models[0].register_comm_hook(None, seto.torch.compress_hook("fp16", error_feedback=True))
    for model in models:
        for step in range(3):
            model.zero_grad()
            model(batch_of(rank, step).bfloat16()).float().square().mean().backward()
    for own, other in zip(models[0].parameters(), models[1].parameters()):
        assert torch.equal(own.grad, other.grad)


def failing_hook(rank: int, size: int) -> str:
    model = DistributedDataParallel(model_of())

    def broken(state, bucket):
        raise ArithmeticError("of the user")

    model.register_comm_hook(None, broken)
    try:
        train(model, lambda step: batch_of(rank, step))
    except ArithmeticError as error:
        return str(error)
    return "no error"


def fsdp(rank: int, size: int) -> None:
    mesh = init_device_mesh("cpu", (size,))
    model = model_of()
    for layer in model:
        if isinstance(layer, nn.Linear):
            fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    train(model, lambda step: batch_of(rank, step))
    expect_close([parameter.full_tensor() for parameter in model.parameters()], alone(size).parameters())


def hsdp(rank: int, size: int) -> None:
    mesh = init_device_mesh("cpu", (2, size // 2), mesh_dim_names=("replicate", "shard"))
    model = model_of()
    fully_shard(model, mesh=mesh)
    train(model, lambda step: batch_of(rank, step))
    expect_close([parameter.full_tensor() for parameter in model.parameters()], alone(size).parameters())


def tensor_parallel(rank: int, size: int) -> None:
    mesh = init_device_mesh("cpu", (size,))
    model = parallelize_module(model_of(), mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})
    train(model, lambda step: batch_of(0, step))
    parameters = [p.full_tensor() if hasattr(p, "full_tensor") else p for p in model.parameters()]
    expect_close(parameters, alone(1).parameters())


def functional_collectives(rank: int, size: int) -> None:
    group = dist.group.WORLD

    def work(x: torch.Tensor) -> torch.Tensor:
        total = functional.all_reduce(x * 2, "sum", group)
        gathered = functional.all_gather_tensor(total + rank, 0, group)
        part = functional.reduce_scatter_tensor(gathered, "avg", 0, group)
        return functional.all_to_all_single(part, None, None, group) + 1

    x = torch.full((4 * size,), float(rank + 1))
    plain = work(x)
    sum_of_ranks = size * (size + 1)
    # The mean of the gathered values equals each rank's own: their sum divided by their number.
    everywhere = torch.cat([torch.full((4 * size,), float(sum_of_ranks + r)) for r in range(size)])
    parts = [everywhere[r * 4 * size : (r + 1) * 4 * size] for r in range(size)]
    exchanged = torch.cat([part[rank * 4 : rank * 4 + 4] for part in parts]) + 1
    torch.testing.assert_close(plain, exchanged)
    compiled = torch.compile(work, backend="aot_eager", fullgraph=True)
    assert torch.equal(compiled(x), plain)


class Training(unittest.TestCase):
    def test_ddp(self):
        ranks.run(ddp, 4)

    def test_a_hook_for_every_codec(self):
        within = {"fp16": 1e-4, "bf16": 1e-3, "e4m3": 1e-2, "e5m2": 2e-2, "int8": 1e-2, "int4": 0.1}
        with slow_links():
            for codec, bound in within.items():
                for feedback in (False, True):
                    for difference in ranks.run(hook, 2, arguments=(codec, feedback)):
                        self.assertLess(difference, bound, codec)
                        self.assertGreater(difference, 0, f"{codec} was not used")

    def test_the_state_of_a_hook(self):
        with slow_links():
            ranks.run(hook_state, 2)

    def test_a_state_that_does_not_fit(self):
        for told in ranks.run(hook_of_a_wrong_state, 2):
            self.assertEqual(len(told), 4, told)
            self.assertRegex(told[0], "loaded for bucket 0 does not fit this model: .*cut off")
            self.assertRegex(told[1], "loaded for bucket 0 does not fit this model: .*altered")
            self.assertRegex(told[2], "loaded for bucket 7 does not fit this model: there is no such bucket")
            self.assertRegex(told[3], "dict from bucket number to bytes")

    def test_a_hook_over_narrow_numbers(self):
        ranks.run(hook_of_narrow_numbers, 2)

    def test_a_hook_of_no_codec(self):
        import seto.torch

        with self.assertRaisesRegex(ValueError, "did you mean fp16"):
            seto.torch.compress_hook("fp61")

    def test_a_hook_that_fails(self):
        self.assertEqual(ranks.run(failing_hook, 2), ["of the user"] * 2)

    @ranks.needs_torch(2, 6)
    def test_fsdp(self):
        ranks.run(fsdp, 4)

    @ranks.needs_torch(2, 6)
    def test_hsdp(self):
        ranks.run(hsdp, 4)

    def test_tensor_parallel(self):
        ranks.run(tensor_parallel, 2)

    def test_functional_collectives(self):
        ranks.run(functional_collectives, 2)


class slow_links:
    """Sets constants of links so slow that fewer bytes are always faster."""

    def __enter__(self) -> None:
        self._file = tempfile.NamedTemporaryFile("w", prefix="seto_torch_")
        self._file.write("node.gigabytes_per_second 0.1\nsite.gigabytes_per_second 0.1\n")
        self._file.flush()
        os.environ["SETO_TUNING_FILE"] = self._file.name

    def __exit__(self, *_) -> None:
        del os.environ["SETO_TUNING_FILE"]
        self._file.close()


if __name__ == "__main__":
    ranks.main("__main__")
