"""What the door counts of itself."""

import threading

from treppe.door.figures import WINDOW, WINDOW_SECONDS, DoorFigures
from treppe.testing.clock import ManualClock


def test_without_answers_there_is_no_time():
    assert DoorFigures().answer_time(0.99) is None


def test_shares_of_answers_are_exact_over_the_window():
    figures = DoorFigures(ManualClock())
    for milliseconds in range(1, 101):
        figures.answered(milliseconds / 1000)
    assert [figures.answer_time(share) for share in (0.0, 0.5, 0.99, 1.0)] == [0.001, 0.051, 0.1, 0.1]


def test_old_answers_are_forgotten():
    clock = ManualClock()
    figures = DoorFigures(clock)
    figures.answered(9.0)
    clock.advance(WINDOW_SECONDS / 2)
    figures.answered(0.001)
    assert figures.answer_time(1.0) == 9.0
    clock.advance(WINDOW_SECONDS / 2 + 1)
    assert figures.answer_time(1.0) == 0.001
    clock.advance(WINDOW_SECONDS)
    assert figures.answer_time(1.0) is None


def test_the_window_is_bounded():
    figures = DoorFigures(ManualClock())
    figures.answered(9.0)
    for _ in range(WINDOW):
        figures.answered(0.001)
    assert figures.answer_time(1.0) == 0.001


def test_they_can_be_read_while_they_are_written():
    figures = DoorFigures()
    stop = threading.Event()

    def write():
        while not stop.is_set():
            figures.answered(0.001)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        while figures.answer_time(0.5) is None:
            pass
        assert {figures.answer_time(0.5) for _ in range(200)} == {0.001}
    finally:
        stop.set()
        writer.join()


def test_each_source_is_counted_by_itself():
    figures = DoorFigures()
    figures.source("a").accepted += 1
    figures.source("b").refused["too-old"] += 1
    assert (figures.source("a").accepted, figures.source("b").accepted) == (1, 0)
    assert figures.sources["b"].refused == {"too-old": 1}
