"""Find: lists that lose and repeat nothing while jobs come and go."""

from __future__ import annotations

import pytest

from treppe.job import Event, NewJob, State
from treppe.store.protocol import Filter, Page, Store
from treppe.testing.clock import ManualClock
from treppe.testing.contract.base import Contract, needs
from treppe.testing.contract.verbs import (
    REACHABLE,
    TASK,
    act,
    bury,
    claim,
    claim_one,
    defer,
    doubt,
    event,
    find_all,
    finish,
    into,
    put,
    put_many,
    read,
)


class Finding(Contract):
    """Keyset pages and filters."""

    @pytest.fixture(autouse=True)
    def only_where_jobs_can_be_found(self, store: Store) -> None:
        needs(store, "find")

    def test_an_empty_store_has_one_empty_page(self, store: Store) -> None:
        page = store.find(Filter())
        assert (page.jobs, page.after) == ((), None)

    def test_the_newest_come_first(self, store: Store) -> None:
        ids = put_many(store, 10)
        assert [one.id for one in store.find(Filter()).jobs] == ids[::-1]

    @pytest.mark.parametrize("n", [1, 7, 100, 200])
    def test_pages_lose_and_repeat_nothing(self, store: Store, n: int) -> None:
        ids = put_many(store, 205)
        assert [one.id for one in find_all(store, n=n)] == ids[::-1]

    def test_pages_lose_and_repeat_nothing_while_jobs_come_and_end(self, store: Store) -> None:
        ids = put_many(store, 1000)
        found, after = list[str](), None
        for number in range(1 + 1000 // 37):
            page = store.find(Filter(), after, 37)
            found, after = found + [one.id for one in page.jobs], page.after
            put(store, f"new-{number}")
            finish(store, *claim(store, 20).claims)
        assert (found, after) == (ids[::-1], None)

    @pytest.mark.parametrize("reached", REACHABLE)
    @pytest.mark.parametrize("n", [1, 5])
    def test_pages_of_one_state_lose_and_repeat_nothing(self, store: Store, reached: State, n: int) -> None:
        ids = [f"job-{i}" for i in range(12)]
        for id in ids:
            into(store, reached, id)
            put(store, f"other-{id}", queue="other", task="app.other")
        assert [one.id for one in find_all(store, Filter((reached,), task=TASK), n)] == ids[::-1]

    def test_pages_of_one_event_lose_and_repeat_nothing(self, store: Store) -> None:
        names = [f"job-{i}" for i in range(12)]
        store.put([NewJob(name, TASK, "crm", event=("shop", "e")) for name in names], [event("e")])
        assert [one.id for one in find_all(store, Filter(event=("shop", "e")), 5)] == names[::-1]

    def test_pages_of_late_jobs_lose_and_repeat_nothing(self, store: Store, clock: ManualClock) -> None:
        ids = put_many(store, 12, deadline=10)
        put_many(store, 12, "early", deadline=1000)
        clock.advance(11)
        assert [one.id for one in find_all(store, Filter(late=1.0), 5)] == ids[::-1]

    def test_no_page_is_larger_than_asked(self, store: Store) -> None:
        put_many(store, 20)
        assert len(store.find(Filter(), None, 7).jobs) == 7

    @pytest.mark.parametrize("wanted", REACHABLE)
    def test_jobs_are_found_by_state(self, store: Store, wanted: State) -> None:
        for reached in REACHABLE:
            into(store, reached, reached.value, queue=reached.value)
        assert [one.id for one in find_all(store, Filter((wanted,)))] == [wanted.value]

    def test_jobs_are_found_by_several_states(self, store: Store) -> None:
        for reached in REACHABLE:
            into(store, reached, reached.value, queue=reached.value)
        for wanted in (
            (State.DEAD, State.DONE),
            (State.RUNNING, State.DEAD),
            (State.WAITING, State.UNCLEAR),
            REACHABLE,
        ):
            assert {one.state for one in find_all(store, Filter(wanted))} == set(wanted)

    def test_jobs_behind_their_key_are_found_as_waiting(self, store: Store) -> None:
        put(store, "a", "b", key="k")
        claim_one(store)
        claim(store)
        assert [one.id for one in find_all(store, Filter((State.WAITING,)))] == ["b"]

    @pytest.mark.parametrize("reached", REACHABLE)
    def test_every_filter_narrows_every_state(self, store: Store, reached: State) -> None:
        into(store, reached, "a", queue="x", key="k")
        put(store, "b", queue="y", task="app.other", key="l")
        for wanted in (Filter(queue="x"), Filter(task=TASK), Filter(key="k"), Filter(text="a")):
            assert [one.id for one in find_all(store, wanted)] == ["a"]
        for states in ((reached,), REACHABLE):
            assert [one.id for one in find_all(store, Filter(states, "x", TASK, "k", None, "a"))] == ["a"]
        for wanted in (Filter((reached,), queue="z"), Filter((reached,), key="m"), Filter((reached,), text="zzz")):
            assert find_all(store, wanted) == []

    def test_jobs_are_found_by_their_event(self, store: Store) -> None:
        events = [event("e"), event("f")]
        names = [f"{one.id}:{to}" for one in events for to in ("crm", "mail")]
        store.put([NewJob(name, TASK, name[2:], event=("shop", name[0])) for name in names], events)
        assert {one.id for one in find_all(store, Filter(event=("shop", "e")))} == {"e:crm", "e:mail"}
        assert [one.id for one in find_all(store, Filter(queue="crm", event=("shop", "f")))] == ["f:crm"]
        assert find_all(store, Filter(event=("shop", "g"))) == []
        assert find_all(store, Filter(event=("other", "e"))) == []

    def test_jobs_are_found_by_a_part_of_their_id(self, store: Store) -> None:
        put(store, "invoice:42", "invoice:421", "order:42")
        assert {one.id for one in find_all(store, Filter(text="voice:42"))} == {"invoice:42", "invoice:421"}

    @pytest.mark.parametrize("end", [bury, doubt, defer])
    def test_jobs_are_found_by_a_part_of_their_error(self, store: Store, end: object) -> None:
        put(store, "a", "b")
        a, b = claim(store).claims
        end(store, a, error="connection refused by crm")  # type: ignore[operator]
        end(store, b, error="time-out")  # type: ignore[operator]
        assert [one.id for one in find_all(store, Filter(text="refused by"))] == ["a"]
        states = (read(store, "a").state,)
        assert [one.id for one in find_all(store, Filter(states, text="refused by"))] == ["a"]

    @pytest.mark.parametrize("text", ["%", "_", "a%", "\\", "'", "*", "?", "[a]"])
    def test_the_text_is_taken_literally(self, store: Store, text: str) -> None:
        put(store, f"x{text}y", "plain", "abc")
        assert [one.id for one in find_all(store, Filter(text=text))] == [f"x{text}y"]

    @pytest.mark.parametrize("text", ["a\x00b", "a\ud800b"])
    def test_what_no_job_can_be_called_finds_nothing(self, store: Store, text: str) -> None:
        put(store, "a", key="k")
        assert store.get(text) is None
        assert store.notes(text) == {}
        assert store.event("shop", text) is None
        asked = [Filter(queue=text), Filter(task=text), Filter(key=text), Filter(text=text)]
        asked.append(Filter(event=("shop", text)))
        assert [store.find(wanted) for wanted in asked] == [Page(())] * len(asked)

    def test_a_list_shows_what_a_list_needs_and_no_payload(self, store: Store) -> None:
        put(store, "a", payload=b"x" * 1000, key="k")
        bury(store, claim_one(store), error="broken")
        (job,) = store.find(Filter()).jobs
        assert (job.id, job.state, job.error, job.key) == ("a", State.DEAD, "broken", "k")
        assert (job.payload, job.history) == (None, ())

    @pytest.mark.parametrize("reached", REACHABLE)
    def test_a_list_and_a_single_look_agree(self, store: Store, reached: State) -> None:
        into(store, reached)
        (listed,) = store.find(Filter()).jobs
        single = read(store, "a")
        assert (listed.state, listed.token, listed.error, listed.ended_at) == (
            single.state,
            single.token,
            single.error,
            single.ended_at,
        )

    def test_jobs_late_against_their_deadline_are_found(self, store: Store, clock: ManualClock) -> None:
        put(store, "none")
        put(store, "half", deadline=100)
        put(store, "full", deadline=50)
        put(store, "done", deadline=10)
        put(store, "early", deadline=1000)
        finish(store, *[one for one in claim(store).claims if one.id == "done"])
        clock.advance(60)
        assert {one.id for one in find_all(store, Filter(late=0.5))} == {"half", "full"}
        assert {one.id for one in find_all(store, Filter(late=1.0))} == {"full"}

    def test_young_dead_letters_are_found(self, store: Store, clock: ManualClock) -> None:
        put(store, "old", "young")
        old, young = claim(store).claims
        bury(store, old)
        clock.advance(100)
        bury(store, young)
        found = find_all(store, Filter((State.DEAD,), ended_after=clock() - 50))
        assert [one.id for one in found] == ["young"]

    def test_a_revived_job_is_found_where_it_is_now(self, store: Store) -> None:
        into(store, State.DEAD)
        act(store, Event.REVIVE, "a")
        assert find_all(store, Filter((State.DEAD,))) == []
        assert [one.id for one in find_all(store, Filter((State.WAITING,)))] == ["a"]
