"""Inference on scores: combinatorial algorithms that know nothing of features, losses or learning."""
