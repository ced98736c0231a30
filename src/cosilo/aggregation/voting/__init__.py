"""Voting: from every silo's labels on the pool to the labels most of those who know a class agree on.

This is CoFED's pseudo-label aggregation (section 4.3 of the paper, Algorithm 1) as arithmetic on class codes,
numpy in, numpy out. A class code is a position in the vocabulary, 0 … n_classes − 1; a vote of −1 is an
abstention. Silo i has the classes Y_i (its task) and gave instance x of the pool the class f_i(x).

    S_i(c)   = { x : f_i(x) = c }                                          (17)
    TOTAL[c] = Σ w_i over the silos with c ∈ Y_i                           (m_k of eq. 16 if every w_i is 1)
    COUNT[x,c] = Σ w_i over the silos with x ∈ S_i(c)
    P_c      = { x : COUNT[x,c] / TOTAL[c] > α },  0 ≤ α ≤ 1               (18)
    R_i      = { (P_c, c) : c ∈ Y_i }                                      (19)

A silo that abstains on x stays in TOTAL. The weights w_i are the credibility levels of section 4.6. From R_i
every index goes that stands in two or more P_c of the classes of Y_i ("contradictory labels", end of section
4.3); a conflict with a class the silo does not have does not count.

The inequality is strict, as printed in eq. 18 and Algorithm 1, so α = 0 asks for one vote and α = 1 elects
nothing, although the text under eq. 18 says that α = 1 asks for the consent of all.

>>> import numpy as np
>>> votes = [np.array([0, 1, 0, -1]), np.array([0, 1, 2, 2]), np.array([1, 1, 2, 2])]
>>> elected = elect(votes, tasks=[[0, 1], [0, 1, 2], [1, 2]], n_classes=3, alpha=0.3)
>>> list(zip(elected.index.tolist(), elected.label.tolist()))
[(0, 0), (0, 1), (1, 1), (2, 0), (2, 2), (3, 2)]

Instances 0 and 2 are contested for a silo that has both classes, and only for such a silo:

>>> [array.tolist() for array in elected.for_task([0, 1, 2])]
[[1, 3], [1, 2]]
>>> [array.tolist() for array in elected.for_task([1, 2])]
[[0, 1, 2, 3], [1, 1, 2, 2]]
"""

from cosilo.aggregation.voting.agreement import agreement, contradicts
from cosilo.aggregation.voting.ballots import Votes, vote_dtype
from cosilo.aggregation.voting.credibility import Credibility, credibility, kappa
from cosilo.aggregation.voting.election import Elected, elect
from cosilo.aggregation.voting.shares import FEWEST, Winners, vote_shares, winners
from cosilo.aggregation.voting.tallies import ROWS, Rule, Tallies, TaughtLabels, labels_from, whole_weights
from cosilo.aggregation.voting.vote_table import VoteTable

__all__ = [
    "FEWEST",
    "ROWS",
    "Credibility",
    "Elected",
    "Rule",
    "Tallies",
    "TaughtLabels",
    "VoteTable",
    "Votes",
    "Winners",
    "agreement",
    "contradicts",
    "credibility",
    "elect",
    "kappa",
    "labels_from",
    "vote_dtype",
    "vote_shares",
    "whole_weights",
    "winners",
]
