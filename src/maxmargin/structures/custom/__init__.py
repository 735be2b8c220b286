"""Outputs of any other kind, by functions of the user."""
