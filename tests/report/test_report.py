"""The small parts of a report: numbers and names for people, means, pictures that can stand in a page."""

import xml.etree.ElementTree as ET

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cosilo.report import formatting
from cosilo.report.averages import average
from cosilo.report.heat_maps import filled_cells, heat_map
from cosilo.report.line_ends import apart
from cosilo.report.mean_over_time import mean_over_time
from cosilo.report.results import histogram
from cosilo.report.tree import tree

#: What somebody may call a silo.
ODD = ['<b>"north"</b>', "$5 & more", "id='x'", "東京", "a" * 200]


def drawn(picture: str) -> ET.Element:
    """The picture, if it is whole; in a page the prefix of links need not be declared."""
    return ET.fromstring(picture.replace("<svg ", '<svg xmlns:xlink="links" ', 1))


@pytest.mark.parametrize("count", [1, 12, 26, 120])
def test_pictures_are_whole_whatever_silos_are_called_and_however_many_there_are(count):
    names = [f"{ODD[place % len(ODD)]} {place}" for place in range(count)]
    matrix = np.where(np.eye(count) == 1, np.nan, 0.5)
    places = {name: place + 1 for place, name in enumerate(names)}
    members = {name: [str(n) for n in range(place)] for place, name in enumerate(names)}
    pictures = [
        heat_map("one", 'a "map" & more', matrix, names, "{:.2f}", "<label>", top=1.0),
        filled_cells("two", "cells", np.nan_to_num(matrix), places, range(1, count + 1), "round"),
        tree(names, members),
    ]
    for picture in pictures:
        assert drawn(picture).get("role") == "img"
        assert "<b>" not in picture
    assert drawn(pictures[0]).get("aria-label") == 'a "map" & more'


def test_ids_of_two_pictures_do_not_meet():
    ids = [
        {
            element.get("id")
            for element in drawn(heat_map(name, "", np.eye(2), ["a", "b"], "{}", "", 1.0)).iter()
        }
        for name in ("one", "two")
    ]
    assert ids[0] & ids[1] <= {None}


@given(st.lists(st.floats(0, 100), min_size=1, max_size=8))
def test_names_at_the_ends_of_lines_keep_apart_and_inside(heights):
    found = apart(np.sort(np.array(heights)), 10, 0, 100)
    assert (np.diff(found) >= 10 - 1e-9).all()
    assert found.min() >= -1e-9
    assert found.max() <= 100 + 1e-9


def test_a_mean_in_time_begins_when_every_seed_has_a_value():
    curves = [[(1.0, 0.2), (4.0, 0.6)], [(2.0, 0.4), (3.0, 0.8)]]
    found = {point.seconds: point.accuracy.mean for point in mean_over_time(curves)}
    assert found == pytest.approx({2.0: 0.3, 3.0: 0.5, 4.0: 0.7})
    assert mean_over_time([]) == ()


@given(st.lists(st.floats(0.01, 100), min_size=1, max_size=50))
def test_every_value_is_in_its_bar(values):
    found = histogram(values)
    assert sum(found.counts) == len(values)
    assert found.edges[0] <= min(values) + 1e-6
    assert found.edges[-1] >= max(values) - 1e-6
    assert len(found.edges) == len(found.counts) + 1


def test_an_average_by_hand():
    found = average([0.5, None, 0.7])
    assert found.mean == pytest.approx(0.6)
    assert average([None]) is None


@given(st.text(max_size=60), st.integers(4, 20))
def test_a_short_name_fits_and_is_one_line(name, most):
    found = formatting.short(name, most)
    assert len(found) <= most
    assert found.isprintable()


@given(st.floats(0, 1e6))
def test_durations_and_sizes_have_a_unit(value):
    assert formatting.seconds(value).split()[-1] in {"ms", "s", "min"}
    assert formatting.size(value).split()[-1] in {"B", "kB", "MB"}
