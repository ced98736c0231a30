"""Votes with a privacy account: a voter that is trained privately, and a ledger of what that costs."""
