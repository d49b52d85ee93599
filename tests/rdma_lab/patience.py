"""Limits of a machine that shares the processors of this host with other work: only the time in which it could run counts."""

import time
from pathlib import Path

# So much of the time passes anyway, whatever the host does: nothing waits for ever.
LEAST_SHARE = 0.05
LOOK_S = 0.2


def waited_s(pid):
    """The seconds that one thread of the process was ready to run and had no processor: those of the thread that waited longest.
    0 where the kernel does not tell."""
    longest = 0
    for file in Path(f"/proc/{pid}/task").glob("*/schedstat"):
        try:
            longest = max(longest, int(file.read_text().split()[1]))
        except (OSError, ValueError, IndexError):
            continue  # the thread has ended
    return longest / 1e9


class OwnTime:
    """A clock that stands still while a thread of the process waits for a processor. Threads that run while another one waits make it
    slower than it need be, never faster than the clock on the wall."""

    def __init__(self, pid, now=time.monotonic, waited=waited_s):
        self.pid, self.now, self.waited = pid, now, waited
        self.begin = self.looked = now()
        self.waited_before = waited(pid)
        self.own_s = 0.0

    @property
    def wall_s(self):
        return self.now() - self.begin

    def seconds(self):
        """The own time since the clock was made."""
        now = self.now()
        passed = now - self.looked
        if passed >= LOOK_S:
            waited = self.waited(self.pid)
            self.own_s += max(passed * LEAST_SHARE, passed - max(0.0, waited - self.waited_before))
            self.looked, self.waited_before = now, waited
        return self.own_s
