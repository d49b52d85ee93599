"""One rank of a job that times collectives of torch, over both backends in turn. run.py starts it under torchrun.

Rank 0 prints a line of JSON for each collective, size, round and backend.
"""

import argparse
import json
import time

import rows
import torch
import torch.distributed as dist

LEAST_S = 0.02  # least duration of one sample
MOST_CALLS = 400


def call_of(collective, size, ranks, group):
    """A function that makes one call. `size` is that of the larger buffer, at least one element for each rank."""
    if collective == "all_reduce":
        tensor = torch.ones(max(1, size // 4))
        return lambda: dist.all_reduce(tensor, group=group)
    part = max(1, size // 4 // ranks)
    whole, own = torch.ones(part * ranks), torch.ones(part)
    if collective == "all_gather":
        return lambda: dist.all_gather_into_tensor(whole, own, group=group)
    if collective == "reduce_scatter":
        return lambda: dist.reduce_scatter_tensor(own, whole, group=group)
    out = torch.empty_like(whole)
    return lambda: dist.all_to_all_single(out, whole, group=group)


def timed(call, calls):
    """Microseconds for each call on the slowest rank."""
    dist.barrier()
    began = time.perf_counter()
    for _ in range(calls):
        call()
    slowest = torch.tensor((time.perf_counter() - began) / calls * 1e6, dtype=torch.float64)
    dist.all_reduce(slowest, dist.ReduceOp.MAX)
    return slowest.item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, required=True)
    parser.add_argument("--largest", type=int, default=rows.SIZES[-1])
    asked = parser.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")  # for the measurement itself
    ranks = dist.get_world_size()
    groups = {backend: dist.new_group(backend=backend) for backend in rows.BACKENDS}
    for collective in rows.COLLECTIVES:
        for size in (size for size in rows.SIZES if size <= asked.largest):
            calls_of = {backend: call_of(collective, size, ranks, group) for backend, group in groups.items()}
            slowest = max(timed(call, 3) for call in calls_of.values())
            count = max(3, min(MOST_CALLS, int(LEAST_S * 1e6 / slowest)))
            for number in range(asked.rounds):
                for backend in rows.rotated(rows.BACKENDS, number):
                    us = timed(calls_of[backend], count)
                    if dist.get_rank() == 0:
                        entry = {"collective": collective, "size": size, "round": number, "backend": backend, "us": us}
                        print(json.dumps(entry), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
