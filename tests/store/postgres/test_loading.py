"""A large put writes the same rows as a small one, only quicker."""

import threading

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from treppe.errors import StoreBusy, StoreError
from treppe.job import NewJob, Repeat
from treppe.store.postgres import PostgresStore, loading
from treppe.store.postgres.loading import LEAST, ONE_IN

N = 3 * LEAST


def job(id, **more):
    return NewJob(id, "t", "q", b'{"a": "\xc3\xa9"}', **more)


def many(*odd):
    """Enough jobs for the quick way, and these."""
    return [*odd, *(job(f"job-{i:05}") for i in range(N))]


MIXED = (
    job("plain"),
    job("keyed", key="customer-é"),
    job("later", delay=60.5),
    job("then", at=4e9),
    job("promised", deadline=10, at=0),
    job("urgent", priority=60),
    job("low", priority=-3),
    job("ask", repeat=Repeat.ASK, attempts=1, crashes=100_000),
    job("look", repeat=Repeat.LOOK, skip_dead=True, expires=1, keep=0),
    NewJob("é" * 255, "other", "q:2", b"", content_type="text/plain; x=ü"),
    NewJob("large", "t", "q", bytes(range(256)) * 40_000),
)


@pytest.mark.parametrize("size", [len(MIXED), len(MIXED) + N])
def test_every_field_is_the_same_however_many_are_put(any_url, size):
    store = PostgresStore(any_url, clock=lambda: 1000.25)
    store.migrate()
    try:
        placed = store.put(many(*MIXED)[:size]).jobs
        with psycopg.connect(any_url) as connection:
            rows = connection.execute(
                "SELECT j.id, j.task, j.queue, payload, content_type, event, j.okey, priority, j.repeat, j.attempts, "
                "j.crashes, first_due, expires, deadline, keep, j.skip_dead, created_at, l.queue, l.task, l.okey, "
                "band, due_at, run_at, l.repeat, l.attempts, max_crashes, expires_at, half_at, deadline_at, "
                "l.skip_dead, parked, running, token, claims "
                "FROM treppe.job j JOIN treppe.live l USING (seq) ORDER BY seq LIMIT %s",
                (len(MIXED),),
            ).fetchall()
    finally:
        store.close()
    assert rows == [_row(one) for one in MIXED]
    assert [one.seq for one in placed] == sorted(one.seq for one in placed)
    assert not any(one.duplicate for one in placed)


def _row(job):
    due = 1000.25 + job.delay if job.at is None else float(job.at)
    half, until = (None, None) if job.deadline is None else (due + job.deadline / 2, due + job.deadline)
    band = {60: 0, 0: 2, -3: 3}[job.priority]
    code = [Repeat.SAFE, Repeat.LOOK, Repeat.ASK].index(job.repeat)
    return (
        job.id, job.task, job.queue, job.payload, job.content_type, None, job.key, job.priority, code, job.attempts,
        job.crashes, due, job.expires, job.deadline, job.keep, job.skip_dead, 1000.25, job.queue, job.task, job.key,
        band, due, due, code, job.attempts, job.crashes, due + job.expires, half, until, job.skip_dead, 0, False, 0, 0,
    )  # fmt: skip


def test_jobs_are_served_in_the_order_they_were_given_in_not_in_that_of_their_ids(store):
    jobs = [job(f"job-{(i * 7) % N:05}") for i in range(N)]
    seqs = {one.id: one.seq for one in store.put(jobs).jobs}
    assert sorted(seqs, key=seqs.__getitem__) == [one.id for one in jobs]
    assert store.get(jobs[0].id).seq == seqs[jobs[0].id]


@pytest.mark.parametrize("place", [0, 1, ONE_IN, ONE_IN + 1, N - 1])
def test_a_taken_id_anywhere_is_a_duplicate_and_the_others_are_placed(store, place):
    jobs = many()
    store.put([jobs[place]])
    placed = store.put(jobs).jobs
    assert [one.duplicate for one in placed] == [i == place for i in range(N)]
    assert store.backlog().accepted == N
    assert all(one.duplicate for one in store.put(jobs).jobs)


def test_other_work_with_a_taken_id_is_a_conflict(store):
    store.put([job("job-00007", priority=1)])
    jobs = many()
    jobs[7] = NewJob("job-00007", "t", "q", b"other")
    assert [one.id for one in store.put(jobs).jobs if one.conflict == "content"] == ["job-00007"]


def test_an_id_that_is_given_twice_is_placed_once(store):
    placed = store.put([*many(), job("job-00003")]).jobs
    assert (placed[-1].duplicate, placed[-1].seq) == (True, placed[3].seq)
    assert store.backlog().accepted == N


def test_an_open_transaction_with_one_of_the_ids_is_not_waited_for_long(store, treppe_url):
    with psycopg.connect(treppe_url) as theirs:
        theirs.execute("SELECT treppe.enqueue('job-00100', 't')")
        with pytest.raises(StoreBusy):
            store.put(many())
        theirs.rollback()
    assert store.get("job-00099") is None
    assert not any(one.duplicate for one in store.put(many()).jobs)


def test_what_the_server_does_not_take_is_stored_in_no_part(store):
    with pytest.raises(StoreError):
        store.put(many(job("zzz", key="nul\0")))
    assert store.get("job-00001") is None
    assert store.backlog().accepted == 0
    assert len(store.put(many()).jobs) == N


def test_two_large_puts_of_the_same_ids_do_not_deadlock(store, monkeypatch):
    monkeypatch.setattr(loading, "ONE_IN", 10 * N)  # nothing is found out before
    jobs = [job(f"job-{i:05}") for i in range(5 * N)]
    answers = []

    def put(some):
        try:
            answers.append(store.put(some).jobs)
        except StoreBusy:
            answers.append(())

    threads = [threading.Thread(target=put, args=(some,)) for some in (jobs, jobs[::-1])]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    new = sum(not one.duplicate for answer in answers for one in answer)
    assert new == store.backlog().accepted == 5 * N
    ((deadlocks,),) = store._database.once("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()")
    assert deadlocks == 0


def test_whoever_listens_is_told(store, treppe_url):
    with psycopg.connect(treppe_url, autocommit=True) as ear:
        ear.execute("LISTEN treppe")
        store.put(many())
        assert [word.payload for word in ear.notifies(timeout=10, stop_after=1)] == ["q"]


def test_behind_a_pooler_it_is_the_same(pgbouncer, treppe_url):
    store = PostgresStore(pgbouncer.url(conninfo_to_dict(treppe_url)["dbname"]))
    try:
        assert not any(one.duplicate for one in store.put(many()).jobs)
        assert all(one.duplicate for one in store.put(many()).jobs)
        assert store.backlog().accepted == N
    finally:
        store.close()
