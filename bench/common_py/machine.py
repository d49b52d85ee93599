"""Facts about the machine for the reports."""

import os
import time
from pathlib import Path


def processor_of(cpuinfo):
    """The name of the processor in the text of /proc/cpuinfo."""
    for line in cpuinfo.splitlines():
        name, _, value = line.partition(":")
        if name.strip() in ("model name", "Processor", "cpu model"):
            return value.strip()
    return "unknown processor"


def processor():
    """Name and number of cores."""
    return f"{processor_of(Path('/proc/cpuinfo').read_text())}, {os.cpu_count()} cores"


def busy_share(seconds=2.0):
    """Share of all cores that other programs used over a time in which this run did nothing."""

    def ticks():
        fields = [int(word) for word in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
        return sum(fields), fields[3] + fields[4]

    total, idle = ticks()
    time.sleep(seconds)
    later_total, later_idle = ticks()
    return 1 - (later_idle - idle) / max(later_total - total, 1)
