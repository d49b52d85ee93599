"""One rank of a job that times steps of DistributedDataParallel between two sites; the environment has what torchrun sets.

    training_step.py BACKEND WARM_UPS STEPS

Prints a line of JSON: the megabytes of the gradients, the milliseconds of a step without communication, and of each step with it.
"""

import json
import statistics
import sys
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

WIDTH, LAYERS, BATCH = 2048, 3, 4
LOCAL_STEPS = 5


def model_of():
    torch.manual_seed(3)
    return nn.Sequential(*(layer for _ in range(LAYERS) for layer in (nn.Linear(WIDTH, WIDTH), nn.GELU())))


class Training:
    def __init__(self, model):
        self.model, self.batch = model, torch.ones(BATCH, WIDTH)
        self.optimiser = torch.optim.SGD(model.parameters(), lr=1e-3)

    def step_ms(self):
        began = time.perf_counter()
        self.optimiser.zero_grad()
        self.model(self.batch).square().mean().backward()
        self.optimiser.step()
        return (time.perf_counter() - began) * 1e3


def main():
    backend, warm_ups, steps = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    torch.set_num_threads(1)
    dist.init_process_group(backend)
    alone = Training(model_of())
    compute = [alone.step_ms() for _ in range(LOCAL_STEPS)]
    trained = Training(DistributedDataParallel(model_of()))
    for _ in range(warm_ups):
        trained.step_ms()
    times = [trained.step_ms() for _ in range(steps)]
    size = sum(parameter.numel() * parameter.element_size() for parameter in trained.model.parameters())
    print(json.dumps({"gradients_mb": size / 1e6, "compute_ms": statistics.median(compute), "ms": times}), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
