"""One rank of a job that times steps of training, over both backends in turn: started by run.py under torchrun.

The batch is chosen so that gloo spends 30 to 50 % of a step in communication. Rank 0 prints a line of JSON with the share, then
one for each round and backend.
"""

import argparse
import copy
import json
import time

import rows
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

WIDTH, LAYERS = 1024, 6
BATCHES = (4, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768)
STEPS = 5


def model_of():
    torch.manual_seed(3)
    return nn.Sequential(*(layer for _ in range(LAYERS) for layer in (nn.Linear(WIDTH, WIDTH), nn.GELU())))


def wrapped(kind, model, group):
    if kind == "ddp":
        return DistributedDataParallel(model, process_group=group)
    mesh = DeviceMesh.from_group(group, "cpu")
    for layer in model:
        if isinstance(layer, nn.Linear):
            fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    return model


class Trained:
    def __init__(self, model):
        self.model, self.optimiser = model, torch.optim.SGD(model.parameters(), lr=1e-3)

    def seconds_of_a_step(self, batch, steps):
        """On the slowest rank."""
        dist.barrier()
        began = time.perf_counter()
        for _ in range(steps):
            self.optimiser.zero_grad()
            self.model(batch).square().mean().backward()
            self.optimiser.step()
        slowest = torch.tensor((time.perf_counter() - began) / steps, dtype=torch.float64)
        dist.all_reduce(slowest, dist.ReduceOp.MAX)
        return slowest.item()


def share_of(trained, alone, size):
    """Of a step of gloo, that the same step without communication does not need."""
    batch = torch.ones(size, WIDTH)
    samples = []
    for _ in range(3):
        with_it, without = trained.seconds_of_a_step(batch, 2), alone.seconds_of_a_step(batch, 2)
        samples.append(1 - without / with_it)
    return sorted(samples)[1]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--kind", choices=rows.KINDS, required=True)
    parser.add_argument("--rounds", type=int, required=True)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    model = model_of()
    alone = Trained(copy.deepcopy(model))
    trained = {b: Trained(wrapped(asked.kind, copy.deepcopy(model), dist.new_group(backend=b))) for b in rows.BACKENDS}
    middle = sum(rows.SHARE) / 2
    shares = {}
    for size in BATCHES:  # the larger, the smaller its share
        shares[size] = share_of(trained[rows.GLOO], alone, size)
        if shares[size] < middle:
            break
    size = min(shares, key=lambda size: abs(shares[size] - middle))
    batch = torch.ones(size, WIDTH)
    told = dist.get_rank() == 0
    if told:
        print(json.dumps({"batch": size, "share": shares[size], "parameters": LAYERS * WIDTH * (WIDTH + 1)}), flush=True)
    for number in range(asked.rounds):
        for backend in rows.rotated(rows.BACKENDS, number):
            seconds = trained[backend].seconds_of_a_step(batch, STEPS)
            if told:
                print(json.dumps({"round": number, "backend": backend, "ms": seconds * 1e3}), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
