"""The sentences of a run's report."""

import statistics

from cosilo.protocol.stage import LOCAL
from cosilo.report.facts import Facts
from cosilo.report.formatting import percent, plural, ratio, size
from cosilo.report.results import Results, Spread
from cosilo.report.targets import Targets
from cosilo.report.traffic import Traffic


def verdict(facts: Facts) -> str:
    """Whether it helped, in a sentence or two with their numbers."""
    return _verdict(facts.results) + control(facts.results) + labelling(facts.targets)


def control(results: Results) -> str:
    """How much of the gain is what others taught; nothing if there was no control."""
    if results.taught is None:
        return ""
    alone = statistics.fmean(results.control.values())
    return (
        f" As much training on their own data alone comes to {ratio(alone)} of local accuracy: "
        f"what others taught is worth {results.taught:+.3f}".replace("-", "−")
        + f" ({_silos(len(results.control))})."
    )


def labelling(targets: Targets) -> str:
    """How good the labels of the target points are, in one sentence; nothing if nobody knows."""
    if not targets.means:
        return ""
    *_, last = targets.means
    text = f" {percent(targets.means[last])} of the unlabelled target points have the right label"
    if last != LOCAL and LOCAL in targets.means:
        text += f", {percent(targets.means[LOCAL])} after local training"
    return f"{text} (mean of {_silos(targets.compared)})."


def _verdict(results: Results) -> str:
    if results.spread is not None:
        return _gains(results.spread) + _others(results)
    if results.means:
        mean = f"mean accuracy {percent(results.means[results.stages[0]])} over {_silos(results.compared)}"
        if list(results.stages) == [LOCAL]:
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


#: A gain that the interval leaves no more room for than this is none.
_NEGLIGIBLE = 0.01


def _gains(spread: Spread) -> str:
    """The sentence follows the evidence: what the interval allows, the interval, who gained and lost."""
    low, high = spread.interval
    if spread.same == spread.silos:
        head = "Nothing changed"
    elif low > 1:
        head = "The federation helped"
    elif high <= 1 + _NEGLIGIBLE:
        head = "The federation did not help"
    else:
        head = "Not decided whether the federation helped"
    if spread.same == spread.silos:
        return f"{head}: {_all(spread.silos)} stayed the same."
    mean = "relative accuracy" if spread.silos == 1 else "mean relative accuracy"
    # What happened to most comes first.
    told = sorted([(spread.gained, "gained"), (spread.lost, "lost")], key=lambda one: -one[0])
    told.append((spread.same, "stayed the same"))
    (most, how), *rest = [(count, what) for count, what in told if count]
    who = f"{most} of {_silos(spread.silos)}" if spread.silos > 1 else "the one silo with a score"
    parts = [f"{who} {how}", *[f"{count} {what}" for count, what in rest]]
    if spread.silos > 1:
        parts[-1] += f" (from {ratio(spread.low)} to {ratio(spread.high)}, median {ratio(spread.median)})"
    harmed = ""
    if spread.clear_losses:
        harmed = f" It harmed {_silos(spread.clear_losses)} beyond what the size of the test set can explain."
    elif spread.lost:
        losses = _verb(spread.lost, "The loss is", "The losses are")
        harmed = f" {losses} within what the size of the test set can explain."
    return (
        f"{head}: {mean} {ratio(spread.mean)}, 95 % interval {ratio(low)} to {ratio(high)}; "
        f"{', '.join(parts)}.{harmed}"
    )


def _all(number: int) -> str:
    return "the one silo with a score" if number == 1 else f"{number} of {_silos(number)}"


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


def cost_of_models(traffic: Traffic) -> str:
    """What left, compared with what sending models would have cost, over the silos where both are known."""
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
