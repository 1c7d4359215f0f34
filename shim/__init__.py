"""Where the in-process shims lie. Knows two places and imports nothing of them: they run in other interpreters."""

from pathlib import Path

INJECT = Path(__file__).resolve().parent / "inject"
"""The folder to put first on a child's PYTHONPATH: its `sitecustomize` installs the shim."""

NODE = Path(__file__).resolve().parent / "node" / "install.cjs"
"""The file that each Node of a run is to load first."""
