"""What every test shares: hypothesis without deadlines, because the machines are shared too."""

from hypothesis import settings

settings.register_profile("tapeproxy", deadline=None, max_examples=60)
settings.load_profile("tapeproxy")
