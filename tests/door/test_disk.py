"""Is there room on the disk?"""

from pathlib import Path

from treppe.door.disk import DiskWatch
from treppe.testing.clock import ManualClock

GIB = 1 << 30


def full(total, free):
    return DiskWatch(Path("/"), usage=lambda folder: (total, total - free, free)).full()


def test_below_five_percent_it_is_full():
    assert full(10 * GIB, GIB // 2 - 1)
    assert not full(10 * GIB, GIB // 2)


def test_a_gibibyte_is_enough_on_a_large_disk():
    assert not full(2000 * GIB, GIB)
    assert full(2000 * GIB, GIB - 1)


def test_it_looks_at_most_once_a_second():
    clock, looks = ManualClock(), []

    def usage(folder):
        looks.append(folder)
        return 10 * GIB, 0, 5 * GIB if len(looks) == 1 else 0

    watch = DiskWatch(Path("/data"), clock, usage)
    assert [watch.full() for _ in range(50)] == [False] * 50
    clock.advance(0.999)
    assert (watch.full(), len(looks)) == (False, 1)
    clock.advance(0.001)
    assert (watch.full(), watch.full(), looks) == (True, True, [Path("/data")] * 2)


def test_a_disk_that_cannot_be_asked_is_not_called_full():
    def fails(folder):
        raise OSError("no such folder")

    assert not DiskWatch(Path("/gone"), usage=fails).full()


def test_it_asks_the_real_disk(tmp_path):
    assert DiskWatch(tmp_path).full() in (True, False)
