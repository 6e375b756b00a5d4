"""When somebody is told: the first at once, then one digest, an all-clear at the end, each message until it arrives."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from treppe.eyes.episode import (
    LEASE,
    Episode,
    Finding,
    Message,
    Timing,
    decode,
    delivered,
    encode,
    failed,
    news,
    posted,
    step,
    trying,
)

NOW = 1000.0
ONE = Finding(True, 1, ((1, 1),))
TWO = Finding(True, 2, ((1, 1), (2, 1)))
GONE = Finding(False)
TIMING = Timing(patience=0.0, calm=60.0, digest=3600.0)


def told(found=ONE, at=NOW):
    episode, tone = step(None, found, at, TIMING)
    assert tone == "first"
    return episode


def message(tone="first"):
    return Message(f"msg_{tone}", tone, "subject", "text")


def test_nothing_begins_where_nothing_is():
    assert step(None, GONE, NOW, TIMING) == (None, None)


def test_the_first_message_is_due_at_once():
    assert told().told_at == NOW


def test_what_was_told_is_not_told_again():
    assert step(told(), ONE, NOW + 10_000, TIMING)[1] is None


def test_news_wait_for_the_digest():
    assert step(told(), TWO, NOW + 3599, TIMING)[1] is None
    episode, tone = step(told(), TWO, NOW + 3600, TIMING)
    assert tone == "digest"
    assert step(episode, TWO, NOW + 9000, TIMING)[1] is None


def test_news_after_a_long_silence_are_told_at_once():
    assert step(told(), TWO, NOW + 86_400, TIMING)[1] == "digest"


def test_the_same_job_again_is_news():
    """It was revived and died once more: its token has grown."""
    assert step(told(), Finding(True, 1, ((1, 2),)), NOW + 3600, TIMING)[1] == "digest"


def test_fewer_than_before_is_no_news():
    assert step(told(TWO), ONE, NOW + 3600, TIMING)[1] is None


def test_a_lasting_condition_is_told_once_a_digest():
    lasting = Finding(True, 1, lasting=True)
    episode = told(lasting)
    assert step(episode, lasting, NOW + 3599, TIMING)[1] is None
    assert step(episode, lasting, NOW + 3600, TIMING)[1] == "digest"


def test_patience_waits_before_the_first_message():
    patient = Timing(patience=300.0)
    episode, tone = step(None, ONE, NOW, patient)
    assert tone is None
    assert step(episode, ONE, NOW + 299, patient)[1] is None
    assert step(episode, ONE, NOW + 300, patient)[1] == "first"


def test_what_ends_before_its_patience_is_never_told():
    episode, _ = step(None, ONE, NOW, Timing(patience=300.0))
    assert step(episode, GONE, NOW + 299, Timing(patience=300.0)) == (None, None)


def test_a_condition_that_began_earlier_needs_less_patience():
    assert step(None, Finding(True, 1, since=NOW - 300), NOW, Timing(patience=300.0))[1] == "first"


def test_the_all_clear_waits_until_it_is_calm():
    episode, tone = step(told(), GONE, NOW + 10, TIMING)
    assert (tone, episode.calm_since) == (None, NOW + 10)
    assert step(episode, GONE, NOW + 69, TIMING)[1] is None
    assert step(episode, GONE, NOW + 70, TIMING)[1] == "clear"


def test_what_flickers_is_told_once():
    episode, _ = step(told(), GONE, NOW + 10, TIMING)
    episode, tone = step(episode, ONE, NOW + 30, TIMING)
    assert (tone, episode.calm_since) == (None, None)
    episode, tone = step(episode, GONE, NOW + 80, TIMING)
    assert tone is None
    assert step(episode, GONE, NOW + 139, TIMING)[1] is None


def test_after_the_all_clear_a_new_episode_begins():
    episode, _ = step(told(), GONE, NOW, TIMING)
    episode, _ = step(episode, GONE, NOW + 60, TIMING)
    assert delivered(posted(episode, message("clear"), NOW + 60)) is None
    assert step(None, ONE, NOW + 61, TIMING)[1] == "first"


def test_while_the_all_clear_is_on_its_way_nothing_else_is_told():
    closing = posted(told(), message("clear"), NOW)
    assert closing.closed
    assert step(closing, TWO, NOW + 10_000, TIMING) == (closing, None)


def test_while_a_message_is_on_its_way_no_other_is_made():
    waiting = posted(told(), message(), NOW)
    assert step(waiting, TWO, NOW + 10_000, TIMING)[1] is None
    calm, _ = step(waiting, GONE, NOW + 10_000, TIMING)
    assert step(calm, GONE, NOW + 20_000, TIMING)[1] is None
    assert step(delivered(calm), GONE, NOW + 20_000, TIMING)[1] == "clear"


def test_one_try_at_a_time():
    waiting = posted(told(), message(), NOW)
    taken = trying(waiting, NOW)
    assert taken.pending.tries == 1
    assert trying(taken, NOW + LEASE - 1) is None
    assert trying(taken, NOW + LEASE).pending.tries == 2


def test_nothing_to_send_is_no_try():
    assert trying(told(), NOW) is None


def test_a_failed_try_comes_again_ever_more_slowly_and_for_ever():
    episode, now, waits = posted(told(), message(), NOW), NOW, []
    for _ in range(12):
        episode = failed(trying(episode, now), "no connection", now)
        waits.append(episode.pending.next_at - now)
        now = episode.pending.next_at
    assert waits == [5, 10, 20, 40, 80, 160, 320, 640, 900, 900, 900, 900]
    assert (episode.pending.error, episode.pending.since) == ("no connection", NOW)


def test_a_failure_of_what_is_no_longer_to_be_sent_changes_nothing():
    assert failed(told(), "late", NOW) == told()


def test_an_arrived_message_is_forgotten():
    assert delivered(trying(posted(told(), message(), NOW), NOW)).pending is None


def test_news_are_counted():
    assert news(None, TWO) == 2
    assert news(told(ONE), TWO) == 1
    assert news(told(TWO), TWO) == 0


def test_beyond_what_was_looked_at_the_number_counts():
    many = Finding(True, 900, tuple((n, 1) for n in range(500)))
    more = msgspec.structs.replace(many, total=950)
    assert (news(told(many), many), news(told(many), more)) == (0, 50)


@pytest.mark.parametrize("episode", [None, Episode(NOW), posted(told(TWO), message(), NOW)])
def test_the_journal_gives_back_what_it_was_given(episode):
    value = encode(episode)
    assert (None if value is None else decode(value)) == episode


FOUND = st.one_of(
    st.just(GONE),
    st.builds(
        lambda seqs: Finding(True, len(seqs), tuple((seq, 1) for seq in sorted(seqs))),
        st.sets(st.integers(1, 5), min_size=1),
    ),
)


@given(st.lists(st.tuples(FOUND, st.floats(0, 4000), st.booleans()), max_size=60))
def test_whatever_happens_an_episode_is_first_then_digests_then_clear(happenings):
    """No message without a first, none after the all-clear, and never two within a digest but for the all-clear."""
    episode, now, tones, last = None, NOW, [], {}
    for found, seconds, arrives in happenings:
        now += seconds
        episode, tone = step(episode, found, now, TIMING)
        if tone:
            assert tone == ("first" if not tones else tone)
            assert tone != "digest" or now - last["told"] >= TIMING.digest
            last["told"] = now if tone != "clear" else 0
            tones = [] if tone == "clear" else [*tones, tone]
            episode = posted(episode, message(tone), now)
        if episode is not None and arrives and episode.pending is not None:
            episode = delivered(episode)
