"""Network namespaces of labs: whether they can be made here, and their complete removal."""

import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

NAMESPACES = Path("/run/netns")
NAME = re.compile(r"^seto-lab-(\d+)-")


class LabError(Exception):
    """The lab could not execute a request; the text has the reason."""


def why_not():
    """Returns the reason why a lab is impossible here, or None."""
    if os.geteuid() != 0:
        return "needs root"
    for program in ("ip", "setpriv"):
        if shutil.which(program) is None:
            return f"needs the program {program}"
    if not Path("/dev/net/tun").exists():
        return "needs /dev/net/tun"
    if subprocess.run(["unshare", "--net", "--mount", "true"], capture_output=True).returncode != 0:
        return "needs root that may make network namespaces"
    return None


def command_output(command, stdin=""):
    done = subprocess.run([str(word) for word in command], input=stdin, capture_output=True, text=True)
    if done.returncode != 0:
        raise LabError(f"{' '.join(map(str, command))}: {(done.stderr or done.stdout).strip()}")
    return done.stdout


def names_of(pid):
    return names_with(f"seto-lab-{pid}-")


def names_with(prefix):
    return sorted(path.name for path in NAMESPACES.glob(prefix + "*")) if NAMESPACES.is_dir() else []


def remove_namespaces(names):
    """Ends every process in them, then removes them. A namespace that is missing already is no error."""
    for name in names:
        pids = subprocess.run(["ip", "netns", "pids", name], capture_output=True, text=True).stdout.split()
        for pid in map(int, pids):
            if pid != os.getpid():
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
    for name in names:
        subprocess.run(["ip", "netns", "del", name], capture_output=True)


def remove_stale():
    """Removes the namespaces of labs whose reaper was killed too."""
    for path in NAMESPACES.glob("seto-lab-*") if NAMESPACES.is_dir() else []:
        match = NAME.match(path.name)
        if match and not Path(f"/proc/{match[1]}").exists():
            remove_namespaces([path.name])


def reap(prefix):
    """The reaper: waits until its lab closes the pipe, by its end or otherwise, and removes the remaining namespaces of that lab."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    sys.stdin.buffer.read()
    remove_namespaces(names_with(prefix))
