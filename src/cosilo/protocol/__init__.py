"""The contract and its words: tasks, messages, steps, who takes part, what an engine carries."""
