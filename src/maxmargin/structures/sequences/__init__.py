"""Sequences: a label for each token, by chains of first and second order."""
