"""One organisation: private data is touched here, and in its learner."""
