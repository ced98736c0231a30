"""Silos, a pool, a method and an engine: together they make a run."""
