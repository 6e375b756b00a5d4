import asyncio
from pathlib import Path

import msgspec
import pytest

from tests.demo.support import QUICK, Clock, answers, answers_in_full, call, stand_in, within
from treppe.demo.friday import BROKEN_SKU, REFUSED_TAX_NUMBER, Order
from treppe.demo.ledger import Line, read
from treppe.demo.standins import Accounting, Allowance, Crm, Mail, Stock

ORDER = Order(1001, "event-1", 7, 1)
TIGHT = msgspec.structs.replace(QUICK, allowed=3)


def order(number: int) -> Order:
    return msgspec.structs.replace(ORDER, number=number)


def lines(folder: Path, name: str) -> list[Line]:
    return read(folder / f"{name}.jsonl", Line)


def test_each_call_while_shut_adds_a_second_up_to_fifteen():
    door = Allowance(calls=1, window=15.0, penalty=1.0, most=15.0)
    assert door.admit(0.0) == 0.0
    assert [door.admit(1.0) for _ in range(20)] == [14.0 + min(n, 15) for n in range(20)]
    assert door.admit(29.9) > 0
    assert door.admit(30.0) == 0.0


def test_a_new_window_begins_with_the_first_call_after_the_old_one():
    door = Allowance(calls=2, window=15.0, penalty=1.0, most=15.0)
    assert [door.admit(now) for now in (0.0, 14.0, 40.0, 54.0, 54.5)] == [0.0, 0.0, 0.0, 0.0, 0.5]


def test_after_it_was_shut_the_full_allowance_and_penalty_are_back():
    door = Allowance(calls=1, window=10.0, penalty=1.0, most=2.0)
    assert [door.admit(now) for now in (0, 1, 1, 1, 1)] == [0, 9, 10, 11, 11]
    assert [door.admit(now) for now in (12, 13, 13)] == [0, 9, 10]


def test_accounting_says_how_long_it_is_shut(tmp_path: Path):
    accounting = stand_in(Accounting, tmp_path, Clock(), TIGHT)
    replies = answers_in_full(accounting, *(call(order(n)) for n in range(4)))
    assert [reply.status for reply in replies if reply] == [201, 201, 201, 429]
    assert replies[3] is not None
    assert replies[3].headers["retry-after"] == "15"
    assert [line.acted for line in lines(tmp_path, "accounting")] == [True, True, True, False]


def test_accounting_tells_spectators_once_per_shutting(tmp_path: Path):
    moments: list[str] = []
    accounting = Accounting(tmp_path, TIGHT, {"key-of-up": "up"}, moments.append, Clock())
    answers(accounting, *(call(order(n)) for n in range(6)))
    assert len(moments) == 1


def test_accounting_honours_no_idempotency_key(tmp_path: Path):
    accounting = stand_in(Accounting, tmp_path)
    assert answers(accounting, call(ORDER, "k"), call(ORDER, "k")) == [201, 201]
    assert [line.acted for line in lines(tmp_path, "accounting")] == [True, True]


def test_accounting_refuses_what_is_no_tax_number(tmp_path: Path):
    accounting = stand_in(Accounting, tmp_path)
    assert answers(accounting, call(msgspec.structs.replace(ORDER, tax_number=REFUSED_TAX_NUMBER))) == [422]


def test_the_trap_catches_calls_of_one_process_and_every_other_acts(tmp_path: Path):
    accounting = stand_in(Accounting, tmp_path)
    assert isinstance(accounting, Accounting)
    trap = accounting.set_trap("work", 2)
    calls = [
        call(order(n), api_key=key) for n, key in enumerate(("key-of-up", "key-of-work", "key-of-work", "key-of-work"))
    ]
    assert answers(accounting, *calls) == [201, None, None, 201]
    assert trap.full.is_set()
    assert [(line.who, line.acted, line.answer) for line in lines(tmp_path, "accounting")] == [
        ("up", True, 201),
        ("work", True, None),
        ("work", False, None),
        ("work", True, 201),
    ]


def test_the_crm_upserts_by_idempotency_key(tmp_path: Path):
    crm = stand_in(Crm, tmp_path)
    assert answers(crm, call(ORDER, "a"), call(ORDER, "a"), call(ORDER, "b"), call(ORDER), call(ORDER)) == [
        201,
        200,
        201,
        201,
        201,
    ]
    assert [line.acted for line in lines(tmp_path, "crm")] == [True, False, True, True, True]


@pytest.mark.parametrize(
    ("seconds", "weather"),
    [
        (0, "fine"),
        (4.9, "fine"),
        (5, "mixed"),
        (9.9, "mixed"),
        (10.1, "closed"),
        (14.9, "closed"),
        (15.1, "mixed"),
        (20, "fine"),
    ],
)
def test_the_weather_at_the_crm_goes_by_its_first_call(tmp_path: Path, seconds: float, weather: str):
    clock = Clock()
    crm = stand_in(Crm, tmp_path, clock)
    assert isinstance(crm, Crm)
    assert crm.weather(clock.now + 7) == "fine"
    answers(crm, call(ORDER, "a"))
    assert crm.weather(clock.now + seconds) == weather


def test_in_mixed_weather_the_crm_fails_hangs_and_acts_without_a_word(tmp_path: Path):
    clock = Clock()
    crm = stand_in(Crm, tmp_path, clock)
    answers(crm, call(ORDER, "first"))
    clock.now += 6
    answers(crm, *(call(order(n), f"key-{n}") for n in range(60)))
    seen = {(line.answer, line.acted) for line in lines(tmp_path, "crm")[1:]}
    assert seen == {(500, False), (None, False), (None, True)}


def test_what_comes_in_while_the_crm_closes_does_nothing(tmp_path: Path):
    clock = Clock()
    crm = stand_in(Crm, tmp_path, clock)
    answers(crm, call(ORDER, "first"))
    clock.now += 11
    assert answers(crm, call(order(2), "second")) == [None]
    assert not lines(tmp_path, "crm")[1].acted


def test_stock_reserves_an_order_once(tmp_path: Path):
    stock = stand_in(Stock, tmp_path)
    assert answers(stock, call(ORDER), call(ORDER), call(order(2))) == [201, 200, 201]
    assert [line.acted for line in lines(tmp_path, "stock")] == [True, False, True]


def test_stock_stumbles_over_an_item_without_a_number(tmp_path: Path):
    stock = stand_in(Stock, tmp_path)
    assert answers(stock, call(msgspec.structs.replace(ORDER, sku=BROKEN_SKU))) == [500]
    assert not lines(tmp_path, "stock")[0].acted


def test_mail_sends_a_mail_per_call(tmp_path: Path):
    mail = stand_in(Mail, tmp_path)
    assert answers(mail, call(ORDER, "k"), call(ORDER, "k")) == [202, 202]
    assert [line.key for line in lines(tmp_path, "mail")] == ["k", "k"]


def test_nobody_gets_in_without_a_key_a_post_and_an_order(tmp_path: Path):
    mail = stand_in(Mail, tmp_path)
    no_order = call(ORDER)._replace(body=b'{"id": "seven"}')
    assert answers(mail, call(ORDER, api_key="guessed"), call(ORDER, method="GET"), no_order) == [401, 405, 400]
    assert lines(tmp_path, "mail") == []


def test_a_line_is_written_before_anybody_is_answered(tmp_path: Path):
    mail = stand_in(Mail, tmp_path)
    answers(mail, call(ORDER))
    (line,) = lines(tmp_path, "mail")
    assert (line.order, line.customer, line.seq, line.who, line.answer) == (1001, 7, 1, "up", 202)


def test_silence_ends_when_the_caller_hangs_up_or_after_a_while(tmp_path: Path):
    clock = Clock()
    crm = stand_in(Crm, tmp_path, clock)
    answers(crm, call(ORDER, "first"))
    clock.now += 11

    async def never() -> None:
        await asyncio.Event().wait()

    async def story() -> None:
        assert await crm.handle(call(ORDER, "second")._replace(gone=never)) is None

    within(5, story)
