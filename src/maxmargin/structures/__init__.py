"""Structures of outputs, one folder each, and what they share: feature maps, oracles and wrappers of both."""
