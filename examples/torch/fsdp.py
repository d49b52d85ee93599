"""Fully sharded (FSDP2) over seto: each rank keeps its part of every parameter.

torchrun --nproc-per-node 4 examples/torch/fsdp.py
"""

import lesson
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard


def main() -> None:
    asked = lesson.options("Trains a small transformer whose parameters are spread over all ranks.").parse_args()
    dist.init_process_group(asked.backend)
    torch.manual_seed(7)
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    model = lesson.Transformer()
    for block in model.blocks:
        fully_shard(block, mesh=mesh)
    fully_shard(model, mesh=mesh)
    losses = lesson.train(model, asked)
    lesson.expect_equal(lesson.hash_of([parameter.full_tensor() for parameter in model.parameters()]))
    if dist.get_rank() == 0:
        print(f"loss {losses[0]:.6f} -> {losses[-1]:.6f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
