"""Segments: sequences cut into labelled spans."""

from maxmargin.structures.segments import answers as answers
