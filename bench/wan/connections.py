"""Connects to the listening ports of a job again and again, as a scanner of ports does, and sends bytes that are no greeting.

    connections.py RATE FIRST-LAST ADDRESS...     until its input ends; prints `found`, then a line of JSON: seconds, connected, refused

First it looks for a port of every address that answers.
"""

import asyncio
import itertools
import json
import os
import sys
import time

FIND_LIMIT_S = 30
OPEN_LIMIT_S = 2.0
MOST_OPEN = 4000


async def connect(address, port):
    return await asyncio.wait_for(asyncio.open_connection(address, port), OPEN_LIMIT_S)


async def answers(address, port):
    try:
        _, writer = await connect(address, port)
    except (OSError, asyncio.TimeoutError):
        return False
    writer.close()
    return True


async def find(addresses, ports):
    """[(address, port)] that answer, once every address has one."""
    end = time.monotonic() + FIND_LIMIT_S
    while time.monotonic() < end:
        places = list(itertools.product(addresses, ports))
        found = [place for place, good in zip(places, await asyncio.gather(*(answers(*place) for place in places))) if good]
        if {address for address, _ in found} == set(addresses):
            return found
        await asyncio.sleep(0.1)
    raise SystemExit(f"no port of {' '.join(addresses)} answered within {FIND_LIMIT_S} s")


async def bother(place, counts):
    try:
        reader, writer = await connect(*place)
    except (OSError, asyncio.TimeoutError):
        counts["refused"] += 1
        return
    counts["connected"] += 1
    try:
        writer.write(os.urandom(200))
        await asyncio.wait_for(reader.read(), OPEN_LIMIT_S)
    except (OSError, asyncio.TimeoutError):
        pass
    writer.close()


async def main(rate, ports, addresses):
    found = await find(addresses, ports)
    print("found", flush=True)
    ended = asyncio.Event()
    asyncio.get_running_loop().add_reader(sys.stdin, ended.set)
    counts, tasks, began = {"connected": 0, "refused": 0}, set(), time.monotonic()
    for number, place in enumerate(itertools.cycle(found)):
        pause = began + number / rate - time.monotonic()
        if pause > 0:
            await asyncio.sleep(pause)
        if ended.is_set():
            break
        if len(tasks) < MOST_OPEN:
            task = asyncio.create_task(bother(place, counts))
            tasks.add(task)
            task.add_done_callback(tasks.discard)
    print(json.dumps({"seconds": time.monotonic() - began, **counts}), flush=True)
    os._exit(0)  # connections that are still open end with the process


if __name__ == "__main__":
    first, last = map(int, sys.argv[2].split("-"))
    asyncio.run(main(float(sys.argv[1]), range(first, last + 1), sys.argv[3:]))
