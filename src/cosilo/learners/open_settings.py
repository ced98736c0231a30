"""Settings that a user left open and that must not stay so: seeds, threads, files and noise."""

from typing import Any

from cosilo.learners.kinds import kinds

#: By class: settings that cosilo makes for what is left open, and other names that they go by. A step uses
#: one thread, so that results do not depend on the machine; libraries neither write files nor print.
_QUIET: dict[str, dict[str, tuple[Any, tuple[str, ...]]]] = {
    "lightgbm.sklearn.LGBMModel": {
        "n_jobs": (1, ("num_threads", "nthread", "num_thread", "nthreads")),
        "verbosity": (-1, ("verbose",)),
    },
    "xgboost.sklearn.XGBModel": {"n_jobs": (1, ("nthread",))},
    "catboost.core.CatBoost": {
        "thread_count": (1, ()),
        "allow_writing_files": (False, ("train_dir",)),
        "logging_level": ("Silent", ("verbose", "silent", "verbose_eval")),
    },
    "skorch.net.NeuralNet": {"verbose": (0, ())},
}


def open_seeds(model: Any) -> list[str]:
    """The parameters that decide what an object draws, where the user left them open."""
    found = [
        key
        for key, value in parameters(model, deep=True).items()
        if key.endswith("random_state") and value is None
    ]
    for prefix, inner in _estimators(model):
        # CatBoost knows only the parameters that it was given.
        if "catboost.core.CatBoost" in kinds(type(inner)):
            given = inner.get_params()
            if not {"random_state", "random_seed"} & {*given}:
                found.append(f"{prefix}random_seed")
    return sorted(set(found))


def quiet_settings(model: Any) -> dict[str, Any]:
    """What is set in place of what the user left open, beside seeds."""
    found = {}
    for prefix, inner in _estimators(model):
        given = parameters(inner, deep=False)
        for kind, settings in _QUIET.items():
            for name, (value, aliases) in settings.items() if kind in kinds(type(inner)) else ():
                default = given.get(name) if kind != "skorch.net.NeuralNet" else None
                if default is None and all(given.get(alias) is None for alias in aliases):
                    found[f"{prefix}{name}"] = value
    return found


def parameters(model: Any, *, deep: bool) -> dict[str, Any]:
    """The parameters that can be read and set in scikit-learn's way; none for other objects."""
    if not (callable(getattr(model, "get_params", None)) and callable(getattr(model, "set_params", None))):
        return {}
    return dict(model.get_params(deep=deep))


def _estimators(model: Any) -> list[tuple[str, Any]]:
    """An object and the estimators that are its parameters, each with what its parameters begin with."""
    inner = [
        (f"{key}__", value)
        for key, value in parameters(model, deep=True).items()
        if hasattr(value, "fit") and not isinstance(value, type)
    ]
    return [("", model), *inner]
