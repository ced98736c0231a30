"""Learners that make the silo they run in misbehave: they change cosilo in that silo's process.

Tests put this file beside the silos' files. A silo can always do such things to its own installation; what
the others see of it is tested.
"""

import itertools
import logging
import os
import pickle
import sys
import time
from hashlib import sha256
from pathlib import Path

import numpy as np
import torch
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

from cosilo.coordination.boundary import Boundary

HERE = Path(__file__).parent


class Bomb:
    """Leaves a file behind if somebody unpickles it."""

    def __reduce__(self):
        return os.system, (f"touch {HERE / 'exploded'}",)


#: What a silo's own logs may say, and nobody else's.
SECRET = "patient 4711"


class Chatty(DecisionTreeClassifier):
    """Fails at the second training, and writes secrets everywhere it can."""

    def fit(self, X, y, sample_weight=None):
        print(SECRET)
        logging.getLogger("nvflare").error(SECRET)
        if list(HERE.glob("chatty-*")):
            raise ValueError(SECRET)
        (HERE / f"chatty-{os.getpid()}").touch()
        return super().fit(X, y)


def liar():
    """Its labels are bad in another way in each round, and its scores are not numbers."""
    from cosilo.coordination import boundary

    encode, count = boundary.encode, itertools.count()
    bad = [
        lambda votes: encode({"votes": np.full_like(votes, 99)}),
        lambda votes: encode({"votes": np.tile(votes, 2)}),
        lambda votes: encode({"votes": votes, "patients": votes}),
        lambda votes: pickle.dumps(Bomb()),
    ]

    def changed(message):
        if "votes" in message:
            return bad[next(count) % len(bad)](message["votes"])
        if "accuracy" in message:
            return encode({**message, "accuracy": float("nan")})
        return encode(message)

    # Its own boundary would notice.
    boundary.encode, boundary.check, boundary.describe = changed, lambda *_: None, lambda *_: {}
    return Chatty()


def intruder():
    """Sends objects instead of messages, and asks another silo for its labels."""
    from nvflare.collab import collab
    from nvflare.fuel.utils import fobs

    from cosilo.engines.flare import site

    fobs.register_data_classes(Bomb)
    soon, tried = site.Site._soon, []

    def changed(self, number):
        answer = soon(self, number)
        if "reply" in answer and number == 4 and not tried:
            tried.append(number)
            for body in (b"", Bomb()):
                for other in collab.other_clients:
                    try:
                        reply = other(timeout=5.0).answer(number=number, step="label", body=body)
                    except Exception as error:
                        reply = f"{type(error).__name__}: {error}"
                    with (HERE / "intruder.txt").open("a") as file:
                        file.write(f"{other.name} {type(body).__name__} {reply}\n")
        return {"reply": Bomb()} if number > 4 else answer

    site.Site._soon = changed
    return GaussianNB()


def resigner():
    """Changes its replies after they were signed: without a certificate, another reply, another digest."""
    from cosilo.engines.flare import site

    soon = site.Site._soon

    def changed(self, number):
        said = soon(self, number)
        if "reply" not in said:
            return said
        if number == 3:
            said.pop("certificate")
        if number >= 4:
            said["reply"] = said["reply"][:-1] + bytes([said["reply"][-1] ^ 1])
        if number >= 5:
            said["seal"] = {**said["seal"], "reply": sha256(said["reply"]).hexdigest()}
        return said

    site.Site._soon = changed
    return GaussianNB()


class Net(torch.nn.Module):
    """A network whose silo writes down which asks it computed, and waits in a step where a file says so."""

    def __init__(self, input_shape, n_classes):
        super().__init__()
        self.layer = torch.nn.Linear(input_shape[0], n_classes)
        be_noted()

    def forward(self, X):
        return self.layer(X)


def patient():
    """A model whose silo does the same."""
    be_noted()
    return GaussianNB()


def be_noted():
    if not hasattr(Boundary, "compute"):  # this file may be imported under several names
        Boundary.compute, Boundary._compute = Boundary._compute, noted


def noted(self, ask):
    with (HERE / f"computed-{self.silo.name}").open("a") as file:
        file.write(f"{ask.number}\n")
    message = self.compute(ask)
    hold = HERE / f"hold-{self.silo.name}-{ask.number}"
    while hold.exists():
        time.sleep(0.05)
    return message


if "pytest" not in sys.modules:  # in a silo's process: hello is asked before any network is made
    be_noted()
