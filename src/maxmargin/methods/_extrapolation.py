r"""The walks over the weights that acceleration makes once a pass, each reading and writing them once.

``w`` are the weights after a pass, ``centre`` is v, ``dual`` the mean of :math:`g / \lambda`, of which the
present one is :math:`(1 + r) w - r v` with :math:`r = \kappa / \lambda`.
"""

from maxmargin._compile import helper


@helper
def mix(share, x, mean):
    """``mean += share * (x - mean)``"""
    for j in range(mean.shape[0]):
        mean[j] += share * (x[j] - mean[j])


@helper
def measure_dual(w, centre, dual, r):
    """Return ``d @ dual`` and ``d @ d`` for the difference ``d`` of the present dual point to the mean."""
    inner, square = 0.0, 0.0
    for j in range(w.shape[0]):
        d = (1.0 + r) * w[j] - r * centre[j] - dual[j]
        inner += d * dual[j]
        square += d * d
    return inner, square


@helper
def move_on(w, centre, previous, dual, r, gamma, beta, new_r):
    """Move the dual's mean by ``gamma``, and extrapolate by ``beta``: the weights follow the centre.

    They become :math:`(r' v' + g / \\lambda) / (1 + r')` at the new centre and the new ratio.
    """
    for j in range(w.shape[0]):
        x = w[j]
        present = (1.0 + r) * x - r * centre[j]
        new_centre = x + beta * (x - previous[j])
        dual[j] += gamma * (present - dual[j])
        w[j] = (present + new_r * new_centre) / (1.0 + new_r)
        centre[j] = new_centre
        previous[j] = x
