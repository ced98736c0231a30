"""What a method finds out beside scores: a typed model, which its own part of the report reads."""

from pydantic import BaseModel, ConfigDict


class Findings(BaseModel):
    """The base of a method's findings. Its fields are keys of the run's `result.json`."""

    model_config = ConfigDict(extra="ignore")  # result.json has other keys too


class Matrix(BaseModel):
    """A number for every silo (row) and every model of a silo (column)."""

    silos: list[str]
    values: list[list[float]]
