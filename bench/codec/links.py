"""All-reduces over slow links, with and without codecs."""

import json
import sys
from pathlib import Path

import rows
from peers import Unavailable

sys.path.append(str(Path(__file__).resolve().parents[1] / "tcp"))

from places import Hosts  # noqa: E402

CALLS = 3


def measure(build, hosts):
    """{codec: microseconds}, each result checked against its bound."""
    codecs = ",".join(("none", *rows.OF_UNCOMPRESSED))
    size = str(rows.LINK_SIZE)
    command = [build / "bench" / "all_reduce_perf", "-b", size, "-e", size, "-n", CALLS, "-w", 1, "-c", 1, "--codec", codecs]
    place = Hosts(build, links=rows.LINK, count=hosts)
    try:
        file = place.folder / "figures.json"
        place.run_ours([str(word) for word in command], hosts, {}, str(file))
        document = json.loads(file.read_text())
    finally:
        place.close()
    wrong = sum(int(entry[form]["nwrong"]) for entry in document["results"] for form in ("out_of_place", "in_place"))
    if wrong:
        raise Unavailable(f"{wrong} elements beyond the bound of their codec")
    return rows.times_of(document)
