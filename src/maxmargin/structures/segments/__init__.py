"""Segments: sequences cut into labelled spans."""
