"""Without private names of Numba: the same bits, and one warning that says what is lost."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from maxmargin.compiling.interpreting import interpreted
from support.fallback_fits import fits
from support.package_copies import (
    MEASURED,
    WARNED,
    cold,
    command_environment,
    copy_package,
    measured,
    run,
)

pytestmark = [pytest.mark.slow, pytest.mark.every_case]

# Hides names from the package; Numba itself goes on using them.
BLOCK = """
import builtins, numba.core.codegen, numba.core.compiler, numba.core.cpu
import_as_usual = builtins.__import__

def block(name, variables=None, locals=None, fromlist=(), level=0):
    if (variables or {{}}).get("__name__", "").startswith("maxmargin."):
        for each in fromlist or ("",):
            if f"{{name}}.{{each}}".startswith({blocked!r}):
                raise ImportError(f"{{name}}.{{each}} is blocked")
    return import_as_usual(name, variables, locals, fromlist, level)

builtins.__import__ = block
"""
FITS = f"""
import json, sys
sys.path.append({str(Path(__file__).parents[1])!r})
from maxmargin.compiling.kernel_cache import cache_directory
from support.fallback_fits import fits

said = {{"fits": fits(), "directory": str(cache_directory())}}
print(json.dumps(said | {{"warnings": [str(each.message) for each in caught]}}))
"""
DISK, COMPILE, PREFETCH = "not kept on disk", "longer to compile", "without prefetching"
ONE_THREAD = "run on one thread"
OWN_LOOPS = "rescaled slacks have loops of their own"
SLOWER = "slower without the compiler option"


def blocked(*names):
    return BLOCK.format(blocked=names)


# What to take away from the package before it is imported, and what the warning says is lost.
REMOVALS = {
    "dumps": (blocked("numba.core.serialize.dumps"), [DISK]),
    "_reduce": (blocked() + "del numba.core.compiler.CompileResult._reduce", [DISK]),
    "magic_tuple": (blocked() + "del numba.core.codegen.CPUCodegen.magic_tuple", [DISK]),
    "has_dynamic_globals": (blocked() + "del numba.core.codegen.CodeLibrary.has_dynamic_globals", [DISK]),
    "NativeLowering": (blocked("numba.core.typed_passes"), [COMPILE]),
    "Lower": (blocked("numba.core.lowering"), [COMPILE]),
    "load_item": (blocked("numba.np.arrayobj.load_item"), [COMPILE]),
    "TupleModel": (blocked("numba.core.datamodel"), [COMPILE]),
    "populate_array": (blocked("numba.np.arrayobj.populate_array"), [COMPILE]),
    "add_pass_after": (
        blocked() + "from numba.core.compiler_machinery import PassManager as P; P.add_pass_after = None",
        [COMPILE],
    ),
    "make_array": (blocked("numba.np.arrayobj"), [COMPILE, PREFETCH, ONE_THREAD]),
    "get_or_insert_function": (blocked("numba.core.cgutils.get_or_insert_function"), [PREFETCH]),
    "unpack_tuple": (blocked("numba.core.cgutils.unpack_tuple"), [OWN_LOOPS]),
    "rtsys": (blocked("numba.core.runtime.nrt"), ["takes a moment longer"]),
    "options": (
        blocked() + "mixin = numba.core.cpu.CPUTargetOptions.__mro__[1]\n"
        "for name in ('_nrt', 'no_cfunc_wrapper', 'forceinline'): delattr(mixin, name)",
        [f"{SLOWER} _nrt", f"{SLOWER} no_cfunc_wrapper"],
    ),
}


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """Return the directory of a copy of the package."""
    root = tmp_path_factory.mktemp("copy")
    copy_package(root)
    return root


@pytest.mark.parametrize(("removal", "lost"), REMOVALS.values(), ids=REMOVALS)
def test_without_one_name(package, removal, lost):
    # One small kernel shows that it compiles; the test below has sweeps, which prefetch.
    said = run(package, WARNED + removal + MEASURED)
    assert said["numbers"] == measured()
    assert (said["hits"], said["misses"]) == (0, 1)
    (warning,) = said["warnings"]
    groups = DISK, COMPILE, PREFETCH, ONE_THREAD
    assert [loss in warning for loss in groups] == [loss in lost for loss in groups]
    assert all(loss in warning for loss in lost)
    assert (said["directory"] == "None") is (DISK in lost)
    if DISK not in lost:
        cold(package)


def test_with_a_version_that_is_not_tested_numba_compiles_by_itself(package):
    said = run(package, WARNED + "import numba; numba.__version__ = '0.99.1'\n" + MEASURED)
    assert said["numbers"] == measured()
    assert (said["hits"], said["misses"]) == (0, 1)
    (warning,) = said["warnings"]
    assert re.match(
        r"maxmargin: Numba is 0\.99\.1, and it was not tested with this version: the first fit takes longer "
        r"to compile\. Results are the same; install a version of Numba that it was tested with, 0\.61 to ",
        warning,
    )
    again = run(package, WARNED + "import numba; numba.__version__ = '0.99.1'\n" + MEASURED)
    assert (again["hits"], again["misses"]) == (1, 0)
    cold(package)


def test_without_any_private_name_fits_have_the_same_bits(package):
    """Several models and methods, compiled without a single name of Numba's private modules."""
    program = WARNED + blocked("numba.core", "numba.np") + FITS
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=command_environment(package),
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    (warning,) = said["warnings"]
    assert all(loss in warning for loss in (DISK, COMPILE, PREFETCH, ONE_THREAD, OWN_LOOPS, SLOWER))
    assert said["directory"] == "None"
    with interpreted():  # which gives the same bits
        assert said["fits"] == fits()
    assert all(float.fromhex(bits[0]) > 0 for bits in said["fits"].values())
