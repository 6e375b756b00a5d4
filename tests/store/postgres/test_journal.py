"""The journal beside open transactions."""

import threading

from treppe.store.postgres import journal


def test_a_reader_misses_no_record_that_is_committed_late(store):
    """Two append to one stream; who took the smaller number commits last. A reader that saw the larger one would
    never come back for the smaller."""
    first_in, go_on, seen = threading.Event(), threading.Event(), []

    def append_slowly(tx):
        journal.append(tx, "s", [b"first"])
        first_in.set()
        go_on.wait(20)

    slow = threading.Thread(target=store._database.write, args=(append_slowly,))
    slow.start()
    assert first_in.wait(10)
    quick = threading.Thread(target=store.journal.append, args=("s", [b"second"]))
    quick.start()
    quick.join(0.3)
    seen += store.journal.page("s")
    go_on.set()
    slow.join(20)
    quick.join(20)
    seen += store.journal.page("s", seen[-1].seq if seen else 0)
    assert [one.record for one in seen] == [b"first", b"second"]


def test_streams_do_not_wait_for_each_other(store):
    def work(tx):
        journal.append(tx, "a", [b"1"])
        store.journal.append("b", [b"2"])

    store._database.write(work)
    assert [one.record for one in store.journal.page("b")] == [b"2"]


def test_nothing_is_written_for_no_records(store):
    store.journal.append("s", [])
    assert store.journal.page("s") == []
