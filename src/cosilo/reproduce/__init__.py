"""The papers' tables and figures, run again: recipes with what the paper says, and a verdict."""
