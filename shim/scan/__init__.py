"""Finds, in the text of a program, what the shim in its process can't make the same in every replay. Runs nothing.

Standard library only, and pure: bytes in, findings out. What the shim does reach (the clock, `random`, uuid, numpy's
generators, children's environments, aiohttp's `trust_env`) is no finding. Who reads the files is `proxy/sources.py`.
"""

from tapeproxy.shim.scan.findings import Finding, Level, Rule
from tapeproxy.shim.scan.imports import imports
from tapeproxy.shim.scan.rules import RULES
from tapeproxy.shim.scan.scanning import LARGEST, scan, unreadable

__all__ = ["LARGEST", "RULES", "Finding", "Level", "Rule", "imports", "scan", "unreadable"]
