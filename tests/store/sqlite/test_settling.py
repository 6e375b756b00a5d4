"""What comes of a claim that was taken back and is settled all the same."""

from treppe.policy.pace import Limits, Pacer
from treppe.store.sqlite import SQLiteStore
from treppe.testing.contract import verbs


def test_a_job_that_is_handed_over_after_its_lapse_counts_for_the_limit_again(tmp_path):
    store = SQLiteStore(tmp_path / "jobs.db", durable=False)
    store.migrate()
    store.enlist(verbs.BOB, "bob", verbs.FOREVER)
    pace = Pacer({verbs.QUEUE: Limits(concurrent=1)})
    verbs.put(store, "a", "b", "c")
    a = verbs.claim_one(store, worker=verbs.new_worker(store), pace=pace)
    verbs.lapse(store, a)
    b = verbs.claim_one(store, worker=verbs.BOB, pace=pace)
    verbs.hand_over(store, a)
    verbs.finish(store, b)
    assert verbs.claim_ids(store, worker=verbs.BOB, pace=pace) == []
    verbs.confirm(store, a)
    assert verbs.claim_ids(store, worker=verbs.BOB, pace=pace) == ["c"]
    store.close()
