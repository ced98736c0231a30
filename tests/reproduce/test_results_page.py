"""The page of results: what is on it comes from records and recipes, and is the same every time."""

import json
import re
import shutil
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from cosilo.config.reproduces import Reproduces
from cosilo.errors import RunError
from cosilo.reproduce.claims_summary import standing
from cosilo.reproduce.library import Reproduction, reproductions
from cosilo.reproduce.record import ReproductionRecord, commit, machine, read_record, write_record
from cosilo.reproduce.results_page import load_records, write_page

NUMBERS = [
    {"text": "relative accuracy, IID", "of": "iid.cofed.relative", "paper": 1.2},
    {"text": "silos that gain", "of": "iid.cofed.share", "paper": 0.9, "why": {"laptop": "Few voters."}},
    {"text": "accuracy <b>", "of": "iid.cofed.accuracy"},
]
CLAIMS = [
    {"text": "More than nothing", "more": ["iid.cofed.relative"], "than": 1.0},
    {"text": "Half", "more": ["iid.cofed.share"], "than": 0.5},
]
ABOUT = {
    "paper": "CoFED",
    "what": "Fig. 2",
    "shows": "gains",
    "methods": ["cofed"],
    "minutes": {"laptop": 5, "night": 60, "paper": 300},
    "case": {"iid": {}},
    "number": NUMBERS,
    "claim": CLAIMS,
    "why": {"laptop": "Smaller."},
}
VALUES = {
    "iid.cofed.relative": [1.1, 1.12],
    "iid.cofed.share": [0.4, 0.5],
    "iid.cofed.accuracy": [0.5, 0.75],
}


def gained(silos):
    """Of four hundred."""
    return {f"silo-{place}": float(place < silos) for place in range(400)}


def reproduction(name="one", **changes):
    return Reproduction(name, Reproduces.model_validate({**ABOUT, **changes}), {})


def record(name="one", size="laptop", **changes):
    facts = {
        "name": name,
        "size": size,
        "seeds": [0, 1],
        "values": VALUES,
        "minutes": 4.6,
        "machine": "2 × Chip",
        "commit": "abc1234",
        "version": "0.1.0",
        "date": "2026-11-16",
        "scale": "10 silos",
        "recipes": {"iid": reproduction(name).digest("iid", size)},
        "silos": {"iid.cofed.share": [gained(160), gained(200)]},
    }
    return ReproductionRecord(**{**facts, **changes})


@pytest.fixture
def page(tmp_path):
    def write(library, *records):
        (tmp_path / "results").mkdir(exist_ok=True)
        for one in records:
            write_record(one, tmp_path / "results" / one.file)
        missing = write_page(tmp_path / "results.md", library)
        return (tmp_path / "results.md").read_text("utf-8"), missing

    return write


def test_a_number_a_verdict_a_reason_and_where_it_comes_from(page, tmp_path):
    text, missing = page({"one": reproduction(), "two": reproduction("two")}, record())
    assert missing == ["two"]
    assert "| `two` | CoFED, Fig. 2 | not run | not run | not run |" in text
    for row in [
        "| relative accuracy, IID | 1.200 | 1.110 ± 0.014; not reached (−0.090) | not run | not run |",
        "| silos that gain | 90.0 % | 45.0 ± 7.1 %; not reached (−45.0) | not run | not run |",
        "| accuracy <b> | – | 62.5 ± 17.7 % | not run | not run |",
        "| More than nothing | **not decided** (−0.017 to +0.237, 2 seeds) | not run | not run |",
        "| Half | **does not hold** (−8.5 to −1.5 points, 800 silos) | not run | not run |",
    ]:
        assert row in text
    assert "Why not (relative accuracy, IID; Half): Smaller." in text
    assert "Why not (silos that gain): Few voters." in text
    assert "10 silos, seeds 0, 1; 5 minutes on 2 × Chip; cosilo 0.1.0, commit abc1234, 2026-11-16." in text
    verdict = "0 of 2 numbers reached, 0 of 2 claims hold, 1 does not, 1 not decided"
    assert f"| `one` | CoFED, Fig. 2 | {verdict} | not run | not run |" in text
    assert "![Fig. 2: ours and the paper's](results/one.svg)" in text


def test_what_a_size_has_not_run_and_what_it_does_not_have(page):
    """A case that was begun and not finished has no values; neither it nor its claims are on the page."""
    paths = {"number": [{"text": f"in {case}", "of": f"{case}.cofed.relative"} for case in ("iid", "other")]}
    paths["claim"] = [
        {"text": f"gain in {case}", "more": [f"{case}.cofed.relative"], "than": 1.0}
        for case in ("iid", "other")
    ]
    library = {"one": reproduction(**paths, case={"iid": {}, "other": {}}, cases={"laptop": ["iid"]})}
    begun = {"iid.cofed.relative": [1.1, 1.2], "other.cofed.relative": [None, None]}
    text, _ = page(library, record(values=begun), record(size="night", values=begun))
    assert "| in iid | – | 1.150 ± 0.071 | 1.150 ± 0.071 | not run |" in text
    assert "in other" not in text
    text, _ = page(library, record(size="night", values={"other.cofed.relative": [1.1, 1.2]}))
    assert "| in iid | – | 1.150 ± 0.071 | not run | not run |" in text
    assert "| in other | – | – | 1.150 ± 0.071 | not run |" in text
    assert "| gain in iid | **not decided** (−0.485 to +0.785, 2 seeds) | not run | not run |" in text
    assert "| gain in other | – | **not decided** (−0.485 to +0.785, 2 seeds) | not run |" in text


def test_what_has_no_reason_yet_says_so(page):
    text, _ = page({"one": reproduction(why={}, number=NUMBERS[:1], claim=[])}, record())
    assert "Why not (relative accuracy, IID): the cause is not known yet." in text


def test_all_sizes_stand_side_by_side(page):
    large = record(size="paper", values={**VALUES, "iid.cofed.relative": [1.2, 1.3]})
    text, _ = page({"one": reproduction(minutes={"laptop": 5, "paper": 300})}, record(), large)
    ours = "1.110 ± 0.014; not reached (−0.090) | – | 1.250 ± 0.071; reached |"
    assert f"| relative accuracy, IID | 1.200 | {ours}" in text
    assert "silos) | – | **does not hold** (" in text
    assert "Why not (relative accuracy, IID (laptop size); Half (laptop size)): Smaller." in text


def test_the_first_page_says_which_claims_hold_and_why(page):
    night = record(
        size="night",
        seeds=[0, 1, 2],
        values={"iid.cofed.relative": [1.1, 1.12, 1.11], "iid.cofed.share": [0.4, 0.41, 0.4]},
        silos={},
    )
    why = {"night": "Few voters. They are tired.", "laptop": "Smaller."}
    library = {"one": reproduction(why=why), "two": reproduction("two"), "three": reproduction("three")}
    text, _ = page(library, record(), record("two"), night)
    first = text[: text.index("## How to read")]
    assert (
        "- **Hold** (1)\n  - `one`, night: More than nothing (+0.085 to +0.135, 3 seeds).\n"
        "- **Do not hold** (1)\n  - `one`, night: Half (−11.1 to −8.2 points, 3 seeds): Few voters.\n"
        "\n### Not run at night\n"
        "- At laptop size only; how many claims hold there: `two` 0 of 2.\n"
        "- Not at all; how many claims there are: `three` 2.\n"
    ) in first


def test_a_claim_that_holds_has_its_own_reason_and_no_other(page):
    values = {**VALUES, "iid.cofed.relative": [1.1, 1.11]}
    why = {"why": {"night": "It does not."}, "why_it_holds": {"night": "Many voters. They agree."}}
    text, _ = page(
        {"one": reproduction(claim=[{**CLAIMS[0], **why}])},
        record(values=values),
        record(size="night", values=values),
    )
    assert "More than nothing (+0.041 to +0.169, 2 seeds): Many voters.\n" in text
    assert "Why (More than nothing (night size)): Many voters. They agree." in text
    assert "It does not." not in text
    assert "More than nothing (laptop size)" not in text
    text, _ = page({"one": reproduction(claim=[{**CLAIMS[0], **why}])}, record(size="night"))
    assert "(−0.017 to +0.237, 2 seeds): It does not.\n" in text
    assert "Many voters" not in text


def test_every_claim_that_is_decided_at_night_has_a_reason():
    library = reproductions()
    records = load_records(Path(__file__).parents[2] / "docs" / "results")
    told = [
        where
        for one in library.values()
        for claim in one.about.claim
        if (where := standing(one, claim, records)) is not None and where.size == "night"
    ]
    assert len(told) > 30
    silent = [where.claim.text for where in told if where.verdict == "holds" and not where.why]
    unknown = [where for where in told if where.verdict == "does not hold" and "not known" in where.why]
    assert silent == []
    assert unknown == []


def test_an_undecided_claim_may_have_a_reason_of_its_own(page):
    night = record(size="night", values={**VALUES, "iid.cofed.share": [0.4, 0.8]}, silos={})
    chance, _ = page({"one": reproduction()}, night)
    assert "  - `one`, night: More than nothing (−0.017 to +0.237, 2 seeds); Half (" in chance
    assert "points, 2 seeds): that may be chance, and they are no further" in chance  # said once of both
    assert "Why not (More than nothing" not in chance
    told = [{**CLAIMS[0], "why": {"night": "All are alike. They stay so."}}, CLAIMS[1]]
    text, _ = page({"one": reproduction(claim=told)}, night)
    assert "  - `one`, night: More than nothing (−0.017 to +0.237, 2 seeds): All are alike.\n" in text
    assert "Why not decided (More than nothing): All are alike. They stay so." in text


def test_without_a_reason_an_undecided_claim_may_be_chance(page):
    claims = [{"text": "Ahead", "more": ["iid.cofed.accuracy"], "than": ["iid.cofed.share"]}]
    values = {"iid.cofed.accuracy": [0.50, 0.51], "iid.cofed.share": [0.50, 0.50]}
    library = {"one": reproduction(claim=claims)}
    text, _ = page(library, record(size="night", values=values, silos={}))
    assert "points, 2 seeds): that may be chance, and they are no further apart than that." in text
    one = {path: row[:1] for path, row in values.items()}
    text, _ = page(library, record(size="night", seeds=[0], values=one, silos={}))
    assert "Ahead (+0.0 points, one seed): one seed does not tell what is chance." in text


def test_what_is_undecided_for_the_same_reason_stands_in_one_line(page):
    claims = [{"text": "Ahead", "more": ["iid.cofed.accuracy"], "than": ["iid.cofed.share"]}]
    values = {"iid.cofed.accuracy": [0.75], "iid.cofed.share": [0.50]}
    library = {name: reproduction(name, claim=claims) for name in ("one", "two")}
    records = [record(name, "night", seeds=[0], values=values, silos={}) for name in library]
    text, _ = page(library, *records)
    assert (
        "- **Not decided** (2)\n"
        "  - `one`, night: Ahead (+25.0 points, one seed); `two`, night: Ahead (+25.0 points, one seed): "
        "one seed does not tell what is chance.\n"
    ) in text


def test_what_cosilo_says_of_itself_is_no_claim_of_the_paper(page):
    claims = [CLAIMS[0], {**CLAIMS[0], "text": "Our own rule helps", "ours": True}]
    values = {**VALUES, "iid.cofed.relative": [1.1, 1.11]}
    text, _ = page({"one": reproduction(claim=claims)}, record(size="night", values=values))
    assert (
        "- Claims that are cosilo's own, and not the paper's, hold in the sections below: `one` 1 of 1.\n"
        in text
    )
    assert "| Our own rule helps | not run | **holds** (+0.041 to +0.169, 2 seeds) |" in text
    assert "- **Hold** (1)\n  - `one`, night: More than nothing (" in text
    assert "1 of 1 claims hold" in text


def test_numbers_that_explain_the_papers_are_not_counted(page):
    numbers = [NUMBERS[0], {**NUMBERS[0], "text": "weak networks", "counts": False}]
    text, _ = page({"one": reproduction(number=numbers, claim=[])}, record())
    assert "| weak networks | 1.200 | 1.110 ± 0.014; not reached (−0.090) |" in text
    assert "| 0 of 1 numbers reached |" in text


def test_what_methods_are_not_equal_in_and_what_times_are_taken_to(page):
    line = "Not equal: epochs of a silo's training in all: 83 (dofed_spp), 24 (fedavg)"
    goals = {"iid 0": 0.855, "iid 1": 0.855}
    text, _ = page({"one": reproduction()}, record(size="night", unequal={"iid": [line]}, goals=goals))
    assert f"\n- {line} (night size).\n" in text
    assert "\nTimes are those to an accuracy of 85.5 % at night size.\n" in text
    text, _ = page({"one": reproduction()}, record(goals={"iid 0": 0.855, "iid 1": 0.86}))
    assert "85.5 % (iid 0), 86.0 % (iid 1) at laptop size" in text


def test_a_row_that_has_some_of_the_seeds_says_how_many(page):
    values = {**VALUES, "iid.cofed.accuracy": [0.5, 0.75, None], "iid.cofed.share": [0.5, None, None]}
    values["iid.cofed.relative"] = [1.1, 1.12, 1.11]
    text, _ = page({"one": reproduction()}, record(seeds=[0, 1, 2], values=values, silos={}))
    assert "| accuracy <b> | – | 62.5 ± 17.7 % (2 seeds) |" in text
    assert "| relative accuracy, IID | 1.200 | 1.110 ± 0.010; not reached" in text


def test_the_first_page_of_the_docs_is_one_page():
    text = (Path(__file__).parents[2] / "docs" / "results.md").read_text("utf-8")
    first = text[: text.index("## How to read")]
    assert len(first.splitlines()) <= 70
    assert max(map(len, first.splitlines())) <= 600


def test_what_is_of_an_earlier_recipe_is_marked_and_decides_nothing(page, tmp_path):
    values = {"iid.cofed.relative": [1.1, 1.12, 1.11], "iid.cofed.share": [0.4, 0.9, 0.4]}
    old = record(size="night", seeds=[0, 1, 2], values=values, recipes={"iid": "another"})
    silent = record("two", recipes={})
    text, _ = page({"one": reproduction(), "two": reproduction("two")}, old, silent)
    assert (
        "### CoFED\n- **Not decided** (2)\n"
        "  - `one`, night: More than nothing (+0.085 to +0.135, 3 seeds*): that holds, by a recipe that has "
        "changed since.\n"
    ) in text
    assert "`two` 0 of 2*." in text
    assert "| `two` | CoFED, Fig. 2 | 0 of 2 numbers reached, 0 of 2 claims hold, 1 does not, " in text
    assert "1 not decided (of an earlier recipe) |" in text
    assert "2026-11-16. **Of an earlier recipe**, which has changed since in iid." in text
    assert "2026-11-16. **Of an earlier recipe**, which has changed since.  " in text
    for name, told in [
        ("one", "ours, night size (earlier recipe)"),
        ("two", "ours, laptop size (earlier recipe)"),
    ]:
        assert told in (tmp_path / "results" / f"{name}.svg").read_text()
    # What is said of the present recipe may be untrue of another one.
    assert "Why not" not in text
    # A smaller size of the present recipe says more than a larger one of another.
    both, _ = page({"one": reproduction()}, old, record())
    assert "`one` 0 of 2.\n" in both


def test_a_record_of_cases_that_the_recipe_no_longer_has(page, tmp_path):
    past = record(values={"past.cofed.relative": [1.1]}, silos={}, recipes={"past": "another"})
    text, _ = page({"one": reproduction()}, past)
    assert "**Of an earlier recipe**, which has changed since in past." in text
    assert "one.svg" not in text
    assert not (tmp_path / "results" / "one.svg").exists()


def test_a_recipe_is_another_one_if_anything_changes_that_a_result_depends_on():
    def made(**values):
        simulation = {"dataset": "digits", **values.pop("simulation", {})}
        return Reproduction(
            "one", Reproduces.model_validate(ABOUT), {"simulation": simulation, "workers": 1, **values}
        )

    now = made().digest("iid", "laptop")
    assert made(workers=2, timeout=5).digest("iid", "laptop") == now
    assert made(seed=1).digest("iid", "laptop") != now
    assert made(simulation={"per_class": 3}).digest("iid", "laptop") != now
    assert made().changed_since(record(recipes={"iid": now})) == []
    assert made(seed=1).changed_since(record(recipes={"iid": now})) == ["iid"]
    gone = record(values={"past.cofed.relative": [1.0]}, recipes={"past": now})
    assert made().changed_since(gone) == ["past"]


def test_figures_are_whole_and_the_same_every_time(page, tmp_path):
    lines = [
        {"text": f"x = {x}", "of": "iid.cofed.relative", "line": "IID", "x": x, "paper_x": 2 * x}
        for x in (500, 2000)
    ]
    library = {"one": reproduction(), "swept": reproduction("swept", number=lines, axis="α")}
    page(library, record(), record("swept"))
    first = {name: (tmp_path / "results" / f"{name}.svg").read_text() for name in library}
    for text in first.values():
        assert ElementTree.fromstring(text).tag == "{http://www.w3.org/2000/svg}svg"
    assert "accuracy &lt;b&gt;" in first["one"]
    assert "α" in first["swept"]
    ticks = set(re.findall(r">([^<>]+)</text>", first["swept"]))
    assert ticks > {"500", "2,000"}
    assert not any("$" in tick for tick in ticks)
    assert not re.search(r"\d{4}-\d\d-\d\d", "".join(first.values()))
    page(library, record(), record("swept"))
    assert first == {name: (tmp_path / "results" / f"{name}.svg").read_text() for name in library}


def test_long_words_leave_room_for_what_they_name(page, tmp_path):
    long = "control: as much training without labels, non-IID with one subclass and short local training"
    numbers = [{"text": long, "of": "iid.cofed.relative"}]
    curve = [{"text": long, "of": {"CoFED": "iid.cofed.accuracy"}}]
    one = record("named", curves={"iid.cofed.accuracy over rounds": [[(1, 0.5), (2, 0.6)]]})
    page({"named": reproduction("named", number=numbers, curve=curve)}, one)
    for name, most in (("named", 50), ("named-curves", 40)):
        drawn = (tmp_path / "results" / f"{name}.svg").read_text()
        words = [text for text in re.findall(r">([^<>]+)</text>", drawn) if text in long]
        assert " ".join(words) == long
        assert max(map(len, words)) <= most


def test_a_figure_shows_what_was_run_and_how_sure_it_is(page, tmp_path):
    def words(**values):
        one = record("swept", silos={}, **values)
        page({"swept": reproduction("swept", number=numbers, case={"iid": {}, "other": {}})}, one)
        drawn = (tmp_path / "results" / "swept.svg").read_text()
        return set(re.findall(r">([^<>]+)</text>", drawn)), drawn

    numbers = [
        {"text": f"{what}, {case}", "of": f"{case}.cofed.{what}", "line": case, "x": 0.3}
        for what in ("relative", "elected")
        for case in ("iid", "other")
    ]
    shown, _ = words(values={"iid.cofed.relative": [1.1, 1.2], "iid.cofed.elected": [5.0, 6.0]})
    assert {"relative", "elected", "iid", "ours, laptop size"} <= shown  # a panel for each unit
    assert "other" not in shown  # of which there is no point
    numbers = [{"text": "gain <i>", "of": "iid.cofed.relative"}, {"text": "no", "of": "other.cofed.relative"}]
    values = {"iid.cofed.relative": [1.1], "other.cofed.relative": [None]}
    shown, bare = words(seeds=[0], values=values)
    assert "gain &lt;i&gt;" in shown
    assert not {"no", "paper"} & shown
    one = record("swept", seeds=[0], values=values, silos={"iid.cofed.relative": [{"a": 1.0, "b": 1.2}]})
    page({"swept": reproduction("swept", number=numbers, case={"iid": {}, "other": {}})}, one)
    assert (tmp_path / "results" / "swept.svg").read_text() != bare  # has a bar: the error over silos


def test_curves_are_drawn_for_the_largest_size_that_has_some(page, tmp_path):
    panels = [
        {"text": "by round", "of": {"CoFED": "iid.cofed.joint"}},
        {"text": "in time", "of": {"CoFED": "iid.cofed.joint"}, "over": "seconds"},
    ]
    library = {"one": reproduction(curve=panels), "two": reproduction("two", curve=panels)}
    rows = [[(1, 0.5), (2, 0.75)], [(1, 0.6), (2, 0.7)]]
    night = record(size="night", curves={"iid.cofed.joint over rounds": rows})
    text, _ = page(library, record(), night, record("two"))
    assert "![Curves at night size: by round](results/one-curves.svg)" in text
    drawn = (tmp_path / "results" / "one-curves.svg").read_text()
    words = set(re.findall(r">([^<>]+)</text>", drawn))
    assert {"by round", "rounds", "CoFED"} <= words
    assert "in time" not in words  # there are no points of it
    assert not (tmp_path / "results" / "two-curves.svg").exists()


def test_a_sheet_of_what_was_elected_is_shown_if_there_is_one(page, tmp_path):
    text, _ = page({"one": reproduction()}, record())
    assert "-elected.png" not in text
    (tmp_path / "results" / "one-elected.png").write_bytes(b"")
    text, _ = page({"one": reproduction(), "two": reproduction("two")}, record(), record("two"))
    assert "![Images that were elected to each class](results/one-elected.png)" in text
    assert "two-elected.png" not in text


def test_a_record_survives_its_file_and_a_stranger_does_not(tmp_path):
    write_record(record(), tmp_path / "one.json")
    assert read_record(tmp_path / "one.json") == record()
    old = json.loads((tmp_path / "one.json").read_text())
    del old["recipes"]  # of a time when it was not told which recipe a record is of
    (tmp_path / "old.json").write_text(json.dumps(old))
    (tmp_path / "two.json").write_text('{"name": "two"}')
    not_a_record = r"\.json: is not the record of a reproduction; delete it"
    with pytest.raises(RunError, match=rf"old{not_a_record}.*\(other than in this version: recipes\)"):
        read_record(tmp_path / "old.json")
    with pytest.raises(RunError, match=rf"two{not_a_record}"):
        read_record(tmp_path / "two.json")


def test_machine_and_commit_are_known():
    assert re.fullmatch(r"\d+ × .+", machine())
    assert re.fullmatch(r"[0-9a-f]{7}\+?|\d+\.\d+\.\d+", commit())


def test_the_page_in_the_docs_is_what_its_records_say(tmp_path):
    docs = Path(__file__).parents[2] / "docs"
    shutil.copytree(docs / "results", tmp_path / "results")
    write_page(tmp_path / "results.md", reproductions())
    again = "run `cosilo reproduce --page docs/results.md`"
    assert (tmp_path / "results.md").read_text("utf-8") == (docs / "results.md").read_text("utf-8"), again
    assert {path.name for path in (tmp_path / "results").iterdir()} == {
        path.name for path in (docs / "results").iterdir()
    }, again
