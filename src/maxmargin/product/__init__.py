r"""Smooth convex functions over products of compact convex sets, minimised with a certificate.

`maxmargin.solve` runs `ConditionalGradient` (Frank-Wolfe, the paper's Algorithm 1) and
`BlockConditionalGradient` (Algorithm 3) on a `ProductProblem`:

>>> import numpy as np
>>> from maxmargin import solve
>>> from maxmargin.product import BlockConditionalGradient, L2Ball, Product, ProductProblem, Quadratic
>>> from maxmargin.product import Simplex
>>> distance = Quadratic(np.eye(5), [1.0, 0.2, 0.2, 0.5, 0.3])
>>> problem = ProductProblem(distance, Product([Simplex(3), L2Ball(2)]))
>>> result = solve(problem, BlockConditionalGradient(), tol=1e-6, random_state=0)
>>> for block in problem.blocks(result.w):
...     print(block.round(3))
[0.867 0.067 0.067]
[0.5 0.3]
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
