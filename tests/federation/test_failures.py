"""A silo that failed is never silent: Python warns, the run has it, commands end with it."""

import subprocess
import sys
import warnings

import pytest
from sklearn.datasets import load_digits
from sklearn.naive_bayes import GaussianNB

from cosilo import CoFED, FedAvg, Federation, Run, Silo
from cosilo.errors import ConfigError, RunError, SiloFailed

X, Y = load_digits(return_X_y=True)


class Broken(GaussianNB):
    def fit(self, X, y):
        raise ValueError("private")


def federation(learner: object) -> Federation:
    silos = [Silo("a", X[:200], Y[:200], learner), Silo("b", X[200:400], Y[200:400], GaussianNB())]
    return Federation(silos, X[400:600], CoFED())


def test_python_warns_and_the_run_has_it(tmp_path):
    with pytest.warns(SiloFailed, match="1 of 2 silos failed, 1 did all steps: step 'train': silo 'a'"):
        run = federation(Broken()).run(tmp_path / "run")
    assert [(one["silo"], one["step"]) for one in run.failures] == [("a", "train")]
    assert repr(run).endswith("cofed, finished, 1 of 2 silos failed>")
    with pytest.warns(SiloFailed):  # opened again, it says so again
        federation(Broken()).run(tmp_path / "run")


def test_who_did_well_is_not_warned_of(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error", SiloFailed)
        run = federation(GaussianNB()).run(tmp_path / "run")
    assert (run.failures, run.failed_silos()) == ([], "")


def test_a_command_ends_with_it(tmp_path, cosilo):
    (tmp_path / "shy_learner.py").write_text(
        "from sklearn.naive_bayes import GaussianNB\n"
        "class Shy(GaussianNB):\n"
        "    def fit(self, X, y):\n"
        "        raise ValueError\n"
    )
    (tmp_path / "recipe.toml").write_text(
        "[simulation]\ndataset = 'digits'\nsplit = { use = 'iid', silos = 2, size = 100 }\n"
        "learners = [{ use = 'shy_learner.Shy' }, { use = 'sklearn.naive_bayes.GaussianNB' }]\n"
        "[pool]\nrest = true\nsize = 100\n"
    )
    code, output, errors = cosilo("run", tmp_path / "recipe.toml", "--dir", tmp_path / "run")
    assert code == 0
    assert (
        "1 of 2 silos failed, 1 did all steps: step 'train': silo 'silo-1': Shy.fit raised ValueError"
        in output
    )
    assert "SiloFailed" not in errors
    assert "Nothing changed" in output or "the federation helped" in output.lower()  # the report says so


def test_a_run_whose_process_is_gone_is_interrupted(tmp_path):
    federation(GaussianNB()).run(tmp_path / "run")
    Run(tmp_path / "run").set_status("running")
    assert Run(tmp_path / "run").status == "interrupted"
    script = (
        "import sys; from pathlib import Path; from cosilo.runs.locks import locked\n"
        f"with locked(Path({str(tmp_path / 'run')!r})):\n    print('in', flush=True); sys.stdin.read()"
    )
    holder = subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert holder.stdout.readline() == b"in\n"
    assert Run(tmp_path / "run").status == "running"
    holder.communicate()
    assert Run(tmp_path / "run").status == "interrupted"


def test_a_file_is_no_folder(tmp_path):
    (tmp_path / "afile").write_text("x")
    with pytest.raises(RunError, match="afile: is a file; wants a folder"):
        federation(GaussianNB()).run(tmp_path / "afile")


@pytest.mark.parametrize(
    ("make", "line"),
    [
        (lambda: CoFED(alpha=2), "CoFED.alpha: got 2; wants at most 1"),
        (
            lambda: CoFED(alph=1),
            "CoFED.alph: there is no such parameter (did you mean 'alpha'?); wants",
        ),
        (lambda: FedAvg(rounds="x"), "FedAvg.rounds: got 'x'; wants a whole number"),
    ],
)
def test_a_wrong_parameter_is_one_line(make, line):
    with pytest.raises(ConfigError) as error:
        make()
    assert str(error.value).startswith(line)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", ["Münster", "Łódź-2", "北京", "Αθήνα", "مستشفى", "e\u0301cole"])
def test_names_of_any_script(tmp_path, name):
    silos = [Silo(name, X[:100], Y[:100], GaussianNB()), Silo("b", X[100:200], Y[100:200], GaussianNB())]
    run = Federation(silos, X[400:500], CoFED()).run(tmp_path / "run")
    assert len(run.audit(silos[0].name)) > 2
    assert silos[0].name in run.report().read_text()


@pytest.mark.parametrize("name", ["", "a b", "../a", "-a", ".a", "a/b", "a\n", "a\x00", "x" * 65, "𠀀" * 64])
def test_names_that_are_none(name):
    with pytest.raises(ConfigError, match=r"silo name .*: wants letters \(of any script\), digits, "):
        Silo(name, X[:100], Y[:100], GaussianNB())


def test_names_that_file_systems_take_for_the_same():
    silos = [Silo(name, X[:100], Y[:100], GaussianNB()) for name in ("STRASSE", "straße")]
    with pytest.raises(ConfigError, match="2 silos are called"):
        Federation(silos, X[400:500])
