"""What a recipe names: methods, learners, networks."""

import importlib
import inspect
from typing import TYPE_CHECKING, Any

from cosilo.config.explain import checked
from cosilo.config.settings import LearnerSettings, MethodSettings
from cosilo.config.source import is_own_function
from cosilo.errors import ConfigError, LearnerError
from cosilo.text import guess, listing

if TYPE_CHECKING:
    from cosilo.data.instances import Instances
    from cosilo.methods.base import Method


def find_method(settings: MethodSettings, source: str = "method") -> "Method":
    """A method by name, or the user's own by import path, with its parameters checked."""
    kind = find_kind(settings.use, f"{source}: method.use")
    return checked(kind, settings.parameters(), source, "method")


def known_method(settings: MethodSettings, source: str) -> "Method":
    """A method that comes with cosilo: between organisations, users' own code does not travel."""
    from cosilo.methods import METHODS

    if settings.use not in METHODS:
        wants = f"{guess(settings.use, list(METHODS))}; wants {listing(METHODS, 20)}"
        raise ConfigError(f"{source}: method.use: got {settings.use!r}{wants}")
    return find_method(settings, source)


def find_kind(use: str, where: str) -> "type[Method]":
    """What kind of method a name or an import path means; `where` names the key in errors."""
    from cosilo.methods import METHODS

    if use not in METHODS and "." not in use:
        raise ConfigError(
            f"{where}: there is no method {use!r}{guess(use, list(METHODS))}; there are {listing(METHODS)}"
        )
    from cosilo.methods import Method

    kind = METHODS[use] if use in METHODS else import_object(use, where)
    if not (isinstance(kind, type) and issubclass(kind, Method)):
        raise ConfigError(f"{where}: {use} is not a method (a subclass of cosilo.Method)")
    return kind


def import_object(path: str, where: str) -> Any:
    """What an import path such as `sklearn.svm.SVC` names."""
    module_name, _, attribute = path.rpartition(".")
    if not module_name:
        raise ConfigError(f"{where}: got {path!r}; wants an import path, such as sklearn.svm.SVC")
    try:
        module = importlib.import_module(module_name)
    except ImportError as error:
        raise ConfigError(f"{where}: cannot import {module_name!r} ({error}); is it installed?") from None
    if not hasattr(module, attribute):
        names = {*dir(module), *getattr(module, "__all__", ())}  # some are imported when they are used
        there = sorted(name for name in names if not name.startswith("_"))
        raise ConfigError(f"{where}: {module_name!r} has no {attribute!r}{guess(attribute, there)}")
    return getattr(module, attribute)


#: Functions of cosilo's own that make learners.
_BUILDERS = {"cosilo.learners.gam.GAM"}


def make_learner(settings: LearnerSettings, X: "Instances", where: str) -> Any:
    """The learner that settings describe, ready to read instances like X."""
    if "." not in settings.use:  # a network of the zoo
        from cosilo.learners import zoo

        try:
            return _network(zoo.find(settings.use), settings, X, where)
        except LearnerError as error:
            raise ConfigError(f"{where}.use: {error}, or an import path such as sklearn.svm.SVC") from None
    from cosilo.learners.encoding import with_encoder

    thing = import_object(settings.use, f"{where}.use")
    if inspect.ismodule(thing):
        raise ConfigError(
            f"{where}.use: {settings.use} is a module; wants a class in it, as sklearn.svm.SVC is"
        )
    _check_makes_learners(thing, f"{where}.use: {settings.use}")
    if settings.training is not None or settings.tokens is not None or _is_module(thing):
        return _network(thing, settings, X, where)
    try:
        return with_encoder(thing(**settings.arguments()), X)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"{where}: {settings.use} does not take these settings: {error}") from None


def _check_makes_learners(thing: Any, where: str) -> None:
    """Raise unless calling something makes a learner: a recipe could name any function there is."""
    learns = inspect.isclass(thing) and all(callable(getattr(thing, one, None)) for one in ("fit", "predict"))
    name = f"{getattr(thing, '__module__', '')}.{getattr(thing, '__qualname__', '')}"
    if not (learns or _is_module(thing) or is_own_function(thing) or name in _BUILDERS):
        raise ConfigError(
            f"{where}: has no fit and predict, and was not called; wants a class that has them, "
            "a torch module, or a function in a file beside the recipe that returns one"
        )


def _is_module(thing: Any) -> bool:
    return inspect.isclass(thing) and any(
        f"{kind.__module__}.{kind.__qualname__}" == "torch.nn.modules.module.Module" for kind in thing.__mro__
    )


def _network(build: Any, settings: LearnerSettings, X: "Instances", where: str) -> Any:
    from cosilo.learners.network import Network
    from cosilo.learners.training import Training

    trainings = {}
    for key in ("training", "update"):
        given = getattr(settings, key)
        trainings[key] = None if given is None else checked(Training, given, where, key)
    for key in ("choices", "update_choices"):
        for place, change in enumerate(getattr(settings, key)):
            checked(Training, change, where, f"{key}.{place}")
    arguments = settings.arguments()
    try:
        inspect.signature(build).bind(input_shape=(1,), n_classes=2, **arguments)
    except TypeError as error:
        raise ConfigError(f"{where}: {settings.use} does not take these settings: {error}") from None

    def module(input_shape: tuple[int, ...], n_classes: int) -> Any:
        return build(input_shape=input_shape, n_classes=n_classes, **arguments)

    module.__name__ = getattr(build, "__name__", "module")
    tokens: Any = settings.tokens
    if isinstance(tokens, str):
        tokens = import_object(tokens, f"{where}.tokens")
    elif tokens is None and settings.use == "text" and _is_text(X):
        # The network for texts reads words; those who bring token ids say so by their numbers.
        tokens = arguments.get("vocabulary_size", 2**15)
    return Network(
        module,
        trainings["training"] or Training(),
        trainings["update"],
        choices=settings.choices,
        update_choices=settings.update_choices,
        tokens=tokens,
    )


def _is_text(X: "Instances") -> bool:
    from cosilo.data.instances import form

    return form(X) == "text"
