"""What tests of several rooms share."""

import pytest


@pytest.fixture(scope="module")
def cluster():
    """Two worker processes of Dask, on this machine only."""
    distributed = pytest.importorskip("distributed")
    options = {
        "n_workers": 2,
        "threads_per_worker": 1,
        "dashboard_address": None,
        "host": "127.0.0.1",
        "silence_logs": 50,
    }
    with distributed.LocalCluster(**options) as cluster:
        yield cluster
