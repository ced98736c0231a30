"""`cosilo reproduce` as a user types it: a recipe of one's own, the page, running out of time."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import asdict, replace

import pytest

from cosilo.reproduce.library import find
from cosilo.reproduce.record import ReproductionRecord, read_record, write_record
from cosilo.reproduce.run_cases import measure_again

RECIPE = """
[method]
use = "cofed"
rule = "paper"
accept = "always"
alpha = 0.5

[simulation]
dataset = "digits"
split = {{ use = "superclasses", silos = 4, classes = [4, 6], per_class = 10 }}
learners = [
    {{ use = "sklearn.tree.DecisionTreeClassifier" }},
    {{ use = "{second}" }},
]

[pool]
rest = true
size = 300

[reproduces]
paper = "CoFED"
what = "Fig. 99"
shows = "digits"
methods = ["cofed"]
minutes = {{ laptop = 1, night = 2, paper = 3 }}
why.laptop = "It is a test."

[reproduces.cases]
paper = ["loose"]

[reproduces.night_size]
"simulation.split.silos" = 5

[reproduces.paper_size]
"simulation.split.silos" = 6

[reproduces.case.loose]

[reproduces.case.strict]
"method.alpha" = 0.9

[[reproduces.number]]
text = "relative accuracy"
of = "loose.cofed.relative"
paper = 0.5

[[reproduces.number]]
text = "relative accuracy of trees"
of = "loose.cofed.relative@DecisionTreeClassifier"
paper = 9.0

[[reproduces.claim]]
text = "A larger α elects less"
more = ["loose.cofed.elected"]
than = ["strict.cofed.elected"]

[[reproduces.claim]]
text = "Trees gain"
more = ["loose.cofed.relative@DecisionTreeClassifier"]
than = 1
"""
SLOW = """
import time
from sklearn.naive_bayes import GaussianNB

class Sleepy(GaussianNB):
    def fit(self, X, y, sample_weight=None):
        time.sleep(0.7)
        return super().fit(X, y, sample_weight)
"""


def cosilo(*words, cwd, check=True):
    command = [sys.executable, "-m", "cosilo.cli.main", *map(str, words)]
    env = {**os.environ, "COLUMNS": "200", "NO_COLOR": "1"}
    done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, timeout=200, check=False)
    if check:
        assert done.returncode == 0, done.stderr
    return done


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "mine.toml").write_text(RECIPE.format(second="sklearn.naive_bayes.GaussianNB"))
    (tmp_path / "sleepy.py").write_text(SLOW)
    (tmp_path / "slow.toml").write_text(RECIPE.format(second="sleepy.Sleepy"))
    return tmp_path


def test_a_table_its_record_and_a_second_time(folder):
    done = cosilo("reproduce", "mine.toml", "--seeds", 2, cwd=folder)
    assert re.search(r"relative accuracy\s+│\s+0\.500 │ \d\.\d{3} ± \d\.\d{3} │ exceeded", done.stdout)
    assert re.search(r"of trees\s+│\s+9\.000 │ \d\.\d{3} ± \d\.\d{3} │ not reached \(−", done.stdout)
    assert re.search(r"A larger α elects less: not decided \(−.* to \+.* labels, 2 seeds\)", done.stdout)
    assert re.search(r"Trees gain: .* 4 silos\)", done.stdout)
    assert "1 of 2 numbers reached, 1 of 2 claims hold, 1 not decided" in done.stdout
    assert "mine, strict: cofed, seed 1 (2 of 2)" in done.stderr

    record = json.loads((folder / "reproductions" / "mine-laptop" / "record.json").read_text())
    assert record["seeds"] == [0, 1]
    assert record["scale"] == "4 silos"
    mine = find(str(folder / "mine.toml"))
    assert record["recipes"] == {case: mine.digest(case, "laptop") for case in ("loose", "strict")}
    loose = folder / "reproductions" / "mine-laptop" / "loose"
    # The values are those of the runs: trees are dealt to the first and the third silo.
    for place, seed in enumerate([0, 1]):
        scores = json.loads((loose / f"cofed-seed{seed}" / "result.json").read_text())["scores"]
        gains = [
            scores["federated"][name]["accuracy"] / scores["local"][name]["accuracy"]
            for name in ("silo-1", "silo-3")
        ]
        found = record["values"]["loose.cofed.relative@DecisionTreeClassifier"][place]
        assert found == pytest.approx(sum(gains) / 2)
        by_silo = record["silos"]["loose.cofed.relative@DecisionTreeClassifier"][place]
        assert by_silo == pytest.approx(dict(zip(("silo-1", "silo-3"), gains, strict=True)))

    # What an older version measured is measured anew from the runs; where they come from stays.
    path = folder / "reproductions" / "mine-laptop"
    older = replace(read_record(path / "record.json"), silos={}, recipes={}, values={}, commit="abc1234")
    anew = measure_again(mine, older, path)
    assert asdict(anew) == {**record, "commit": "abc1234"}

    again = cosilo("reproduce", "mine.toml", "--seeds", 2, cwd=folder)
    assert again.stderr.count("finished before") == 4
    second = json.loads((folder / "reproductions" / "mine-laptop" / "record.json").read_text())
    assert second["values"] == record["values"]


def test_the_papers_size_is_a_run_of_its_own(folder):
    done = cosilo("reproduce", "mine.toml", "--size", "paper", cwd=folder)  # on one seed, unless told
    assert "Trees gain" in done.stdout
    assert "mine, strict" not in done.stderr  # it has one case only
    assert "A larger α elects less: no result" in done.stdout
    record = json.loads((folder / "reproductions" / "mine-paper" / "record.json").read_text())
    assert (record["scale"], record["seeds"]) == ("6 silos", [0])
    assert not (folder / "reproductions" / "mine-laptop").exists()


def test_time_is_over_and_the_same_command_goes_on(folder):
    begun = time.monotonic()
    stopped = cosilo("reproduce", "slow.toml", "--seeds", 2, "--hours", 4 / 3600, cwd=folder)
    assert "hours are over; completed steps are kept" in stopped.stderr
    assert time.monotonic() - begun < 60
    cosilo("reproduce", "slow.toml", "--seeds", 2, cwd=folder)
    cosilo("reproduce", "mine.toml", "--seeds", 2, cwd=folder)
    values = [
        json.loads((folder / "reproductions" / f"{name}-laptop" / "record.json").read_text())["values"]
        for name in ("slow", "mine")  # a sleepy naive Bayes says the same as one that is awake
    ]
    assert values[0] == values[1]


def test_a_night_that_is_killed_loses_nothing_and_ends_with_the_same_record(folder):
    words = ["reproduce", "slow.toml", "--size", "night", "--seeds", "2"]
    night = folder / "reproductions" / "slow-night"
    process = subprocess.Popen(
        [sys.executable, "-m", "cosilo.cli.main", *words],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    middle = night / "strict" / "cofed-seed0"
    try:  # kill it in the second case, after some silos have trained
        while not any(path.stat().st_size for path in middle.glob("journal/*-train/small")):
            assert process.poll() is None
            time.sleep(0.02)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    cut = json.loads((night / "record.json").read_text())
    assert cut["seeds"] == [0]
    assert list(cut["recipes"]) == ["loose"]
    assert "loose.cofed.elected" in cut["values"]
    assert "strict.cofed.elected" not in cut["values"]
    done = cosilo(*words, cwd=folder)
    assert "slow, loose: cofed, seed 0 (1 of 2): finished before" in done.stderr
    resumed = json.loads((night / "record.json").read_text())
    assert resumed["values"]["loose.cofed.relative"][:1] == cut["values"]["loose.cofed.relative"]

    shutil.rmtree(night)
    cosilo(*words, cwd=folder)
    whole = json.loads((night / "record.json").read_text())
    assert whole["seeds"] == [0, 1]
    times = {"minutes": 0, "spent": {}}
    assert {**resumed, **times} == {**whole, **times}
    assert resumed["spent"].keys() == whole["spent"].keys()


def test_a_record_grows_with_the_seeds(folder):
    path = folder / "reproductions" / "mine-night" / "record.json"
    cosilo("reproduce", "mine.toml", "--size", "night", cwd=folder)
    first = json.loads(path.read_text())
    cosilo("reproduce", "mine.toml", "--size", "night", "--seeds", 2, cwd=folder)
    second = json.loads(path.read_text())
    assert (first["seeds"], second["seeds"]) == ([0], [0, 1])
    assert {key: row[:1] for key, row in second["values"].items()} == first["values"]


def test_list_shows_verdicts_and_a_mistake_is_one_line(folder):
    listed = cosilo("reproduce", "--list", cwd=folder).stdout
    assert "\ncofed_adult: CoFED, Fig. 9: trees, SVMs, additive models and networks in one " in f"\n{listed}"
    assert "\n  laptop     4 min  not run\n  night     18 min  not run\n" in listed
    path = folder / "reproductions" / "cofed_adult-laptop" / "record.json"
    path.parent.mkdir(parents=True)
    values = {"all.cofed.relative": [1.0]}
    write_record(ReproductionRecord("cofed_adult", "laptop", [0], values, 1.0, *[""] * 5), path)
    again = cosilo("reproduce", "--list", cwd=folder).stdout
    assert "\n  laptop     4 min  0 of 1 numbers reached (of an earlier recipe)\n" in again
    for words, line in [
        (["reproduce"], "error: reproduce: wants a NAME, --all, --list or --page; --list shows the names"),
        (["reproduce", "tempo_tabel1"], "error: no reproduction 'tempo_tabel1' (did you mean 't"),
        (["reproduce", "--page", "results.html"], "error: --page results.html: wants a .md file"),
    ]:
        done = cosilo(*words, cwd=folder, check=False)
        assert done.returncode == 2
        assert done.stderr.startswith(line)
        assert done.stderr.count("\n") == 1


def test_a_learner_that_nobody_has_is_found_before_anything_is_run(folder):
    recipe = (folder / "mine.toml").read_text().replace("@DecisionTreeClassifier", "@Forest")
    (folder / "mine.toml").write_text(recipe)
    done = cosilo("reproduce", "mine.toml", cwd=folder, check=False)
    assert done.returncode == 2
    where = "'loose.cofed.relative@Forest'"
    assert done.stderr == f"error: mine.toml: reproduces: no silo and no learner 'Forest' in {where}\n"
    assert not (folder / "reproductions").exists()


def test_one_case_at_a_time_joins_the_same_record(folder):
    path = folder / "reproductions" / "mine-laptop" / "record.json"
    cosilo("reproduce", "mine.toml", "--seeds", 1, "--case", "strict", cwd=folder)
    assert list(json.loads(path.read_text())["recipes"]) == ["strict"]
    done = cosilo("reproduce", "mine.toml", "--seeds", 1, "--case", "loose", cwd=folder)
    assert "strict: cofed" not in done.stderr
    assert set(json.loads(path.read_text())["recipes"]) == {"strict", "loose"}
    wrong = cosilo("reproduce", "mine.toml", "--case", "lose", cwd=folder, check=False)
    assert wrong.stderr == (
        "error: mine: no case 'lose' in laptop size (did you mean 'loose'?); there are loose, strict\n"
    )


def test_single_seeds_make_one_page(folder):
    for seed in (1, 0):  # on two machines, say
        words = ["--seed", seed, "--case", "strict", "--dir", f"at-{seed}", "--page", "results.md"]
        cosilo("reproduce", "mine.toml", *words, cwd=folder)
    assert [path.name for path in folder.glob("at-1/*/*/cofed-seed*")] == ["cofed-seed1"]
    record = json.loads((folder / "results" / "mine-laptop.json").read_text())
    assert record["seeds"] == [0, 1]
    assert None not in record["values"]["strict.cofed.elected"]
