"""What datasets, solvers and the command share: data, watched runs, and benchopt's solvers over `solve`."""
