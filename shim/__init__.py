"""Where the in-process shim lies. Knows one folder and imports nothing of it: the shim runs in other interpreters."""

from pathlib import Path

INJECT = Path(__file__).resolve().parent / "inject"
"""The folder to put first on a child's PYTHONPATH: its `sitecustomize` installs the shim."""
