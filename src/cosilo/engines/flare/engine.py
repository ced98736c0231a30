"""The engine of FLARE's simulator, which is imported where FLARE is not installed too."""

from cosilo.coordination.run_loop import PlannedRun
from cosilo.engines.flare import need_flare
from cosilo.errors import ConfigError


class FlareSimulator:
    """Runs a recipe's silos in processes of FLARE's simulator, on this machine.

    Silos made in Python stay in their process: the recipe is read again in each.
    """

    def ready(self, from_recipe: bool) -> None:
        """FLARE has to be installed, and the silos have to come from a recipe."""
        need_flare()
        if not from_recipe:
            raise ConfigError("the flare engine runs recipes: silos made in Python stay in their process")

    def about(self) -> dict[str, str | int]:
        """Its name."""
        return {"engine": "flare"}

    def execute(self, planned: PlannedRun) -> None:
        """Do what is left of a run."""
        from cosilo.engines.flare.simulator import simulate

        for name in planned.terms.silos:
            if not name.isascii():
                raise ConfigError(f"silo {name!r}: FLARE wants names of letters a to z, digits, '_' and '-'")
        simulate(planned.run.folder, planned.terms.silos)
