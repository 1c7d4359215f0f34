"""The pytest plugin: a tape for each test. docs/PYTEST.md describes it."""
