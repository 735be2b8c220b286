"""The expectation oracle of chains."""

from maxmargin.compiling import subroutine
from maxmargin.problems import _protocol as protocol
from maxmargin.problems._transitions import path_means
from maxmargin.problems.chain import Chain, add_costs


@protocol.expectation.register(Chain)
def chain_expectation(problem, i, theta, share, z, work):
    length, K = problem.offsets[i + 1] - problem.offsets[i], problem.n_labels
    labels = problem.labels[problem.offsets[i] : problem.offsets[i + 1]]
    parts, mean = theta.reshape((-1, problem.width)), z.reshape((-1, problem.width))
    add_costs(problem, i, parts, share, work)
    unary, marginals = work.unary[:length], mean[K : K + length]
    log_partition = path_means(problem.transitions, unary, parts[:K], K, work, marginals, mean[:K])
    loss = 0.0
    for t in range(length):
        for k in range(K):
            loss += problem.cost[labels[t], k] * marginals[t, k]
    return log_partition - _subtract_from_truth(labels, parts, mean, K), problem.scale[i] * loss


@subroutine
def _subtract_from_truth(labels, parts, mean, n_labels):
    """``mean = s(truth) - mean``; return the truth's score."""
    length, total = labels.shape[0], 0.0
    for row in range(n_labels + length):
        for k in range(mean.shape[1]):
            mean[row, k] = -mean[row, k]
    for t in range(length):
        mean[n_labels + t, labels[t]] += 1.0
        total += parts[n_labels + t, labels[t]]
        if t > 0:
            mean[labels[t - 1], labels[t]] += 1.0
            total += parts[labels[t - 1], labels[t]]
    return total
