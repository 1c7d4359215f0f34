"""What every test shares: hypothesis without deadlines, because the machines are shared too."""

import os
import sys

from hypothesis import settings

# In CI always the same examples: what is red there is red here, and was not so by chance.
settings.register_profile("tapeproxy", deadline=None, max_examples=40, derandomize="CI" in os.environ)
settings.load_profile("tapeproxy")

# The suite starts a thousand interpreters, each of which would compile all that it imports.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
