"""Connects to the listening ports of a job again and again, as a scanner of ports does, and sends bytes that are no greeting.

    connections.py RATE FIRST-LAST ADDRESS...     until its input ends; prints `found`, then a line of JSON: seconds, connected, refused,
                                                  and the share of a core that it used itself

First it looks for a port of every address that answers. A connection is closed when the job closes it, or after two seconds.
"""

import collections
import itertools
import json
import os
import select
import socket
import sys
import time

FIND_LIMIT_S, FIND_PAUSE_S = 30, 0.1
OPEN_LIMIT_S = 2.0
GARBAGE_BYTES = 200


def answers(place):
    try:
        socket.create_connection(place, OPEN_LIMIT_S).close()
    except OSError:
        return False
    return True


def find(addresses, ports):
    """[(address, port)] that answer, once every address has one."""
    end = time.monotonic() + FIND_LIMIT_S
    while time.monotonic() < end:
        found = [place for place in itertools.product(addresses, ports) if answers(place)]
        if {address for address, _ in found} == set(addresses):
            return found
        time.sleep(FIND_PAUSE_S)
    raise SystemExit(f"no port of {' '.join(addresses)} answered within {FIND_LIMIT_S} s")


class Connections:
    def __init__(self):
        self.events, self.open, self.ends = select.epoll(), {}, collections.deque()
        self.connected = self.refused = 0

    def begin(self, place):
        made = socket.socket()
        made.setblocking(False)
        made.connect_ex(place)
        self.open[made.fileno()] = made
        self.ends.append((time.monotonic() + OPEN_LIMIT_S, made))
        self.events.register(made.fileno(), select.EPOLLOUT)

    def close(self, made):
        if self.open.pop(made.fileno(), None):
            made.close()

    def serve(self, pause_s):
        """Handles what happens within that time; returns whether the input has ended."""
        ended = False
        for number, event in self.events.poll(max(pause_s, 0)):
            if number == sys.stdin.fileno():
                ended = True
            elif number in self.open and event & select.EPOLLOUT:
                self.greet(self.open[number])
            elif number in self.open:
                self.close(self.open[number])  # the job sends nothing to a connection that has proved nothing, and has closed it
        while self.ends and self.ends[0][0] < time.monotonic():
            self.close(self.ends.popleft()[1])
        return ended

    def greet(self, made):
        try:
            made.send(os.urandom(GARBAGE_BYTES))
        except OSError:
            self.refused += 1
            self.close(made)
            return
        self.connected += 1
        self.events.modify(made.fileno(), select.EPOLLIN)


def main(rate, ports, addresses):
    places = itertools.cycle(find(addresses, ports))
    print("found", flush=True)
    connections = Connections()
    connections.events.register(sys.stdin.fileno(), select.EPOLLIN)
    began, processor = time.monotonic(), time.process_time()
    for number in itertools.count():
        while True:
            pause_s = began + number / rate - time.monotonic()
            if connections.serve(pause_s):
                seconds = time.monotonic() - began
                found = {"seconds": seconds, "connected": connections.connected, "refused": connections.refused}
                print(json.dumps({**found, "own_share": (time.process_time() - processor) / seconds}), flush=True)
                return
            if pause_s <= 0:
                break
        connections.begin(next(places))


if __name__ == "__main__":
    first, last = map(int, sys.argv[2].split("-"))
    main(float(sys.argv[1]), range(first, last + 1), sys.argv[3:])
