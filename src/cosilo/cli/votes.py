"""`cosilo votes`: what a run's votes would elect by other rules, before anybody trains again."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cosilo.cli.printing import new_table, say, show, tell
from cosilo.errors import ConfigError, CosiloError, RunError

if TYPE_CHECKING:
    from cosilo.data.instances import Instances


def votes(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run of CoFED.")],
    alpha: Annotated[
        list[float] | None, typer.Option(min=0, max=1, help="A threshold to look at; as often as you like.")
    ] = None,
    silos: Annotated[bool, typer.Option("--silos", help="Also show every silo.")] = False,
    sheet: Annotated[
        Path | None,
        typer.Option(help="Also write a picture, a .png, with some of the images elected to each class."),
    ] = None,
) -> None:
    """Show what a run's votes elect by each rule, without training; writes a page with what was elected."""
    import numpy as np

    from cosilo.methods.cofed.elections import Ballots
    from cosilo.methods.cofed.looking import ALPHAS, by_agreement, look, paper_rule
    from cosilo.protocol.task import Task, vocabulary
    from cosilo.report.elected_sheet import are_pictures, write_sheet
    from cosilo.report.votes_page import verdict, write_votes_page
    from cosilo.runs.run import RunDirectory

    if sheet is not None and sheet.suffix != ".png":
        raise ConfigError(f"--sheet {sheet}: wants a .png file")
    run = RunDirectory(folder)
    replies = run.last_replies("label")
    if not replies:
        raise RunError(f"{folder}: has no votes; wants a run of cofed that has come to its election")
    told = run.last_replies("hello")
    tasks = {name: Task(tuple(told[name].names("classes"))) for name in replies}
    all_classes = vocabulary(tasks.values())
    ballots = Ballots.of(replies, tasks, all_classes, tasks)
    found = look(ballots, all_classes.classes, alpha or ALPHAS)
    table = new_table(
        "rule", "elected", "a silo gets", "of these its own vote", right=("elected", "a silo gets")
    )
    for one in found.rules:
        own = "–" if one.mean_own_votes is None else f"{one.mean_own_votes:.0%}"
        table.add_row(one.name, f"{one.elected:,}", f"{one.mean_received:,.0f}", own)
    show(table)
    if silos:
        last = found.rules[-1]
        each = new_table("silo", "κ", "gets", "of these its own vote", title=last.name, right=("gets",))
        for name, kappa in found.kappas.items():
            own = f"{last.own_votes[name]:.0%}" if name in last.own_votes else "–"
            each.add_row(name, f"{kappa:.2f}", f"{last.received[name]:,}", own)
        show(each)
    say(verdict(found))
    page = folder / "votes.html"
    method = run.about["method"]
    if method.get("rule") == "paper" and method.get("weights") == "equal":  # as the run itself elected
        rule, outcome = paper_rule(ballots, method["alpha"])
    else:
        rule, outcome = by_agreement(ballots)
    pool = _pool(folder)
    write_votes_page(page, folder.resolve().name, found, outcome, rule, pool)
    say(f"page: {page}")
    if sheet is not None:
        if not isinstance(pool, np.ndarray) or not are_pictures(pool):
            raise RunError(f"--sheet {sheet}: the pool of {folder} has no images at hand; leave --sheet out")
        write_sheet(sheet, found, outcome, pool)
        say(f"picture: {sheet}")


def _pool(folder: Path) -> "Instances | None":
    """The run's pool, made again by its recipe, if it has one and its data is at hand."""
    from cosilo.config.build import make_members
    from cosilo.config.settings import validate
    from cosilo.config.source import read_recipe

    try:
        values, source = read_recipe(folder, "its pool is not shown")
        pool = make_members(validate(values, source.name), source)[1]
        return None if pool is None else pool.X
    except CosiloError as error:
        tell(f"without what was elected: {error}")
        return None
