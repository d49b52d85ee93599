"""The launchers: ours, and each MPI's with an MPI program and with one of ours."""

import json
import re
import tempfile
import time
from pathlib import Path

import rows  # first: it adds the common folder to the path
from peers import Setup, Unavailable, run_process

HERE = Path(__file__).resolve().parent
INCLUDE = HERE.parents[1] / "include"
LAUNCH_LIMIT_S = 60
ROOT_BYTES = re.compile(r"rendezvous of (\d+) ranks: (\d+) bytes")


class Launch:
    """A job that does one all_reduce: seconds from start to exit of its launcher."""

    def __init__(self, name, launcher, program, environment=None):
        self.name, self.launcher, self.program, self.environment = name, launcher, program, environment

    def seconds(self, processes):
        command = [*self.launcher, "-n", processes, *(["--"] if self.name in (rows.OURS, rows.PLACEBO) else []), self.program]
        start = time.monotonic()
        run_process(command, self.environment, LAUNCH_LIMIT_S)
        return time.monotonic() - start


class Launchers(Setup):
    """Every available contender, and the reason for each missing one."""

    def peers(self):
        found = self.ours()
        for name, make in (("Open MPI", self.open_mpi), ("MPICH", self.mpich), ("Intel MPI", self.intel_mpi)):
            try:
                found += self.both(name, make())
            except (Unavailable, OSError) as error:
                self.missing[name] = str(error)
                self.say(f"{name} is not available and will not be measured: {error}")
        return found

    def ours(self):
        seto, program = self.build / "seto", self.build / "bench" / "seto_once"
        missing = [path.name for path in (seto, program) if not path.exists()]
        if missing:
            self.missing[rows.OURS] = f"{' and '.join(missing)} not built"
            return []
        return [Launch(name, [seto, "run"], program) for name in (rows.OURS, rows.PLACEBO)]

    def both(self, name, mpi):
        """That MPI alone, and our program under its launcher."""
        alone = self.compiled(name, "mpi_once", [])
        found = [Launch(name, mpi.launcher, alone, mpi.environment)]
        try:
            library = ["-L", self.build, "-lseto", f"-Wl,-rpath,{self.build}"]
            ours = self.compiled(name, "seto_mpi_once", ["-I", INCLUDE, *library])
            found.append(Launch(rows.under(name), mpi.launcher, ours, mpi.environment))
        except Unavailable as error:
            self.missing[rows.under(name)] = str(error)
        return found

    def compiled(self, name, program, words):
        """Compiles the program each time, because the library may have changed."""
        binary = self.folder / f"{program}.{rows.key_of(name)}"
        source = HERE / f"{program}.c"
        run_process([*self.compiler(name), "-O2", source, "-o", binary, *words, *self.libraries(name)])
        return binary

    def compiler(self, name):
        return {"Open MPI": ["mpicc.openmpi"], "MPICH": ["mpicc.mpich"]}.get(name, ["cc", "-I", self.venv / "include"])

    def libraries(self, name):
        return ["-L", self.venv / "lib", "-lmpi"] if name == "Intel MPI" else []

    @property
    def venv(self):
        return self.folder / "venv"

    def compile_mpi(self, name, command):
        """Uses only the launcher of the common class, not its program."""
        return None


def scale(build, ranks):
    """(seconds, bytes of the root for each rank) of making one communicator of so many ranks in 8 processes."""
    program = build / "bench" / "comm_cost"
    if not program.exists():
        raise Unavailable("comm_cost is not built")
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        environment = {"SETO_LOG": "info", "SETO_LOG_FILE": str(log)}
        output = run_process([program, "--ranks", ranks, "--processes", 8, "--communicators", 1], environment, 180)
        return figures_of(output, log.read_text(), ranks)


def figures_of(output, log, ranks):
    said = [int(match[2]) for match in ROOT_BYTES.finditer(log) if int(match[1]) == ranks]
    if not said:
        raise Unavailable(f"the log has no line about a rendezvous of {ranks} ranks")
    return json.loads(output)["init_s"], sum(said) / ranks
