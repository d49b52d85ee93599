"""A program that the lab started: its output and its end."""

import os
import re
import signal
import subprocess
import threading
import time

from namespaces import LabError

QUIT_LIMIT_S = 20


class TimeLimit(LabError):
    """A program did not end in time."""


class Process:
    """A program on a host. Its output is read as it arrives; the death of the lab ends it."""

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
        """Returns the match in the first line of output, from number `after` on, that contains the pattern."""
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
        """Returns the exit status once all output is read. A program that takes longer is ended, which is an error."""
        try:
            self.popen.stdin.close()
        except BrokenPipeError:
            pass
        try:
            code = self.popen.wait(limit_s)
        except subprocess.TimeoutExpired:
            self.kill()
            raise TimeLimit(f"{self} did not end within {limit_s:.3g} s\n{self.output}\n{self.errors}") from None
        with self.changed:
            self.changed.wait_for(lambda: self.open_streams == 0, QUIT_LIMIT_S)
        return code

    def signal(self, number):
        os.kill(self.pid, number)

    def kill(self):
        """Kills it with all processes of its session."""
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.popen.wait()

    def close(self):
        """Ends it and closes its pipes. A process that left its session keeps them until its namespace is removed."""
        self.kill()
        for thread in self.threads:
            thread.join(QUIT_LIMIT_S)
        try:
            self.popen.stdin.close()
        except BrokenPipeError:
            pass

    def __str__(self):
        return " ".join(self.command)[:120]
