"""Communication hooks of DistributedDataParallel: gradients that travel in a codec."""

from typing import Any, Callable

import torch
import torch.distributed as dist

__all__ = ["compress_hook"]



def backend_of(group: "dist.ProcessGroup", device: torch.device) -> Any:
    """Of the group, without the wrapper that TORCH_DISTRIBUTED_DEBUG=DETAIL puts around it."""
    backend = group._get_backend(device)
    return getattr(backend, "wrapped_pg", backend)


def compress_hook(codec: str = "fp16", error_feedback: bool = False) -> "Callable[[Any, dist.GradBucket], torch.futures.Future[torch.Tensor]]":
    """A hook that averages gradients in a codec: fp16, bf16, e4m3, e5m2, int8 or int4.

        model.register_comm_hook(None, seto.torch.compress_hook(codec="int8", error_feedback=True))

    The state that register_comm_hook takes is the process group, or None for the default one; its backend must be seto. A codec
    is leave to encode: where exact numbers travel as fast, they travel. With `error_feedback` each rank keeps what the codec left
    out of its gradients, and adds it in the next step. ``hook.state_dict()`` and ``hook.load_state_dict(state)`` are for
    checkpoints, of each rank its own: what is loaded serves once the buckets have their final sizes, from the second step on.
    """
    from seto.torch import _backend

    states: "dict[int, Any]" = {}  # by bucket
    shapes: "dict[int, tuple]" = {}
    loaded: "dict[int, bytes]" = {}

    def state_of(backend: Any, index: int, gradients: torch.Tensor) -> Any:
        shape = (gradients.numel(), gradients.dtype)
        if shapes.get(index) != shape:  # DDP arranges its buckets anew after the first step
            states[index], shapes[index] = _backend.make_error_feedback(backend, gradients), shape
            if index in loaded:
                try:
                    states[index].load(loaded[index])
                except ValueError:
                    pass  # of the final arrangement, which is not there yet
                else:
                    del loaded[index]
        return states[index]

    def compress(state: Any, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
        group = state if state is not None else dist.group.WORLD
        gradients = bucket.buffer()
        backend = backend_of(group, gradients.device)
        feedback = state_of(backend, bucket.index(), gradients) if error_feedback else None
        work = _backend.all_reduce_coded(backend, gradients, dist.ReduceOp.AVG, codec, feedback)
        return work.get_future().then(lambda future: future.value()[0])

    def state_dict() -> "dict[int, bytes]":
        return {index: state.save() for index, state in states.items()}

    def load_state_dict(saved: "dict[int, bytes]") -> None:
        loaded.clear()
        loaded.update(saved)
        shapes.clear()

    compress.state_dict = state_dict  # type: ignore[attr-defined]
    compress.load_state_dict = load_state_dict  # type: ignore[attr-defined]
    return compress
