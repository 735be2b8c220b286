"""Graphs: a label for each node, which depends on those of its neighbours."""
