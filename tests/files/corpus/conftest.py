"""Tests of corpora need not wait for the disk."""

import pytest


@pytest.fixture(autouse=True, scope="package")
def _no_waiting():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("os.fsync", lambda handle: None)
        yield
