"""What a method finds out besides scores: a typed model, which its own part of the report reads."""

from pydantic import BaseModel, ConfigDict, model_validator


class Findings(BaseModel):
    """The base of what a method finds out beside scores. Its fields are keys of the run's `result.json`.

    `silos.found(Kind)` is a method's own, to be added to; `run.findings(Kind)` is that of a finished run.

    Examples
    --------
    >>> class Count(Findings):
    ...     instances: int = 0
    >>> Count.model_validate({"instances": 45, "scores": {}})
    Count(instances=45)
    """

    model_config = ConfigDict(extra="ignore")  # result.json has other keys too

    @property
    def rounds_done(self) -> int | None:
        """How many rounds there were, where the method itself decides when to stop."""
        return None


class Matrix(BaseModel):
    """A number for every silo (row) and every model of a silo (column)."""

    silos: list[str]
    values: list[list[float]]

    @model_validator(mode="after")
    def _square(self) -> "Matrix":
        if {len(self.values), *map(len, self.values)} != {len(self.silos)}:
            raise ValueError("wants one row and one column for each silo")
        return self
