"""The classes of the named datasets: as many as there are, each once, as the original files order them."""

import pytest

from cosilo.data import classes


@pytest.mark.parametrize(
    ("names", "count", "first", "last"),
    [
        (classes.DIGITS, 10, "0", "9"),
        (classes.FASHION, 10, "T-shirt/top", "Ankle boot"),
        (classes.ADULT, 2, "<=50K", ">50K"),
        (classes.CIFAR10, 10, "airplane", "truck"),
        (classes.CIFAR100_FINE, 100, "apple", "worm"),
        (classes.CIFAR100_COARSE, 20, "aquatic_mammals", "vehicles_2"),
        (classes.DBPEDIA, 14, "Company", "WrittenWork"),
    ],
)
def test_how_many_and_in_which_order(names, count, first, last):
    assert len(names) == len(set(names)) == count
    assert (names[0], names[-1]) == (first, last)


def test_those_of_cifar100_are_in_the_order_of_the_alphabet():
    assert list(classes.CIFAR100_FINE) == sorted(classes.CIFAR100_FINE)
