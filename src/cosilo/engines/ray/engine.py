"""The engine of a Ray cluster, which is imported where Ray is not installed too."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from cosilo.coordination.run_loop import PlannedRun, coordinate_run
from cosilo.engines.ray import need_ray
from cosilo.errors import ConfigError
from cosilo.runs.silo_record import SiloRecord


class RayEngine:
    """Runs a recipe's silos on the nodes of a Ray cluster.

    Silos made in Python stay in their process: the recipe is read again at the nodes. All nodes have to see
    the folders of the run, of the recipe and of its data.

    Parameters
    ----------
    address : str, default None
        Where the head of the cluster is, such as "10.0.0.7:6379"; None: `$RAY_ADDRESS`, or the cluster that
        this machine belongs to, or else one that is started here and ends with the run.

    Examples
    --------
    >>> RayEngine("10.0.0.7:6379")
    RayEngine(address='10.0.0.7:6379')
    """

    def __init__(self, address: str | None = None) -> None:
        self.address = address

    def __repr__(self) -> str:
        return f"RayEngine(address={self.address!r})"

    def ready(self, silos: Sequence[str], from_recipe: bool) -> None:
        """Ray has to be installed, the silos have to come from a recipe, and the cluster has to be there."""
        need_ray()
        if not from_recipe:
            raise ConfigError("the ray engine runs recipes: silos made in Python stay in their process")
        from cosilo.engines.ray.cluster import reach

        reach(self.address)

    def about(self) -> dict[str, str | int]:
        """Its name."""
        return {"engine": "ray"}

    def runs_at_once(self, workers: int) -> int:
        """As many as the cluster has CPUs for the workers of; a run without a number takes all of it."""
        import ray

        from cosilo.engines.ray.cluster import connected

        with connected(self.address):
            return int(ray.cluster_resources().get("CPU", 0.0)) // workers if workers else 1

    def side_by_side(
        self,
        work: Callable[..., str | None],
        jobs: Mapping[tuple[str, int], tuple[object, ...]],
        at_once: int,
    ) -> Iterator[tuple[tuple[str, int], str | None]]:
        """Each job is a task on this node that takes no CPU: the hosts that it asks for do the work."""
        from cosilo.engines.ray.cluster import connected
        from cosilo.engines.ray.tasks import tasks_here

        with connected(self.address):
            given = {job: (RayEngine(), *arguments) for job, arguments in jobs.items()}
            yield from tasks_here(work, given, at_once)

    def execute(self, planned: PlannedRun) -> None:
        """Do the rest of a run on the cluster."""
        from cosilo.engines.ray.carrier import RayCarrier
        from cosilo.engines.ray.cluster import connected

        for silo in planned.silos:  # a node that has other data or other versions then says so
            SiloRecord(planned.run.folder / "silos" / silo.name).check_identity(silo, but=["shares"])
        with connected(self.address):
            coordinate_run(planned, RayCarrier(planned.run.folder, planned.silos))
