"""The connection to a Ray cluster."""

import logging
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import ray

from cosilo.errors import ConfigError

#: Seconds that the head of a cluster has to accept a connection.
_PATIENCE = 5.0


def reach(address: str | None) -> None:
    """Raise if nobody listens where the cluster is said to be: Ray itself would try for a minute."""
    given = address or os.environ.get("RAY_ADDRESS")
    if given is None:
        return
    host, _, port = given.rpartition(":")
    try:
        if not (host and port.isdigit()):
            raise OSError(f"got {given!r}")
        with socket.create_connection((host, int(port)), _PATIENCE):
            pass
    except OSError as error:
        raise _unreachable(given, error) from None


@contextmanager
def connected(address: str | None) -> Iterator[None]:
    """Connect this process to a cluster; one that it is connected to already is used, and stays."""
    if ray.is_initialized():
        yield
        return
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    quiet = {"log_to_driver": False, "logging_level": logging.CRITICAL}
    given = address or os.environ.get("RAY_ADDRESS")
    try:
        if given is not None:
            ray.init(address=given, **quiet)
        else:
            try:
                ray.init(address="auto", **quiet)
            except ConnectionError:  # there is none here; nobody else is to reach the one that is started
                os.environ.setdefault("RAY_worker_niceness", "0")
                ray.init(address="local", _node_ip_address="127.0.0.1", include_dashboard=False, **quiet)
    except (RuntimeError, ValueError, OSError) as error:
        raise _unreachable(given or "none", error) from None
    # Of a lost node Ray would print forty lines of a log of its own to the standard output.
    ray._private.worker.print_to_stdstream = lambda *_, **__: None
    try:
        yield
    finally:
        ray.shutdown()


def _unreachable(address: str, error: Exception) -> ConfigError:
    reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
    return ConfigError(
        f"--address {address}: cannot connect to a Ray cluster ({reason}); wants HOST:PORT of its head, on a "
        "machine that belongs to it: ray start --head, elsewhere ray start --address=…"
    )
