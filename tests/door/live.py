"""A real server in a thread, and a client that may be as rude as it likes."""

import socket
import struct
import threading
import time
from contextlib import contextmanager

from treppe.door.server import serve

PATIENCE = 10.0
"""Seconds after which a test gives up waiting."""


@contextmanager
def serving(app, web, **options):
    """Host and port of a running server; it is drained and gone afterwards."""
    where, up, stop = [], threading.Event(), threading.Event()

    def ready(host, port):
        where[:] = (host, port)
        up.set()

    thread = threading.Thread(target=serve, args=(app, web, ready, stop), kwargs=options)
    thread.start()
    try:
        assert up.wait(PATIENCE), "the server did not start"
        yield tuple(where)
    finally:
        stop.set()
        thread.join(30)
        assert not thread.is_alive(), "the server did not stop"


class Client:
    """One connection."""

    def __init__(self, address, source=None):
        self.socket = socket.create_connection(address, timeout=PATIENCE, source_address=source and (source, 0))
        self.buffer = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, data):
        self.socket.sendall(data)

    def drip(self, data, pause):
        """Byte by byte, until all is sent or the other side has closed."""
        for at in range(len(data)):
            try:
                self.socket.sendall(data[at : at + 1])
            except OSError:
                return
            if self.answered_within(pause):
                return

    def answered_within(self, seconds):
        """Wait that long for something to read (or the end)."""
        self.socket.settimeout(seconds)
        try:
            return bool(self.socket.recv(1, socket.MSG_PEEK)) or True
        except TimeoutError:
            return False
        except OSError:
            return True
        finally:
            self.socket.settimeout(PATIENCE)

    def answer(self):
        """Status, headers and body of the next answer."""
        while b"\r\n\r\n" not in self.buffer:
            self._more()
        head, _, self.buffer = self.buffer.partition(b"\r\n\r\n")
        status, *lines = head.split(b"\r\n")
        headers = dict(line.lower().split(b": ", 1) for line in lines)
        length = int(headers.get(b"content-length", 0))
        while len(self.buffer) < length:
            self._more()
        body, self.buffer = self.buffer[:length], self.buffer[length:]
        return int(status.split()[1]), headers, body

    def rest(self):
        """Everything until the other side closes."""
        while True:
            try:
                self._more()
            except EOFError:
                return self.buffer

    def reset(self):
        """Vanish without a good-bye."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()

    def _more(self):
        try:
            data = self.socket.recv(65536)
        except ConnectionResetError:
            data = b""
        if not data:
            raise EOFError(f"closed after {self.buffer[:200]!r}")
        self.buffer += data


def until(condition, what):
    """Poll until it holds."""
    give_up = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < give_up, f"it never came true: {what}"
        time.sleep(0.005)


def request(sent, *more, version=b"1.1"):
    """A webhook (see ``support.signed``) as bytes on the wire."""
    body = b"".join(sent.pieces)
    lines = [name + b": " + value for name, value in [*sent.headers, (b"host", b"x"), *more]]
    lines.append(b"content-length: %d" % len(body))
    head = b"%b %b HTTP/%b\r\n" % (sent.method.encode(), sent.path.encode(), version)
    return head + b"\r\n".join(lines) + b"\r\n\r\n" + body
