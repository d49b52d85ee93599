"""Seto: collective communication over islands of ranks.

    import numpy, seto

    with seto.Communicator() as comm:          # all processes of the job: seto run, mpirun, srun, torchrun
        mine = numpy.full(1000, float(comm.rank), dtype=numpy.float32)
        comm.all_reduce(mine)                  # in place: the sum over all ranks

With PyTorch: ``init_process_group("seto")`` (see :mod:`seto.torch`). This module itself needs neither torch nor numpy: whatever
offers its memory by the buffer protocol or by DLPack may be passed.
"""

from seto._communicator import Communicator
from seto._library import SetoError, version

__all__ = ["Communicator", "SetoError", "version"]
__version__ = version()
