"""One plain TCP connection that sends as much as it can, as other traffic on a link does.

    plain_stream.py serve ADDRESS PORT        prints a line of JSON twice a second: seconds, bytes that came in
    plain_stream.py call ADDRESS PORT         prints the congestion control in force, and sends until it is ended

The sender asks for cubic. Its buffers are large enough for the link, where the kernel permits.
"""

import json
import select
import socket
import sys
import time

BUFFER = 32 << 20
INTERVAL_S = 0.5
FORCE_SEND, FORCE_RECEIVE = 32, 33  # SO_SNDBUFFORCE, SO_RCVBUFFORCE
BLOCK = bytes(1 << 18)


def with_buffers(made):
    for option in (FORCE_SEND, FORCE_RECEIVE):
        try:
            made.setsockopt(socket.SOL_SOCKET, option, BUFFER)
        except OSError:
            pass  # the kernel's own limits hold
    return made


def serve(address, port):
    listener = with_buffers(socket.socket())
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((address, port))
    listener.listen()
    print("listening", flush=True)
    connection, _ = listener.accept()
    began, count = time.monotonic(), 0
    while True:
        readable, _, _ = select.select([connection], [], [], max(0.0, began + INTERVAL_S - time.monotonic()))
        got = len(connection.recv(1 << 20)) if readable else 0
        if readable and not got:
            return
        count += got
        now = time.monotonic()
        if now - began >= INTERVAL_S:
            print(json.dumps({"seconds": now - began, "bytes": count}), flush=True)
            began, count = now, 0


def call(address, port):
    connection = with_buffers(socket.socket())
    try:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"cubic")
    except OSError:
        pass  # what is in force is printed
    connection.connect((address, port))
    print(connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).rstrip(b"\0").decode(), flush=True)
    while True:
        connection.sendall(BLOCK)


if __name__ == "__main__":
    {"serve": serve, "call": call}[sys.argv[1]](sys.argv[2], int(sys.argv[3]))
