"""The virtual machine with RDMA devices: boots, runs commands one after another, ends."""

import os
import shutil
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from machine_image import HERE, ROOT, find_image
from patience import OwnTime

sys.path.append(str(HERE.parent / "lab"))
from namespaces import LabError  # noqa: E402
from process import Process  # noqa: E402

JOB_PREFIX = "seto_rdma_lab_"
QEMU = "qemu-system-x86_64"
# Limits are in the machine's own time: while the host gives it no processor, it passes slowly.
BOOT_LIMIT_S = 60  # 2 s on an idle machine of two processors, 5 s on a busy one
BOOTS = 2
GRACE_S = 15  # a command that has exceeded its limit is killed inside within 3 s, unless the kernel there hangs
POLL_S = 0.02
CONSOLE_LINES = 60
DEVICES_LIMIT_S = 60
MEMORY_MIB = 2048

# The emulator steps through string instructions piece by piece, and multiplies without carry slowly: without them the kernel copies
# and computes checksums twice as fast. no_timer_check: the kernel counts the ticks of its timer within a short time, and panics where
# a busy host gave it too few of them.
PROCESSOR = "max,-pclmulqdq,-erms"
KERNEL_OPTIONS = (
    "console=ttyS0 quiet loglevel=3 panic=-1 no_timer_check mitigations=off nokaslr tsc=reliable random.trust_cpu=on audit=0 apparmor=0 "
    "clearcpuid=rep_good,erms,fsrm"
)


class MachineLost(LabError):
    """The machine did not boot, or does not answer any more; the text has its console."""


@dataclass(frozen=True)
class Outcome:
    """The end of a command: 124 says that it exceeded its limit."""

    status: int
    output: str
    seconds: float  # own time of the machine
    wall_s: float


def why_not(folder=None):
    """Returns the reason why no machine can be booted here, or None."""
    for program, package in ((QEMU, "qemu-system-x86"), ("setpriv", "util-linux"), ("rdma", "iproute2"), ("modprobe", "kmod")):
        if not shutil.which(program, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"):
            return f"needs the package {package} (./dev lab rdma installs it)"
    if not (find_image(folder) if folder else find_image()):
        return "needs the kernel of the virtual machine (./dev lab rdma makes it)"
    return None


def job_folders(pid="*"):
    return Path(tempfile.gettempdir()).glob(f"{JOB_PREFIX}{pid}-*")


def remove_stale():
    """Removes the folders of machines whose process was killed; the kernel has killed those machines."""
    for folder in job_folders():
        pid = folder.name.removeprefix(JOB_PREFIX).partition("-")[0]
        if pid.isdecimal() and not Path(f"/proc/{pid}").exists():
            shutil.rmtree(folder, ignore_errors=True)


def command_line(image, job, options="", nodes=1):
    def share(name, path, more=""):
        return ["-fsdev", f"local,id={name},path={path},security_model=none{more}", "-device", f"virtio-9p-pci,fsdev={name},mount_tag={name}"]

    # Without the PM timer of this board (-M microvm boots 0.2 s sooner) one boot in twenty does not find its clock.
    words = [QEMU, "-M", "q35", "-accel", "tcg,thread=multi,tb-size=512", "-cpu", PROCESSOR, "-smp", "2", "-m", f"{MEMORY_MIB}"]
    words += ["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-serial", "stdio", "-monitor", "none"]
    for node in range(nodes) if nodes > 1 else ():
        words += ["-object", f"memory-backend-ram,id=memory{node},size={MEMORY_MIB // nodes}M"]
        words += ["-numa", f"node,nodeid={node},cpus={node},memdev=memory{node}"]
    words += ["-kernel", str(image.kernel), "-initrd", str(image.first_files), "-append", f"{KERNEL_OPTIONS} {options}".strip()]
    return words + share("host", "/", ",readonly=on,multidevs=remap") + share("job", job)


class Machine:
    """Use it in a `with`; its end kills the machine. The thread that enters must outlive it (the kernel kills the machine with it).
    `nodes`: with 2, each processor is a NUMA node with half of the memory."""

    def __init__(self, build, image=None, boot_limit_s=BOOT_LIMIT_S, kernel_options="", nodes=1):
        self.build, self.image = Path(build), image or find_image()
        self.boot_limit_s, self.kernel_options, self.nodes = boot_limit_s, kernel_options, nodes
        self.boots, self.boot_s, self.number, self.consoles = 0, 0.0, 0, []  # consoles: of boots that failed
        self.process = self.job = self.folder = None

    def __enter__(self):
        try:
            while not self._boot():
                self.consoles.append(self._console())
                self.close()
                if self.boots == BOOTS:
                    text = f"the virtual machine ran no command within {self.boot_limit_s:g} s, {BOOTS} times"
                    raise MachineLost("\n".join([text, *self.consoles]))
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_):
        self.close()

    @property
    def pid(self):
        return self.process.pid

    def _boot(self):
        """Returns whether the machine has run a first command."""
        self.boots += 1
        self.number = 0
        remove_stale()
        self.folder = tempfile.TemporaryDirectory(prefix=f"{JOB_PREFIX}{os.getpid()}-")
        self.job = Path(self.folder.name)
        shutil.copy(HERE / "inside" / "agent.sh", self.job / "agent.sh")
        options = self.kernel_options if self.boots == 1 else f"loglevel=7 {self.kernel_options}"  # so that a second failure explains itself
        self.process = Process(command_line(self.image, self.job, options, self.nodes))
        clock = OwnTime(self.pid)
        booted = self._wait_for(self._start("true"), clock, self.boot_limit_s)
        self.boot_s = clock.wall_s
        return booted

    def _start(self, script):
        """Leaves a command for the agent; returns the path of its status."""
        self.number += 1
        part = self.job / "part"
        part.write_text(script + "\n")
        part.rename(self.job / f"{self.number}.run")
        return self.job / f"{self.number}.status"

    def _wait_for(self, status, clock, limit_s, tell=lambda: None):
        """Returns whether the status was there within the limit. The end of the machine ends the wait."""
        while not status.exists():
            tell()
            if clock.seconds() > limit_s or self.process.popen.poll() is not None:
                return status.exists()
            time.sleep(POLL_S)
        return True

    def _console(self):
        lines = self.process.lines[-CONSOLE_LINES:] + self.process.error_lines[-CONSOLE_LINES:]
        return "console of the virtual machine:\n" + ("\n".join(f"  {line}" for line in lines) or "  (empty)")

    def run(self, command, limit_s=60, echo=None):
        """Runs a command of the shell in the root of the repository. `echo` gets its output as it arrives."""
        clock = OwnTime(self.pid)
        status = self._start(f"cd '{ROOT}' || exit 1\n{command}")
        output, told = self.job / f"{self.number}.output", 0

        def tell():
            nonlocal told
            if echo and output.exists() and output.stat().st_size > told:
                with output.open("rb") as file:
                    file.seek(told)
                    more = file.read()
                told += len(more)
                echo(more.decode(errors="replace"))

        ended = self._wait_for(status, clock, limit_s, tell)
        if not ended:
            (self.job / f"{self.number}.kill").touch()
            ended = self._wait_for(status, clock, clock.seconds() + GRACE_S, tell)
        tell()
        text = output.read_text(errors="replace") if output.exists() else ""
        if not ended:
            died = self.process.popen.poll() is not None
            why = "the virtual machine died" if died else f"no end within {limit_s:g} + {GRACE_S} s: the kernel of the virtual machine hangs"
            raise MachineLost(f"{why}, in: {command}\n{text}\n{self._console()}")
        return Outcome(int(status.read_text()), text, clock.seconds(), clock.wall_s)

    def make_devices(self, count=2, netem=""):
        """Makes the RoCE devices rxe0 to rxe(count - 1), and sets the variables of all later commands."""
        command = f"'{HERE}/inside/devices.sh' {count} '{self.build}'"
        if netem:
            command += f" && for i in $(seq 0 {count - 1}); do '{HERE}/inside/link.sh' netem $i {netem} || exit 1; done"
        outcome = self.run(command, DEVICES_LIMIT_S)
        if outcome.status != 0:
            raise LabError(f"the RDMA devices could not be made: {outcome.output.strip()}")
        return outcome.wall_s

    def close(self):
        if self.process:
            self.process.close()
            self.process = None
        if self.folder:
            self.folder.cleanup()
            self.folder = None
