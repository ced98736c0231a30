"""The grid: which runs there are, with which parameters, and what is refused."""

from pathlib import Path

import pytest

from cosilo.comparison.plan import make_plan, merge_plans
from cosilo.config.build import Source
from cosilo.errors import ConfigError, RunError

VALUES = {
    "seed": 5,
    "method": {"use": "fedavg", "rounds": 4, "epochs": 2},
    "compare": {"fedprox": {"mu": 0.5, "epochs": 1}, "cofed": {"rounds": 1}},
    "simulation": {
        "dataset": "digits",
        "split": {"use": "iid", "silos": 2, "size": 60},
        "learners": [{"use": "mlp"}],
    },
}


HERE = Source("recipe.toml", Path())


def changed(**tables):
    return {**VALUES, **tables}


def plan_of(*methods, seeds=1, **tables):
    return make_plan(changed(**tables), HERE, methods, seeds)


def test_seeds_start_at_the_recipes_own_and_every_method_has_each():
    plan = plan_of("fedavg", "local", seeds=2)
    assert plan.cells == [("fedavg", 5), ("local", 5), ("fedavg", 6), ("local", 6)]
    assert make_plan({**VALUES, "seed": 0}, HERE, ["fedavg"], 3).seeds == (0, 1, 2)


def test_a_method_gets_what_it_has_of_method_and_its_own_table_over_that():
    plan = plan_of("fedavg", "fedprox", "cofed", "local")
    methods = {name: plan.recipe((name, 5))["method"] for name in plan.methods}
    assert methods == {
        "fedavg": {"use": "fedavg", "rounds": 4, "epochs": 2},
        "fedprox": {"use": "fedprox", "rounds": 4, "epochs": 1, "mu": 0.5},
        "cofed": {"use": "cofed", "rounds": 1},
        "local": {"use": "local"},
    }
    assert plan.recipe(("local", 6))["seed"] == 6
    assert "compare" not in plan.recipe(("local", 6))  # a recipe like any other


def test_one_method_with_several_sets_of_parameters():
    tables = {"slow": {"use": "fedprox", "mu": 0.5}, "fast-1": {"use": "fedprox"}, "fedprox": {"mu": 2}}
    plan = plan_of("slow", "fast-1", "fedprox", compare=tables)
    assert [plan.recipe((name, 5))["method"] for name in plan.methods] == [
        {"use": "fedprox", "rounds": 4, "epochs": 2, "mu": 0.5},
        {"use": "fedprox", "rounds": 4, "epochs": 2},
        {"use": "fedprox", "rounds": 4, "epochs": 2, "mu": 2},
    ]
    assert [method.name for method in plan.make_methods().values()] == ["fedprox"] * 3
    again = plan_of("slow", compare={**tables, "slow": {"use": "fedavg"}})
    with pytest.raises(RunError, match=r"x: is a comparison with slow\.use = 'fedprox', now it is 'fedavg'"):
        merge_plans(Path("x"), plan, again)
    gone = plan_of("fedprox", compare={"fedprox": {"mu": 2}, "slow": tables["slow"]})
    with pytest.raises(RunError, match=r"x: is a comparison with 'fast-1', and .* no \[compare\.fast-1\]"):
        merge_plans(Path("x"), plan, gone)


def test_a_method_named_twice_is_compared_once():
    assert plan_of("fedavg", "local", "fedavg").methods == ("fedavg", "local")


@pytest.mark.parametrize(
    ("methods", "tables", "line"),
    [
        (["fedavgg"], {}, "methods: there is no method 'fedavgg' (did you mean 'fedavg'?); there are cofed,"),
        (["fedavg", ""], {}, "methods: got 'fedavg,'; wants some of cofed,"),
        (
            ["fedavg"],
            {"compare": {"fedporx": {"mu": 1}}},
            "recipe.toml: compare: there is no method 'fedporx' (did you mean 'fedprox'?)",
        ),
        (
            ["fedavg", "fedprox"],
            {"compare": {"fedprox": {"mue": 1}}},
            "recipe.toml: compare.fedprox.mue: there is no such key (did you mean 'mu'?); wants one of",
        ),
        (  # also where that method is not compared
            ["fedavg"],
            {"compare": {"fedprox": {"mue": 1}}},
            "recipe.toml: compare.fedprox.mue: there is no such key (did you mean 'mu'?); wants one of",
        ),
        (
            ["fedprox"],
            {"compare": {"fedprox": {"mu": -1}}},
            "recipe.toml: compare.fedprox.mu: got -1; wants at least 0",
        ),
        (  # a mistake in [method] is named once, where it stands
            ["fedavg", "fedprox"],
            {"method": {"rounds": 0}, "compare": {}},
            "recipe.toml: method.rounds: got 0; wants at least 1",
        ),
        (
            ["fedavg", "local"],
            {"method": {"round": 5}, "compare": {}},
            "recipe.toml: method.round: none of the compared methods (fedavg, local) has it "
            "(did you mean 'rounds'?); wants one of",
        ),
        (
            ["fedavg", "local"],
            {"method": {"update_from": "scratch"}, "compare": {}},
            "recipe.toml: method.update_from: none of the compared methods (fedavg, local) has it; "
            "it is a parameter of cofed: move it to [compare.cofed]",
        ),
        (
            ["slow"],
            {"compare": {"slow": {"use": "fedproxx"}}},
            "recipe.toml: compare.slow.use: there is no method 'fedproxx' (did you mean 'fedprox'?); there",
        ),
        (
            ["slow"],
            {"compare": {"slow": {"use": "fedprox", "mue": 1}}},
            "recipe.toml: compare.slow.mue: there is no such key (did you mean 'mu'?); wants one of",
        ),
        (
            ["fedavg"],
            {"compare": {"fedavg": {"use": "fedprox"}}},
            "recipe.toml: compare.fedavg.use: got 'fedprox'; fedavg is a method itself, choose another name",
        ),
        (
            ["fedavg"],
            {"compare": {"a/b": {"use": "fedprox"}}},
            "recipe.toml: compare.a/b.use: wants a table whose name has letters, digits, '_' and '-' only;",
        ),
        (
            ["slw"],
            {"compare": {"slow": {"use": "fedprox"}}},
            "methods: there is no method 'slw'; there are cofed,",
        ),
        (["fedavg"], {"compare": {"fedprox": 3}}, "recipe.toml: compare.fedprox: got 3; wants"),
        (["fedavg"], {"compare": 3}, "recipe.toml: compare: got 3; wants"),
    ],
)
def test_a_mistake_is_one_line(methods, tables, line):
    with pytest.raises(ConfigError) as error:
        plan_of(*methods, **tables)
    assert str(error.value).startswith(line)
    assert len(str(error.value).splitlines()) == 1


def test_every_mistake_is_told_at_once():
    with pytest.raises(ConfigError) as error:
        plan_of("fedavg", "fedprox", method={"round": 5, "rounds": 0}, compare={"fedprox": {"mue": 1}})
    keys = [line.split(": ")[1] for line in str(error.value).splitlines()]
    assert keys == ["method.round", "method.rounds", "compare.fedprox.mue"]


def test_a_plan_only_grows():
    old = plan_of("fedavg", "local", seeds=2)
    new = merge_plans(Path("x"), old, plan_of("cofed", "fedavg", seeds=1))
    assert new.methods == ("fedavg", "local", "cofed")
    assert new.seeds == (5, 6)


@pytest.mark.parametrize(
    ("tables", "line"),
    [
        (
            {"seed": 6},
            "x: is a comparison with seed = 5, now it is 6; choose another directory or delete this",
        ),
        (
            {"simulation": {**VALUES["simulation"], "split": {"use": "iid", "silos": 3, "size": 60}}},
            "x: is a comparison with simulation.split.silos = 2, now it is 3;",
        ),
        (
            {"method": {"rounds": 9, "epochs": 2}},
            "x: is a comparison with fedavg.rounds = 4, now it is 9;",
        ),
        (  # of a method that is there and not asked for this time
            {"compare": {"fedprox": {"mu": 0.7, "epochs": 1}}},
            "x: is a comparison with fedprox.mu = 0.5, now it is 0.7;",
        ),
    ],
)
def test_another_recipe_does_not_get_into_a_comparison(tables, line):
    old = plan_of("fedavg", "fedprox")
    with pytest.raises(RunError) as error:
        merge_plans(Path("x"), old, plan_of("fedavg", **tables))
    assert str(error.value).startswith(line)


def test_what_changes_no_result_may_change():
    old = plan_of("fedavg")
    merge_plans(Path("x"), old, plan_of("fedavg", workers=2, timeout=60, runs="elsewhere", reach=0.5))
    # A default that is written out is no change, nor is a parameter in another table.
    merge_plans(Path("x"), old, plan_of("fedavg", quorum=0.5))
    merge_plans(Path("x"), old, plan_of("fedavg", method={"rounds": 4}, compare={"fedavg": {"epochs": 2}}))


def test_what_other_methods_get_of_the_methods_table_is_told():
    """A round of CoFED is another thing than one of FedAvg, which FedProx shares."""
    methods, rounds = ("fedavg", "fedprox", "cofed"), {"use": "fedavg", "rounds": 4}
    assert plan_of(*methods, method=rounds, compare={}).carried() == [
        "cofed gets rounds = 4 of [method], which is for fedavg; [compare.cofed] says otherwise",
    ]
    assert plan_of(*methods, method=rounds, compare={"cofed": {"rounds": 1}}).carried() == []
