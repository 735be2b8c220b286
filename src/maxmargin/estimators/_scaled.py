"""Estimators whose rows have weights for each label: `coef_`, and C in units of the features."""

from typing import ClassVar, TypeAlias

import numpy as np
from scipy.sparse import csr_array
from sklearn.utils.validation import check_is_fitted

from maxmargin.arrays import FloatArray, ValueArray
from maxmargin.estimators._base import Output
from maxmargin.estimators._examples import Data, Examples
from maxmargin.estimators._kernels import KernelEstimator
from maxmargin.estimators._parameters import TRAINING, Constraints
from maxmargin.estimators._scales import total_variance
from maxmargin.estimators._sklearn_private import StrOptions

Rows: TypeAlias = ValueArray | csr_array


class ScaledEstimator(KernelEstimator[Data, Output]):
    """Base of estimators with `coef_` and ``C="scale"``. A subclass sets `_coef` and has `_weighted_rows`.

    Its `_texts` have "scale", the number that is divided by the variance of the rows.
    """

    _parameter_constraints: ClassVar[Constraints] = {"C": [StrOptions({"scale"}), *TRAINING["C"].constraints]}
    _shared_texts: ClassVar[dict[str, str]] = {
        "C": """
            C : {"scale"} or float, default="scale"
                Inverse regularisation strength, > 0; lam = 1 / (C n). "scale" is %(scale)s divided by the sum
                of the variances of the features%(of_rows)s, so that their unit does not matter; with a kernel
                other than "linear" %(scale_of_kernels)s. ``C_`` is the number.
            """,
        "of_rows": "",
        "scale_of_kernels": "it is 1",
    }
    _coef: FloatArray
    # What C="scale" divides by the variance of the features; docs/defaults.md says how it was chosen.
    _scale: ClassVar[float]

    @property
    def coef_(self) -> FloatArray:
        """Weights of features for each label; see the class. Only linear models have them."""
        check_is_fitted(self)
        self._check_linear("coef_")
        return self._coef

    def _chosen_C(self, examples: Examples[Data]) -> float:
        if not isinstance(self.C, str):
            return super()._chosen_C(examples)
        return self._row_C(examples) * self._rows_per_example(examples)

    def _row_C(self, examples: Examples[Data]) -> float:
        """Return the C of a row."""
        if not self._is_linear:
            return 1.0
        variance = total_variance(*self._weighted_rows(examples))
        return self._scale / variance if 0.0 < variance < np.inf else 1.0

    def _weighted_rows(self, examples: Examples[Data]) -> tuple[Rows, FloatArray | None]:
        """Hook: return all rows of features, and their weights; None if all weights are one."""
        raise NotImplementedError

    def _rows_per_example(self, examples: Examples[Data]) -> float:
        """Hook: return the C of an example in units of that of a row."""
        return 1.0
