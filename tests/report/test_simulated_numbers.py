"""Simulated time by hand, and on the page."""

import json

import pytest

from cosilo import Run
from cosilo.errors import RunError
from cosilo.protocol.stage import FEDERATED, LOCAL
from cosilo.report.facts import gather
from cosilo.report.run_page import render
from cosilo.simulated_time.clock import Clock, Link

#: 100 bytes per second, shared by the three silos; computing as measured.
CLOCK = {"up": {"rate": 100.0}}


def at_once(run: Run, **about) -> Run:
    """The run with more in its run.json."""
    path = run.folder / "run.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | about))
    return Run(run.folder)


def test_moments_by_hand(make):
    run = at_once(make(), clock=CLOCK)
    assert run.clock == Clock(up=Link(rate=100.0))
    moments = run.moments()
    # hello and evaluate are free; train computes 0.2 s and sends nothing; label computes 0.4 s and sends
    # 3 · 50 bytes at 100 a second; update computes 0.5 s.
    assert [moment.step for moment in moments if moment.upload] == ["label"]
    assert [moment.at for moment in moments] == pytest.approx([0, 0.2, 0.2, 2.1, 2.6, 2.6])
    told = gather(run).simulated
    assert told.at == {LOCAL: pytest.approx(0.2), FEDERATED: pytest.approx(2.6)}
    assert (told.total, told.compute, told.upload) == pytest.approx((2.6, 1.1, 1.5))
    assert told.steps["label"] == (1, 0.0, pytest.approx(0.4), 1.5)
    assert told.curve(gather(run).results.means) == ((pytest.approx(2.6), pytest.approx(1.72 / 3)),)


def test_another_clock_tells_another_time(make):
    run = make()
    assert (run.clock, run.moments()) == (None, [])
    assert gather(run).simulated is None
    assert run.moments(Clock(up=Link(rate=50.0)))[-1].at == pytest.approx(4.1)
    assert gather(run, Clock(up=Link(rate=50.0))).simulated.total == pytest.approx(4.1)


def test_asks_that_do_not_fit_the_stages_give_no_curve(make, small, reader_of):
    small["asks"] = small["asks"][:-1]
    run = at_once(make(small), clock=CLOCK)
    assert gather(run).simulated.at == {}
    reader = reader_of(render(gather(run)))
    assert "time-to-accuracy" not in reader.ids
    assert "Over the links of its clock the run would have taken 2.6 s" in reader.cells


def test_the_page_has_the_simulated_time(make, reader_of):
    reader = reader_of(render(gather(at_once(make(), clock=CLOCK))))
    assert "time-to-accuracy" in reader.ids
    assert "would have taken 2.6 s: 1.1 s of computing" in reader.cells
    assert "label 1 400 ms 1.5 s 1.9 s" in reader.cells
    assert "clock.up.rate 100.0" in reader.cells


def test_a_damaged_clock_is_one_line(make):
    with pytest.raises(RunError, match=r"run\.json: its clock is damaged") as caught:
        gather(at_once(make(), clock={"up": {"rate": -1}}))
    assert len(str(caught.value).splitlines()) == 1
