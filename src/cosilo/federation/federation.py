"""A federation: silos, a pool and a method; run it and get better models."""

import warnings
from collections.abc import Iterable, Iterator, Mapping
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosilo.coordination.institution import Institution
from cosilo.coordination.run_loop import Engine, PlannedRun, Stopped, Terms
from cosilo.data.instances import Instances, as_instances, fingerprint
from cosilo.data.pool_labels import as_pool_labels
from cosilo.errors import ConfigError, DataError, RunError, SiloFailed
from cosilo.federation.engines import engine_named
from cosilo.federation.progress_bar import ProgressBar
from cosilo.federation.readiness import check_clock, notes_on_learners, problems, try_learners
from cosilo.federation.restored import RestoredSilos
from cosilo.federation.run import Run
from cosilo.learners.description import describe
from cosilo.methods import CoFED
from cosilo.methods.base import Method
from cosilo.protocol.carrier import Failure, FailureKind
from cosilo.protocol.events import Event, Happening, Observer
from cosilo.protocol.participant import check_names_differ, check_quorum
from cosilo.runs.locks import locked
from cosilo.runs.run import RunDirectory
from cosilo.runs.run_folders import begin, instead, new_folder_name, start_over
from cosilo.runs.silo_record import SiloRecord, changes
from cosilo.silo.silo import Silo
from cosilo.simulated_time.clock import Clock
from cosilo.version import PROTOCOL, __version__


class Federation:
    """Silos that learn together; some may be institutions, which have members.

    Parameters
    ----------
    silos : iterable of Silo or Institution
        Who takes part. They are copied: a federation leaves yours untrained.
    pool : array, DataFrame or list of str, default None
        The public instances, the same for all; methods that need none ignore it.
    method : Method, default CoFED()
        What is followed.
    pool_labels : array of labels, default None
        The classes of the pool's instances, for methods that learn from these.
    seed : int, default 0
        All chance is made of it.
    quorum : float, default 0.5
        The fraction of the silos asked that has to answer a step.
    timeout : float, default None
        The seconds that a silo has for a step; none: as long as it takes.
    engine : Engine or str, default "local"
        Where the silos are: `LocalEngine(workers=2)` of your own making, or the name of one.
    clock : Clock, default None
        With one the report tells what the run would have taken in simulated time.
    recipe : mapping, default None
        The recipe that the silos come from, as `cosilo.config.build` hands it over.

    Examples
    --------
    >>> import tempfile
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> silos = [
    ...     Silo("tree", X[:200], y[:200], DecisionTreeClassifier()),
    ...     Silo("bayes", X[200:400], y[200:400], GaussianNB()),
    ... ]
    >>> federation = Federation(silos, pool=X[400:900], method=CoFED(alpha=0.5))
    >>> run = federation.run(tempfile.mkdtemp())
    >>> sorted(run.relative_accuracy())
    ['bayes', 'tree']
    >>> run.silos["tree"].predict(X[:3]).tolist()
    [0, 1, 2]
    """

    def __init__(
        self,
        silos: Iterable[Silo | Institution],
        pool: Any = None,
        method: Method | None = None,
        *,
        pool_labels: Any = None,
        seed: int = 0,
        quorum: float = 0.5,
        timeout: float | None = None,
        engine: Engine | str = "local",
        clock: Clock | None = None,
        recipe: Mapping[str, Any] | None = None,
    ) -> None:
        self.silos = [_checked(silo, "silos", (Silo, Institution), "Silo(…)").fresh() for silo in silos]
        self.method = CoFED() if method is None else _checked(method, "method", (Method,), "CoFED(…)")
        self.seed = seed
        self.quorum = quorum
        self.timeout = timeout
        self.engine = engine_named(engine) if isinstance(engine, str) else engine
        self.clock = clock
        self._recipe = recipe
        self.pool: Instances | None = None
        self.pool_labels: NDArray[np.str_] | None = None
        self.pool_fingerprint: str | None = None
        self._check_settings()
        if pool is not None:
            self._use_pool(as_instances(pool, "the federation's pool"), pool_labels)
        elif pool_labels is not None:
            raise ConfigError("the federation got pool_labels but no pool; wants both, or no labels")
        elif self.method.needs_pool:
            self._pool_of_silos()
        if self.method.needs_pool_labels and self.pool_labels is None:
            raise ConfigError(
                f"{self.method.name} needs a pool with labels; set labelled = true in [pool], "
                "in Python pool_labels=…"
            )

    def __repr__(self) -> str:
        return f"<Federation of {len(self.silos)} silos: {self.method.name}, seed {self.seed}>"

    def _repr_html_(self) -> str:
        """What a notebook shows: a row for each silo."""
        rows = []
        for silo in self.silos:
            learner = f"{len(silo.silos)} members" if isinstance(silo, Institution) else silo.learner.name
            cells = (
                silo.name,
                silo.size,
                ", ".join(silo.task.classes),
                learner,
                ", ".join(sorted(silo.shares)),
            )
            rows.append("<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in cells) + "</tr>")
        heads = "".join(f"<th>{head}</th>" for head in ("silo", "instances", "classes", "learner", "shares"))
        pool = "no pool" if self.pool is None else f"a pool of {len(self.pool)} instances"
        table = f"<table><thead><tr>{heads}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
        return f"<p>{escape(self.method.name)}, seed {self.seed}, {pool}</p>\n{table}"

    def but(self, **changes: Any) -> "Federation":
        """The same federation with some arguments changed.

        Parameters
        ----------
        **changes
            Arguments of `Federation`, such as `method` or `seed`.

        Returns
        -------
        Federation
            A new one, whose silos have learnt nothing.
        """
        given: dict[str, Any] = {
            "silos": self.silos,
            "pool": self.pool,
            "method": self.method,
            "pool_labels": self.pool_labels,
            "seed": self.seed,
            "quorum": self.quorum,
            "timeout": self.timeout,
            "engine": self.engine,
            "clock": self.clock,
        }
        return Federation(**{**given, **changes})

    def _check_settings(self) -> None:
        if not self.silos:
            raise ConfigError("a federation needs silos; got none")
        check_names_differ(self.silos, "silos")
        check_quorum(self.quorum)
        if not isinstance(self.seed, int | np.integer) or self.seed < 0:
            raise ConfigError(f"seed = {self.seed!r}; wants a whole number of at least 0")
        if self.timeout is not None and self.timeout <= 0:
            raise ConfigError(f"timeout = {self.timeout}; wants a positive number of seconds")
        if self.clock is not None:
            check_clock(self.clock, self.method)

    @property
    def _plain(self) -> list[Silo]:
        """The silos without members."""
        return [silo for silo in self.silos if isinstance(silo, Silo)]

    @property
    def _institutions(self) -> list[Institution]:
        return [silo for silo in self.silos if isinstance(silo, Institution)]

    def _use_pool(self, pool: Instances, labels: Any) -> None:
        """Hold the pool, and give it to every silo that brings none itself."""
        if len(pool) == 0:
            raise DataError("the federation's pool: is empty; wants instances (a split may leave none over)")
        self.pool = pool
        if labels is not None:
            self.pool_labels = as_pool_labels(labels, pool, "the federation's pool")
        self.pool_fingerprint = fingerprint(pool, self.pool_labels)
        for silo in self._plain:
            if silo.pool is None:
                silo.use_pool(pool, self.pool_fingerprint, self.pool_labels)

    def _pool_of_silos(self) -> None:
        """Where every silo brings the pool itself, the first one's is what the others are held against."""
        holder = next((silo for silo in self._plain if silo.pool is not None), None)
        if holder is None:
            raise ConfigError(
                f"{self.method.name} needs a pool; give one: [pool] in a recipe, pool=… in Python"
            )
        self.pool, self.pool_fingerprint = holder.pool, holder.pool_fingerprint
        self.pool_labels = holder.pool_labels

    def check(self, learners: bool = True) -> list[str]:
        """What would keep this federation from starting or make its result mean nothing, one line each.

        Parameters
        ----------
        learners : bool, default True
            Whether to try every learner out on a few instances: fit, predict, save, load.

        Returns
        -------
        list of str
            The lines; none if it is ready to run. No directory is written.
        """
        found = problems(self.method, self.silos, self.pool, self.pool_fingerprint)
        return [*found, *try_learners(self._all_plain)] if learners else found

    def notes(self) -> list[str]:
        """What owners should look at before a run, one line each: nothing is wrong, but perhaps not meant."""
        data = [line for silo in self._all_plain for line in silo.notes_on_data()]
        return [*data, *notes_on_learners(self._all_plain)]

    @property
    def _all_plain(self) -> list[Silo]:
        """All that have data: silos and members."""
        return self._plain + [member for one in self._institutions for member in one.silos]

    def settings(self) -> dict[str, Any]:
        """What makes this run what it is: a directory can only be continued with the same."""
        members = {silo.name: [member.name for member in silo.silos] for silo in self._institutions}
        return {
            "cosilo": __version__,
            "protocol": PROTOCOL,
            "method": {"use": self.method.name, **self.method.model_dump(mode="json")},
            "seed": self.seed,
            "silos": [silo.name for silo in self.silos],
            **({"members": members} if members else {}),
            # One that only tells the time may change.
            **({"clock": self._clock_values()} if self.clock and self.clock.budget is not None else {}),
            "pool": self.pool_fingerprint,
            "pool_size": 0 if self.pool is None else len(self.pool),
        }

    def _clock_values(self) -> dict[str, Any] | None:
        return None if self.clock is None else self.clock.model_dump(mode="json", exclude_unset=True)

    def run(self, folder: str | Path | None = None, *, observers: Iterable[Observer] | None = None) -> Run:
        """Run the method.

        A directory of a run that was interrupted is continued where it stopped; that of a finished one is
        only opened.

        Parameters
        ----------
        folder : str or Path, default None
            The run directory; None: a new one in `runs/`.
        observers : iterable of Observer, default None
            Are told what happens, besides the run's own event log; None: a progress bar, on a terminal.

        Returns
        -------
        Run
            Scores, findings and logs, and the silos with what they have learnt.

        Examples
        --------
        >>> import tempfile
        >>> from sklearn.naive_bayes import GaussianNB
        >>> from cosilo import Local
        >>> silo = Silo("clinic", np.eye(20), ["well", "ill"] * 10, GaussianNB())
        >>> asked = []
        >>> run = Federation([silo], method=Local()).run(tempfile.mkdtemp(), observers=[asked.append])
        >>> [str(event.facts["step"]) for event in asked if event.what == "ask"]
        ['hello', 'train', 'evaluate']
        """
        path = Path(folder) if folder is not None else new_folder_name(Path("runs"), self.method.name)
        self.engine.ready([silo.name for silo in self.silos], from_recipe=self._recipe is not None)
        watching = [ProgressBar()] if observers is None else list(observers)
        with locked(path):
            run = self.open_folder(path)
            clock = self._clock_values()
            if run.about.get("clock") != clock:
                if run.clock is not None and run.clock.budget is not None:
                    raise RunError(
                        f"{path}: was begun with a clock whose budget ends it, now the clock is another one; "
                        f"put it back, or {instead(path)}"
                    )
                run.set_status(run.status, clock=clock)  # it only tells the time, also of what is past
            if run.status == "refused":
                start_over(path)
            if run.status != "finished":
                facts = {"quorum": self.quorum, "timeout": self.timeout, **self.engine.about()}
                run.set_status("running", code=describe(type(self.method)).value, **facts)
                for line in notes_on_learners(self._all_plain):
                    for observer in watching:
                        observer(Event(Happening.WARNING, {"text": line}))
                self._execute(PlannedRun(run, self.method, self.terms(), self.silos, watching))
            for silo in self._institutions:
                record = SiloRecord(path / "silos" / silo.name)
                record.restore(silo)
                silo.keep_record(record)
            plain = RestoredSilos(self._plain, path / "silos")
        institutions = {silo.name: silo for silo in self._institutions}
        done = RunDirectory(path)
        if done.failures:
            warnings.warn(done.failed_silos(), SiloFailed, stacklevel=2)
        return Run(path, plain, institutions)

    def open_folder(self, path: Path, whole: Path | None = None) -> RunDirectory:
        """A run directory as this federation's: a new one, or one whose run is this run, or an error.

        `whole` is the folder that its owner has a say in, if not this one.
        """
        run, code = begin(path, self.settings(), self._recipe, whole), describe(type(self.method)).value
        if run.status == "finished" and run.about.get("code", code) != code:  # till then it may be mended
            raise RunError(f"{path}: was run with other code of {run.method}; {instead(whole or path)}")
        if run.status != "refused":  # there nothing was computed
            for changed in self._changes(path):
                raise RunError(f"{path}: {changed}; put it back, or {instead(whole or path)}")
        return run

    def _changes(self, path: Path) -> Iterator[str]:
        """What silos and members with a record there are not any more."""
        for silo in self.silos:
            folder = path / "silos" / silo.name
            if changed := changes(folder, silo):
                yield changed
            for member in silo.silos if isinstance(silo, Institution) else ():
                if changed := changes(folder / "members" / member.name, member):
                    yield f"silo {silo.name!r}: {changed}"

    def terms(self) -> Terms:
        """What the coordinator knows of it."""
        return Terms(
            silos=[silo.name for silo in self.silos],
            seed=self.seed,
            quorum=self.quorum,
            timeout=self.timeout,
            pool=self.pool_fingerprint,
            pool_size=0 if self.pool is None else len(self.pool),
            pool_classes=() if self.pool_labels is None else tuple(np.unique(self.pool_labels).tolist()),
        )

    def _execute(self, planned: PlannedRun) -> None:
        try:
            self.engine.execute(planned)
        except Stopped as stopped:
            kind = type(stopped.error)
            raise kind(f"{stopped}{_own_logs(planned.run.folder, stopped.failed)}") from stopped.error


def _own_logs(path: Path, failed: Mapping[str, Failure]) -> str:
    """What the silos' own logs say about failures: here their owner is whoever runs the federation."""
    lines = []
    for name, failure in failed.items():
        log = path / "silos" / name / "log.txt"
        if failure.kind in (FailureKind.LEARNER, FailureKind.ERROR) and log.exists():
            text = log.read_text(encoding="utf-8", errors="replace").strip()
            last = text.rpartition("\n")[2]
            if last.partition(": ")[2] not in failure.text:  # it knows more than was said already
                lines.append(f"\n{log}: {last}")
    return "".join(lines)


def _checked(given: Any, what: str, kinds: tuple[type, ...], such_as: str) -> Any:
    """What was given, if it is an object of one of these kinds."""
    if isinstance(given, kinds):
        return given
    got = f"the class {given.__name__}" if isinstance(given, type) else type(given).__name__
    if isinstance(given, str):  # other things may be private data
        got = repr(given)
    raise ConfigError(f"{what}: got {got}; wants an object such as {such_as}")
