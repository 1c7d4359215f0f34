"""Measures tapeproxy beside its peers, in one run and in turns: `python -m bench`. See docs/BENCHMARKS.md."""
