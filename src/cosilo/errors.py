"""Errors a person reads: one line that says where, what was found, what is wanted and what to do."""


class CosiloError(Exception):
    """The base of every error cosilo raises on purpose; its text is one line for a person."""


class ConfigError(CosiloError):
    """A setting is missing, misspelt or out of range."""


class DataError(CosiloError):
    """Private data, a pool or a dataset is not what it has to be."""


class LearnerError(CosiloError):
    """A learner failed, or answered with something that is not a classification."""


class Refused(CosiloError):
    """A silo's share policy does not allow what a method asks for."""


class OtherRecord(Refused):
    """A silo's record is not the one that its coordinator has seen: it was put back or rewritten."""


class BadMessage(CosiloError):
    """A message holds what was not declared: a field, a kind, a shape or a value."""


class RunError(CosiloError):
    """A run cannot continue; completed steps are kept and `resume` continues it."""


class SiloFailed(UserWarning):
    """Silos failed in a step of a run that is finished without them."""


class MembersError(CosiloError):
    """Members of an institution could not do a step; only its owner may see which ones and why."""


def with_extra(extra: str) -> str:
    """What to do where an extra of cosilo is missing.

    No package index has cosilo: what `pip install cosilo` would find there is somebody else's.

    >>> with_extra("torch")
    "make install EXTRAS=torch, or pip install 'cosilo-….whl[torch]'"
    """
    return f"make install EXTRAS={extra}, or pip install 'cosilo-….whl[{extra}]'"
