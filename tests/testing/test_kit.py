import pytest

from treppe import Context, State, Treppe, Wait
from treppe.testing.clock import ManualClock
from treppe.testing.kit import assert_enqueued, assert_not_enqueued, drain, isolated


@pytest.fixture
def app(tmp_path):
    return Treppe(f"sqlite:///{tmp_path}/real.db")


@pytest.fixture
def mail(app):
    return app.task(name="mail", queue="mail")(send_mail)


def send_mail(to: str, lines: list[int] | None = None) -> str:
    return to


def test_jobs_live_in_a_store_of_their_own_as_long_as_the_block(app, mail, tmp_path):
    with isolated(app) as clock:
        placed = mail.enqueue("ada")
        assert app.job(placed.id).created_at == clock() == ManualClock()()
    assert not (tmp_path / "real.db").exists()
    with isolated(app):
        assert app.store.backlog().accepted == 0


def test_the_clock_may_be_your_own(app, mail):
    with isolated(app, ManualClock(1000.0)):
        assert app.job(mail.enqueue("ada").id).created_at == 1000.0


def test_a_drain_runs_what_is_due_and_what_becomes_due_by_it(app, mail):
    @app.task(name="chain")
    def chain(ctx: Context, n: int) -> None:
        if n:
            chain.enqueue(n - 1)
        else:
            mail.enqueue("the end")

    with isolated(app) as clock:
        chain.enqueue(5)
        mail.using(delay=60).enqueue("later")
        tally = drain(app)
        assert (tally.done, tally.deferred) == (7, 0)
        clock.advance(60)
        assert drain(app).done == 1


def test_a_drain_of_nothing_and_of_what_nobody_may_do_ends(app, mail):
    @app.task(name="again")
    def again() -> None:
        raise Wait(after=60)

    with isolated(app) as clock:
        assert drain(app).done == 0
        again.enqueue()
        assert drain(app).deferred == 1
        app.queue("mail", concurrent=1)
        del app.tasks["mail"]
        mail.enqueue("ada")
        assert drain(app).done == 0
        clock.advance(60)
        assert drain(app).deferred == 1


def test_what_was_enqueued_is_found_by_its_arguments(app, mail):
    with isolated(app):
        for n in range(120):
            mail.enqueue(f"customer-{n}", [n])
        assert assert_enqueued(mail, to="customer-7").state is State.WAITING
        assert assert_enqueued(mail, lines=[3]) == assert_enqueued(mail, to="customer-3", lines=[3])
        assert assert_enqueued(mail) == assert_enqueued(mail, to="customer-119")
        drain(app)
        assert assert_enqueued(mail, to="customer-0").state is State.DONE
        assert_not_enqueued(mail, to="nobody")


def test_what_was_not_enqueued_is_told_with_what_was(app, mail):
    with isolated(app):
        with pytest.raises(AssertionError, match=r"no job of mail with {'to': 'bob'}. There are:\n  none at all"):
            assert_enqueued(mail, to="bob")
        mail.using(id="m1").enqueue("ada")
        with pytest.raises(AssertionError, match=r"There are:\n  m1: {'to': 'ada', 'lines': None}"):
            assert_enqueued(mail, to="bob")
        with pytest.raises(AssertionError, match=r"there is a job of mail with {'to': 'ada'}: m1"):
            assert_not_enqueued(mail, to="ada")
