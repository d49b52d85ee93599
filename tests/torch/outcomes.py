"""The outcomes of tests, for suites of PyTorch."""

import time
import unittest


class Outcomes(unittest.TestResult):
    """Stores the outcome of each test, and prints a line of progress for each."""

    def __init__(self, total: int, parts_of_name: int = 1) -> None:
        super().__init__()
        self._parts = parts_of_name
        self.by_test: "dict[str, tuple[str, str]]" = {}
        self._total, self._began = total, 0.0

    def startTest(self, test: unittest.TestCase) -> None:
        super().startTest(test)
        self._began = time.monotonic()

    def _note(self, test: unittest.TestCase, outcome: str, why: str = "") -> None:
        name = ".".join(test.id().split(".")[-self._parts :])
        if outcome == "pass" and name in self.by_test:  # a part of it has failed
            return
        self.by_test[name] = (outcome, why)
        if outcome == "skip":
            return
        print(f"[{len(self.by_test)}/{self._total}] {outcome:4} {time.monotonic() - self._began:5.1f} s  {name}", flush=True)
        if outcome == "FAIL":
            print("\n".join("    " + line for line in why.splitlines()[-25:]), flush=True)

    def addSuccess(self, test: unittest.TestCase) -> None:
        self._note(test, "pass")

    def addSkip(self, test: unittest.TestCase, reason: str) -> None:
        self._note(test, "skip", reason)

    def addFailure(self, test: unittest.TestCase, err: tuple) -> None:
        self._note(test, "FAIL", self._exc_info_to_string(err, test))

    addError = addFailure

    def addUnexpectedSuccess(self, test: unittest.TestCase) -> None:
        self._note(test, "FAIL", "it was expected to fail, but passed")

    def addSubTest(self, test: unittest.TestCase, subtest: unittest.TestCase, err: "tuple | None") -> None:
        if err is not None:
            self._note(test, "FAIL", self._exc_info_to_string(err, test))
