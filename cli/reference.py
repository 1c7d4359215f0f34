"""The command line reference, docs/CLI.md, made from the commands themselves: `python -m tapeproxy.cli.reference`."""

import re

import click

from tapeproxy.cli.main import COMMANDS, cli

_INTRODUCTION = """# Command line

Made by `python -m tapeproxy.cli.reference` from the commands themselves; a test holds it against them.

## Words

| word | meaning |
|---|---|
| tape | the file that holds one run of an agent: what it was run as, and all it heard over HTTP |
| exchange | one HTTP request with its answer, chunk by chunk, and how it ended; they count from 1 |
| lane | one thread, task or process of the agent; requests are matched lane by lane |
| drift | a difference that did not keep the replay from going on, such as another answer of a server of the run |
| violation | something the replayed agent did that is not on the tape; it is never let through |
| seal | the last record of a tape, with the hashes of all before it; a tape without one was *interrupted* |

## Exit codes

| code | meaning |
|---|---|
| 0 | all is well |
| 1 | `doctor --fail-on-findings`: an error or a warning was found; `diff`: the tapes differ |
| the agent's own | `record` and `replay` exit with the code of the agent; 128 + N when signal N ended it |
| 2 | wrong usage, or something that cannot be done (no such tape, a tape that exists): the message says what |
| 3 | `replay`: a violation; the run asked for something that is not on the tape, whatever the agent made of it |
| 4 | `replay`: a drift (`--on-drift report` keeps the agent's code), or `--require-all` and something left over |
| 3, 4 | `verify --times`: the same of any of the replays; 4 also when they were not identical |
| 5 | a tape that is damaged, edited, interrupted or of a newer format, or not the one that was signed or pinned; \
or `record` could not write it, or not whole |
| 6 | `record --strict-tape`: the run was stopped, because the tape could not be written whole |
| 124 | the run was stopped by `--timeout` |
| 141 | the reader of our output left, as `head` does |
| 126, 127 | the agent's command cannot be executed, or does not exist |
| 130 | stopped by Ctrl-C where there was no agent, or before all replays of `verify --times` or `doctor` were over |

These meanings are never reused. Where several fit, the order is 3, 4, 6, 124, the agent's own, 5 of
`record`. Where an agent's own code
is one of ours, the last lines on the terminal tell them apart.

## The report of a replay

`replay --report FILE` writes one JSON object. More fields may come; none goes or changes its meaning.

| field | meaning |
|---|---|
| `exit_code` | what `replay` exits with |
| `agent_exit_code` | the agent's own, 128 + N when signal N ended it |
| `stopped_by` | `timeout`, `violations` or `user` when the run was ended; else null |
| `tape` | its path; not in the reports within `verify --json` and of `stop` |
| `exchanges` | how many are on the tape |
| `served` | how many answers were given from it |
| `live` | requests that went to servers of the run itself |
| `tools` | how many calls of tools got what is on it ([HINTS.md](HINTS.md)) |
| `covered` | the numbers of the exchanges that the bodies of these calls had asked for, and did not |
| `taped_ns`, `took_ns` | how long the run took when it was recorded, and now, in nanoseconds |
| `usage` | what the answers that were given had cost: a list of `model`, `calls`, `tokens_in` (of which \
`tokens_cached` were read from a cache, `tokens_written` written to one), `tokens_out` and \
`uncounted` (calls that do not say all their tokens) |
| `violations` | a list of `kind` (a short stable word), `request`, `what` (a sentence), and often `nearest` |
| `waiting`, `left` | of a violation: the first taped answers that nobody asked for yet, and how many there are |
| `nearest` | `exchange` (its number), `request`, `score` (0 to 1), `used` (it was given already), \
`why` it was not taken, `differences`, `context` |
| `differences` | a list of `where`, `taped`, `asked` (excerpts; null: it is not there), \
`words` (of longer texts, `[-taped-]{+asked+}`), `kind` (what both look like: uuid, timestamp …) \
and `rule` (what would make it no difference) |
| `context` | of LLM calls, a list of `kind` (injected, dropped, changed, truncated), `role`, \
`taped` and `asked` (the message's number, from 0) and `text` |
| `drifts` | a list of `request`, `what`, `differences` |
| `unused` | the numbers of the exchanges that were not asked for |
| `unsaid` | WebSockets on which the client said less: a list of `exchange`, `heard` and `taped` (messages) |
| `trace` | the trace hash of the answers that were given: where all were, the one in the tape's seal |
| `refused_certificate` | host and reason, for clients that did not take our certificate |
| `notes` | what else was noticed, as sentences |
| `rules` | by what requests were told apart: a list of `rule` (its text) and `matched` (it found something to do) |
| `injected` | the faults of `--inject` that requests got: `fault`, `number`, `request`, `exchange` |
| `provenance` | with `--explain`: a list of `request`, `where`, `asked`, `sources`, `sites`, `hint` (a sentence) |
| `sources` | reads that are in what was asked: `how`, `text` (that part), `site`, `lane`, `clamped` (by the tape) |
| `how` | `value`, `part` (of the value), `maybe` (a short one), or a time's `second`, `minute`, `day` |
| `site` | `what` (the function), `where` (up to four lines of the user's code, innermost first), `via` (libraries) |
| `sites` | for a position: `site` and `reads`, how often it read the clock since the lane's request before |

## Environment

`TAPEPROXY_HOME` (default `~/.tapeproxy`) holds the certificate authority and the redaction key.
`TAPEPROXY_PASSPHRASE`, `TAPEPROXY_PASSPHRASE_FILE` (a file that holds it) and `TAPEPROXY_KEY_FILE` open encrypted
tapes; no agent gets them. `NO_COLOR` turns colour off; it is only used on a terminal. Shell completion:
`eval "$(_TAPEPROXY_COMPLETE=bash_source tapeproxy)"` (or `zsh_source`, `fish_source`).
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
