"""The model that both examples train, a small transformer on generated text, and their progress output."""

import argparse
import hashlib
import json
import math
import sys
import time

import torch
import torch.distributed as dist
from torch import nn

LETTERS = "abcdefghijklmnopqrstuvwxyz ."
WORDS = "the sea was still and every island waited for ships that came with rain or with news of other shores".split()


class Text:
    """Random sentences of a few words. Each rank has its own seed."""

    def __init__(self, seed: int, length: int, batch: int) -> None:
        self._random = torch.Generator().manual_seed(seed)
        self._length, self._batch = length, batch

    def _row(self) -> list:
        letters: list = []
        while len(letters) <= self._length:
            count = int(torch.randint(3, 8, (1,), generator=self._random))
            first = int(torch.randint(len(WORDS), (1,), generator=self._random))
            words = [WORDS[(first + 2 * step) % len(WORDS)] for step in range(count)]
            letters += [LETTERS.index(letter) for letter in " ".join(words) + ". "]
        return letters[: self._length + 1]

    def next(self) -> "tuple[torch.Tensor, torch.Tensor]":
        rows = torch.tensor([self._row() for _ in range(self._batch)])
        return rows[:, :-1], rows[:, 1:]


class Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.before_attention, self.before_network = nn.LayerNorm(width), nn.LayerNorm(width)
        self.questions, self.answer = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.network = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        parts = self.questions(self.before_attention(x)).view(batch, length, 3, self.heads, width // self.heads)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        seen = nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.answer(seen.transpose(1, 2).reshape(batch, length, width))
        return x + self.network(self.before_network(x))


class Transformer(nn.Module):
    def __init__(self, width: int = 96, layers: int = 2, heads: int = 4, length: int = 48) -> None:
        super().__init__()
        self.letters = nn.Embedding(len(LETTERS), width)
        self.places = nn.Parameter(torch.randn(length, width) * 0.02)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.out = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, len(LETTERS)))

    def forward(self, letters: torch.Tensor) -> torch.Tensor:
        x = self.letters(letters) + self.places
        for block in self.blocks:
            x = block(x)
        return self.out(x)


class Progress:
    """Progress as a line that is rewritten on a terminal; elsewhere a line after each tenth of the steps."""

    def __init__(self, steps: int, shown: bool) -> None:
        self._steps, self._shown, self._began = steps, shown, time.monotonic()

    def show(self, step: int, loss: float, tokens: int) -> None:
        if not self._shown:
            return
        rate = tokens / max(time.monotonic() - self._began, 1e-9)
        text = f"step {step:4}/{self._steps}  loss {loss:.4f}  {rate:7.0f} tokens/s"
        if sys.stderr.isatty():
            bar = ("#" * (24 * step // self._steps)).ljust(24)
            sys.stderr.write(f"\r[{bar}] {text}" + ("\n" if step == self._steps else ""))
            sys.stderr.flush()
        elif step == self._steps or step % max(1, self._steps // 10) == 0:
            print(text, flush=True)


def options(what: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=what)
    parser.add_argument("--backend", default="seto", help="seto, or another one to compare with (gloo)")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--batch", type=int, default=8, help="rows of text on each rank in each step")
    parser.add_argument("--curve", help="write the losses of rank 0 to this file, as JSON")
    return parser


def rate_at(step: int, steps: int, warm_up: int = 10) -> float:
    """The fraction of the highest rate: it rises for a few steps and then falls along a cosine to zero."""
    return min(1.0, (step + 1) / warm_up) * 0.5 * (1 + math.cos(math.pi * step / steps))


def train(model: nn.Module, asked: argparse.Namespace) -> list:
    """The loss of each step, averaged over the ranks."""
    rank, size = dist.get_rank(), dist.get_world_size()
    text = Text(seed=1000 + rank, length=48, batch=asked.batch)
    optimiser = torch.optim.AdamW(model.parameters(), lr=2e-3)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: rate_at(step, asked.steps))
    progress, losses = Progress(asked.steps, rank == 0), []
    for step in range(1, asked.steps + 1):
        letters, following = text.next()
        loss = nn.functional.cross_entropy(model(letters).flatten(0, 1), following.flatten())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        schedule.step()
        shown = loss.detach().clone()
        dist.all_reduce(shown)
        losses.append(shown.item() / size)
        progress.show(step, losses[-1], step * letters.numel() * size)
    if asked.curve and rank == 0:
        with open(asked.curve, "w", encoding="utf-8") as file:
            json.dump(losses, file)
    return losses


def hash_of(tensors: list) -> str:
    digest = hashlib.sha256()
    for tensor in tensors:
        digest.update(tensor.detach().contiguous().view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()[:16]


def expect_equal(own: str) -> None:
    """Prints on rank 0 that all ranks have the same parameters, or raises on all ranks."""
    hashes: list = [None] * dist.get_world_size()
    dist.all_gather_object(hashes, own)
    if len(set(hashes)) != 1:
        raise RuntimeError(f"the parameters differ between ranks: {hashes}")
    if dist.get_rank() == 0:
        print(f"parameters {own}, equal on all {len(hashes)} ranks")
