"""Labels of sequences, and of several targets at once: margin, likelihood, and a network one can read."""
