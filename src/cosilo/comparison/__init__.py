"""Methods × seeds of one recipe: a plan, and the runs it leads to."""
