"""Common parts of the tests over the lab: folders, streams between hosts, waits for a state, one exit status for skipped tests."""

import json
import os
import sys
import time
import unittest
from pathlib import Path

from lab import ROOT
from namespaces import LabError, why_not

SKIPPED = 77  # what ctest takes as skipped
BUILD = Path(os.environ.get("LAB_BUILD", ROOT / "build"))
ATTEMPTS = 3
LAST_BEGIN_S = 120  # no attempt begins later, so that the test ends with its reason and not by the limit of ctest
PAYLOAD_SHARE = 1448 / 1500  # of an IP packet, with TCP's time stamps


class Stream:
    """A server of lab_stream on one host, and transfers from others to it."""

    def __init__(self, lab, host=1, address=None):
        self.lab, self.address = lab, address or lab.hosts[host].address
        self.server = lab.hosts[host].start([BUILD / "tests" / "lab_stream", "serve", self.address])
        self.port = self.server.line(r"^port (\d+)$")[1]

    def start(self, mode, amount, host=0, limit_s=20):
        command = [BUILD / "tests" / "lab_stream", mode, self.address, self.port, amount]
        return self.lab.hosts[host].start(command, {"LAB_STREAM_LIMIT_S": limit_s})

    def run(self, mode, amount, host=0):
        return self.figures(self.start(mode, amount, host))

    def figures(self, process):
        if process.wait(60) != 0:
            raise LabError(f"{process}: {process.errors}")
        return json.loads(process.lines[-1])


class TooSlow(AssertionError):
    """A figure that is worse than it may be."""


class LabCase(unittest.TestCase):
    def setUp(self):
        reason = why_not()
        if reason:
            self.skipTest(f"skipped: {reason}")

    def attempt(self, check):
        """Other work on the machine makes packets late and takes the processor away, which is no error of the links: a check that
        is skipped for that, or whose figures are too slow, is tried again."""
        last_begin = time.monotonic() + LAST_BEGIN_S
        for attempt in range(ATTEMPTS):
            try:
                return check()
            except (unittest.SkipTest, TooSlow):
                if attempt + 1 == ATTEMPTS or time.monotonic() > last_begin:
                    raise

    def must_reach(self, figure, least):
        if figure < least:
            raise TooSlow(f"{figure} is below {least}")

    def must_stay_below(self, figure, most):
        if figure >= most:
            raise TooSlow(f"{figure} is not below {most}")

    def wait_for(self, condition, limit_s=20):
        """Polls a state for which no event exists."""
        end = time.monotonic() + limit_s
        while not condition():
            self.assertLess(time.monotonic(), end, "waited in vain")
            time.sleep(0.005)


def main():
    """Runs the tests that the command line names; prints the reasons of skipped tests, and says so if all were skipped."""
    program = unittest.main(argv=[sys.argv[0], *sys.argv[1:]], module="__main__", exit=False)
    result = program.result
    for test, reason in result.skipped:
        print(f"{test}: {reason}", file=sys.stderr)
    if not result.wasSuccessful():
        return 1
    return SKIPPED if result.testsRun and len(result.skipped) == result.testsRun else 0
