"""Recipes: from TOML to silos, methods and federations."""
