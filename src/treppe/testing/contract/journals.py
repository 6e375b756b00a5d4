"""The journal: streams only grow at their end, values change only by compare-and-swap."""

from __future__ import annotations

import pytest

from treppe.store.protocol import Store
from treppe.testing.clock import ManualClock
from treppe.testing.contract.base import Contract, as_long_as, together

VALUES = [b"", b"\0", b"\xff\xfe", bytes(range(256)), b"x" * 200_000]


class Journals(Contract):
    """Everything that is not a job."""

    def test_an_unknown_stream_is_empty(self, store: Store) -> None:
        assert store.journal.page("nothing") == []

    @pytest.mark.parametrize("n", [0, 1, 2, 100])
    def test_records_come_back_in_order_with_seq_and_time(self, store: Store, clock: ManualClock, n: int) -> None:
        store.journal.append("s", [b"%d" % i for i in range(n)])
        page = store.journal.page("s", 0, 500)
        assert [one.record for one in page] == [b"%d" % i for i in range(n)]
        assert [one.seq for one in page] == sorted({one.seq for one in page})
        assert all(one.at == clock() for one in page)

    @pytest.mark.parametrize("value", VALUES)
    def test_records_and_values_are_bytes_and_stay_as_they_are(self, store: Store, value: bytes) -> None:
        store.journal.append("s", [value])
        assert store.journal.page("s")[0].record == value
        assert store.journal.swap("v", None, value)
        assert store.journal.get("v") == value

    def test_pages_go_on_where_the_last_one_ended(self, store: Store) -> None:
        store.journal.append("s", [b"%d" % i for i in range(250)])
        found, after = [], 0
        for _ in range(4):
            page = store.journal.page("s", after, 100)
            if not page:
                break
            found += [int(one.record) for one in page]
            after = page[-1].seq
            store.journal.append("other", [b"between"])
        assert found == list(range(250))

    def test_a_stream_is_read_from_its_end(self, store: Store) -> None:
        store.journal.append("s", [b"%d" % i for i in range(10)])
        newest = store.journal.page("s", n=3, newest_first=True)
        assert [one.record for one in newest] == [b"9", b"8", b"7"]
        older = store.journal.page("s", newest[-1].seq, 3, newest_first=True)
        assert [one.record for one in older] == [b"6", b"5", b"4"]

    def test_streams_do_not_mix(self, store: Store) -> None:
        for stream in ("a", "b", "a:b", "A", "a%", "ä"):
            store.journal.append(stream, [stream.encode()])
        for stream in ("a", "b", "a:b", "A", "a%", "ä"):
            assert [one.record for one in store.journal.page(stream)] == [stream.encode()]

    def test_a_stream_is_trimmed_to_its_newest(self, store: Store) -> None:
        store.journal.append("s", [b"%d" % i for i in range(10)])
        store.journal.append("other", [b"kept"])
        assert store.journal.trim("s", 3) == 7
        assert [one.record for one in store.journal.page("s")] == [b"7", b"8", b"9"]
        assert store.journal.trim("s", 3) == 0
        assert store.journal.trim("s", 0) == 3
        assert store.journal.trim("unknown", 5) == 0
        assert len(store.journal.page("other")) == 1

    def test_records_are_dropped_by_seq(self, store: Store) -> None:
        store.journal.append("s", [b"%d" % i for i in range(5)])
        store.journal.append("other", [b"kept"])
        seqs = [one.seq for one in store.journal.page("s")]
        foreign = store.journal.page("other")[0].seq
        assert store.journal.drop("s", [seqs[1], seqs[3], foreign, 10**9]) == 2
        assert [one.record for one in store.journal.page("s")] == [b"0", b"2", b"4"]
        assert len(store.journal.page("other")) == 1
        assert store.journal.drop("s", []) == 0

    def test_a_dropped_seq_is_never_given_again(self, store: Store) -> None:
        store.journal.append("s", [b"1"])
        (first,) = store.journal.page("s")
        store.journal.drop("s", [first.seq])
        store.journal.append("s", [b"2"])
        assert store.journal.page("s")[0].seq > first.seq

    def test_an_absent_value_is_none(self, store: Store) -> None:
        assert store.journal.get("v") is None

    def test_a_value_is_made_changed_and_removed_by_who_knows_it(self, store: Store) -> None:
        journal = store.journal
        assert not journal.swap("v", b"wrong", b"1")
        assert journal.swap("v", None, b"1")
        assert not journal.swap("v", None, b"2")
        assert not journal.swap("v", b"wrong", b"2")
        assert not journal.swap("v", b"wrong", None)
        assert journal.get("v") == b"1"
        assert journal.swap("v", b"1", b"2")
        assert journal.get("v") == b"2"
        assert journal.swap("v", b"2", None)
        assert journal.get("v") is None

    def test_an_empty_value_is_not_an_absent_one(self, store: Store) -> None:
        assert store.journal.swap("v", None, b"")
        assert not store.journal.swap("v", None, b"1")
        assert store.journal.get("v") == b""
        assert store.journal.swap("v", b"", b"1")

    def test_a_swap_to_the_same_succeeds(self, store: Store) -> None:
        store.journal.swap("v", None, b"1")
        assert store.journal.swap("v", b"1", b"1")
        assert store.journal.swap("absent", None, None)

    def test_values_are_found_by_the_beginning_of_their_name(self, store: Store) -> None:
        for name in ("flow:a", "flow:b", "flow%", "flow_x", "Flow:a", "alert:a", "flow"):
            store.journal.swap(name, None, name.encode())
        assert store.journal.scan("flow:") == {"flow:a": b"flow:a", "flow:b": b"flow:b"}
        assert set(store.journal.scan("flow%")) == {"flow%"}
        assert set(store.journal.scan("flow_")) == {"flow_x"}
        assert len(store.journal.scan("")) == 7
        assert len(store.journal.scan("", 3)) == 3

    def test_streams_and_values_of_one_name_are_two_things(self, store: Store) -> None:
        store.journal.append("x", [b"record"])
        store.journal.swap("x", None, b"value")
        assert store.journal.page("x")[0].record == b"record"
        assert store.journal.get("x") == b"value"

    def test_of_eight_threads_that_swap_one_wins_each_time(self, store: Store) -> None:
        def count_to_fifty() -> None:
            swapped: list[bytes] = []
            for _ in as_long_as(lambda: len(swapped) < 50):
                old = store.journal.get("v")
                new = b"%d" % (int(old or b"0") + 1)
                if store.journal.swap("v", old, new):
                    swapped.append(new)

        together(*[count_to_fifty] * 8)
        assert store.journal.get("v") == b"400"

    def test_no_record_of_eight_threads_is_lost(self, store: Store) -> None:
        def append(name: int) -> None:
            for i in range(25):
                store.journal.append("s", [b"%d-%d" % (name, i)])

        together(*[lambda name=name: append(name) for name in range(8)])
        records = [one.record for one in store.journal.page("s", 0, 500)]
        assert len(set(records)) == len(records) == 200
        for name in range(8):
            own = [record for record in records if record.startswith(b"%d-" % name)]
            assert own == [b"%d-%d" % (name, i) for i in range(25)]
