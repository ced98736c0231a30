"""Arguments and options that several commands take."""

from pathlib import Path
from typing import Annotated, Literal

import typer

Sets = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Override a key of the recipe: method.alpha=0.5."),
]
RecipeFile = Annotated[Path, typer.Argument(metavar="FILE.toml", help="A recipe.")]
RunFolder = Annotated[Path, typer.Argument(metavar="RUN", help="A run directory, or that of a comparison.")]
EngineName = Annotated[
    Literal["local", "flare", "ray"],
    typer.Option("--engine", help="Where: here, on the simulator of NVIDIA FLARE, or on a Ray cluster."),
]
Address = Annotated[
    str | None,
    typer.Option(metavar="HOST:PORT", help="The head of the Ray cluster; unless told, that of this machine."),
]
