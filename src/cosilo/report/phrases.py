"""The sentences of a report, and numbers as people read them."""

import unicodedata
from collections.abc import Iterable, Sequence
from typing import Any

from cosilo.report.facts import Facts
from cosilo.report.results import Results, Spread
from cosilo.report.targets import Targets
from cosilo.report.traffic import Traffic
from cosilo.text import listing


def verdict(facts: Facts) -> str:
    """Whether it helped, in a sentence or two with their numbers."""
    return _verdict(facts.results) + labelling(facts.targets)


def labelling(targets: Targets) -> str:
    """How good the labels of the target points are, in one sentence; nothing if nobody knows."""
    if not targets.means:
        return ""
    *_, last = targets.means
    text = f" {percent(targets.means[last])} of the unlabelled target points have the right label"
    if last != "local" and "local" in targets.means:
        text += f", {percent(targets.means['local'])} after local training"
    return f"{text} (mean of {_silos(targets.compared)})."


def _verdict(results: Results) -> str:
    if results.spread is not None:
        return _gains(results.spread) + _others(results)
    if results.means:
        mean = f"mean accuracy {percent(results.means[results.stages[0]])} over {_silos(results.compared)}"
        if list(results.stages) == ["local"]:
            return (
                f"Every silo trained alone: {mean}; nothing was exchanged, so there is no gain to report."
                + _others(results)
            )
    if results.means and not results.has_local:
        mean = f"mean accuracy {percent(results.means[results.stages[-1]])} over {_silos(results.compared)}"
        return f"No silo trained alone first, so there is no gain to report: {mean}." + _others(results)
    if any(silo.scores for silo in results.silos):
        return (
            "No silo has an accuracy both before and after the federation, so this report cannot say "
            "whether it helped." + _others(results)
        )
    return (
        "No silo shares its accuracy, so this report cannot say whether the federation helped; each silo "
        "finds its own scores in its own folder." + _others(results)
    )


def _gains(spread: Spread) -> str:
    number = spread.silos
    if spread.same == number:
        head = "Nothing changed"
    elif spread.mean > 1 and spread.gained > spread.lost:
        head = "The federation helped"
    elif spread.mean < 1 and spread.lost > spread.gained:
        head = "The federation did not help"
    else:
        head = "A mixed result"
    if number == 1:
        what = "gained" if spread.gained else "lost" if spread.lost else "stayed the same"
        return f"{head}: the one silo with a score {what}; relative accuracy {ratio(spread.mean)}."
    # What happened to most comes first.
    told = sorted([(spread.gained, "gained"), (spread.lost, "lost")], key=lambda one: -one[0])
    told.append((spread.same, "stayed the same"))
    (most, how), *rest = [(count, what) for count, what in told if count]
    parts = [f"{most} of {_silos(number)} {how}", *[f"{count} {what}" for count, what in rest]]
    return (
        f"{head}: {', '.join(parts)}; mean relative accuracy {ratio(spread.mean)} "
        f"(from {ratio(spread.low)} to {ratio(spread.high)}, median {ratio(spread.median)})."
    )


def _others(results: Results) -> str:
    """What the numbers leave out."""
    told = []
    private = sum(silo.private for silo in results.silos)
    failed = sum(bool(silo.failures) for silo in results.silos)
    if private and private < len(results.silos):
        told.append(f"{_silos(private)} {_verb(private, 'keeps its', 'keep their')} accuracy private")
    if failed:
        told.append(f"{_silos(failed)} failed in a step")
    if not told:
        return ""
    sentence = " and ".join(told)
    return f" {sentence[0].upper()}{sentence[1:]}."


def certainty(spread: Spread) -> str:
    """How much of the change the size of the test sets could explain."""
    clear = spread.clear_gains + spread.clear_losses
    changed = spread.gained + spread.lost
    if not changed:
        return ""
    if not clear:
        return "No change is larger than two standard errors of the silo's own test set: all may be chance."
    rest = "" if clear == changed else "; the others may be chance"
    split = f"{spread.clear_gains} up, {spread.clear_losses} down"
    return (
        f"{clear} of the {plural(changed, 'change')} ({split}) {_verb(clear, 'is', 'are')} larger than two "
        f"standard errors of the silo's own test set{rest}."
    )


def exchange(traffic: Traffic) -> str:
    """What left, next to what sending models would have cost; only silos of which both are known."""
    silos = traffic.weighed
    # Where silos only say who they are and how good, there is no exchange to compare with another.
    if not silos or all(field.kind in ("task", "metrics") for field in traffic.fields):
        return ""
    left = sum(sent.total for sent in silos)
    once = sum(sent.model or 0 for sent in silos) * traffic.rounds
    every = len(silos) == len(traffic.silos)
    models = plural(len(silos), "model") + ("" if every else " that can be weighed here")
    it = "it weighs" if len(silos) == 1 else "they weigh"
    often = "once" if traffic.rounds == 1 else f"once in each of the {traffic.rounds} rounds"
    times = f"{once / left:,.0f}" if once >= 2 * left else f"{once / left:.2g}"
    return (
        f"Sending the {models}, as {it} on disk, to the coordinator {often} would have been {size(once)}: "
        f"{times} times what {'these' if every else 'those'} silos sent. With one such model back each time "
        f"it would have been {size(2 * once)}. What came back to the silos is not counted."
    )


def _silos(number: int) -> str:
    return plural(number, "silo")


def _verb(number: int, one: str, many: str) -> str:
    return one if number == 1 else many


def plural(number: int, word: str) -> str:
    """A number with its noun.

    >>> plural(1, "failure"), plural(0, "failure"), plural(1200, "class")
    ('1 failure', '0 failures', '1,200 classes')
    """
    ending = "" if number == 1 else "es" if word.endswith("s") else "s"
    return f"{number:,} {word}{ending}"


def short(name: str, most: int) -> str:
    """A name that fits: one line, printable, cut with an ellipsis; wide characters count twice.

    >>> short("a rather long name", 9), short("cat", 9)
    ('a rather…', 'cat')
    """
    clean = " ".join("".join(c if c.isprintable() else " " for c in name).split())
    kept, room = "", float(most)
    for character in clean:
        room -= 2 if unicodedata.east_asian_width(character) in "WF" else 1
        if room < 0:
            return kept[:-1].rstrip() + "…"
        kept += character
    return kept


def few(names: Sequence[str], room: int = 26) -> str:
    """The first names that fit on a line, and how many more there are.

    >>> few(["ant", "bee", "cat"]), few(["ant", "bee", "cat"], room=8)
    ('ant, bee, cat', 'ant, bee and 1 more')
    """
    names = [short(name, room) for name in names]
    fitting = 1
    while fitting < len(names) and len(", ".join(names[: fitting + 1])) <= room:
        fitting += 1
    return listing(names, fitting)


def percent(value: float) -> str:
    """An accuracy or a share."""
    return f"{100 * value:.1f}%"


def ratio(value: float) -> str:
    """A relative accuracy."""
    return f"{value:.3f}"


def signed(value: float) -> str:
    """A relative accuracy that reads as gain or loss without colour.

    >>> signed(1.0371), signed(0.965), signed(1.0)
    ('▲ 1.037', '▼ 0.965', '= 1.000')
    """
    return f"{'▲' if value > 1 else '▼' if value < 1 else '='} {ratio(value)}"


def size(number: float) -> str:
    """Bytes for people.

    >>> size(168), size(12_460), size(3_700_000)
    ('168 B', '12.5 kB', '3.7 MB')
    """
    for unit in ("B", "kB", "MB", "GB"):
        if number < 999.5 or unit == "GB":
            break
        number /= 1000
    return f"{number:.0f} {unit}" if unit == "B" or number >= 99.95 else f"{number:.1f} {unit}"


def dotted(values: Any, before: str = "") -> Iterable[tuple[str, Any]]:
    """Nested settings as dotted keys, the way `--set` takes them.

    >>> list(dotted({"seed": 1, "method": {"use": "cofed", "alpha": 0.3}}))
    [('seed', 1), ('method.use', 'cofed'), ('method.alpha', 0.3)]
    """
    for key, value in values.items():
        if isinstance(value, dict) and value:
            yield from dotted(value, f"{before}{key}.")
        else:
            yield f"{before}{key}", value


def seconds(value: float) -> str:
    """A duration for people.

    >>> seconds(0.0042), seconds(3.53), seconds(75), seconds(7300)
    ('4 ms', '3.5 s', '1 min 15 s', '2 h 2 min')
    """
    if value < 0.9995:
        return f"{1000 * value:.0f} ms"
    if value < 59.95:
        return f"{value:.1f} s"
    if value < 3599.5:
        minutes, rest = divmod(round(value), 60)
        return f"{minutes} min {rest} s"
    hours, minutes = divmod(round(value / 60), 60)
    return f"{hours} h {minutes} min"
