"""Groups one after another over one store, as in a notebook. test_misuse.py starts it."""

import time

import ranks  # noqa: F401 - registers seto if torch loads no plugins
import torch
import torch.distributed as dist

began = time.monotonic()
for attempt in range(4):
    dist.init_process_group("seto")
    total = torch.full((3,), float(dist.get_rank() + attempt))
    dist.all_reduce(total)
    assert total.eq(2 * attempt + 1).all()
    dist.destroy_process_group()
assert time.monotonic() - began < 25, "a group waited for one before it"
