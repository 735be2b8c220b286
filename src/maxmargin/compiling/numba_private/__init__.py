"""All uses of Numba beyond its public interface; no other package has any.

Private names may change with any release of Numba. Each group of names is tested when its module is imported,
and has a fallback. Our own way to lower and link kernels, and to pass tuples, is used only with the versions
of Numba that it was tested with (`losses.TESTED`): these classes rely on the meaning of names, too. With a
fallback, the package computes the same bits, but more slowly; the first compilation then issues one warning
that says what is lost.
"""

from maxmargin.compiling.numba_private.compilers import KERNEL as KERNEL
from maxmargin.compiling.numba_private.compilers import PART as PART
from maxmargin.compiling.numba_private.disk import CAN_KEEP as CAN_KEEP
from maxmargin.compiling.numba_private.disk import Code as Code
from maxmargin.compiling.numba_private.disk import Target as Target
from maxmargin.compiling.numba_private.disk import can_be_kept as can_be_kept
from maxmargin.compiling.numba_private.disk import keep_in as keep_in
from maxmargin.compiling.numba_private.disk import processor_of_code as processor_of_code
from maxmargin.compiling.numba_private.disk import processor_of_target as processor_of_target
from maxmargin.compiling.numba_private.disk import rebuild_code as rebuild_code
from maxmargin.compiling.numba_private.disk import reduce_code as reduce_code
from maxmargin.compiling.numba_private.instructions import CAN_EXCHANGE as CAN_EXCHANGE
from maxmargin.compiling.numba_private.instructions import CAN_PREFETCH as CAN_PREFETCH
from maxmargin.compiling.numba_private.instructions import CAN_VIEW as CAN_VIEW
from maxmargin.compiling.numba_private.instructions import HAS_ADDRESSES as HAS_ADDRESSES
from maxmargin.compiling.numba_private.instructions import address_of as address_of
from maxmargin.compiling.numba_private.instructions import call_at as call_at
from maxmargin.compiling.numba_private.instructions import load_acquire as load_acquire
from maxmargin.compiling.numba_private.instructions import prefetch_line as prefetch_line
from maxmargin.compiling.numba_private.instructions import store_release as store_release
from maxmargin.compiling.numba_private.instructions import view_rows as view_rows
from maxmargin.compiling.numba_private.losses import IS_TESTED as IS_TESTED
from maxmargin.compiling.numba_private.losses import warn_of_losses as warn_of_losses
from maxmargin.compiling.numba_private.lowering import APART as APART
from maxmargin.compiling.numba_private.tuples import ARE_WHOLE as ARE_WHOLE
