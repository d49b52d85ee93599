"""Seto: collective communication between ranks on one machine or on several sites.

    import numpy, seto

    with seto.Communicator() as comm:          # all processes of the job: seto run, mpirun, srun, torchrun
        mine = numpy.full(1000, float(comm.rank), dtype=numpy.float32)
        comm.all_reduce(mine)                  # in place: the sum over all ranks

With PyTorch: ``init_process_group("seto")`` (see :mod:`seto.torch`). This module itself needs neither torch nor numpy: any object that
offers its memory by the buffer protocol or by DLPack may be passed.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from seto._allocation import allocate
    from seto._communicator import Communicator
    from seto._library import SetoError, version

__all__ = ["Communicator", "SetoError", "allocate", "version"]


# The library is loaded when it is first used: torch imports this package in every program, for the name of its backend.
def __getattr__(name: str) -> Any:
    if name == "Communicator":
        return importlib.import_module("seto._communicator").Communicator
    if name == "allocate":
        return importlib.import_module("seto._allocation").allocate
    if name in ("SetoError", "version"):
        return getattr(importlib.import_module("seto._library"), name)
    if name == "__version__":
        return importlib.import_module("seto._library").version()
    raise AttributeError(f"module 'seto' has no attribute '{name}'")
