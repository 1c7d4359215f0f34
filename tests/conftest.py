"""What every test shares: hypothesis without deadlines, because the machines are shared too."""

import os
import sys

import pytest
from hypothesis import settings

# The suite starts a thousand interpreters, each of which would compile all that it imports.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False


def pytest_configure(config: pytest.Config) -> None:
    """Always the same examples, so that nothing is red by chance; the soak looks for others."""
    same = config.option.markexpr != "soak"
    settings.register_profile("tapeproxy", deadline=None, max_examples=40, derandomize=same)
    settings.load_profile("tapeproxy")
