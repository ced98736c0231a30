"""The parts of a silo's private data, by name."""

from enum import StrEnum


class Part(StrEnum):
    """A part of a silo's private data, by name: methods say which, and never see it."""

    #: All that the silo trains on: its training set, and the labelled target points if it knows of a target.
    TRAINING = "training"
    #: The training set alone.
    OWN = "own"
    #: What is held out of the training data, and the rest.
    VALIDATION = "validation"
    REST = "rest"
    #: The labelled target points.
    TARGET = "target"
