"""What every test shares: hypothesis without deadlines, because the machines are shared too."""

import os
import sys

from hypothesis import settings

settings.register_profile("tapeproxy", deadline=None, max_examples=60)
settings.load_profile("tapeproxy")

# The suite starts a thousand interpreters, each of which would compile all that it imports.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
