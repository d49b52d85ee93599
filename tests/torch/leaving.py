"""A program that ends with works under way and without destroying its groups; test_misuse.py starts it."""

import ranks  # noqa: F401 - registers seto if torch loads no plugins
import torch
import torch.distributed as dist

dist.init_process_group("seto")
works = []
for size in (1, 1000, 1 << 20):
    work = dist.all_reduce(torch.ones(size), async_op=True)
    work.get_future().then(lambda future: future.value()[0].sum())
    works.append(work)
    dist.all_reduce(torch.ones(size), async_op=True)
works[0].wait()
print("leaving", flush=True)
