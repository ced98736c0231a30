"""What other libraries trained, in their own formats: LightGBM's text, XGBoost's ubj, CatBoost's cbm …

Nothing here is imported before there is such a thing.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from cosilo.learners.kinds import kinds
from cosilo.learners.saving.form import Form


def _is(name: str) -> Callable[[Any], bool]:
    return lambda thing: name in kinds(type(thing))


def _write_lightgbm(booster: Any, path: Path) -> Any:
    booster.save_model(path, num_iteration=-1)
    return int(booster.best_iteration)


def _read_lightgbm(path: Path, about: Any, template: Any) -> Any:
    from lightgbm import Booster

    booster = Booster(model_file=path)
    booster.best_iteration = about
    return booster


def _write_xgboost(booster: Any, path: Path) -> None:
    booster.save_model(path)


def _read_xgboost(path: Path, about: Any, template: Any) -> Any:
    from xgboost import Booster

    return Booster(model_file=path)


def _write_catboost(model: Any, path: Path) -> Any:
    if model.is_fitted():
        model.save_model(str(path), format="cbm")
    return [type(model), model.get_params()]


def _read_catboost(path: Path, about: Any, template: Any) -> Any:
    kind, parameters = about
    model = kind(**parameters)
    return model.load_model(str(path), format="cbm") if path.exists() else model


def _write_skorch(net: Any, path: Path) -> Any:
    if not net.initialized_:
        return None
    net.save_params(f_params=path, use_safetensors=True)
    return net.classes_ if hasattr(net, "classes_inferred_") else None


def _read_skorch(path: Path, about: Any, template: Any) -> Any:
    from sklearn.base import clone

    net = clone(template)
    if path.exists():
        net.initialize()
        net.load_params(f_params=path, use_safetensors=True)
        if about is not None:
            net.classes_inferred_ = about
    return net


def _write_tensor(tensor: Any, path: Path) -> Any:
    trained = "torch.nn.parameter.Parameter" in kinds(type(tensor))
    return [tensor.detach().cpu().numpy(), bool(tensor.requires_grad), trained]


def _read_tensor(path: Path, about: Any, template: Any) -> Any:
    import torch

    array, requires_grad, trained = about
    tensor = torch.from_numpy(array)
    if trained:
        return torch.nn.Parameter(tensor, requires_grad)
    return tensor.requires_grad_(requires_grad)


FORMS: dict[str, Form] = {
    "lightgbm": Form(_is("lightgbm.basic.Booster"), ".txt", _write_lightgbm, _read_lightgbm),
    "xgboost": Form(_is("xgboost.core.Booster"), ".ubj", _write_xgboost, _read_xgboost),
    "catboost": Form(_is("catboost.core.CatBoost"), ".cbm", _write_catboost, _read_catboost),
    "skorch": Form(_is("skorch.net.NeuralNet"), ".safetensors", _write_skorch, _read_skorch, True),
    "tensor": Form(_is("torch.Tensor"), None, _write_tensor, _read_tensor),
}
