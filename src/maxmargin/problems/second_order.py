r"""Second-order chains: a chain that also has a weight for each trigram of labels.

.. math:: \langle w, \phi(x, y) \rangle = \sum_t \langle W_{y_t}, x_t \rangle + b_{y_1} + e_{y_T}
          + \sum_{t > 1} A_{y_{t-1} y_t} + \sum_{t > 2} B_{y_{t-2} y_{t-1} y_t}

Both halves wrap those of a chain, which do everything except B.
"""

import functools
from collections.abc import Callable
from typing import ParamSpec

from maxmargin.problems.chain import Chain, ChainProblem
from maxmargin.problems.maps.second_order import SecondOrderMap
from maxmargin.problems.oracles.second_order import SecondOrderOracle
from maxmargin.problems.problem import Problem, fitting

SecondOrderProblem = Problem[SecondOrderMap, SecondOrderOracle]
Arguments = ParamSpec("Arguments")
_NAME = "SecondOrderChain"


def _with_trigrams(build: Callable[Arguments, ChainProblem]) -> Callable[Arguments, SecondOrderProblem]:
    """Return a builder of chains that also have trigram weights, if these fit into memory."""

    @functools.wraps(build)
    def build_second_order(*args: Arguments.args, **kwargs: Arguments.kwargs) -> SecondOrderProblem:
        owner = str(kwargs.setdefault("owner", _NAME))
        chain = build(*args, **kwargs)
        return fitting(Problem(SecondOrderMap(chain.map), SecondOrderOracle(chain.oracle)), owner)

    return build_second_order


class SecondOrderChain:
    """Builders of sequence-labelling problems with trigram weights: those of `Chain`, with its arguments."""

    from_sequences = staticmethod(_with_trigrams(Chain.from_sequences))
    from_encoded = staticmethod(_with_trigrams(Chain.from_encoded))
    for_prediction = staticmethod(_with_trigrams(Chain.for_prediction))
