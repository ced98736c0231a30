"""What an owner does with a model afterwards: predict with it, choose which one predicts."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from cosilo.cli.labels import known_ending, write_labels
from cosilo.cli.printing import say, tell
from cosilo.errors import ConfigError

Run = Annotated[
    Path, typer.Argument(metavar="RUN", help="A run directory; at a silo, its own folder of a run.")
]
SiloName = Annotated[str, typer.Argument(metavar="SILO", help="The silo; a member: INSTITUTION/MEMBER.")]
Which = Literal["local", "federated", "continued"]


def predict(
    folder: Run,
    silo: SiloName,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Instances like the silo's own.")],
    written: Annotated[Path, typer.Option("--out", help="A .csv or .parquet file to write.")],
    text: Annotated[str | None, typer.Option(metavar="COLUMN", help="The column of texts.")] = None,
    model: Annotated[Which | None, typer.Option(help="Another model than the one in use.")] = None,
    labeller: Annotated[
        bool, typer.Option("--labeller", help="Ask the models of others that labelled its target instead.")
    ] = False,
) -> None:
    """Label new instances with a silo's model: label, probability, and the file's other columns."""
    known_ending(written)
    if written.resolve() == file.resolve():
        raise ConfigError(f"--out {written}: is the file with the instances; wants another for the labels")
    if labeller and model is not None:
        raise ConfigError(
            f"--labeller --model {model}: the labeller is none of the silo's own; leave one out"
        )
    from cosilo.config.models import model_of, predictions
    from cosilo.runs.run import record_in

    # Which of its own models the owner chose makes no difference to those of others.
    found = model_of(record_in(folder, silo), which="federated" if labeller else model)
    write_labels(predictions(found, file, text, labeller), written)


def export(
    folder: Run,
    silo: SiloName,
    to: Annotated[Path, typer.Option("--to", metavar="FOLDER", help="A new folder.")],
    model: Annotated[Which | None, typer.Option(help="Another model than the one in use.")] = None,
) -> None:
    """Write a silo's model into a folder that works without cosilo: model, model card, predict.py, ONNX."""
    from cosilo.config.models import model_of
    from cosilo.export.export import export_model
    from cosilo.export.facts import origin_of
    from cosilo.runs.run import RunDirectory, record_in

    record = record_in(folder, silo)
    run = RunDirectory(folder) if (folder / "run.json").exists() else None
    found = model_of(record, which=model)
    without = export_model(found, origin_of(record, silo, run), to)
    if without is not None:
        tell(f"no ONNX: {without}")
    say(f"{found.which} model of {silo}: {to}")


def continue_(
    folder: Run,
    silo: SiloName,
    files: Annotated[
        list[Path],
        typer.Option(
            "--data", metavar="FILE", help="All data that is new since the run; as often as needed."
        ),
    ],
) -> None:
    """Let a silo with more data train on: from its model, with what it got from the others."""
    from cosilo.config.going_on import continue_from_files
    from cosilo.runs.run import RunDirectory, record_in

    record = record_in(folder, silo)
    run = RunDirectory(folder) if (folder / "run.json").exists() else None
    found = continue_from_files(record, run, files)
    if found.before is not None and found.after is not None:
        say(f"accuracy on its own test data: {found.before:.1%} before, {found.after:.1%} after")
    say(f"silo {silo}: trained on with {found.instances} new instances; its continued model is in use")


def add(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="The directory of a finished run.")],
    file: Annotated[
        Path,
        typer.Argument(
            metavar="SILO.toml",
            help="The file of the silo that comes late; between organisations its name, once it has joined.",
        ),
    ],
) -> None:
    """Let a silo that comes late gain from a finished run; nobody else does anything."""
    from cosilo.cli.results import show_run
    from cosilo.engines.flare import runs as between
    from cosilo.runs.run import RunDirectory

    if between.is_between_organisations(folder):
        name = str(file)
        between.add(folder, name, tell)
    else:
        from cosilo.config.going_on import add_from_file

        name = add_from_file(folder, file)
    show_run(RunDirectory(folder))
    say(f"silo {name} joined; the others did nothing")


def use(
    folder: Run,
    silo: SiloName,
    model: Annotated[Which, typer.Option(help="The model from before the federation, or another.")],
) -> None:
    """Choose which of a silo's models predicts from now on."""
    from cosilo.config.models import model_of
    from cosilo.runs.kept_models import choose
    from cosilo.runs.run import record_in

    record = record_in(folder, silo)
    found = model_of(record, which=model)  # it has to be there
    choose(record, model)
    say(f"silo {silo}: its {model} model ({found.learner.name}) predicts from now on")
