"""Reads of environment variables: each name once with a keyed hash, never a value, and no walk over all of them."""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from shimruns import SEED, everywhere, run

from tapeproxy.proxy import childenv
from tapeproxy.proxy.processes import RUN_VARIABLE

NAME = "SOME_SETTING"


def digest(value: str, seed: str = SEED) -> str:
    return hashlib.blake2b(value.encode(), key=bytes.fromhex(seed), digest_size=8).hexdigest()


@everywhere
@pytest.mark.parametrize(
    ("code", "noted"),
    [
        ("os.environ['SOME_SETTING']", [(NAME, digest("s3cret"))]),
        ("for read in (os.environ.get, os.getenv): read('SOME_SETTING')", [(NAME, digest("s3cret"))]),
        ("os.environ['SOME_SETTING']; os.environb[b'SOME_SETTING']", [(NAME, digest("s3cret"))]),
        ("'SOME_SETTING' in os.environ", [(NAME, digest("s3cret"))]),
        ("os.getenv('NOT_THERE', 'x')", [("NOT_THERE", None)]),
        ("os.environ.pop('SOME_SETTING'); os.getenv('SOME_SETTING')", [(NAME, digest("s3cret")), (NAME, None)]),
        ("os.environ['SOME_SETTING'] = 'other'; os.environ['SOME_SETTING']", [(NAME, digest("other"))]),
        ("dict(os.environ); os.environ.copy(); list(os.environ.items()); {**os.environ}; os.environ | {}", []),
        ("dict(os.environ); os.environ['SOME_SETTING']", [(NAME, digest("s3cret"))]),
        ("for i in range(20): os.environ['SOME_SETTING'] = str(i); os.environ['SOME_SETTING']",
         [(NAME, digest(str(i))) for i in range(8)]),
        ("list(os.environ); len(os.environ); str(os.environ)", []),
        ("os.environ.get('HTTPS_PROXY'); os.environ.get('TAPEPROXY_SEED'); os.environ.get('SSL_CERT_FILE')", []),
    ],
)  # fmt: skip
def test_reads(code: str, noted: list[tuple[str, str | None]], python: Path, sidecar: Path) -> None:
    ran = run(f"import os\n{code}", python=python, sidecar=sidecar, extra={NAME: "s3cret", "HTTPS_PROXY": "http://p"})
    assert ran.stderr == ""
    assert [(line["name"], line["digest"]) for line in ran.of("env")] == noted
    assert all("s3cret" not in path.read_text() for path in sidecar.glob("*.jsonl"))


@everywhere
def test_a_missing_variable_fails_as_ever(python: Path, sidecar: Path) -> None:
    code = "import os\ntry: os.environ['NO']\nexcept KeyError as error: print(repr(error), error.__suppress_context__)"
    bare, ours = (run(code, mode=mode, python=python, sidecar=sidecar).stdout for mode in ("bare", "record"))
    assert bare == ours


@everywhere
def test_the_digest_is_the_seeds(python: Path, sidecar: Path) -> None:
    code = "import os; os.environ['SOME_SETTING']"
    ran = run(code, python=python, sidecar=sidecar, seed="12" * 32, extra={NAME: "1"})
    assert ran.of("env") == [{"k": "env", "name": NAME, "digest": digest("1", "12" * 32)}]


def test_the_launchers_own_variables_are_known(inject: Callable[[str], Any]) -> None:
    """Those that it sets for every client differ from run to run and are nobody's dependency."""
    made = childenv.child_environment({}, childenv.ChildSettings("http://p", Path("b"), Path("c"), "run"))
    assert set(made) - {RUN_VARIABLE} == inject("settings").PLUMBING - {"PYTHONHASHSEED", "TMPDIR"}
