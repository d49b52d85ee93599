"""The module `seto` without torch.distributed: arrays of numpy, of the standard library, of torch by DLPack."""

import array
import functools
import multiprocessing
import os
import pathlib
import signal
import sys
import tempfile
import threading
import time
import traceback
import unittest
from typing import Any, Callable

import numpy
import ranks
import torch


def _run(body: Callable[..., Any], rank: int, size: int, root: str, answers: Any) -> None:
    os.environ.update(SETO_ROOT=f"file:{root}", SETO_RANK=str(rank), SETO_RANKS=str(size))
    import seto

    try:
        with seto.Communicator(timeout_s=20) as comm:
            answers.put((rank, body(comm), None))
    except BaseException:  # noqa: B902 - the parent reports it
        answers.put((rank, None, traceback.format_exc()))
    answers.close()
    answers.join_thread()


def run(body: Callable[..., Any], size: int = 2) -> list:
    """The result of the body for the communicator of each rank; each rank is a process."""
    context = multiprocessing.get_context("fork")
    answers = context.Queue()
    with tempfile.TemporaryDirectory(prefix="seto_plain_") as folder:
        root = f"{folder}/root"
        return ranks.collect([context.Process(target=_run, args=(body, rank, size, root, answers)) for rank in range(size)], answers)


def collectives_on_allocated_memory(comm: Any) -> None:
    import gc

    import seto

    count = 1 << 17
    # Calls are repeated, because other processes map the memory during the first one.
    for call in range(20):
        mine = numpy.frombuffer(seto.allocate(4 * count), numpy.float32)
        result = torch.frombuffer(seto.allocate(4 * count), dtype=torch.float32)
        assert not mine.any() and not result.any()
        mine[:] = comm.rank + call
        comm.all_reduce(mine, out=result)
        mine[:] = -1
        gc.collect()
        assert (result == 3 + 3 * call).all(), call
    with open("/proc/self/maps") as maps:
        peers = [line for line in maps if " r--s " in line and "/memfd:seto" in line]
    assert len(peers) == 2, peers
    for size in (0, -1):
        try:
            seto.allocate(size)
        except ValueError:
            continue
        raise AssertionError(size)


def collectives(comm: Any) -> None:
    mine = numpy.full((5, 20), comm.rank + 1.0, dtype=numpy.float32)
    assert comm.all_reduce(mine) is mine and (mine == 6).all()
    other = numpy.zeros(100, dtype=numpy.float32)
    comm.all_reduce(mine.reshape(-1), "max", out=other)
    assert (other == 6).all()
    gathered = numpy.zeros(3 * 4, dtype=numpy.int64)
    comm.all_gather(numpy.full(4, comm.rank, dtype=numpy.int64), gathered)
    assert (gathered == numpy.repeat(numpy.arange(3), 4)).all()
    part = numpy.zeros(4, dtype=numpy.int64)
    comm.reduce_scatter(gathered, part)
    assert (part == 3 * comm.rank).all()
    exchanged = numpy.zeros(3, dtype=numpy.float64)
    comm.all_to_all(numpy.arange(3.0) + 10 * comm.rank, exchanged)
    assert (exchanged == comm.rank + 10 * numpy.arange(3.0)).all()
    told = numpy.full(7, comm.rank, dtype=numpy.uint8)
    comm.broadcast(told, root=2)
    assert (told == 2).all()
    summed = numpy.ones(3, dtype=numpy.float16)
    comm.reduce(summed, root=1)
    assert (summed == (3 if comm.rank == 1 else 1)).all()
    comm.barrier()


def of_any_owner(comm: Any) -> None:
    standard = array.array("d", [comm.rank, 1.5])
    comm.all_reduce(standard)
    assert list(standard) == [1.0, 3.0]
    tensor = torch.full((3, 3), float(comm.rank + 1), dtype=torch.bfloat16)
    comm.all_reduce(tensor)
    assert tensor.eq(3).all()
    message = bytearray(b"hello") if comm.rank == 0 else bytearray(5)
    if comm.rank == 0:
        comm.send(message, to=1)
    else:
        comm.receive(message, source=0)
    assert message == b"hello"
    comm.all_reduce(numpy.zeros(0, dtype=numpy.float32))
    truths = numpy.array([True, comm.rank == 0, False])
    assert comm.all_reduce(truths).view(numpy.uint8).tolist() == [1, 1, 0]
    assert comm.all_reduce(torch.tensor([True, comm.rank == 0]), "min").tolist() == [True, False]


def refusals(comm: Any) -> list:
    texts = []
    readonly = numpy.ones(4)
    readonly.flags.writeable = False
    for wrong in (
        lambda: comm.all_reduce(numpy.ones((4, 4))[:, ::2]),
        lambda: comm.all_reduce(readonly),
        lambda: comm.all_reduce(numpy.ones(4, dtype=numpy.complex64)),
        lambda: comm.all_reduce([1.0, 2.0]),
        lambda: comm.all_reduce(numpy.ones(4), "median"),
        lambda: comm.all_reduce(numpy.ones(4), codec="fp61"),
        lambda: comm.all_reduce(numpy.ones(4, dtype=numpy.int32), codec="fp16"),
        lambda: comm.all_gather(numpy.ones(4), numpy.ones(4)),
        lambda: comm.all_reduce(numpy.ones(4, dtype=bool), "avg"),
        lambda: type(comm)(timeout_s=0),
        lambda: comm.all_reduce(numpy.ones(4), out=numpy.ones(4, dtype=numpy.float32)),
    ):
        try:
            wrong()
            texts.append("it worked")
        except (TypeError, ValueError, RuntimeError) as error:
            texts.append(f"{type(error).__name__}: {error}")
    comm.barrier()
    return texts


def lost(comm: Any) -> str:
    import seto

    if comm.rank == 1:
        return ""
    try:
        comm.barrier()
    except seto.SetoError as error:
        comm.abort()
        return str(error)
    return "it worked"


def interrupt_soon() -> None:
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()


def threads_left(name: str) -> bool:
    """Threads that remain. A joined thread may stay in the kernel's list for a moment."""
    until = time.monotonic() + 20
    left = True
    while left and time.monotonic() < until:
        left = False
        for thread in os.listdir("/proc/self/task"):
            try:
                with open(f"/proc/self/task/{thread}/comm", encoding="ascii") as file:
                    left = left or file.read().strip() == name
            except OSError:
                pass  # it has ended in the meantime
    return left


def signal_in_a_call(signals: tuple) -> None:
    """Sends the signals once the main thread is in a function of seto, and some time later, so that it waits in the library."""
    main = threading.main_thread().ident

    def send() -> None:
        while pathlib.Path(sys._current_frames()[main].f_code.co_filename).parent.name != "seto":
            time.sleep(0.01)
        time.sleep(0.3)
        for number in signals:
            os.kill(os.getpid(), number)

    threading.Thread(target=send, daemon=True).start()


def interrupted(comm: Any, how: str) -> Any:
    """Interrupts by Ctrl-C, by a handler that raises the library's exception, and by two signals at once."""
    import seto

    def refuse(number: int, frame: Any) -> None:
        raise seto.SetoError(0, "of a handler")

    mine = numpy.ones(4)
    if comm.rank == 1:
        try:
            comm.receive(mine, source=0)
        except seto.SetoError as error:
            return str(error)
        return "it worked"
    signals = {"twice": (signal.SIGINT, signal.SIGTERM), "handler": (signal.SIGTERM,)}.get(how, (signal.SIGINT,))
    signal.signal(signal.SIGTERM, refuse)
    began = time.monotonic()
    try:
        signal_in_a_call(signals)
        comm.all_reduce(mine)
    except (KeyboardInterrupt, seto.SetoError) as error:
        took, kind = time.monotonic() - began, type(error).__name__
    else:
        raise AssertionError("nothing interrupted it")
    try:
        comm.barrier()
    except ValueError as error:
        assert str(error) == "this communicator was closed"
    else:
        raise AssertionError("it continues")
    assert not threads_left("seto-progress"), "its threads still run"
    return took, kind


def without_the_others(root: str, answers: Any) -> None:
    import seto

    os.environ.update(SETO_ROOT=f"file:{root}", SETO_RANK="0", SETO_RANKS="2")
    began = time.monotonic()
    try:
        interrupt_soon()
        seto.Communicator()
    except KeyboardInterrupt:
        answers.put((0, time.monotonic() - began, None))
    else:
        answers.put((0, None, "it worked"))
    answers.close()
    answers.join_thread()


def on_another_thread(comm: Any) -> None:
    mine, told = numpy.full(4, comm.rank + 1.0), []
    for _ in range(3):
        thread = threading.Thread(target=lambda: told.append(comm.all_reduce(mine)))
        thread.start()
        thread.join(ranks.LIMIT_S)
        comm.all_reduce(mine)
    assert len(told) == 3 and (mine == 3 * 2**5).all()


def forked(comm: Any) -> str:
    """The output of a child that makes a call and drops the objects of its parent."""
    import seto

    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(writing, 2)  # where the interpreter reports ignored exceptions
        try:
            comm.barrier()
        except seto.SetoError as error:
            os.write(writing, str(error).encode())
        comm.__del__()
        os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)
    comm.barrier()
    with os.fdopen(reading, encoding="utf-8") as told:
        return told.read()


def alone(comm: Any) -> str:
    import re

    import seto

    assert (comm.rank, comm.size) == (0, 1) and re.fullmatch(r"\d+\.\d+\.\d+", seto.__version__)
    assert list(comm.all_reduce(array.array("f", [2, 3]))) == [2, 3]
    comm.close()
    try:
        comm.barrier()
    except ValueError as error:
        return str(error)
    return "it worked"


class Plain(unittest.TestCase):
    def test_the_wheel_is_stripped(self):
        import seto

        files = list(pathlib.Path(seto.__file__).parent.rglob("*.so*"))
        self.assertEqual(len(files), 2, files)
        for file in files:
            data = file.read_bytes()
            has_kernels = b"\x50\xed\x55\xba" in data  # images of GPU kernels begin with it
            self.assertLess(len(data), (16 if has_kernels else 6) << 20, file)
            self.assertNotIn(b"\0.debug_info\0", data, file)

    def test_collectives(self):
        run(collectives, 3)

    def test_collectives_on_allocated_memory(self):
        run(collectives_on_allocated_memory, 3)

    def test_memory_of_any_owner(self):
        run(of_any_owner)

    def test_refusals_say_what_is_wrong(self):
        parts = (
            "contiguous copy",
            "read-only",
            "format",
            "neither a buffer nor __dlpack__",
            "median",
            "fp16",
            "accepts only sums of wider floats; this is all_reduce of 4 int32",
            "2 ranks pass 4 each",
            "'avg' is not defined for bool",
            "timeout_s: 0",
            "another type",
        )
        for texts in run(refusals):
            for text, part in zip(texts, parts, strict=True):
                self.assertIn(part, text)

    def test_a_rank_that_leaves_is_named(self):
        self.assertIn("rank 1", run(lost)[0])

    def test_a_signal_ends_a_call_and_the_others_hear_so(self):
        for how, kinds in {"ctrl-c": ("KeyboardInterrupt",), "handler": ("SetoError",), "twice": ("KeyboardInterrupt", "SetoError")}.items():
            with self.subTest(how):
                (seconds, kind), text = run(functools.partial(interrupted, how=how))
                self.assertLess(seconds, 5)
                self.assertIn(kind, kinds)
                self.assertIn("rank 0", text)

    def test_ctrl_c_ends_the_wait_for_ranks_that_never_come(self):
        context = multiprocessing.get_context("fork")
        answers = context.Queue()
        with tempfile.TemporaryDirectory(prefix="seto_plain_") as folder:
            process = context.Process(target=without_the_others, args=(f"{folder}/root", answers))
            self.assertLess(ranks.collect([process], answers)[0], 5)

    def test_calls_of_several_threads_in_turn(self):
        run(on_another_thread)

    def test_a_forked_child_is_told(self):
        for text in run(forked):
            self.assertIn("forked", text)
            self.assertTrue(text.endswith("exec a new program"), text)

    def test_alone(self):
        self.assertEqual(run(alone, 1)[0], "this communicator was closed")


if __name__ == "__main__":
    ranks.main("__main__")
