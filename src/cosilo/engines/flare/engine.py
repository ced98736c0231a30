"""The engine of FLARE's simulator, which is imported where FLARE is not installed too."""

from collections.abc import Sequence

from cosilo.coordination.run_loop import PlannedRun
from cosilo.engines.flare import need_flare
from cosilo.engines.flare.names import check_silo_name
from cosilo.errors import ConfigError


class FlareSimulator:
    """Runs a recipe's silos in processes of FLARE's simulator, on this machine.

    Silos made in Python stay in their process: the recipe is read again in each.
    """

    def ready(self, silos: Sequence[str], from_recipe: bool) -> None:
        """FLARE has to be installed, and silos have to come from a recipe, with names that FLARE can use."""
        need_flare()
        if not from_recipe:
            raise ConfigError("the flare engine runs recipes: silos made in Python stay in their process")
        for name in silos:
            check_silo_name(name, f"silo {name!r}")

    def about(self) -> dict[str, str | int]:
        """Its name."""
        return {"engine": "flare"}

    def execute(self, planned: PlannedRun) -> None:
        """Do what is left of a run."""
        from cosilo.engines.flare.simulator import simulate

        simulate(planned.run.folder, planned.terms.silos)
