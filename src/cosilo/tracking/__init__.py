"""Runs and comparisons in the trackers of others; an extra (`tracking`)."""
