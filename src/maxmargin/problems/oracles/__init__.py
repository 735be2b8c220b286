"""Oracles, each in one file."""
