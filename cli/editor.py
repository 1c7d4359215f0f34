"""A text or an answer given to the user's editor, and what became of it. Knows processes and files."""

import os
import shlex
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tapeproxy.tapes.errors import UsageError

if TYPE_CHECKING:
    from tapeproxy.tapes.edits import Edit
    from tapeproxy.tapes.exchanges import Exchange


def edit_text(text: str, suffix: str, environment: Mapping[str, str]) -> str:
    """Open `text` in $VISUAL or $EDITOR (default vi), wait, and return what was saved.

    Raises UsageError when the editor cannot be run or fails. The file is only its owner's to read, and goes.
    """
    command = shlex.split(environment.get("VISUAL") or environment.get("EDITOR") or "vi")
    if not command:
        raise UsageError("$VISUAL and $EDITOR name no editor", fix="export EDITOR=nano")
    with tempfile.TemporaryDirectory(prefix="tapeproxy-edit-") as folder:
        path = Path(folder, f"answer{suffix}")
        path.touch(mode=0o600)
        path.write_text(text, encoding="utf-8", newline="")
        try:
            code = subprocess.run([*command, str(path)], env=dict(environment), check=False).returncode
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise UsageError(f"the editor cannot be run: {reason}", where=command[0], fix="set $EDITOR") from None
        if code:
            raise UsageError(f"the editor ended with {code}: nothing was changed", where=command[0])
        try:
            with path.open(encoding="utf-8", newline="") as file:
                return file.read()
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"what was edited cannot be read: {error}", where=command[0]) from None


@dataclass(frozen=True, slots=True)
class EditedAnswer:
    """What the user made of an answer: the edits that it comes to, and the text itself."""

    edits: "list[Edit]"
    text: str
    suffix: str

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Keep the text where nothing comes of it: an error says where it is, beside what it says itself."""
        try:
            yield
        except BaseException:
            click.echo(f"tapeproxy: what you wrote is in {keep_draft(self.text, self.suffix)}", err=True)
            raise


def edit_answer(exchange: "Exchange", environment: Mapping[str, str]) -> EditedAnswer:
    """What the user makes of an answer in an editor. Raises UsageError; what was no use is kept."""
    from tapeproxy.tapes.editables import editable, edits_of
    from tapeproxy.tapes.edits import apply

    before = editable(exchange)
    after = edit_text(before.text, before.suffix, environment)
    try:
        edits = edits_of(before, after, exchange.number)
        apply(exchange, edits)
    except UsageError as error:
        kept = keep_draft(after, before.suffix)
        raise UsageError(error.what, where=error.where, fix=f"what you wrote is in {kept}") from None
    return EditedAnswer(edits, after, before.suffix)


def keep_draft(text: str, suffix: str) -> Path:
    """Put a text that could not be used where its author finds it again."""
    descriptor, name = tempfile.mkstemp(prefix="tapeproxy-draft-", suffix=suffix)
    with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as file:
        file.write(text)
    return Path(name)
