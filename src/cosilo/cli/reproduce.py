"""`cosilo reproduce`: run a paper's table or figure, and say what came of it."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from cosilo.cli.arguments import Address, EngineName
from cosilo.cli.printing import new_table, say, show, tell
from cosilo.cli.running import chosen_engine
from cosilo.errors import ConfigError, CosiloError, RunError

if TYPE_CHECKING:
    from cosilo.coordination.run_loop import Engine
    from cosilo.reproduce.library import Reproduction
    from cosilo.reproduce.record import ReproductionRecord

Size = Literal["laptop", "night", "paper"]


def _names(incomplete: str) -> list[str]:
    """For the shell: what there is to reproduce."""
    from cosilo.reproduce.library import reproductions

    return [name for name in reproductions() if name.startswith(incomplete)]


def reproduce(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME",
            help=r"What to reproduce: a name of --list, or a recipe with \[reproduces].",
            autocompletion=_names,
        ),
    ] = None,
    list_: Annotated[bool, typer.Option("--list", help="Show what there is, and the last verdicts.")] = False,
    all_: Annotated[bool, typer.Option("--all", help="Reproduce everything.")] = False,
    size: Annotated[
        Size, typer.Option(help="Minutes on a laptop, a night on two cores, or the paper's own protocol.")
    ] = "laptop",
    seeds: Annotated[
        int | None,
        typer.Option(min=1, help="How many seeds; unless told, 3 in laptop size and 1 in the others."),
    ] = None,
    only: Annotated[
        list[int] | None,
        typer.Option(
            "--seed", help="Only this seed; may be given several times. Pages join records by seed."
        ),
    ] = None,
    cases: Annotated[
        list[str] | None, typer.Option("--case", help="Only this case of it; may be given several times.")
    ] = None,
    hours: Annotated[
        float | None, typer.Option(min=0.001, help="Stop after this time; the same command continues.")
    ] = None,
    folder: Annotated[Path, typer.Option("--dir", help="Where runs and records are.")] = Path(
        "reproductions"
    ),
    engine: EngineName = "local",
    address: Address = None,
    page: Annotated[
        Path | None,
        typer.Option(
            help="Write the page of results: PAGE.md, with the records in the folder PAGE beside it."
        ),
    ] = None,
) -> None:
    """Run a table or figure of a paper; ends with the paper's number, ours, and a verdict."""
    from cosilo.reproduce.library import find, reproductions

    if list_:
        _list(folder)
        return
    every = [one for one in reproductions().values() if size in one.about.sizes]
    chosen = every if all_ else [find(name) for name in names or []]
    if not chosen and page is None:
        raise ConfigError("reproduce: wants a NAME, --all, --list or --page; --list shows the names")
    where = chosen_engine(engine, address)
    chosen = [one.only(cases, size) for one in chosen] if cases else chosen
    how_many = seeds or (3 if size == "laptop" else 1)
    failed = _reproduce_each(chosen, size, only or how_many, folder, hours, where)
    if page is not None:
        _page(page, folder)
    if failed:
        raise RunError("\n".join(failed))


def _reproduce_each(
    chosen: "list[Reproduction]",
    size: Size,
    seeds: int | list[int],
    folder: Path,
    hours: float | None,
    engine: "Engine | str",
) -> list[str]:
    from cosilo.reproduce.run_cases import run_reproduction

    failed = []
    try:
        with _at_most(hours) as over:
            for one in chosen:
                try:
                    found = run_reproduction(one, size, seeds, folder, tell, engine)
                except CosiloError as error:
                    if len(chosen) == 1:
                        raise
                    failed += [f"{one.name}: {line}" for line in str(error).splitlines()]
                    continue
                _show_record(one, found)
    except KeyboardInterrupt:
        what = f"{hours:g} hours are over" if over.is_set() else "stopped"
        tell(f"\n{what}; completed steps are kept, and the same command goes on with them")
        raise typer.Exit(0 if over.is_set() else 130) from None
    return failed


@contextmanager
def _at_most(hours: float | None) -> Iterator[threading.Event]:
    """Interrupt the run when time is over, as Ctrl-C does; a job in the background may not heed Ctrl-C."""
    over = threading.Event()
    if hours is None:
        yield over
        return

    def stop(number: int, frame: FrameType | None) -> None:
        over.set()
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, hours * 3600)
    try:
        yield over
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _show_record(one: "Reproduction", record: "ReproductionRecord") -> None:
    """The paper's numbers, ours, and the verdicts."""
    from cosilo.reproduce.paper_verdict import judge_claim
    from cosilo.reproduce.sentences import claim_text, overall, shown, shown_average, verdict_of

    about = one.about
    table = new_table(
        "",
        "paper",
        "ours",
        "verdict",
        right=("paper", "ours"),
        title=f"{about.paper}, {about.what}: {about.shows} ({record.size} size, {record.scale})",
    )
    run = [number for number in about.number if record.has(number.of)]
    for number in run:
        paper = "–" if number.paper is None else shown(number, number.paper)
        verdict = verdict_of(about, number, record)
        table.add_row(number.text, paper, shown_average(number, record), verdict)
    if run:
        show(table)
    for claim in about.claim:
        if not record.has(claim.more[0]):
            continue  # of a case that this size does not have
        say(f"{claim.text}: {claim_text(claim, judge_claim(claim, record.values, record.silos))}")
    say(f"{overall(about, record)}; {record.minutes:.1f} minutes at work")


def _list(folder: Path) -> None:
    """All reproductions in all sizes, with their last verdicts in a folder."""
    from cosilo.reproduce.library import reproductions
    from cosilo.reproduce.record import RECORD_FILE, folder_of, read_record
    from cosilo.reproduce.sentences import overall

    for name, one in reproductions().items():
        say(f"{name}: {one.about.paper}, {one.about.what}: {one.about.shows}")
        for size in one.about.sizes:
            path = folder_of(folder, name, size) / RECORD_FILE
            verdict = "not run"
            if path.exists():
                record = read_record(path)
                verdict = overall(one.about, record)
                verdict += " (of an earlier recipe)" if one.changed_since(record) else ""
            say(f"  {size:<6} {_about(one.about.minutes[size]):>9}  {verdict}")
    say("Times are those of two cores: for three seeds at laptop size, and for one seed at the others.")


def _about(minutes: float) -> str:
    """Roughly how long.

    >>> _about(10), _about(160), _about(200000)
    ('10 min', '3 h', '139 days')
    """
    if minutes < 120:
        return f"{minutes:g} min"
    return f"{minutes / 60:.0f} h" if minutes < 48 * 60 else f"{minutes / 1440:.0f} days"


def _page(path: Path, folder: Path) -> None:
    from cosilo.reproduce.library import reproductions
    from cosilo.reproduce.record import RECORD_FILE, joined, read_record, write_record
    from cosilo.reproduce.results_page import write_page
    from cosilo.reproduce.run_cases import measure_again

    if path.suffix != ".md":
        raise ConfigError(f"--page {path}: wants a .md file")
    beside = path.with_suffix("")
    beside.mkdir(parents=True, exist_ok=True)
    library = reproductions()
    for found in sorted(folder.glob(f"*/{RECORD_FILE}")):  # the newest records join those that are there
        record = read_record(found)
        if record.name in library:
            record = measure_again(library[record.name], record, found.parent)
        there = beside / record.file
        write_record(joined(read_record(there), record) if there.exists() else record, there)
    missing = write_page(path, library)
    say(f"page: {path}")
    if missing:
        say(f"without a record: {', '.join(missing)}")
