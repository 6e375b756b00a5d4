import msgspec

from tests.demo.support import changed, good_friday, with_lines
from treppe.demo.friday import Friday, friday
from treppe.demo.reconcile import reconcile
from treppe.demo.report import scenario, table
from treppe.demo.screen import Paint

GOOD = good_friday()


def test_what_is_about_to_happen_is_told_with_every_setting_that_is_not_a_default():
    text = " ".join(scenario(Friday(), naive=False).split())
    for words in (
        "1,000 orders of 318 customers",
        "300 calls per 15 s",
        'rate = "375/15s" (25% too fast), repeat = "ask"',
        'stock: repeat = "safe", attempts = 3, backoff 0.5 s × 2ⁿ; everything else at its defaults',
        "order 1201 is refused for ever at accounting, order 1101 always fails at stock",
    ):
        assert words in text
    assert "scaled" not in text


def test_what_was_scaled_is_told():
    text = " ".join(scenario(friday(20_000, 1), naive=False).split())
    assert "accounting from 300 calls per window to 1,200, the CRM from 8 desks to 32" in text


def test_without_a_queue_there_are_no_settings_to_tell():
    text = scenario(Friday(), naive=True)
    assert "tries again at once, 3 times each" in text
    assert "treppe.toml" not in text


def test_kept_promises_are_green_and_broken_ones_red():
    paint = Paint(True)
    kept = table(reconcile(GOOD), paint)
    assert kept.count(paint.green("kept  ")) == 8
    assert paint.red("BROKEN") not in kept
    broken = table(reconcile(changed(GOOD, told=[])), paint)
    assert (broken.count(paint.green("kept  ")), broken.count(paint.red("BROKEN"))) == (7, 1)


def test_repeated_calls_with_a_reason_are_listed_one_by_one():
    first = GOOD.ledgers["crm"][-1]
    calls = [msgspec.structs.replace(first, answer=None), msgspec.structs.replace(first, answer=200, acted=False)]
    text = table(reconcile(with_lines(GOOD, "crm", lambda lines: [*lines[:-1], *calls])), Paint(False))
    assert f"called again: order {first.order} at crm, because the first acted without an answer" in text
