"""Bipartite matchings: links between two sides."""
