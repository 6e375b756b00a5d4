"""Guessing is slow, and nobody is locked out by others."""

import pytest

from treppe.eyes.board.throttle import OVERALL, PER_ADDRESS, REMEMBERED, WINDOW, Throttle


@pytest.fixture
def throttle(clock):
    return Throttle(clock)


def test_a_few_mistakes_are_free(throttle):
    assert [throttle.admit("192.0.2.1") for _ in range(PER_ADDRESS)] == [0.0] * PER_ADDRESS


def test_then_one_has_to_wait_until_the_first_mistake_is_old(throttle, clock):
    for _ in range(PER_ADDRESS):
        throttle.admit("192.0.2.1")
        clock.advance(10)
    assert throttle.admit("192.0.2.1") == WINDOW - 10 * PER_ADDRESS
    clock.advance(WINDOW - 10 * PER_ADDRESS)
    assert throttle.admit("192.0.2.1") == 0.0
    assert throttle.admit("192.0.2.1") > 0


def test_asking_while_one_must_wait_does_not_prolong_it(throttle, clock):
    for _ in range(PER_ADDRESS):
        throttle.admit("192.0.2.1")
    for _ in range(50):
        throttle.admit("192.0.2.1")
    clock.advance(WINDOW)
    assert throttle.admit("192.0.2.1") == 0.0


def test_another_address_is_not_held_up(throttle):
    for _ in range(PER_ADDRESS + 1):
        throttle.admit("192.0.2.1")
    assert throttle.admit("192.0.2.2") == 0.0


def test_a_right_password_forgives_the_mistakes_before_it(throttle):
    for _ in range(PER_ADDRESS):
        throttle.admit("192.0.2.1")
        throttle.forgive("192.0.2.1")
    assert throttle.admit("192.0.2.1") == 0.0


@pytest.mark.parametrize("network", ["2001:db8:1:2:{:x}::1", "2001:db8:1:2::{:x}"])
def test_the_addresses_of_one_ipv6_network_count_as_one(throttle, network):
    waits = [throttle.admit(network.format(n)) for n in range(1, PER_ADDRESS + 2)]
    assert waits[-1] > 0


def test_many_addresses_together_are_slowed_down_too(throttle):
    waits = [throttle.admit(f"198.51.{n // 250}.{n % 250}") for n in range(OVERALL + 1)]
    assert waits[:-1] == [0.0] * OVERALL
    assert waits[-1] > 0


def test_who_was_here_before_is_not_locked_out_by_an_attack(throttle):
    throttle.admit("192.0.2.1")
    throttle.forgive("192.0.2.1")
    for n in range(OVERALL + 1):
        throttle.admit(f"198.51.{n // 250}.{n % 250}")
    assert throttle.admit("192.0.2.1") == 0.0


def test_no_number_of_addresses_fills_the_memory(throttle, clock):
    for n in range(REMEMBERED + 500):
        throttle.admit(f"10.{n // 65536}.{n // 256 % 256}.{n % 256}")
        clock.advance(WINDOW)
    assert len(throttle._failures) == REMEMBERED


def test_a_socket_without_an_address_counts_as_one_visitor(throttle):
    assert [throttle.admit("unix") for _ in range(PER_ADDRESS + 1)][-1] > 0
