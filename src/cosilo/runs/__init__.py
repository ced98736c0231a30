"""Run directories: journal, records, events, and what can be read from them."""
