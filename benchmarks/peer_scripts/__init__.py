"""One script for each peer of `benchmarks/peers.py`, run by the Python of that peer's own environment."""
