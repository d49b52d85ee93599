"""A program that the lab started: what it prints, how it ends."""

import os
import re
import signal
import subprocess
import threading
import time

from namespaces import LabError

QUIT_LIMIT_S = 20


class Process:
    """A program on a host. What it prints is read as it comes; a silent death of the lab ends it."""

    def __init__(self, command, environment=None, echo=None):
        self.command = [str(word) for word in command]
        self.popen = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", *self.command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            env=environment,
            start_new_session=True,
        )
        self.pid, self.echo = self.popen.pid, echo
        self.lines, self.error_lines, self.changed, self.open_streams = [], [], threading.Condition(), 2
        streams = ((self.popen.stdout, self.lines), (self.popen.stderr, self.error_lines))
        self.threads = [threading.Thread(target=self._collect, args=pair, daemon=True) for pair in streams]
        for thread in self.threads:
            thread.start()

    def _collect(self, stream, lines):
        with stream:
            self._collect_lines(stream, lines)
        with self.changed:
            self.open_streams -= 1
            self.changed.notify_all()

    def _collect_lines(self, stream, lines):
        for line in stream:
            with self.changed:
                lines.append(line.rstrip("\n"))
                self.changed.notify_all()
            if self.echo:
                self.echo(line.rstrip("\n"), lines is self.error_lines)

    @property
    def output(self):
        return "\n".join(self.lines)

    @property
    def errors(self):
        return "\n".join(self.error_lines)

    def line(self, pattern, limit_s=20, after=0):
        """The first line of output from number `after` on in which the pattern is found, as a match."""
        end, seen = time.monotonic() + limit_s, after
        with self.changed:
            while True:
                for text in self.lines[seen:]:
                    found = re.search(pattern, text)
                    if found:
                        return found
                seen = max(seen, len(self.lines))
                left = end - time.monotonic()
                if left <= 0 or self.open_streams == 0:
                    raise LabError(f"{self} printed no `{pattern}`: {self.output} {self.errors}")
                self.changed.wait(left)

    def say(self, line):
        self.popen.stdin.write(line + "\n")
        self.popen.stdin.flush()

    def wait(self, limit_s=60):
        """The exit status, once all it printed is read; it is ended if it takes longer, which is an error."""
        try:
            self.popen.stdin.close()
        except BrokenPipeError:
            pass
        try:
            code = self.popen.wait(limit_s)
        except subprocess.TimeoutExpired:
            self.kill()
            raise LabError(f"{self} did not end within {limit_s} s\n{self.output}\n{self.errors}") from None
        with self.changed:
            self.changed.wait_for(lambda: self.open_streams == 0, QUIT_LIMIT_S)
        return code

    def signal(self, number):
        os.kill(self.pid, number)

    def kill(self):
        """With all that it started and that stayed in its session."""
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.popen.wait()

    def close(self):
        """Ends it and lets go of its pipes; one that left its session keeps them, until its namespace goes."""
        self.kill()
        for thread in self.threads:
            thread.join(QUIT_LIMIT_S)
        try:
            self.popen.stdin.close()
        except BrokenPipeError:
            pass

    def __str__(self):
        return " ".join(self.command)[:120]
