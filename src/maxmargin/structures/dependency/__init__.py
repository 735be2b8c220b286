"""Dependency trees: a head for each word."""
