"""The command line: every mistake is one line, never a traceback.

What a command needs is imported when the command runs: help and a misspelt option are there at once.
"""

import os
import re
import sys
from typing import Annotated

import typer
import typer.exceptions

from cosilo.cli import (
    admitting,
    checking,
    labels,
    looking,
    models,
    organisations,
    reproduce,
    running,
    trust,
    votes,
)
from cosilo.cli.printing import say, tell
from cosilo.errors import CosiloError
from cosilo.version import __version__

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False)
coordinator = typer.Typer(no_args_is_help=True, help="The coordinator's side.")

for command in (
    running.demo,
    running.run,
    running.compare,
    checking.check,
    running.resume,
    looking.report,
    looking.watch,
    votes.votes,
    models.predict,
    models.use,
    models.export,
    models.add,
    labels.labels,
    looking.methods,
    looking.runs,
    admitting.provision,
    admitting.request,
    admitting.admit,
    admitting.receive,
    admitting.remove,
    organisations.join,
    trust.audit,
    trust.approve,
    organisations.submit,
    organisations.status,
    organisations.stop,
    organisations.up,
    reproduce.reproduce,
):
    app.command()(command)
app.command("continue")(models.continue_)
app.add_typer(coordinator, name="coordinator")
coordinator.command()(organisations.start)


def _version(wanted: bool) -> None:
    if wanted:
        say(f"cosilo {__version__}")
        raise typer.Exit


@app.callback()
def cosilo_(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Organisations improve each other's classifiers; data, models and training stay where they are."""


def _explained(error: typer.exceptions.TyperException) -> str:
    """What is wrong with the words of a command, and which command tells more."""
    text = error.format_message().rstrip(".").replace("Value error, ", "").replace("Input should be", "wants")
    text = re.sub(", unable to parse string as an? .*", "", text)
    text = re.sub(r"\. Did you mean (.*)\?$", r" (did you mean \1?)", text)
    cause = error.__cause__ or error.__context__
    if isinstance(cause, ValueError) and hasattr(cause, "errors") and ": wants" in text:
        text = text.replace(": wants", f": got {cause.errors()[0]['input']!r}; wants", 1)
    context = getattr(error, "ctx", None)
    return text if context is None else f"{text}; see {context.command_path} --help"


def main() -> None:
    """Run the command line; a mistake is one line on stderr and exit code 2."""
    # Silos compute on one thread each; starting more of numpy's costs as much time as numpy itself.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        code = app(prog_name="cosilo", standalone_mode=False)
    except CosiloError as error:
        for line in str(error).splitlines():
            tell(f"error: {line}", style="red")
        sys.exit(2)
    except typer.exceptions.TyperException as error:
        if not error.format_message():  # no arguments at all: the help was shown
            sys.exit(0)
        tell(f"error: {_explained(error)}", style="red")
        sys.exit(2)
    except typer.Abort:
        sys.exit(130)
    sys.exit(code if isinstance(code, int) else 0)


if __name__ == "__main__":
    main()
