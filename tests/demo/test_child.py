import socket

import pytest

from treppe.demo import child
from treppe.demo.wire import HOST


def test_a_port_that_is_taken_is_not_free(monkeypatch: pytest.MonkeyPatch):
    with socket.socket() as taken:
        taken.bind((HOST, 0))
        port = taken.getsockname()[1]
        monkeypatch.setattr(child, "BELOW_EPHEMERAL", range(port, port + 1))
        monkeypatch.setattr("random.sample", lambda ports, n: list(ports))
        with pytest.raises(OSError, match="no free port"):
            child.free_port()
    assert child.free_port() == port
