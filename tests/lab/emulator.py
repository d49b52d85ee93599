"""The link emulator as a process, and a check that it was punctual enough for figures to count."""

import json
from pathlib import Path

from namespaces import LabError
from process import QUIT_LIMIT_S, Process

MOST_LATE = 0.01  # of the shortest round trip


class Emulator:
    """The relay between the sites' devices; its commands take effect before the call returns."""

    def __init__(self, program, names, device, options):
        if not Path(program).exists():
            raise LabError(f"{program} is missing: build link_emulator, or name its folder with --build")
        self.process = Process([program, f"namespaces={','.join(names)}", f"device={device}", *options])
        try:
            self.process.line("^ready$")
        except LabError:
            self.process.close()
            raise

    def command(self, line):
        before = len(self.process.lines)
        self.process.say(line)
        answer = self.process.line("^(ok|error: .*|{.*})$", after=before)[0]
        if answer.startswith("error"):
            raise LabError(answer)
        return answer

    def statistics(self):
        return json.loads(self.command("statistics"))

    def close(self):
        """Returns its statistics, once it has ended."""
        code = self.process.wait(QUIT_LIMIT_S)
        if code != 0:
            raise LabError(f"link_emulator ended with {code}: {self.process.errors}")
        return json.loads(self.process.lines[-1])


def late_share(counted):
    """Returns the average lateness of deliveries relative to the shortest round trip; None if no delay was set."""
    return counted["late_avg_us"] / counted["round_trip_us"] if counted["round_trip_us"] else None


def is_punctual(counted):
    """Returns whether figures of this run are valid for the links. Without a delay lateness cannot be judged."""
    share = late_share(counted)
    return share is None or share < MOST_LATE


def lateness_text(counted):
    text = f"the emulator was {counted['late_avg_us']:.0f} us late on average"
    share = late_share(counted)
    if share is None:
        return text
    text += f", {share:.2%} of the shortest round trip"
    return text if is_punctual(counted) else f"{text}: the machine was too busy, figures of this run do not count"
