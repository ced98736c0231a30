import collections
import datetime
import decimal
import enum
import json
import pathlib
import random
import re
import warnings
import zipfile
from array import array
from functools import partial

import numpy as np
import pandas as pd
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    StackingClassifier,
)
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, SplineTransformer, StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier

from cosilo.errors import LearnerError
from cosilo.learners import Estimator
from cosilo.learners.saving.model_file import read, write
from cosilo.learners.saving.sameness import same

rng = np.random.default_rng(1)
X = rng.normal(size=(80, 4))
y = (X[:, 0] > 0).astype(np.int64) + (X[:, 1] > 0.5)
FRAME = pd.DataFrame({"age": X[:, 0], "job": np.where(X[:, 1] > 0, "cook", "nurse"), "pay": X[:, 2]})
TEXTS = np.array(
    [f"{'good' if code else 'bad'} film {code} {i % 3}" for i, code in enumerate(y)], dtype=object
)


class Centroids:
    """A hand-written learner with arrays, dicts and lists as attributes."""

    def __init__(self, power=2):
        self.power = power

    def fit(self, X, y):
        self.centres = {int(code): X[y == code].mean(axis=0) for code in np.unique(y)}
        self.sizes = collections.Counter(y.tolist())
        self.by_numpy = {code: [1.5, None, "x", np.float32(0.1)] for code in np.unique(y)}
        self.nested = {"codes": frozenset([1, 2]), "span": range(3), "pair": (1, {"a": np.arange(2)})}
        self.words = np.array(["a", "bcd"], dtype=object)
        self.measure = distance

    def predict(self, X):
        table = [self.measure(X, centre, self.power) for centre in self.centres.values()]
        return np.array(list(self.centres))[np.argmin(table, axis=0)]


def distance(X, centre, power):
    return (np.abs(X - centre) ** power).sum(axis=1)


def reversed_columns(X):
    return X[:, ::-1]


def columns(*parts, **options):
    return ColumnTransformer(list(parts), **options)


FAMILIES = {
    "tree": (DecisionTreeClassifier(), X),
    "forest": (RandomForestClassifier(5), X),
    "extra": (ExtraTreesClassifier(5), X),
    "svc": (SVC(), X),
    "neighbours": (KNeighborsClassifier(), X),
    "bayes": (GaussianNB(), X),
    "logistic": (LogisticRegression(), X),
    "mlp": (MLPClassifier(hidden_layer_sizes=(4,), max_iter=10), X),
    "histogram": (HistGradientBoostingClassifier(max_iter=3), X),
    "boosting": (GradientBoostingClassifier(n_estimators=3), X),
    "ada": (AdaBoostClassifier(n_estimators=3), X),
    "bagging": (BaggingClassifier(n_estimators=3), X),
    "sgd": (SGDClassifier(), X),
    "process": (GaussianProcessClassifier(), X),
    "calibrated": (CalibratedClassifierCV(LinearSVC(), cv=2), X),
    "stack": (StackingClassifier([("a", GaussianNB()), ("b", DecisionTreeClassifier())], cv=2), X),
    "search": (GridSearchCV(DecisionTreeClassifier(), {"max_depth": [1, 2]}, scoring="accuracy", cv=2), X),
    "scaled": (make_pipeline(StandardScaler(), SVC()), X),
    "splines": (make_pipeline(SplineTransformer(), LogisticRegression()), X),
    "function": (make_pipeline(FunctionTransformer(reversed_columns), GaussianNB()), X),
    "clip": (make_pipeline(FunctionTransformer(partial(np.clip, a_min=-1, a_max=1)), GaussianNB()), X),
    "text": (make_pipeline(TfidfVectorizer(), LinearSVC()), TEXTS),
    "frame": (
        make_pipeline(
            columns(("n", StandardScaler(), ["age", "pay"]), ("c", OneHotEncoder(), ["job"])),
            LogisticRegression(),
        ),
        FRAME,
    ),
    "selected": (
        make_pipeline(
            columns(
                ("n", StandardScaler(), make_column_selector(dtype_include="number")),
                remainder=OneHotEncoder(handle_unknown="ignore"),
            ),
            DecisionTreeClassifier(),
        ),
        FRAME,
    ),
    "categories": (HistGradientBoostingClassifier(max_iter=3), FRAME.astype({"job": "category"})),
    "own": (Centroids(), X),
}


@pytest.mark.parametrize("family", FAMILIES)
def test_loaded_models_predict_the_same_bits(family, tmp_path):
    model, data = FAMILIES[family]
    learner = Estimator(model)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few iterations, on purpose
        learner.fit(data, y, n_classes=4, seed=1)
    learner.save(tmp_path)
    loaded = Estimator(model)
    loaded.load(tmp_path)
    assert np.array_equal(loaded.predict(data), learner.predict(data))
    if learner.has_probabilities:
        assert np.array_equal(loaded.predict_proba(data), learner.predict_proba(data))
        assert loaded.predict_proba(data).shape == (80, 4)


# ---------------------------------------------------------------------- what cannot be written


class Holder(Centroids):
    """A learner that keeps a strange thing."""

    def __init__(self, thing=None):
        self.thing = thing

    def fit(self, X, y):
        self.kept = self.thing()


def local_class():
    class Local(Centroids):
        pass

    return Local()


def shadow():
    def distance(X, centre, power):
        return X

    return distance  # skops knows functions by name and would bring back the one above


@pytest.mark.parametrize(
    ("thing", "why"),
    [
        (lambda: lambda x: x, r"holds types that Holder does not use: .*<lambda>"),
        (lambda: array("i", [1]), "cannot be saved: "),
        (shadow, "what is read back is not what was written"),
        (lambda: (i for i in range(3)), "skops raised|holds types"),
        (lambda: DecisionTreeClassifier().fit, "holds types that Holder does not use"),
    ],
)
def test_what_skops_would_lose_is_refused_when_it_is_saved(thing, why, tmp_path):
    model = Holder()
    model.thing = thing
    model.fit(X, y)
    model.thing = None
    with pytest.raises(LearnerError) as caught:
        write(model, tmp_path / "model.skops", Holder())
    line = str(caught.value)
    assert line.startswith("Holder cannot be saved: ")
    assert line.endswith("; give the class the methods save(folder) and load(folder)")
    caught.match(why)
    assert "\n" not in line
    assert not (tmp_path / "model.skops").exists()


def test_a_class_inside_a_function_cannot_be_found_again(tmp_path):
    model = local_class()
    with pytest.raises(LearnerError, match=r"^Local cannot be saved: skops raised AttributeError; give"):
        write(model, tmp_path / "model.skops", model)


def test_same_looks_at_values_types_and_padding():
    assert same(
        {"a": [np.array([1.0, np.nan]), float("nan")]}, {"a": [np.array([1.0, np.nan]), float("nan")]}
    )
    assert not same([1], [1.0])
    assert not same(np.zeros(2), np.zeros(2, np.float32))
    assert not same(np.array([0.0]), np.array([-0.0]))
    assert not same([1, 2], [1])
    assert not same({"a": 1}, {"a": 2})
    assert not same(np.array([{"a": 1}], dtype=object), np.array([{"a": 2}], dtype=object))
    padded = np.dtype([("a", "i1"), ("b", "f8")], align=True)
    one, two = np.zeros(2, padded), np.frombuffer(b"\x00\xff" + b"\x00" * 14 + b"\x00" * 16, padded)
    assert one.tobytes() != two.tobytes()
    assert same(one, two)
    first, second = Centroids(2), Centroids(3)
    assert not same(first, second)


# ---------------------------------------------------------------------- what only pickle would keep otherwise


class Colour(enum.Enum):
    RED = 1


class Slots:
    """Without a dict of attributes."""

    __slots__ = ("a", "b")

    def __init__(self, a):
        self.a = a  # and no b

    def __eq__(self, other):
        return self.a == other.a


class Taken:
    """Says itself how it is taken apart."""

    def __init__(self, n):
        self.n = n

    def __reduce__(self):
        return rebuilt, (2 * self.n,), {"n": self.n}

    def __eq__(self, other):
        return vars(self) == vars(other)


def rebuilt(n):
    return Taken(n)


Pair = collections.namedtuple("Pair", ["a", "b"])


@pytest.mark.parametrize(
    "thing",
    [
        collections.deque([1, 2], maxlen=5),
        {True: 1, False: 2},
        {1: "a", "1": "b"},
        {(1, 2): {"x": {None: 1.5, 0.5: (3,)}}},
        collections.defaultdict(int, {0: 1}),
        collections.defaultdict(list, {"a": [collections.deque([1])]}),
        collections.OrderedDict([(2, "b"), (1, "a")]),
        collections.Counter({("a", "b"): 2}),
        re.compile(r"[a-z]+", re.IGNORECASE),
        datetime.datetime(2026, 1, 2, 3, 4, tzinfo=datetime.UTC),
        datetime.timedelta(days=2),
        pathlib.PurePosixPath("a/b"),
        decimal.Decimal("1.5"),
        Colour.RED,
        Slots(3),
        rebuilt(3),
        Pair(1, [2]),
        {"a": np.array([{(1, 2): 3}, None], dtype=object)},
        b"bytes",
    ],
    ids=lambda thing: type(thing).__name__,
)
def test_a_learner_may_hold_what_skops_alone_would_lose(thing, tmp_path):
    model = Holder()
    model.kept = thing
    write(model, tmp_path / "model.skops", Holder())
    back = read(tmp_path / "model.skops", Holder()).kept
    assert type(back) is type(thing)
    if isinstance(thing, dict) and "a" in thing and isinstance(thing["a"], np.ndarray):
        assert back["a"].tolist() == thing["a"].tolist()
    else:
        assert back == thing
    if isinstance(thing, dict):
        assert list(back) == list(thing)


def test_a_random_generator_goes_on_where_it_was(tmp_path):
    model = Holder()
    model.kept = [random.Random(3), np.random.default_rng(4)]
    write(model, tmp_path / "model.skops", Holder())
    mine, theirs = read(tmp_path / "model.skops", Holder()).kept
    assert (mine.random(), theirs.random()) == (model.kept[0].random(), model.kept[1].random())


def test_things_that_are_shared_stay_shared(tmp_path):
    model = Holder()
    shared = {(1, 2): 3}
    model.kept = [shared, shared]
    write(model, tmp_path / "model.skops", Holder())
    one, other = read(tmp_path / "model.skops", Holder()).kept
    assert one is other


class Wrapper(Centroids):
    """Trained, it holds an object of a package that its module imports."""

    def fit(self, X, y):
        self.inner = GaussianNB().fit(X, y)
        self.table = {(0, 1): self.inner}


def test_types_of_packages_that_the_learner_imports_are_its_own(tmp_path):
    model = Wrapper()
    model.fit(X, y)
    write(model, tmp_path / "model.skops", Wrapper())
    back = read(tmp_path / "model.skops", Wrapper())
    assert back.inner is back.table[0, 1]
    assert np.array_equal(back.inner.predict(X), model.inner.predict(X))


# ---------------------------------------------------------------------- files that somebody else has touched


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "model.skops"
    write(Centroids().__class__(2), path, Centroids())
    return path


def tamper(path, change):
    """Change the description inside a skops file."""
    with zipfile.ZipFile(path) as old:
        parts = {name: old.read(name) for name in old.namelist()}
    schema = json.loads(parts["schema.json"])
    change(schema)
    parts["schema.json"] = json.dumps(schema).encode()
    with zipfile.ZipFile(path, "w") as new:
        for name, content in parts.items():
            new.writestr(name, content)


def call(module, name, *arguments):
    """A node that makes skops call something while it loads."""
    items = [
        {"__class__": "str", "__module__": "builtins", "__loader__": "JsonNode", "content": json.dumps(a)}
        for a in arguments
    ]
    content = {"__class__": "tuple", "__module__": "builtins", "__loader__": "TupleNode", "content": items}
    return {
        "__class__": name,
        "__module__": module,
        "__loader__": "ConstructorFromReduceNode",
        "content": content,
    }


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("os", "system"),
        ("subprocess", "Popen"),
        ("builtins", "eval"),
        ("numpy.testing", "runstring"),
        ("numpy", "memmap"),
        ("numpy.f2py", "run_main"),
        ("sklearn.utils._testing", "assert_run_python_script_without_output"),
        ("sklearn.utils._testing", "TempMemmap"),
        ("sklearn.datasets._openml", "TemporaryDirectory"),  # only imported there
        ("sklearn.datasets._base", "load_files"),
        ("functools", "reduce"),
        ("pickle", "loads"),
        ("foreign_package_that_is_not_there", "Model"),
    ],
)
def test_a_file_that_names_foreign_things_is_refused(saved, module, name):
    def change(schema):
        schema["content"]["content"]["power"] = call(module, name, "print('ran')")

    tamper(saved, change)
    with pytest.raises(LearnerError) as caught:
        read(saved, Centroids(power=np.float64(2)))  # a number of numpy does not open all of numpy
    assert str(caught.value).endswith(f"holds types that Centroids does not use: {module}.{name}")


def test_names_that_a_trusted_module_only_imports_are_refused(saved):
    import sklearn.datasets._base as module

    assert module.urlretrieve.__module__ == "urllib.request"
    tamper(saved, lambda s: s["content"]["content"].update(power=call(module.__name__, "urlretrieve", "x")))
    with pytest.raises(LearnerError, match=r"does not use: sklearn.datasets._base.urlretrieve"):
        read(saved, Centroids())


def test_keys_cannot_call_eval(saved):
    """skops calls the type of each key of a dict on the key."""

    def change(schema):
        attributes = schema["content"]
        attributes["key_types"]["content"][0].update({"__class__": "eval", "__module__": "builtins"})
        attributes["content"] = {"__import__('os').abort()": attributes["content"].pop("power")}

    tamper(saved, change)
    with pytest.raises(LearnerError, match=r"does not use: builtins\.eval$"):
        read(saved, Centroids())


def test_a_template_opens_its_own_package_only(tmp_path):
    path = tmp_path / "model.skops"
    model = Centroids()
    model.fit(X, y)
    write(model, path, Centroids())
    assert np.array_equal(read(path, Centroids()).predict(X), model.predict(X))
    with pytest.raises(LearnerError, match=r"holds types that GaussianNB does not use: .*Centroids"):
        read(path, GaussianNB())


def test_another_model_is_refused(tmp_path):
    path = tmp_path / "model.skops"
    write(GaussianNB().fit(X, y), path, GaussianNB())
    with pytest.raises(LearnerError, match="holds a GaussianNB; wants a DecisionTreeClassifier"):
        read(path, DecisionTreeClassifier())


def test_missing_and_broken_files(tmp_path):
    path = tmp_path / "model.skops"
    with pytest.raises(LearnerError, match=r"model\.skops cannot be read: FileNotFoundError$"):
        read(path, GaussianNB())
    path.write_bytes(b"PK not a zip")
    with pytest.raises(LearnerError, match=r"model\.skops cannot be read: BadZipFile$"):
        read(path, GaussianNB())
