"""Communication hooks for DistributedDataParallel that send gradients in a codec."""

from typing import Any, Callable

import torch
import torch.distributed as dist

__all__ = ["compress_hook"]


def backend_of(group: "dist.ProcessGroup", device: torch.device) -> Any:
    """The backend of the group, without the wrapper that TORCH_DISTRIBUTED_DEBUG=DETAIL adds."""
    backend = group._get_backend(device)
    return getattr(backend, "wrapped_pg", backend)


def compress_hook(codec: str = "fp16", error_feedback: bool = False) -> "Callable[[Any, dist.GradBucket], torch.futures.Future[torch.Tensor]]":
    """A hook that averages gradients in a codec: fp16, bf16, e4m3, e5m2, int8 or int4.

        model.register_comm_hook(None, seto.torch.compress_hook(codec="int8", error_feedback=True))

    The state argument of register_comm_hook is the process group, or None for the default group. If the model is wrapped for another
    group, pass that group. Its backend must be seto. Gradients of a type that the codec does not encode, such as bfloat16 in fp16,
    are sent exactly. A codec is a permission: where exact numbers are as fast, as between processes of one machine, they are sent
    exactly (``seto.torch.dump`` shows the codec of each call; with SETO_TRANSPORT=tcp and SETO_DETERMINISTIC=on a codec can be
    tried on one machine). With `error_feedback` each rank keeps the encoding error of its gradients and adds it in the next step.
    ``hook.state_dict()`` and ``hook.load_state_dict(state)`` are for checkpoints; each rank has its own state. A loaded state is
    used once the buckets have their final sizes, from the second step on. A state that does not fit, because it was altered or
    belongs to another model, raises ValueError in the third step.
    """
    from seto.torch import _backend

    _backend.takes(codec, torch.float32)  # raises for an unknown codec
    feedbacks = Feedbacks(_backend)

    def compress(state: Any, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
        group = state if state is not None else dist.group.WORLD
        if not isinstance(group, dist.ProcessGroup):
            raise TypeError(f"seto: the state of register_comm_hook is a process group, or None, not {type(group).__name__}")
        gradients = bucket.buffer()
        backend = backend_of(group, gradients.device)
        taken = _backend.takes(codec, gradients.dtype)
        feedback = feedbacks.of(backend, bucket.index(), gradients) if error_feedback and taken else None
        work = _backend.all_reduce_coded(backend, gradients, dist.ReduceOp.AVG, codec if taken else "none", feedback)
        return work.get_future().then(lambda future: future.value()[0])

    compress.state_dict = feedbacks.state_dict  # type: ignore[attr-defined]
    compress.load_state_dict = feedbacks.load_state_dict  # type: ignore[attr-defined]
    return compress


class Feedbacks:
    """Error-feedback states, one for each bucket."""

    # DDP rearranges its buckets after the first step. From the third use of a bucket on, the arrangement is final.
    SETTLED = 3

    def __init__(self, native: Any) -> None:
        self._native = native
        self._states: "dict[int, Any]" = {}
        self._shapes: "dict[int, tuple]" = {}
        self._visits: "dict[int, int]" = {}
        self._loaded: "dict[int, bytes]" = {}
        self._refused: "dict[int, ValueError]" = {}

    def of(self, backend: Any, index: int, gradients: torch.Tensor) -> Any:
        shape = (gradients.numel(), gradients.dtype)
        self._visits[index] = self._visits.get(index, 0) + 1
        if self._shapes.get(index) != shape:
            self._states[index], self._shapes[index] = self._native.make_error_feedback(backend, gradients), shape
            self._take_loaded(index)
        if self._loaded and self._visits[index] >= self.SETTLED:
            unused = min(self._loaded)
            why = self._refused.get(unused, "there is no such bucket")
            raise ValueError(f"seto: the error feedback that was loaded for bucket {unused} does not fit this model: {why}")
        return self._states[index]

    def _take_loaded(self, index: int) -> None:
        if index not in self._loaded:
            return
        try:
            self._states[index].load(self._loaded[index])
        except ValueError as refused:  # the state may belong to the final arrangement, which comes later
            self._refused[index] = refused
        else:
            del self._loaded[index]

    def state_dict(self) -> "dict[int, bytes]":
        """The states by bucket, including states that were loaded and not used yet."""
        return {**{index: state.save() for index, state in self._states.items()}, **self._loaded}

    def load_state_dict(self, saved: "dict[int, bytes]") -> None:
        for index, state in saved.items():
            if not isinstance(index, int) or not isinstance(state, bytes):
                raise TypeError("seto: a state of error feedback is a dict from bucket number to bytes, as state_dict() returns it")
        self._loaded = dict(saved)
        for known in (self._shapes, self._visits, self._refused):
            known.clear()
