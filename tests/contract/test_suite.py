"""The contract suite itself: complete, without overlaps, and able to say what it leaves out."""

import inspect
import threading
from collections import Counter
from pathlib import Path

import pytest

from treppe.job import TRANSITIONS, Event, State
from treppe.store.protocol import Can, Journal, Store
from treppe.testing import contract
from treppe.testing.contract import THEMES, Contract, StoreContract
from treppe.testing.contract.base import as_long_as, needs, together, until
from treppe.testing.contract.states import DRIVEN, NOT_YET

FILES = {path.stem: path.read_text() for path in Path(contract.__file__).parent.glob("*.py")}


def names_in(theme: type) -> list[str]:
    return [name for name in vars(theme) if name.startswith("test_")]


def test_no_test_of_one_theme_hides_that_of_another():
    names = Counter(name for theme in THEMES for name in names_in(theme))
    assert [name for name, count in names.items() if count > 1] == []


def test_every_theme_is_part_of_the_contract():
    written = {
        line.split()[1].split("(")[0] for text in FILES.values() for line in text.splitlines() if "(Contract)" in line
    }
    assert written == {theme.__name__ for theme in THEMES}
    assert all(issubclass(StoreContract, theme) for theme in THEMES)


def test_every_theme_has_tests():
    assert all(names_in(theme) for theme in THEMES)


@pytest.mark.parametrize("port", [Store, Journal])
def test_every_call_of_the_protocol_is_made(port):
    text = "\n".join(FILES.values())
    calls = [name for name, _ in inspect.getmembers(port, inspect.isfunction) if not name.startswith("_")]
    assert [name for name in calls if f".{name}(" not in text] == []


def test_every_row_of_the_table_is_driven_but_those_of_the_relay_and_of_looks():
    left = {(row.source, row.event) for row in TRANSITIONS if row not in DRIVEN}
    moves = {(row.source, row.event) for row in TRANSITIONS if row.event is Event.MOVE}
    assert left == {*moves, (State.UNCLEAR, Event.CLAIM)} == {(row.source, row.event) for row in NOT_YET}


def test_a_contract_without_a_store_says_what_it_needs(tmp_path):
    with pytest.raises(NotImplementedError, match="make_store"):
        Contract().make_store(tmp_path, lambda: 0.0)
    with pytest.raises(NotImplementedError, match="connect"):
        Contract().connect(tmp_path)
    assert Contract().opener(tmp_path) is None


class Modest:
    """A store that cannot do much."""

    can = Can(within=False, many_machines=False, find=False, survives_power_loss=False, durability="none")


@pytest.mark.parametrize("capability", ["within", "find", "survives_power_loss"])
def test_what_a_store_does_not_promise_is_left_out_aloud(capability):
    with pytest.raises(pytest.skip.Exception, match=rf"can.{capability} = False"):
        needs(Modest(), capability)


def test_what_a_store_promises_is_not_left_out():
    needs(type("Able", (), {"can": Can(True, True, True, True, "disk")})(), "find")


def test_an_error_in_a_thread_is_an_error_of_the_test():
    def fail() -> None:
        raise ValueError("in a thread")

    with pytest.raises(ValueError, match="in a thread"):
        together(fail, lambda: None)


def test_a_thread_that_hangs_fails_the_test():
    hanging = threading.Event()
    with pytest.raises(AssertionError, match=r"still ran after 0\.01 seconds"):
        together(hanging.wait, seconds=0.01)
    hanging.set()


def test_going_round_for_ever_fails():
    with pytest.raises(AssertionError, match=r"still goes round after 0\.01 seconds"):
        for _ in as_long_as(lambda: True, 0.01):
            pass


def test_waiting_for_what_never_happens_fails():
    with pytest.raises(AssertionError, match=r"did not happen within 0\.01 seconds"):
        until(lambda: False, 0.01)
