"""The peers of the tables: installing, compiling and starting each, and reading its output."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import goals

BENCH = Path(__file__).resolve().parent.parent
MPI_SOURCE = BENCH / "peers" / "mpi_perf.c"
GLOO_SOURCE = BENCH / "peers" / "gloo_perf.py"
DEBIAN_PACKAGES = ("openmpi-bin", "libopenmpi-dev", "mpich", "libmpich-dev")
PYTHON_PACKAGES = {"Intel MPI": ("impi-rt", "impi-devel"), "gloo": ("torch==2.13.0", "numpy")}
LAUNCH_LIMIT_S = 90
INSTALL_LIMIT_S = 900


class Unavailable(Exception):
    """A contender that cannot be measured; the text says why."""


def run_process(command, environment=None, limit_s=LAUNCH_LIMIT_S):
    """Standard output of a command. All processes that it started are ended too, because an orphan that spins would distort the next sample."""
    process = subprocess.Popen(
        [str(word) for word in command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **(environment or {})},
        start_new_session=True,
    )
    try:
        output, errors = process.communicate(timeout=limit_s)
    except subprocess.TimeoutExpired:
        raise Unavailable(f"{Path(str(command[0])).name} did not end within {limit_s} s") from None
    finally:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.communicate()
    if process.returncode != 0:
        last = (errors.strip() or output.strip() or "no output").splitlines()[-1][:200]
        raise Unavailable(f"{Path(str(command[0])).name} ended with {process.returncode}: {last}")
    return output


def times_of_lines(output):
    """Size -> microseconds from JSON lines; the fastest where a size occurs more than once. A wrong result is an error."""
    times = {}
    for line in output.splitlines():
        if not line.startswith("{"):
            continue
        entry = json.loads(line)
        if entry["wrong"]:
            raise Unavailable(f"wrong result at {entry['size']} bytes")
        times[entry["size"]] = min(entry["time_us"], times.get(entry["size"], float("inf")))
    if not times:
        raise Unavailable("it printed no figures")
    return times


def budget_of(group, scale):
    """Seconds of measuring per size, for programs that limit themselves by time."""
    return (0.05 if group.upper < goals.MIB else 0.15) * scale


def peer_arguments(group, scale):
    sizes = ",".join(str(size) for size in group.all_sizes)
    return [group.collective, "--sizes", sizes, "--budget", f"{budget_of(group, scale):.3f}", "--least", "2"]


class Mpi:
    """An MPI: mpi_perf compiled against it, started by its own launcher. Processes are not pinned, and neither are ours."""

    def __init__(self, name, binary, launcher, environment=None):
        self.name, self.binary, self.launcher, self.environment = name, binary, launcher, environment

    def measure(self, group, scale):
        command = [*self.launcher, "-n", str(group.ranks), self.binary, *peer_arguments(group, scale)]
        return times_of_lines(run_process(command, self.environment))


class Gloo:
    name = "gloo"

    def __init__(self, python):
        self.python = python

    def measure(self, group, scale):
        command = [self.python, "-W", "ignore", GLOO_SOURCE, *peer_arguments(group, scale), "--ranks", str(group.ranks)]
        return times_of_lines(run_process(command))


def open_mpi_launcher(transports):
    root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
    return ["mpirun.openmpi", *root, "--oversubscribe", "--bind-to", "none", "--mca", "btl", transports]


class Setup:
    """Installs and builds the contenders under one folder; stores the reason for each missing one."""

    def __init__(self, build, folder, may_install):
        self.build, self.folder, self.may_install = build, folder, may_install
        self.missing = {}
        folder.mkdir(parents=True, exist_ok=True)

    def say(self, text):
        print(f"# {text}", file=sys.stderr, flush=True)

    def peers(self):
        makers = {"Open MPI": self.open_mpi, "MPICH": self.mpich, "Intel MPI": self.intel_mpi, "gloo": self.gloo}
        found = []
        for name, make in makers.items():
            try:
                found.append(make())
            except (Unavailable, OSError, subprocess.SubprocessError) as error:
                self.missing[name] = str(error)
                self.say(f"{name} is not available and will not be measured: {error}")
        return found

    def install_debian(self):
        if not self.may_install or shutil.which("apt-get") is None:
            raise Unavailable(f"install {' '.join(DEBIAN_PACKAGES)}")
        prefix = [] if os.geteuid() == 0 else ["sudo", "-n"]
        self.say("installing " + " ".join(DEBIAN_PACKAGES))
        environment = {"DEBIAN_FRONTEND": "noninteractive"}
        install = [*prefix, "apt-get", "install", "-y", "-qq", "--no-install-recommends", *DEBIAN_PACKAGES]
        try:
            run_process(install, environment, INSTALL_LIMIT_S)
        except Unavailable:
            run_process([*prefix, "apt-get", "update", "-qq"], environment, INSTALL_LIMIT_S)
            run_process(install, environment, INSTALL_LIMIT_S)

    def python(self, peer, proof):
        """The python of a private environment with a peer's packages; `proof` is a path that exists once they are installed."""
        python = self.folder / "venv" / "bin" / "python"
        if not python.exists():
            run_process([sys.executable, "-m", "venv", self.folder / "venv"], limit_s=INSTALL_LIMIT_S)
        if not list((self.folder / "venv").glob(proof)):
            packages = PYTHON_PACKAGES[peer]
            if not self.may_install:
                raise Unavailable(f"install {' '.join(packages)} into {self.folder / 'venv'}")
            self.say("installing " + " ".join(packages))
            run_process([python, "-m", "pip", "install", "-q", *packages], limit_s=INSTALL_LIMIT_S)
        return python

    def compile_mpi(self, name, command):
        binary = self.folder / f"mpi_perf.{name}"
        if not binary.exists() or binary.stat().st_mtime < MPI_SOURCE.stat().st_mtime:
            run_process([command[0], "-O2", MPI_SOURCE, "-o", binary, *command[1:]])
        return binary

    def debian_mpi(self, name):
        if shutil.which(f"mpicc.{name}") is None or shutil.which(f"mpirun.{name}") is None:
            self.install_debian()
        return self.compile_mpi(name, [f"mpicc.{name}"])

    def open_mpi(self):
        return Mpi("Open MPI", self.debian_mpi("openmpi"), open_mpi_launcher("self,vader"))

    def mpich(self):
        return Mpi("MPICH", self.debian_mpi("mpich"), ["mpirun.mpich"])

    def intel_mpi(self):
        venv = self.python("Intel MPI", "bin/mpiexec.hydra").parent.parent
        if not (venv / "include" / "mpi.h").exists():
            raise Unavailable("impi-devel has no mpi.h")
        libraries = f"{venv / 'lib'}:{venv / 'opt' / 'mpi' / 'libfabric' / 'lib'}"
        environment = {"I_MPI_ROOT": str(venv), "I_MPI_FABRICS": "shm", "I_MPI_PIN": "off", "LD_LIBRARY_PATH": libraries}
        binary = self.compile_mpi("intel", ["cc", f"-I{venv / 'include'}", f"-L{venv / 'lib'}", "-lmpi"])
        return Mpi("Intel MPI", binary, [venv / "bin" / "mpiexec.hydra"], environment)

    def gloo(self):
        return Gloo(self.python("gloo", "lib/python3*/site-packages/torch"))
