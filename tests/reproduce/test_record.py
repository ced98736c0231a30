"""Records of one reproduction that were made apart, joined by hand."""

from dataclasses import replace

from cosilo.reproduce.record import ReproductionRecord, joined

FIRST = ReproductionRecord(
    name="one",
    size="night",
    seeds=[200],
    values={"iid.cofed.relative": [1.1], "other.cofed.relative": [1.2]},
    minutes=60.0,
    machine="2 × A",
    commit="abc1234",
    version="0.1.0",
    date="2026-01-01",
    scale="100 silos",
    recipes={"iid": "aa", "other": "bb"},
    silos={"iid.cofed.relative": [{"s": 1.1}]},
    curves={"iid.cofed.accuracy over rounds": [[(1.0, 0.5)]]},
    spent={"iid 200": 30.0, "other 200": 30.0},
    goals={"iid 200": 0.5},
    unequal={"iid": ["Not equal: something"], "other": []},
)


def test_seeds_that_were_run_apart():
    second = replace(
        FIRST,
        seeds=[201],
        values={"iid.cofed.relative": [1.3]},
        recipes={"iid": "aa"},
        silos={"iid.cofed.relative": [{"s": 1.3}]},
        curves={"iid.cofed.accuracy over rounds": [[(1.0, 0.6)]]},
        minutes=30.0,
        spent={"iid 201": 30.0},
        commit="def5678",
        date="2026-01-02",
        goals={"iid 201": 0.6},
        unequal={"iid": ["Not equal: epochs"]},
    )
    both = joined(FIRST, second)
    assert both.goals == {"iid 200": 0.5, "iid 201": 0.6}
    assert both.unequal == {"iid": ["Not equal: epochs"], "other": []}
    assert both.seeds == [200, 201]
    assert both.values == {"iid.cofed.relative": [1.1, 1.3], "other.cofed.relative": [1.2, None]}
    assert both.silos == {"iid.cofed.relative": [{"s": 1.1}, {"s": 1.3}]}
    assert both.curves == {"iid.cofed.accuracy over rounds": [[(1.0, 0.5)], [(1.0, 0.6)]]}
    assert (both.minutes, both.commit, both.date) == (90.0, "abc1234, def5678", "2026-01-02")
    assert both.spent == {"iid 200": 30.0, "other 200": 30.0, "iid 201": 30.0}
    assert joined(both, second) == both  # a second time changes nothing
    # What is measured anew stands in for what was, and is no further seed.
    anew = replace(second, curves={"iid.cofed.accuracy over rounds": [[(1.0, 0.7)]]})
    assert joined(both, anew).curves == {"iid.cofed.accuracy over rounds": [[(1.0, 0.5)], [(1.0, 0.7)]]}
    # A seed on which a method has not come to its end has no points.
    later = replace(
        second,
        seeds=[201, 202],
        values={"iid.cofed.relative": [None, 1.2]},
        curves={"iid.cofed.accuracy over rounds": [[], [(1.0, 0.9)]]},
    )
    assert joined(both, later).curves == {
        "iid.cofed.accuracy over rounds": [[(1.0, 0.5)], [(1.0, 0.6)], [(1.0, 0.9)]]
    }


def test_a_case_of_another_recipe_replaces_what_was_there():
    now = replace(
        FIRST,
        values={"iid.cofed.relative": [1.5]},
        recipes={"iid": "cc"},
        silos={},
        curves={},
        minutes=10.0,
        spent={"iid 200": 10.0},
        scale="50 silos",
    )
    both = joined(FIRST, now)
    assert both.values == {"iid.cofed.relative": [1.5], "other.cofed.relative": [1.2]}
    assert both.silos == {"iid.cofed.relative": [None]}
    assert both.curves == {}
    assert both.recipes == {"iid": "cc", "other": "bb"}
    assert both.minutes == 40.0  # one of the two cases is still that of before
    assert both.scale == "100 silos, 50 silos"
    more = {f"{case} {seed}": 25.0 for case in ("iid", "other") for seed in (200, 201)}
    grown = replace(FIRST, seeds=[200, 201], values={key: [1.0, 2.0] for key in FIRST.values}, spent=more)
    assert joined(FIRST, grown).minutes == 100.0
    assert joined(FIRST, grown).commit == "abc1234"
