"""A run as its owner uses it: what its directory tells, and the silos with what they have learnt."""

import math
from collections.abc import Mapping
from html import escape
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cosilo.coordination.institution import Institution
from cosilo.data.own_files import Table
from cosilo.errors import RunError
from cosilo.federation.late import add_silo
from cosilo.protocol.metrics import NUMBERS
from cosilo.protocol.stage import FEDERATED, LOCAL, Stage
from cosilo.report.link import Link
from cosilo.runs.kept_models import choose
from cosilo.runs.run import RunDirectory
from cosilo.silo.model import Model
from cosilo.silo.silo import Silo

if TYPE_CHECKING:
    import pandas as pd


class Run(RunDirectory):
    """One execution of a method, with a directory that holds all of it.

    `Federation.run` gives one; `Run.open(folder)` opens the directory of another one, finished or not.

    Parameters
    ----------
    folder : str or Path
        The run directory.
    silos : mapping of str to Silo, default None
        The silos with what they have learnt, by name, where they are in this process.
    institutions : mapping of str to Institution, default None
        Those with members likewise.

    Attributes
    ----------
    folder : Path
        The run directory.
    silos : mapping of str to Silo
        The silos with what they have learnt, by name; empty if the run was only opened.
    institutions : mapping of str to Institution
        Those with members; their `member(name)` brings one of these with what it has learnt.
    method : str
        The method's name.
    status : str
        `running`, `interrupted` (its process is gone), `stopped`, `refused` or `finished`.
    failures : list of dict
        The steps that silos did not do, each with its reason.
    about : dict
        Settings, seed and status.
    result : dict
        Scores and findings of a finished run.
    clock : Clock or None
        What its simulated time is told by.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from cosilo import Federation, Local
    >>> silo = Silo("clinic", np.eye(20), ["well", "ill"] * 10, GaussianNB())
    >>> made = Federation([silo], method=Local()).run(tempfile.mkdtemp())
    >>> run = Run(made.folder)
    >>> run.status, sorted(run.scores("local")), run.bytes_sent("clinic") > 0
    ('finished', ['clinic'], True)
    """

    def __init__(
        self,
        folder: str | Path,
        silos: Mapping[str, Silo] | None = None,
        institutions: Mapping[str, Institution] | None = None,
    ) -> None:
        super().__init__(folder)
        self._learners: Mapping[str, Any] = {}
        self.silos = silos or {}
        self.institutions = institutions or {}

    @classmethod
    def open(cls, folder: str | Path, learners: Mapping[str, Any] | None = None) -> "Run":
        """Open the directory of a run, with the models of its silos, whose data is not needed for that.

        Parameters
        ----------
        folder : str or Path
            The run directory.
        learners : mapping, default None
            By silo, a learner like the one that it trained. A recipe says how to make them again, and
            scikit-learn's are kept with the run; networks and classes of your own that were handed over in
            Python have to be handed over again.

        Returns
        -------
        Run
            The run; `model` has what a silo has learnt.
        """
        run = cls(folder)
        run._learners = dict(learners or {})
        return run

    def model(self, silo: str, which: str | None = None) -> Model:
        """What a silo has learnt, ready to predict.

        Parameters
        ----------
        silo : str
            Its name; a member of an institution is called "INSTITUTION/MEMBER".
        which : {"local", "federated", "continued"}, default None
            Which of its models; None: the one that `use` chose, else what the run ended with.

        Returns
        -------
        Model
            With `predict`, `predict_proba`, `classes` and what was fitted.
        """
        # Recipes say how learners are made; they stand above this room.
        make = import_module("cosilo.config.models").model_of
        learner = self.silos[silo].learner if silo in self.silos else self._learners.get(silo)
        found: Model = make(self.record(silo), learner, which)
        return found

    def use(self, silo: str, which: str) -> Model:
        """Choose which of a silo's models predicts from now on: for `model` and for `cosilo predict`.

        Parameters
        ----------
        silo : str
            Its name.
        which : {"local", "federated", "continued"}
            The model from before the federation, the one that came of it, or that of `cosilo continue`.

        Returns
        -------
        Model
            That model.
        """
        found = self.model(silo, which)  # it has to be there
        choose(self.record(silo), which)
        return found

    def add(self, silo: Silo) -> None:
        """Let a silo that comes late gain from a finished run, while nobody else does anything.

        It trains, labels the pool, and gets what all ballots elect for its classes. Its scores are then in
        the run's result, and its model with the others'.

        Parameters
        ----------
        silo : Silo
            The late silo; without a pool of its own it gets that of the run, if the run's silos are here.
        """
        late = silo.fresh()
        other = next((one for one in self.silos.values() if one.pool is not None), None)
        if late.pool is None and other is not None:
            late.use_pool(other.pool, other.pool_fingerprint, other.pool_labels)
        add_silo(self, late)
        self.silos = {**self.silos, late.name: late}

    def train_on(self, silo: str, X: Any, y: Any) -> Model:
        """Let a silo of this process train on with more data: from its model, with what it got from others.

        Parameters
        ----------
        silo : str
            Its name.
        X : array, DataFrame or list of str
            All instances that are new since the run.
        y : array of labels
            Their classes.

        Returns
        -------
        Model
            The continued model, which is in use from now on.
        """
        if silo not in self.silos:
            raise RunError(f"{self.folder}: silo {silo!r} is not in this process; call its federation's run")
        going_on = import_module("cosilo.config.going_on")
        going_on.train_on(self.record(silo), self.silos[silo].fresh(), [Table(X, y)])
        return self.model(silo, "continued")

    def export(self, silo: str, folder: str | Path, which: str | None = None) -> Path:
        """Write a silo's model into a folder that works without cosilo: model, card, `predict.py`.

        Parameters
        ----------
        silo : str
            Its name.
        folder : str or Path
            A new folder.
        which : {"local", "federated", "continued"}, default None
            Which of its models; None: the one in use.

        Returns
        -------
        Path
            The folder.
        """
        from cosilo.export.export import export_model
        from cosilo.export.facts import origin_of

        export_model(self.model(silo, which), origin_of(self.record(silo), silo, self), Path(folder))
        return Path(folder)

    def report(self) -> Link:
        """Write the report of a finished run, one HTML file that opens offline, into its directory.

        Returns
        -------
        Path
            Where it is; a notebook shows it as a link.
        """
        from cosilo.report.run_page import write_report

        return Link(write_report(self))

    def _repr_html_(self) -> str:
        """What a notebook shows: the verdict of the report, and a table."""
        if self.status != "finished":
            return f"<p>{escape(repr(self))}</p>"
        from cosilo.report.facts import gather
        from cosilo.report.phrases import verdict

        shown = self.to_frame().dropna(axis="columns", how="all").reset_index()
        table = shown.to_html(index=False, escape=True, na_rep="–", float_format="{:.3f}".format)
        return f"<p>{escape(verdict(gather(self)))}</p>\n{table}"

    def to_frame(self) -> "pd.DataFrame":
        """What came of it, one row for each silo.

        Returns
        -------
        DataFrame
            By silo: `classes` (how many there are in its task), `local_accuracy`, `federated_accuracy`,
            `relative_accuracy`, `instances` (that accuracy was taken on), `bytes_sent`, and `failures` (their
            kinds, with commas between them). Of every other metric that a silo shares there are three columns
            too, such as `local_macro_f1`, `federated_macro_f1` and `relative_macro_f1`, where above 1 is
            better. What a silo does not share, or the method does not have, is missing.
        """
        import pandas as pd

        result, names = self.result, self.about["silos"]
        local, federated = self.scores(str(LOCAL)), self.scores(str(FEDERATED))
        relative = self.relative_accuracy()
        tested = {
            name: score["instances"] for scores in result["scores"].values() for name, score in scores.items()
        }
        failed = [(failure["silo"], failure["kind"]) for failure in result["failures"]]
        rows = [
            {
                "classes": len(result["tasks"].get(name, ())) or None,
                "local_accuracy": local.get(name),
                "federated_accuracy": federated.get(name),
                "relative_accuracy": relative.get(name),
                "instances": tested.get(name),
                "bytes_sent": self.bytes_sent(name),
                "failures": ",".join(dict.fromkeys(kind for silo, kind in failed if silo == name)),
            }
            for name in names
        ]
        whole, real = "Int64", "float64"
        accuracies = dict.fromkeys(("local_accuracy", "federated_accuracy", "relative_accuracy"), real)
        frame = pd.DataFrame(rows, index=pd.Index(names, name="silo"))
        frame = frame.astype({**accuracies, "classes": whole, "instances": whole})
        by_stage = {stage: self.metrics(stage) for stage in (LOCAL, FEDERATED)}
        there = {
            name for silos in result.get("metrics", {}).values() for one in silos.values() for name in one
        }
        for metric in (name for name in NUMBERS if name in there):
            for stage, found in by_stage.items():
                frame[f"{stage}_{metric}"] = [found.get(name, {}).get(metric, math.nan) for name in names]
            gains = self.relative(metric)
            frame[f"relative_{metric}"] = [gains.get(name, math.nan) for name in names]
        return frame

    def confusion(self, silo: str, stage: Stage | str = FEDERATED) -> "pd.DataFrame":
        """How many test instances of each class a silo's model takes for each class, if it shares that.

        Parameters
        ----------
        silo : str
            Its name.
        stage : Stage or str, default "federated"
            After which stage: local, federated or a round.

        Returns
        -------
        DataFrame
            A row for each class that they are of, a column for each class that they are taken for.
        """
        import pandas as pd

        found = self.metrics(stage).get(silo, {}).get("confusion")
        if found is None:
            raise RunError(
                f"{self.folder}: silo {silo!r} shares no confusion matrix after {str(stage)!r}; "
                'it would with "confusion" among its shares'
            )
        classes = self.result["tasks"][silo]
        return pd.DataFrame(found, pd.Index(classes, name="is"), pd.Index(classes, name="taken for"))
