"""The one driver, its runs, their certificates and results, and checks of problems."""
