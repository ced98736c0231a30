"""The page: whole, safe to open, and saying what has to be said."""

import base64
import gzip
import json
import re
from hashlib import sha256
from pathlib import Path

import matplotlib
import pytest

from cosilo.errors import RunError
from cosilo.methods.local import Local
from cosilo.report import write_report
from cosilo.report.facts import gather
from cosilo.report.run_page import render
from cosilo.runs.silo_state import SiloState


@pytest.fixture
def no_figures(monkeypatch):
    """For tests that only read text: figures take most of the time."""
    monkeypatch.setattr("cosilo.report.run_page.cards", lambda facts, parts: {})
    monkeypatch.setattr("cosilo.report.run_page.timeline", lambda timing: None)


def test_writes_one_whole_file(make, reader_of):
    run = make()
    path = write_report(run)
    assert path == run.folder / "report.html"
    assert not list(run.folder.glob("*.part"))
    text = path.read_text("utf-8")
    assert text.startswith("<!DOCTYPE html>")
    reader_of(text)


def test_opens_offline(make, reader_of):
    page = render(gather(make()))
    reader = reader_of(page)
    assert "script" not in reader.tags
    assert all(target.startswith(("#", "data:image/png")) for target in reader.targets)
    assert {target[1:] for target in reader.targets if target.startswith("#")} <= set(reader.ids)
    assert not re.search(r"url\((?!#)", page)
    assert "http://" not in page
    assert "https://" not in page
    assert "@import" not in page


def test_says_the_same_twice(make):
    run = make()
    assert render(gather(run)) == render(gather(run))


def test_own_matplotlib_settings_change_nothing(make):
    run = make()
    page = render(gather(run))
    with matplotlib.rc_context({"font.size": 30, "svg.fonttype": "path", "axes.grid": True}):
        assert render(gather(run)) == page
        assert matplotlib.rcParams["font.size"] == 30


@pytest.mark.usefixtures("no_figures")
def test_verdict_has_the_numbers(make, small, read):
    text = read(make()).text
    assert "Not decided whether the federation helped: mean relative accuracy 1.050, 95 % interval" in text
    assert "1 of 3 silos gained, 1 lost, 1 stayed the same (from 0.900 to 1.250, median 1.000)" in text
    small["scores"]["federated"]["b"]["accuracy"] = 0.3
    text = read(make(small, name="worse")).text
    assert "2 of 3 silos lost, 1 stayed the same" in text
    small["scores"]["federated"] = small["scores"]["local"]
    assert "Nothing changed: 3 of 3 silos stayed the same" in read(make(small, name="same")).text


@pytest.mark.usefixtures("no_figures")
def test_gains_can_be_read_without_colour(make, read):
    text = read(make()).text
    assert "▼ 0.900" in text
    assert "▲ 1.250" in text
    assert "= 1.000" in text


def test_names_are_escaped(make, small, reader_of):
    nasty = "<b>cat</b>"
    small["tasks"] = {
        name: [nasty if c == "cat" else c for c in task] for name, task in small["tasks"].items()
    }
    small["voting"][0]["elected"] = {nasty: 12, '$x_1$ & "y" id="z"': 20, "eel": 7, "fox\x07\n": 0}
    small["tasks"]["b"] = ['$x_1$ & "y" id="z"', "eel", "fox\x07\n"]
    small["failures"] = [{"silo": "a", "step": "label", "kind": "error", "text": "<script>alert(1)</script>"}]
    page = render(gather(make(small, recipe={"source": "<i>.toml", "folder": "/", "values": {"<u>": "<s>"}})))
    reader = reader_of(page)
    assert "<b>cat" not in page
    assert "<script" not in page
    assert not {"script", "i", "u", "s"} & reader.tags
    assert nasty in reader.text
    assert '$x_1$ & "y" id="z"' in reader.text


def test_private_silos_say_so(make, small, read):
    for found in small["scores"].values():
        del found["a"]
    text = read(make(small)).text
    assert "1 silo keeps its accuracy private" in text
    assert "kept private" in text
    small["scores"] = {"local": {}, "federated": {}}
    page = render(gather(make(small, name="all")))
    assert "No silo shares its accuracy" in page
    assert 'id="relative"' not in page


def test_scores_on_this_machine_do_not_get_into_the_report_of_a_private_silo(make, small):
    for found in small["scores"].values():
        del found["a"]
    run = make(small)
    secret = {"local": {"own": {"accuracy": 0.123456789, "instances": 4711}}}
    SiloState(9, "", "", False, secret).write(run.folder / "silos" / "a")
    page = render(gather(run))
    assert "0.1234" not in page
    assert "12.3%" not in page
    assert "4711" not in page
    assert "4,711" not in page


@pytest.mark.usefixtures("no_figures")
def test_failures_are_named(make, small, log, read):
    line = "silo 'c': train raised ValueError"
    small["failures"] = [{"silo": "c", "step": "train", "kind": "error", "text": line}]
    for found in small["scores"].values():
        del found["c"]
    for ask in small["asks"][1:]:
        del ask["arrivals"]["c"]
    failed = {"ask": 2, "step": "train", "fields": {}, "failure": line}
    text = read(make(small, logs={"c": [log[0], failed]})).text
    assert text.count(line) == 3  # in the table of silos, among what left, in the list of failures
    assert "nothing else left but the failure lines listed" in text
    assert "1 silo failed in a step" in text


@pytest.mark.usefixtures("no_figures")
def test_what_left_is_told(make, log, small, read):
    text = read(make(models={"a": 40_000, "b": 60_000, "c": 20_000})).text
    assert "All 3 silos together sent 18 messages with 1,668 bytes" in text
    # 120,000 / 1,668 = 71.9
    assert (
        "the 3 models, as they weigh on disk, to the coordinator once would have been 120 kB: 72 times"
        in text
    )
    assert "With one such model back each time it would have been 240 kB" in text
    assert "nothing else left. The coordinator's journal agrees message for message." in text
    text = read(make(name="again", logs={"a": [*log, {**log[3], "again": True}]})).text
    assert "a sent 1 message (150 bytes) a second time" in text
    text = read(make(name="elsewhere", logs={"b": []})).text
    assert "The log of this silo is kept at the silo" in text
    text = read(make(name="cut", logs={"b": log[:5]})).text
    assert "Its log is not whole" in text
    assert "agrees message for message" not in text


@pytest.mark.usefixtures("no_figures")
def test_models_that_left_are_not_said_to_have_stayed(make, log, read):
    assert "Data and models stayed where they are" in read(make()).text
    body = {"kind": "weights", "form": "float32[12]", "bytes": 48, "about": "weights of its network's body"}
    log[3] = {**log[3], "fields": {"body": body}}
    text = read(make(name="weights", logs={"a": log})).text
    assert "models stayed" not in text
    assert "what is listed as weights left" in text


@pytest.mark.usefixtures("no_figures")
def test_fields_mean_what_the_log_says(make, read):
    assert "votes label labels a class for each <pool> instance int8[50]" in read(make()).cells


def test_rounds_multiply_the_model_exchange(make, large, reader_of):
    method = {"use": "cofed", "alpha": 0.3, "rounds": 3}
    page = render(gather(make(large(4, 6, rounds=3), method=method, models={"silo-001": 1000})))
    text = reader_of(page).text
    assert "once in each of the 3 rounds would have been 3.0 kB" in text
    assert 'id="stages"' in page
    assert "Round by round" in text


@pytest.mark.usefixtures("no_figures")
def test_local_has_no_gain_to_report(federation, tmp_path: Path, read):
    run = federation(Local()).run(tmp_path / "run")
    text = read(run).text
    assert "Every silo trained alone" in text
    assert "there is no gain to report" in text
    assert "Pseudo-labels" not in text
    assert "to the coordinator once" not in text


def test_without_local_training_there_are_accuracies_only(make, small, read):
    del small["scores"]["local"]
    small["scores"] = {"round 1": small["scores"]["federated"], **small["scores"]}
    page = read(make(small))
    # (0.72 + 0.5 + 0.5) / 3
    assert "no gain to report: mean accuracy 57.3% over 3 silos." in page.text
    assert "a 2 cat, dog 100 72.0% 30" in page.cells  # classes, test instances, accuracy, pseudo-labels
    assert "Mean of 3 silos 57.3%" in page.cells
    assert "Local" not in page.text
    assert "Relative" not in page.text
    assert "ashed is local" not in page.text
    assert "stages" in page.ids  # two rounds are a curve
    small["scores"]["federated"].pop("a")  # of both stages
    assert "a 2 cat, dog – kept private 30" in read(make(small)).cells


def test_a_real_run(federation, tmp_path: Path, reader_of):
    run = federation().run(tmp_path / "run")
    reader = reader_of(write_report(run).read_text("utf-8"))
    assert {"silos", "relative", "overlap", "elected", "agreement", "left", "time", "settings"} <= set(
        reader.ids
    )
    assert "agrees message for message" in reader.text
    for name in ("tree", "bayes", "nearest"):
        assert f"{run.relative_accuracy()[name]:.3f}" in reader.text


@pytest.mark.parametrize(("silos", "classes"), [(2, 2), (13, 26), (100, 100)])
def test_every_size_is_small_and_whole(make, large, silos, classes, reader_of):
    page = render(gather(make(large(silos, classes))))
    reader = reader_of(page)
    assert len(page.encode()) < 500_000
    assert reader.tags >= {"svg", "table"}


def test_many_rounds_and_asks(make, large, reader_of):
    result = large(5, 40, rounds=200)
    result["asks"] = [{"number": n, "step": "label", "seconds": 0.1, "arrivals": {}} for n in range(1, 800)]
    page = render(gather(make(result, method={"use": "cofed", "rounds": 200})))
    assert len(page.encode()) < 1_000_000
    assert "The first 500 of 799" in reader_of(page).text


def test_an_unfinished_run_writes_nothing(make):
    run = make(status="stopped")
    with pytest.raises(RunError, match="not finished"):
        write_report(run)
    assert not (run.folder / "report.html").exists()


def test_names_in_other_scripts_do_not_warn(make, small, recwarn, read):
    small["tasks"]["b"] = ["dog", "eel", "日本語のクラス名"]
    small["voting"][0]["elected"]["日本語のクラス名"] = 3
    assert "日本語のクラス名" in read(make(small)).text
    assert not recwarn.list


# ---------------------------------------------------------------------- many silos


def _many(count: int) -> dict:
    """Silos that gain the more, the later they are named."""
    names = [f"s{place:05d}" for place in range(count)]
    before = {name: {"accuracy": 0.5, "instances": 100} for name in names}
    after = {
        name: {"accuracy": 0.4 + 0.3 * place / count, "instances": 100} for place, name in enumerate(names)
    }
    tasks = {name: ["cat", "dog"] for name in names}
    return {"tasks": tasks, "scores": {"local": before, "federated": after}, "failures": []}


def test_of_many_silos_the_worst_and_the_best_have_a_row_and_all_can_be_found(make, no_figures):
    page = render(gather(make(_many(250))))
    table = page[page.index('<table class="silos') :]
    shown = re.findall(r'<span class="no">(\d+)</span>(s\d+)', table[: table.index("</table>")])
    assert [int(number) for number, _ in shown] == [*range(1, 21), *range(231, 251)]
    assert [name for _, name in shown] == [f"s{int(number) - 1:05d}" for number, _ in shown]
    heads = page[page.index('<div id="search"') :]
    titles = re.findall(r'<th scope="col"[^>]*>(.*?)</th>', heads[: heads.index("</table>")])
    assert titles == ["Silo", "Classes", "Local", "Federated", "Relative"]
    found = re.search(r'id="every">(.*?)</script>', page)
    rows = list(zip(*json.loads(gzip.decompress(base64.b64decode(found[1]))), strict=True))
    assert rows[125] == ("s00125", "2", "50.0%", "55.0%", "1.100")
    assert len(rows) == 250


def test_a_silo_more_is_a_few_bytes_more(make, no_figures):
    few, many = (len(render(gather(make(_many(count), name=str(count))))) for count in (500, 2000))
    assert (many - few) / 1500 < 18  # with a hundred thousand silos below 2 MB


def test_the_only_script_is_the_search_and_the_page_allows_no_other(make, no_figures):
    assert "<script" not in render(gather(make(_many(200))))
    many = _many(250)
    many["tasks"]["s00007"] = ["</script><b>", "dog"]
    many["voting"] = [
        {
            "stage": "federated",
            "voters": [],
            "weights": [],
            "elected": {},
            "received": {"s00007": 3},
            "abstained": {"s00007": 0.5},
            "agreement": [],
        }
    ]
    page = render(gather(make(many, name="other")))
    scripts = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    assert len(scripts) == 1
    told = base64.b64encode(sha256(scripts[0].encode()).digest()).decode()
    assert f"script-src 'sha256-{told}'" in page
    assert "innerHTML" not in scripts[0]


def test_figures_of_many_silos_stay_small(make):
    result = _many(1200)
    page = render(gather(make(result)))
    assert len(page) < 500_000
    assert "Of 1,200 silos 100, evenly from all." in page
