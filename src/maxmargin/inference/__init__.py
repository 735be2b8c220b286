"""Pure combinatorics on scores: no features, no losses, no learning."""
