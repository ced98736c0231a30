"""An account that cannot be overdrawn: over runs, after crashes, with records that come and go."""

import numpy as np
import pytest

from cosilo.errors import Refused, RunError
from cosilo.privacy.ledger import Ledger, Spent
from cosilo.privacy.voter import Mechanism, Opinions

HOW = Mechanism("softmax", 2.0, 1e-5, 5.0, 0.25, 100, 1.0, 10.0)


def records(*names):
    return np.array(names, np.uint64)


@pytest.fixture
def ledger(tmp_path):
    return Ledger(tmp_path / "privacy")


def ask(ledger, key, some, most=2.0, train=lambda: np.ones((3, 2)), run="run 1"):
    kept = ledger.opinions(key, some, HOW, most, "silo 'a'", run, lambda: Opinions(train(), 17.5))
    assert kept.records == 17.5
    return kept.chances


def never():
    raise AssertionError("was trained")


def test_a_voter_is_paid_once_and_answers_for_ever(ledger):
    first = ask(ledger, "one", records(1, 2), train=lambda: np.arange(6.0).reshape(3, 2))
    again = ask(ledger, "one", records(1, 2), train=never, run="run 2")
    np.testing.assert_array_equal(first, again)
    assert ledger.spent(records(1, 2)) == Spent(2.0, 1e-5)


def test_more_than_the_budget_is_refused_before_anything_is_trained(ledger):
    ask(ledger, "one", records(1, 2))
    wants = "silo 'a': its votes would cost ε = 2, and its records have spent 2 of their privacy budget of 3"
    with pytest.raises(Refused, match=wants):
        ledger.check("two", records(1, 2), 2.0, 3.0, "silo 'a'")
    with pytest.raises(Refused, match=wants):
        ask(ledger, "two", records(1, 2), most=3.0, train=never)
    ledger.check("one", records(1, 2), 2.0, 2.0, "silo 'a'")  # it is there
    ask(ledger, "two", records(1, 2), most=4.0)
    assert ledger.spent(records(1, 2)) == Spent(4.0, 2e-5)


def test_voters_add_up_where_they_share_a_record_and_only_there(ledger):
    ask(ledger, "one", records(1, 2))
    ask(ledger, "two", records(2, 3), most=4.0)
    assert ledger.spent(records(1)).epsilon == 2
    assert ledger.spent(records(1, 2, 3)).epsilon == 4  # record 2
    assert ledger.spent(records(4, 5)) == Spent(0.0, 0.0)
    assert ledger.spent(records()) == Spent(0.0, 0.0)
    ask(ledger, "three", records(4, 5))  # other people's records have a budget of their own


def test_a_crash_while_it_was_trained_costs_nothing_twice(ledger):
    def crash():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ask(ledger, "one", records(1), train=crash)
    assert ledger.spent(records(1)).epsilon == 2  # paid for before
    assert not ledger.has("one")
    ledger.check("one", records(1), 2.0, 2.0, "silo 'a'")
    ask(ledger, "one", records(1))
    assert ledger.spent(records(1)).epsilon == 2


def test_a_voter_that_was_seen_and_lost_has_to_be_paid_for_again(ledger):
    ask(ledger, "one", records(1))
    (ledger.folder / "one.safetensors").unlink()
    with pytest.raises(Refused):
        ask(ledger, "one", records(1), train=never)
    ask(ledger, "one", records(1), most=4.0)
    assert ledger.spent(records(1)).epsilon == 4


def test_another_voter_in_the_place_of_one_that_was_kept_is_noticed(ledger):
    ask(ledger, "one", records(1))
    other = Ledger(ledger.folder.with_name("other"))
    ask(other, "one", records(1), train=lambda: np.zeros((3, 2)))
    (other.folder / "one.safetensors").replace(ledger.folder / "one.safetensors")
    with pytest.raises(RunError, match=r"one.safetensors: is not the voter that was kept"):
        ask(ledger, "one", records(1), train=never)


def test_a_damaged_account_is_not_an_empty_one(ledger):
    ask(ledger, "one", records(1))
    path = ledger.folder / "ledger.jsonl"
    whole = path.read_bytes()
    path.write_bytes(b"x" + whole)
    with pytest.raises(RunError, match=r"ledger.jsonl: line 1 is damaged, not as it was written; restore it"):
        ledger.spent(records(1))
    path.write_bytes(whole)
    (ledger.folder / "one.records").unlink()
    with pytest.raises(RunError, match=r"one.records: is missing or damaged; restore it"):
        ledger.spent(records(1))


def test_what_left_is_noted_once_a_run_with_what_it_promises(ledger):
    for kinds, run in (({"labels", "metrics"}, "run 1"), ({"metrics"}, "run 1"), ({"metrics"}, "run 2")):
        ledger.note(kinds, run)
    assert ledger.left("run 1") == {"labels", "metrics"}
    lines = [(e["kind"], e["guaranteed"], e["run"]) for e in ledger.entries()]
    assert lines == [("labels", True, "run 1"), ("metrics", False, "run 1"), ("metrics", False, "run 2")]


def test_only_its_owner_can_look_into_it(ledger):
    ask(ledger, "one", records(1))
    assert ledger.folder.stat().st_mode & 0o777 == 0o700


def test_records_are_hashed_by_a_key_of_the_ledger(tmp_path):
    first, second = Ledger(tmp_path / "one"), Ledger(tmp_path / "two")
    assert first.hash_key() == Ledger(tmp_path / "one").hash_key() != second.hash_key()
