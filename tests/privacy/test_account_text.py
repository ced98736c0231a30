from cosilo import Privacy
from cosilo.privacy.account_text import account_lines, account_of, read_account, write_account
from cosilo.privacy.ledger import Spent


def test_an_account_in_plain_words(tmp_path):
    privacy = Privacy(epsilon=2, budget=5, ledger=tmp_path / "ledger")
    write_account(tmp_path, account_of(privacy, Spent(2.0, 1e-5), True, ["metrics", "task"]))
    assert account_lines(tmp_path) == [
        "its votes come from a softmax regression trained with differential privacy: "
        "ε = 2, δ = 1e-05 for each record",
        f"its records have spent ε = 2 of 5, δ = 1e-05, over all runs ({tmp_path / 'ledger'}): 3 is left; "
        "votes of the same voter cost nothing",
        "without any guarantee: metrics (scores of its own model on its own data), task (names of classes)",
    ]


def test_an_account_of_one_run_says_so(tmp_path):
    write_account(tmp_path, account_of(Privacy(epsilon=2), Spent(2.0, 1e-5), False, []))
    first, second = account_lines(tmp_path)
    assert first == "it did not vote"
    assert "in this run alone: nothing is left" in second
    assert read_account(tmp_path).left == 0


def test_a_silo_that_promises_nothing_has_no_account(tmp_path):
    assert read_account(tmp_path) is None
    assert account_lines(tmp_path) == []
