import os
import random
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cosilo
from cosilo.errors import LearnerError
from cosilo.learners.base import (
    balanced_weights,
    black_box,
    columns_as_learnt,
    columns_of,
    read_card,
    seeded,
    weights_towards,
    write_card,
)


@given(st.lists(st.integers(0, 4), min_size=1, max_size=60))
def test_balanced_weights_give_every_present_class_the_same_say(codes):
    y = np.array(codes)
    weights = balanced_weights(y, 5)
    assert weights.mean() == pytest.approx(1)
    present = np.unique(y)
    for code in present:
        assert weights[y == code].sum() == pytest.approx(len(y) / len(present))


@given(
    st.lists(st.integers(0, 4), min_size=1, max_size=60), st.lists(st.integers(0, 9), min_size=5, max_size=5)
)
def test_weights_towards_give_classes_the_wanted_proportions(codes, wanted):
    y, wanted = np.array(codes), np.array(wanted)
    weights = weights_towards(wanted, y)
    assert weights.mean() == pytest.approx(1)
    says = np.array([weights[y == code].sum() for code in range(5)])
    counts = np.bincount(y, minlength=5)
    # A class that nobody asked about keeps its share.
    assert says[wanted == 0] == pytest.approx(counts[wanted == 0])
    asked = (wanted > 0) & (counts > 0)
    share = wanted[asked] / wanted[asked].sum() * counts[asked].sum()
    assert says[asked] == pytest.approx(share)


def test_seeded_repeats_and_gives_the_states_back():
    import torch

    def draw():
        return random.random(), np.random.random(), torch.rand(1).item()  # noqa: NPY002

    before = random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state()  # noqa: NPY002
    with seeded(5):
        first = draw()
    again = []

    def fail():
        with seeded(5):
            again.append(draw())
            raise ValueError("inside")

    with pytest.raises(ValueError, match="inside"):
        fail()
    assert again == [first]
    with seeded(6):
        assert draw() != first
    assert random.getstate() == before[0]
    assert np.random.get_state()[1].tolist() == before[1]  # noqa: NPY002
    assert torch.equal(torch.get_rng_state(), before[2])


def test_seeded_takes_seeds_of_any_size_and_of_numpy():
    with seeded(2**80 + 1):
        pass
    with seeded(np.int64(3)):
        first = random.random()
    with seeded(3):
        assert random.random() == first


def test_a_second_thread_waits_for_the_global_random_states():
    inside = threading.Event()

    def work():
        with seeded(2):
            inside.set()

    thread = threading.Thread(target=work)
    with seeded(1):
        thread.start()
        assert not inside.wait(0.1)
    assert inside.wait(5)
    thread.join()


def test_black_box_keeps_the_text_of_the_error_inside():
    with pytest.raises(LearnerError) as caught, black_box("Tree", "fit"):
        raise ValueError("patient 4711 is HIV positive")
    assert str(caught.value) == "Tree.fit raised ValueError"
    assert isinstance(caught.value.__cause__, ValueError)


def test_black_box_lets_our_own_lines_and_interrupts_through():
    with pytest.raises(LearnerError, match=r"^said well$"), black_box("Tree", "fit"):
        raise LearnerError("said well")
    with pytest.raises(KeyboardInterrupt), black_box("Tree", "fit"):
        raise KeyboardInterrupt


def test_in_order_brings_columns_to_the_order_they_were_learnt_in():
    frame = pd.DataFrame({"b": [1], "extra": [0], "a": [2]})
    assert columns_of(columns_as_learnt(frame, ["a", "b"], "Tree")) == ["a", "b"]
    array = np.zeros((1, 2))
    assert columns_as_learnt(array, ["a", "b"], "Tree") is array
    with pytest.raises(LearnerError, match=r"^Tree learnt from a column 'c' that these"):
        columns_as_learnt(frame, ["a", "c"], "Tree")


def test_cards_are_checked(tmp_path: Path):
    with pytest.raises(LearnerError, match=r"no learner\.json in .*written by save"):
        read_card(tmp_path, "Tree", {})
    write_card(tmp_path, "Tree", {"n_classes": 3})
    assert read_card(tmp_path, "Tree", {"n_classes": int})["n_classes"] == 3
    with pytest.raises(LearnerError, match="belongs to 'Tree'; wants 'Forest'"):
        read_card(tmp_path, "Forest", {})
    with pytest.raises(LearnerError, match="seed is None; wants int"):
        read_card(tmp_path, "Tree", {"seed": int})
    (tmp_path / "learner.json").write_text("{")
    with pytest.raises(LearnerError, match="cannot be read: JSONDecodeError"):
        read_card(tmp_path, "Tree", {})
    (tmp_path / "learner.json").write_text("[]")
    with pytest.raises(LearnerError, match="belongs to 'list'"):
        read_card(tmp_path, "Tree", {})


def run(code: str) -> str:
    """Run code in a fresh interpreter and hand back the last line it printed."""
    source = str(Path(cosilo.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=60,
        env=os.environ | {"PYTHONPATH": source},
    )
    return (done.stdout + done.stderr).strip().splitlines()[-1]


def test_learners_do_not_import_torch():
    code = (
        "import sys; from cosilo.learners import Estimator, Training, as_learner;"
        "from sklearn.tree import DecisionTreeClassifier as T; as_learner(T()); print('torch' in sys.modules)"
    )
    assert run(code) == "False"


@pytest.mark.parametrize("module", ["cosilo.learners.network", "cosilo.learners.training_loop"])
def test_without_torch_one_line_says_what_to_install(module):
    hide = "import sys; sys.modules['torch'] = None; "
    # None in sys.modules is how Python marks a module that must not be found.
    line = run(f"{hide}import {module}")
    assert line.endswith(
        "MissingExtra: a network needs torch: make install EXTRAS=torch, or pip install 'cosilo-….whl[torch]'"
    )
    caught = f"try: import {module}\nexcept ImportError: print('skipped')"
    assert run(f"import sys; sys.modules['torch'] = None\n{caught}") == "skipped"


def test_unknown_names_are_an_attribute_error():
    import cosilo.learners

    with pytest.raises(AttributeError, match="no attribute 'Oracle'"):
        cosilo.learners.Oracle  # noqa: B018
