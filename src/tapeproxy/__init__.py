"""tapeproxy: tape everything an agent hears over HTTP, and replay the run offline.

This module knows the version and nothing else; import what you need from the subpackages.
"""

__version__ = "0.1.0"
