from datetime import timedelta

import pytest

from treppe import Backoff, ConfigError, Treppe
from treppe.app.options import Options, options, queue_named_after


def test_what_is_not_said_is_as_documented():
    made = options("shop.mail", {})
    assert made == Options("shop.mail")
    assert (made.attempts, made.crashes, made.expires, made.keep) == (5, 3, 14 * 86400, 30 * 86400)
    assert (made.repeat, made.deadline, made.timeout, made.priority) == ("safe", None, None, 0)


def test_everything_that_can_be_said():
    made = options(
        "shop.mail",
        {
            "queue": "mail", "attempts": 1, "crashes": 1, "deadline": "15m", "expires": timedelta(days=1),
            "timeout": 30, "key": "to", "repeat": "ask", "priority": -100, "keep": 0,
            "backoff": Backoff(1, 1, 1, False), "skip_dead": True, "down": OSError,
        },
    )  # fmt: skip
    assert made == Options(
        "mail", 1, 1, 900.0, 86400.0, 30.0, "to", "ask", -100, 0.0, Backoff(1.0, 1.0, 1.0, False), True, (OSError,)
    )


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("quue", "mail", 'there is no setting "quue". Did you mean "queue"?'),
        ("retries", 3, 'there is no setting "retries". Known are: attempts, backoff'),
        ("queue", "Mail", "'Mail' is not a good name. Use up to 128 small letters"),
        ("queue", "", "'' is not a good name"),
        ("queue", 7, "7 is not a good name"),
        ("attempts", 0, "0 is out of bounds. Choose one from 1 to 1000"),
        ("attempts", -1, "-1 is out of bounds"),
        ("attempts", 2.5, "2.5 is not a whole number"),
        ("attempts", "3", '"3" is a text. Write it without quotes'),
        ("attempts", True, "true is not a number"),
        ("crashes", 101, "101 is out of bounds. Choose one from 1 to 100"),
        ("deadline", "soon", '"soon" is not a duration. Write a number and a unit'),
        ("deadline", 0, "0 is out of bounds. Choose one from 1ms to 366d"),
        ("expires", -5, "-5 is out of bounds"),
        ("expires", float("inf"), "inf is out of bounds"),
        ("expires", float("nan"), "nan is out of bounds"),
        ("timeout", True, "True is not a duration. Give seconds"),
        ("timeout", [1], "[1] is not a duration"),
        ("timeout", "x" * 200, "xxx…"),
        ("timeout", ["x" * 200], "xxx… is not a duration"),
        ("keep", "-1d", '"-1d" is not a duration'),
        ("repeat", "look", 'not available in this version: "look". Use "ask" until then'),
        ("repeat", "often", '\'often\' is not known. Use "safe" or "ask"'),
        ("priority", 101, "101 is out of bounds. Choose one from -100 to 100"),
        ("key", 7, "7 is no name. Name the argument that is the order key"),
        ("backoff", 10, "10 is no Backoff. Write Backoff(base=10"),
        ("backoff", Backoff(base=-1), "-1 is out of bounds. Choose one from 1ms to 1d"),
        ("backoff", Backoff(factor=0.5), "0.5 is out of bounds. Choose one from 1 to 10"),
        ("backoff", Backoff(cap=1e9), "1000000000.0 is out of bounds"),
        ("backoff", Backoff(jitter="yes"), "'yes' is neither True nor False"),
        ("skip_dead", "yes", "'yes' is neither True nor False"),
        ("down", ValueError("x"), "ValueError('x') is no exception class. Write down=ConnectionError"),
        ("down", (OSError, int), "<class 'int'> is no exception class"),
    ],
)
def test_a_bad_setting_is_told_when_the_task_is_made(name, value, sentence):
    app = Treppe("sqlite:///never-opened.db")
    with pytest.raises(ConfigError) as refused:
        app.task(name="shop.mail", **{name: value})(lambda: None)
    assert sentence in str(refused.value)
    assert refused.value.where.startswith('task "shop.mail"')
    assert app.tasks == {}


def test_an_order_key_must_be_an_argument():
    app = Treppe("sqlite:///never-opened.db")

    def mail(to: str, order: int) -> None: ...

    with pytest.raises(ConfigError, match=r'key: "customer" is not one of its arguments. Name one of: order, to'):
        app.task(key="customer")(mail)
    with pytest.raises(ConfigError, match='"customer" is not one of its arguments'):
        app.task(name="none", key="customer")(lambda: None)


@pytest.mark.parametrize(
    ("task", "queue"),
    [
        ("shop.tasks.send_mail", "shop.tasks.send_mail"),
        ("__main__.Größe", "main__.gr--e"),
        ("...", "default"),
        ("x" * 300, "x" * 128),
    ],
)
def test_a_task_that_names_no_queue_has_one_of_its_own(task, queue):
    assert queue_named_after(task) == queue
    assert options(task, {}).queue == queue
