"""Strands, signals, kills and stops."""

import pytest

from tests.sim.kernel import Crash, Kernel, Process, Signal, Stuck


@pytest.fixture
def kernel():
    return Kernel(seed=1)


def test_strands_go_on_in_the_order_of_their_time(kernel):
    told = []
    for seconds in (3.0, 1.0, 2.0):

        def wait(seconds=seconds):
            kernel.sleep(seconds)
            told.append((seconds, kernel.now))

        kernel.spawn(Process("p"), wait, "waits")
    kernel.run(10.0)
    assert told == [(1.0, 1.0), (2.0, 2.0), (3.0, 3.0)]
    assert kernel.now == 10.0


def test_a_killed_process_does_nothing_any_more(kernel):
    process, told = Process("p"), []

    def work():
        try:
            kernel.sleep(5.0)
            told.append("went on")
        finally:
            with pytest.raises(Crash):
                Signal(kernel).wait(1.0)

    kernel.spawn(process, work, "works")
    kernel.run(1.0)
    kernel.kill(process)
    kernel.run(10.0)
    assert told == []
    assert process.strands == {}


def test_a_stopped_process_goes_on_later(kernel):
    process, told = Process("p"), []

    def work():
        kernel.sleep(1.0)
        told.append(kernel.now)

    kernel.spawn(process, work, "works")
    kernel.run(0.5)
    process.stopped_until = 7.0
    kernel.run(10.0)
    assert told == [7.0]


def test_a_signal_wakes_whoever_waits_and_tells_who_waited_in_vain(kernel):
    signal, told = Signal(kernel), []
    kernel.spawn(Process("p"), lambda: told.append(signal.wait(1.0)), "in vain")
    kernel.spawn(Process("p"), lambda: told.append(signal.wait(9.0)), "waits")
    kernel.run(2.0)
    signal.set()
    kernel.run(3.0)
    assert told == [False, True]


def test_what_goes_round_for_ever_is_told():
    kernel = Kernel(seed=1, most_steps=100)

    def round_and_round():
        while True:
            kernel.sleep(0.0)

    kernel.spawn(Process("p"), round_and_round, "turns")
    with pytest.raises(Stuck, match="p/turns goes round"):
        kernel.run(1.0)


def test_an_error_of_a_strand_ends_the_run(kernel):
    kernel.spawn(Process("p"), lambda: 1 / 0, "fails")
    with pytest.raises(ZeroDivisionError):
        kernel.run(1.0)
