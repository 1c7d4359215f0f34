"""The command line reference, docs/CLI.md, made from the commands themselves: `python -m tapeproxy.cli.reference`."""

import re

import click

from tapeproxy.cli.main import COMMANDS, cli

_INTRODUCTION = """# Command line

Made by `python -m tapeproxy.cli.reference` from the commands themselves; a test holds it against them.

## Exit codes

| code | meaning |
|---|---|
| 0 | all is well |
| the agent's own | `record` and `replay` exit with the code of the agent; 128 + N when signal N ended it |
| 2 | wrong usage, or something that cannot be done: the message says what |
| 3 | `replay`: a violation; the run asked for something that is not on the tape, whatever the agent made of it |
| 4 | `replay`: a drift; a server of the run answered another way (`--on-drift report` keeps the agent's code) |
| 5 | a tape that is damaged, edited, interrupted or of a newer format; or `record` could not write it whole |
| 124 | the run was stopped by `--timeout` |
| 126, 127 | the agent's command cannot be executed, or does not exist |
| 130 | stopped by Ctrl-C where there was no agent |

These meanings are never reused. Where an agent's own code is one of ours, the last line on the terminal tells them
apart.

## Environment

`TAPEPROXY_HOME` (default `~/.tapeproxy`) holds the certificate authority and the redaction key. `NO_COLOR` turns colour
off; it is only used on a terminal. Shell completion: `eval "$(_TAPEPROXY_COMPLETE=bash_source tapeproxy)"` (or
`zsh_source`, `fish_source`).
"""


def reference() -> str:
    """The whole text of docs/CLI.md."""
    parts = [_INTRODUCTION]
    with click.Context(cli, info_name="tapeproxy", help_option_names=["-h", "--help"]) as root:
        for name in COMMANDS:
            command = cli.get_command(root, name)
            assert command is not None
            with click.Context(command, info_name=name, parent=root, max_content_width=100, terminal_width=100) as ctx:
                text = re.sub(r"[ \t]+$", "", command.get_help(ctx), flags=re.MULTILINE)
            parts.append(f"## tapeproxy {name}\n\n```\n{text}\n```\n")
    return "\n".join(parts)


if __name__ == "__main__":
    click.echo(reference(), nl=False)
