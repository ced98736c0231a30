"""The page of a run that goes on: who is asked, who answered, the curve so far, what left so far."""

import math
from collections.abc import Sequence

from markupsafe import Markup, escape

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
    kept = read_json(path) if path.exists() else {}
    stages = kept["stages"] if isinstance(kept, dict) and kept else []
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
            curve=Markup(_curve([(stage, accuracy) for stage, accuracy, _ in stages])),
            failures=[event["text"] for event in events if event["event"] == "failure"][-20:],
        )
    )


def _curve(stages: Sequence[tuple[str, float]]) -> str:
    """A line through the stages, between whole tens of percent; one of them alone is no curve."""
    if len(stages) < 2:
        return ""
    values = [accuracy for _, accuracy in stages]
    low, high = math.floor(10 * min(values)) * 10, math.ceil(10 * max(values)) * 10
    high += 10 * (low == high)
    points = [
        (50 + 430 * place / (len(values) - 1), 130 - 120 * (100 * value - low) / (high - low))
        for place, value in enumerate(values)
    ]
    lines = [
        f'<line x1="50" x2="480" y1="{y}" y2="{y}" stroke="#d5dbe1"/>'
        f'<text x="44" y="{y + 4}" text-anchor="end">{percent} %</text>'
        for percent, y in ((high, 10), (low, 130))
    ]
    ends = ((50, "start", stages[0][0]), (480, "end", stages[-1][0]))
    lines += [f'<text x="{x}" y="148" text-anchor="{to}">{escape(name)}</text>' for x, to, name in ends]
    return (
        f'<svg viewBox="0 0 490 155" role="img" font-size="11" fill="#5b6773" aria-label="Mean accuracy from '
        f'{values[0]:.3f} to {values[-1]:.3f}">{"".join(lines)}'
        f'<polyline points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in points)}" fill="none" stroke="#1b6ca8" '
        'stroke-width="2"/></svg>'
    )
