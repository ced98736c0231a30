"""The recipes that come with cosilo: the demo, and one for each reproduced table or figure."""

from pathlib import Path

#: Where they lie.
RECIPES = Path(__file__).parent
