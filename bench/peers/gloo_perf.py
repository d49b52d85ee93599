#!/usr/bin/env python3
"""Times one collective of gloo (torch.distributed) between processes of this machine, as mpi_perf.c does for MPI.

    gloo_perf.py COLLECTIVE --ranks N --sizes BYTES,... [--budget SECONDS] [--least CALLS] [--most CALLS]

torch is loaded once and the ranks are forked from it: every run has fresh processes but only one import. With --rank R
--rendezvous FILE it runs one rank only, on hosts that share a file system; GLOO_SOCKET_IFNAME names their interface.
"""

import argparse
import ctypes
import json
import os
import signal
import sys
import tempfile
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402

PR_SET_PDEATHSIG = 1


def operations(ranks, source, target):
    """Name -> (call on the first `count` elements, expected first and last element of the result)."""
    total = ranks * (ranks + 1) / 2
    return {
        "all_reduce": (lambda n: dist.all_reduce(target[:n]), None),
        "all_gather": (lambda n: dist.all_gather_into_tensor(target[:n], source[: n // ranks]), (1, ranks)),
        "reduce_scatter": (lambda n: dist.reduce_scatter_tensor(target[: n // ranks], source[:n]), (total, None)),
        "broadcast": (lambda n: dist.broadcast(target[:n], 0), (1, 1)),
        "all_to_all": (lambda n: dist.all_to_all_single(target[:n], source[:n]), (1, ranks)),
    }


def slowest(seconds):
    value = torch.tensor([seconds], dtype=torch.float64)
    dist.all_reduce(value, op=dist.ReduceOp.MAX)
    return value.item()


def time_calls(call, count, calls):
    dist.barrier()
    start = time.perf_counter()
    for _ in range(calls):
        call(count)
    return slowest((time.perf_counter() - start) / calls)


def is_right(expected, target, count):
    if expected is None:
        return True
    first, last = expected
    return target[0].item() == first and (last is None or target[count - 1].item() == last)


def measure(rank, size, options):
    ranks = options.ranks
    count = max(size // 4 // ranks * ranks, ranks) if options.collective not in ("all_reduce", "broadcast") else size // 4
    source = torch.full((count,), float(rank + 1))
    # all_reduce works in place: zeros stay zeros however often it is called, and take the same time.
    target = torch.full((count,), 1.0 if rank == 0 and options.collective == "broadcast" else 0.0)
    call, expected = operations(ranks, source, target)[options.collective]
    call(count)
    right = is_right(expected, target, count)
    once = time_calls(call, count, 2)
    calls = int(min(max(options.budget / once, options.least), options.most))
    seconds = time_calls(call, count, calls)
    if rank == 0:
        line = {
            "collective": options.collective,
            "ranks": ranks,
            "size": size,
            "time_us": seconds * 1e6,
            "calls": calls,
            "wrong": 0 if right else 1,
        }
        print(json.dumps(line), flush=True)


def run_rank(rank, rendezvous, options):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method="file://" + rendezvous, rank=rank, world_size=options.ranks)
    for size in (int(text) for text in options.sizes.split(",")):
        measure(rank, size, options)
    dist.barrier()
    dist.destroy_process_group()


def fork_rank(rank, rendezvous, options):
    child = os.fork()
    if child:
        return child
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    status = 1
    try:
        run_rank(rank, rendezvous, options)
        status = 0
    except Exception as error:  # the parent sees the exit status; the text says why
        print(f"rank {rank}: {error}", file=sys.stderr, flush=True)
    os._exit(status)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("collective", choices=sorted(operations(2, [], [])))
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--sizes", required=True)
    parser.add_argument("--budget", type=float, default=0.1)
    parser.add_argument("--least", type=int, default=3)
    parser.add_argument("--most", type=int, default=100000)
    parser.add_argument("--rank", type=int)
    parser.add_argument("--rendezvous")
    options = parser.parse_args()
    if options.rank is not None:
        run_rank(options.rank, options.rendezvous, options)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        rendezvous = os.path.join(folder, "rendezvous")
        children = [fork_rank(rank, rendezvous, options) for rank in range(options.ranks)]
        states = [os.waitpid(child, 0)[1] for child in children]
    return 0 if not any(states) else 1


if __name__ == "__main__":
    sys.exit(main())
