"""docs/CLI.md is what the commands say of themselves."""

from pathlib import Path

import click

from tapeproxy.cli.main import COMMANDS, cli
from tapeproxy.cli.reference import reference

DOC = Path(__file__).parents[2] / "docs" / "CLI.md"


def test_the_reference_is_what_the_commands_say() -> None:
    assert DOC.read_text() == reference(), "run: .venv/bin/python -m tapeproxy.cli.reference > docs/CLI.md"


def test_the_group_s_one_line_helps_are_the_commands_own() -> None:
    with click.Context(cli) as ctx:
        for name, lazy in COMMANDS.items():
            command = cli.get_command(ctx, name)
            assert command is not None
            assert command.get_short_help_str(200) == lazy.help
