"""Every collective of torch.distributed over seto, against the expected result."""

import unittest

import ranks
import torch
import torch.distributed as dist

FLOATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
INTEGERS = (torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64, torch.uint16, torch.uint32, torch.uint64)
COMPLEX = (torch.complex64, torch.complex128)
MOVED = (*FLOATS, *INTEGERS, *COMPLEX, torch.bool, torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e4m3fnuz)


def same(got: torch.Tensor, wanted: torch.Tensor) -> None:
    assert got.dtype == wanted.dtype and got.shape == wanted.shape, (got, wanted)
    assert torch.equal(got.reshape(-1).view(torch.uint8), wanted.contiguous().reshape(-1).view(torch.uint8)), (got, wanted)


def filled(dtype: torch.dtype, value: int, *shape: int) -> torch.Tensor:
    return torch.full(shape, value, dtype=torch.float32).to(dtype)


def all_reduce_of_every_type(rank: int, size: int) -> None:
    total = sum(range(1, size + 1))
    for dtype in (*FLOATS, *INTEGERS, *COMPLEX):
        mine = filled(dtype, rank + 1, 5, 3)
        dist.all_reduce(mine)
        same(mine, filled(dtype, total, 5, 3))
    for dtype in (*FLOATS, *INTEGERS):
        for op, wanted in ((dist.ReduceOp.MAX, size), (dist.ReduceOp.MIN, 1), (dist.ReduceOp.PRODUCT, (1, 1, 2, 6, 24)[size])):
            mine = filled(dtype, rank + 1, 7)
            dist.all_reduce(mine, op)
            same(mine, filled(dtype, wanted, 7))
    for dtype in (*FLOATS, *COMPLEX):
        mine = filled(dtype, 4 * rank, 7)
        dist.all_reduce(mine, dist.ReduceOp.AVG)
        same(mine, filled(dtype, 2 * (size - 1), 7))
        mine = filled(dtype, rank + 1, 7)
        dist.all_reduce(mine, dist._make_nccl_premul_sum(2.0))
        same(mine, filled(dtype, 2 * total, 7))


def truths(rank: int, size: int) -> None:
    mine = torch.tensor([rank == 0, True, False])
    for op, wanted in (
        (dist.ReduceOp.SUM, [True, True, False]),
        (dist.ReduceOp.MAX, [True, True, False]),
        (dist.ReduceOp.MIN, [False, True, False]),
        (dist.ReduceOp.PRODUCT, [False, True, False]),
        (dist.ReduceOp.BAND, [False, True, False]),
        (dist.ReduceOp.BOR, [True, True, False]),
    ):
        got = mine.clone()
        dist.all_reduce(got, op)
        same(got, torch.tensor(wanted))


def moves_of_every_type(rank: int, size: int) -> None:
    for dtype in MOVED:
        parts = [filled(dtype, r % 2 if dtype == torch.bool else r + 1, 3) for r in range(size)]
        got = torch.empty(size * 3, dtype=dtype)
        dist.all_gather_into_tensor(got, parts[rank])
        same(got, torch.cat([p.view(torch.uint8) for p in parts]).view(dtype))
        lists = [torch.empty(3, dtype=dtype) for _ in range(size)]
        dist.all_gather(lists, parts[rank])
        for r in range(size):
            same(lists[r], parts[r])
        mine = parts[rank].clone()
        dist.broadcast(mine, size - 1)
        same(mine, parts[size - 1])
        gathered = [torch.empty(3, dtype=dtype) for _ in range(size)] if rank == 0 else None
        dist.gather(parts[rank], gathered, 0)
        if rank == 0:
            for r in range(size):
                same(gathered[r], parts[r])
        mine = torch.empty(3, dtype=dtype)
        dist.scatter(mine, parts if rank == 1 else None, 1)
        same(mine, parts[rank])
        exchanged = [torch.empty(3, dtype=dtype) for _ in range(size)]
        dist.all_to_all(exchanged, [parts[rank]] * size)
        for r in range(size):
            same(exchanged[r], parts[r])


def uneven(rank: int, size: int) -> None:
    lists = [torch.empty(r + 1) for r in range(size)]
    dist.all_gather(lists, torch.full((rank + 1,), float(rank)))
    for r in range(size):
        same(lists[r], torch.full((r + 1,), float(r)))
    mine = torch.cat([torch.full((r + 1, 2), float(rank)) for r in range(size)])
    got = torch.empty((rank + 1) * size, 2)
    dist.all_to_all_single(got, mine, [rank + 1] * size, [r + 1 for r in range(size)])
    same(got, torch.cat([torch.full((rank + 1, 2), float(r)) for r in range(size)]))
    part = torch.empty(rank + 1)
    dist.reduce_scatter(part, [torch.full((r + 1,), float(rank + r)) for r in range(size)])
    same(part, torch.full((rank + 1,), float(sum(r + rank for r in range(size)))))


def reductions_to_parts(rank: int, size: int) -> None:
    narrow = torch.full((3,), 100 + rank, dtype=torch.int8)
    dist.all_reduce(narrow, dist.ReduceOp.AVG)
    same(narrow, torch.full((3,), (100 * size + sum(range(size))) // size, dtype=torch.int8))
    doubled = torch.full((3,), rank + 1)
    dist.all_reduce(doubled, dist._make_nccl_premul_sum(2.0))
    same(doubled, torch.full((3,), 2 * sum(range(1, size + 1))))
    whole = torch.arange(size * 4, dtype=torch.float32) + rank
    sums = torch.arange(size * 4, dtype=torch.float32) * size + sum(range(size))
    part = torch.empty(4)
    dist.reduce_scatter_tensor(part, whole)
    same(part, sums[rank * 4 : rank * 4 + 4])
    dist.reduce_scatter_tensor(part, whole, dist.ReduceOp.AVG)
    torch.testing.assert_close(part, sums[rank * 4 : rank * 4 + 4] / size)
    mine = torch.full((3,), float(rank + 1))
    dist.reduce(mine, 1)
    same(mine, torch.full((3,), float(sum(range(1, size + 1)) if rank == 1 else rank + 1)))


def of_any_layout(rank: int, size: int) -> None:
    base = torch.full((4, 6), float(rank + 1))
    dist.all_reduce(base.t())
    same(base, torch.full((4, 6), 3.0))
    strided = torch.zeros(4, 6)
    strided[:, ::2] = rank + 1
    dist.all_reduce(strided[:, ::2])
    same(strided[:, ::2].contiguous(), torch.full((4, 3), 3.0))
    assert strided[:, 1::2].eq(0).all()
    got = torch.zeros(size, 8)
    dist.all_gather_into_tensor(got.view(-1)[: size * 4].view(size, 4), torch.full((8,), float(rank))[::2])
    same(got.view(-1)[: size * 4], torch.cat([torch.full((4,), float(r)) for r in range(size)]))
    columns = torch.zeros(3, size)
    dist.all_gather([columns[:, r] for r in range(size)], torch.full((3,), float(rank)))
    same(columns, torch.arange(size, dtype=torch.float32).repeat(3, 1))
    wanting = torch.full((2,), float(rank + 1), requires_grad=True)
    dist.all_reduce(wanting)
    same(wanting.detach(), torch.full((2,), 3.0))
    scalar = torch.tensor(float(rank))
    dist.all_reduce(scalar)
    assert scalar.item() == 1
    for empty in (torch.empty(0), torch.empty(0, 5)):
        dist.all_reduce(empty)
        dist.broadcast(empty, 0)
        dist.all_gather([torch.empty_like(empty) for _ in range(size)], empty)


def together(rank: int, size: int) -> None:
    tensors = [torch.full((n,), float(rank + 1)) for n in (1, 10, 1000)]
    dist.all_reduce_coalesced(tensors)
    for tensor in tensors:
        assert tensor.eq(3).all()
    outs = [torch.empty(size * n) for n in (2, 30)]
    with dist._coalescing_manager() as manager:
        for out in outs:
            dist.all_gather_into_tensor(out, torch.full((out.numel() // size,), float(rank)))
    for out in outs:
        same(out, torch.arange(size).repeat_interleave(out.numel() // size).float())
    parts = [torch.empty(n) for n in (2, 30)]
    with dist._coalescing_manager(async_ops=True) as manager:
        for part in parts:
            dist.reduce_scatter_tensor(part, torch.full((part.numel() * size,), float(rank + 1)))
    manager.wait()
    for part in parts:
        assert part.eq(3).all()


def several_of_a_rank(rank: int, size: int) -> None:
    """Several tensors of one rank, which take part like tensors of several ranks. c10d offers this, but not in its Python functions."""
    group = dist.group.WORLD
    for kind in (torch.float32, torch.int16, torch.bfloat16):
        for op, fold in ((dist.ReduceOp.SUM, torch.sum), (dist.ReduceOp.MAX, torch.amax), (dist.ReduceOp.PRODUCT, torch.prod)):
            values = [torch.full((3,), float(1 + r), dtype=kind) for r in range(2 * size)]
            mine = [value.clone() for value in values[2 * rank : 2 * rank + 2]]
            group.allreduce(mine, op).wait()
            for tensor in mine:
                same(tensor, fold(torch.stack(values), 0).to(kind))
    for root in range(size):
        options = dist.BroadcastOptions()
        options.rootRank, options.rootTensor = root, 1
        mine = [torch.full((2, 2), float(2 * rank + n)) for n in range(2)]
        group.broadcast(mine, options).wait()
        for tensor in mine:
            same(tensor, torch.full((2, 2), 2.0 * root + 1))
    lists = [[torch.empty(2, 2) for _ in range(2 * size)] for _ in range(2)]
    future = group.allgather(lists, [torch.full((2, 2), float(2 * rank + n)) for n in range(2)]).get_future()
    future.wait()
    for given in (lists, future.value()):
        for tensors in given:
            for index, tensor in enumerate(tensors):
                same(tensor, torch.full((2, 2), float(index)))
    sparse = [(torch.eye(3) * (rank + n)).to_sparse() for n in range(2)]
    group.allreduce(sparse).wait()
    for tensor in sparse:
        same(tensor.to_dense(), torch.eye(3) * sum(r + n for r in range(size) for n in range(2)))
    parts = [torch.full((4, 6), float(rank + n)).t() for n in range(2)]
    group.allreduce(parts).wait()
    for tensor in parts:
        same(tensor, torch.full((6, 4), float(sum(r + n for r in range(size) for n in range(2)))))
    truth = [torch.tensor([rank == 1, False]), torch.tensor([False, rank == 2])]
    group.allreduce(truth).wait()
    for tensor in truth:
        same(tensor, torch.tensor([True, True]))


def of_the_same_bytes(rank: int, size: int) -> None:
    """Overlapping tensors in one call: shared elements are summed once."""
    total = float(sum(range(1, size + 1)))
    one = torch.zeros(4)
    dist.all_gather([one] * size, torch.full((4,), float(rank)))  # as with gloo, the last value stays
    same(one, torch.full((4,), float(size - 1)))
    turned = torch.arange(size).float() + 10 * rank
    dist.all_to_all_single(turned, turned)
    same(turned, 10 * torch.arange(size).float() + rank)
    for choose in (lambda t: [t, t], lambda t: [t[:2], t], lambda t: [t, t[1:]], lambda t: [t[::2], t[1::2], t[:3]], lambda t: [t[1:], t[:0], t]):
        whole = torch.full((6,), float(rank + 1))
        dist.all_reduce_coalesced([*choose(whole), torch.zeros(4)])
        same(whole, torch.full((6,), total))


def objects(rank: int, size: int) -> None:
    got = [None] * size
    dist.all_gather_object(got, {"rank": rank, "text": "瀬戸" * rank})
    assert got == [{"rank": r, "text": "瀬戸" * r} for r in range(size)]
    listed = [f"from {rank}", rank] if rank == 0 else [None, None]
    dist.broadcast_object_list(listed, 0)
    assert listed == ["from 0", 0]
    dist.barrier()


class Collectives(unittest.TestCase):
    def test_all_reduce_of_every_type(self):
        ranks.run(all_reduce_of_every_type, 3)

    def test_truths(self):
        ranks.run(truths, 2)

    def test_moves_of_every_type(self):
        ranks.run(moves_of_every_type, 3)

    def test_uneven_parts(self):
        ranks.run(uneven, 3)

    def test_reductions_to_parts(self):
        ranks.run(reductions_to_parts, 3)

    def test_tensors_of_any_layout(self):
        ranks.run(of_any_layout, 2)

    def test_calls_together(self):
        ranks.run(together, 2)

    def test_several_tensors_of_a_rank(self):
        ranks.run(several_of_a_rank, 3)

    def test_tensors_of_the_same_bytes(self):
        ranks.run(of_the_same_bytes, 3)

    def test_objects(self):
        ranks.run(objects, 2)


if __name__ == "__main__":
    ranks.main("__main__")
