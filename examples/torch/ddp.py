"""DistributedDataParallel over seto:

    torchrun --nproc-per-node 4 examples/torch/ddp.py
    torchrun --nproc-per-node 4 examples/torch/ddp.py --codec int8 --error-feedback
"""

import json

import lesson
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def travelled_in() -> set:
    """The codec that the last averages used, or none: a codec is a permission, and between processes of one machine encoding is slower."""
    import seto.torch

    calls = json.loads(seto.torch.dump(json=True))["recorder"]["calls"]
    averages = [call for call in calls if call.get("op") == "avg"]
    return {"exactly" if call["codec"] == "none" else "in " + call["codec"] for call in averages}


def main() -> None:
    parser = lesson.options("Trains a small transformer whose gradients are averaged over all ranks.")
    parser.add_argument("--codec", help="permits a codec for the gradients: fp16, bf16, e4m3, e5m2, int8, int4")
    parser.add_argument("--error-feedback", action="store_true", help="add the codec's error in the next step")
    asked = parser.parse_args()
    dist.init_process_group(asked.backend)
    torch.manual_seed(7)
    model = DistributedDataParallel(lesson.Transformer())
    if asked.codec:
        import seto.torch

        model.register_comm_hook(None, seto.torch.compress_hook(asked.codec, asked.error_feedback))
    losses = lesson.train(model, asked)
    lesson.expect_equal(lesson.hash_of(list(model.parameters())))
    if dist.get_rank() == 0:
        if asked.codec:
            print(f"gradients were sent in {', '.join(sorted(travelled_in()))}")
        print(f"loss {losses[0]:.6f} -> {losses[-1]:.6f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
