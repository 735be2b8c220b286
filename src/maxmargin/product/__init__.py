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

from maxmargin.product.domains import Approximate as Approximate
from maxmargin.product.domains import Birkhoff as Birkhoff
from maxmargin.product.domains import Box as Box
from maxmargin.product.domains import Domain as Domain
from maxmargin.product.domains import L1Ball as L1Ball
from maxmargin.product.domains import L2Ball as L2Ball
from maxmargin.product.domains import NuclearNormBall as NuclearNormBall
from maxmargin.product.domains import Oracle as Oracle
from maxmargin.product.domains import Product as Product
from maxmargin.product.domains import Simplex as Simplex
from maxmargin.product.objectives import LeastSquares as LeastSquares
from maxmargin.product.objectives import Quadratic as Quadratic
from maxmargin.product.objectives import Smooth as Smooth
from maxmargin.product.problem import BlockConditionalGradient as BlockConditionalGradient
from maxmargin.product.problem import ConditionalGradient as ConditionalGradient
from maxmargin.product.problem import ProductProblem as ProductProblem
