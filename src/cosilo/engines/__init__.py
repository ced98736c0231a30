"""Engines carry messages; they know no method."""
