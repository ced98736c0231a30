"""The page of a run that goes on: who is asked, who answered, the curve so far, what left so far."""

from collections.abc import Sequence

from markupsafe import Markup

from cosilo.report.run_page import environment
from cosilo.runs.durable_files import read_json
from cosilo.runs.run import RunDirectory


def live_page(run: RunDirectory) -> str:
    """The whole page; it asks for its part anew while the run goes on."""
    page = environment().get_template("live.html")
    about = {"name": run.folder.resolve().name, "method": run.method, "silos": len(run.about["silos"])}
    return page.render(**about, part=Markup(live_part(run)))


def live_part(run: RunDirectory) -> str:
    """What changes while a run goes on."""
    events, silos = run.events(), run.about["silos"]
    last = next((event for event in reversed(events) if event["event"] == "ask"), None)
    number = None if last is None else last["ask"]
    told = [event for event in events if event.get("ask") == number and number is not None]
    path = run.folder / "so_far.json"
    stages = read_json(path) if path.exists() else []
    return (
        environment()
        .get_template("live_part.html")
        .render(
            state=f"The run is {run.status}." if run.status != "running" else "The run goes on.",
            ask=number,
            step=None if last is None else last["step"],
            asked=[] if last is None else last["silos"],
            answered=[event["silo"] for event in told if event["event"] == "reply"],
            failed=[event["silo"] for event in told if event["event"] == "failure"],
            silos=silos,
            left={silo: run.bytes_sent(silo) for silo in silos},
            stages=stages,
            curve=Markup(_curve([accuracy for _, accuracy, _ in stages])),
            failures=[event["text"] for event in events if event["event"] == "failure"][-20:],
        )
    )


def _curve(values: Sequence[float]) -> str:
    """A line through the stages; one of them alone is no curve."""
    if len(values) < 2:
        return ""
    low, high = min(values), max(values)
    span = (high - low) or 1.0
    places = [
        f"{10 + 580 * i / (len(values) - 1):.1f},{110 - 100 * (value - low) / span:.1f}"
        for i, value in enumerate(values)
    ]
    return (
        f'<svg viewBox="0 0 600 120" role="img" aria-label="Mean accuracy from {values[0]:.3f} to '
        f'{values[-1]:.3f}"><polyline points="{" ".join(places)}" fill="none" stroke="#2a6fbb" '
        'stroke-width="2"/></svg>'
    )
