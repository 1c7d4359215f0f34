"""Which variables are secret, and which values would rewrite the world if they were."""

import pytest

from tapeproxy.tapes.secretvars import (
    is_secret_name,
    is_secret_value,
    placeholder_names,
    secret_names,
    secret_values,
)
from tapeproxy.tapes.tokens import placeholder


@pytest.mark.parametrize(
    "name",
    ["OPENAI_API_KEY", "GITHUB_TOKEN", "DB_PASSWORD", "AWS_SECRET_ACCESS_KEY", "apikey", "SENTRY_DSN", "NPM_AUTH"],
)
def test_secret_names(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize(
    "name",
    ["PATH", "PWD", "HOME", "KEYBOARD", "TOKENIZERS_PARALLELISM", "MONKEY", "LD_PRELOAD", "PYTHONPATH", "BASH_ENV"],
)
def test_other_names(name: str) -> None:
    assert not is_secret_name(name)


@pytest.mark.parametrize(
    ("value", "secret"),
    [
        ("sk-proj-AbCdEf0123456789", True),
        ("/9jAbC12+dEfGh34iJkLmN56opQ==", True),
        ("correct horse battery staple", True),
        ("-----BEGIN KEY-----\nMIIabc0123456789\n-----END KEY-----", True),
        ("test", False),
        ("short1A", False),
        ("aaaaaaaaaaaaaaaaaaaa", False),
        ("/home/someone/.config/agent/key.pem", False),
        ("/Users/Someone/Library/key", False),
        ("~/keys/id_ed25519", False),
        ("not a secret", False),
    ],
)
def test_values(value: str, secret: bool) -> None:
    assert is_secret_value(value) is secret


def test_passwords_in_urls_are_secret_whatever_the_variable_is_called() -> None:
    environment = {
        "DATABASE_URL": "postgres://app:s3cr3t-pw-77@db:5432/x",
        "SITE": "https://h:80/",
        "A": "http://u:pw@h",
    }
    assert secret_values(environment) == ("s3cr3t-pw-77",)
    assert secret_names({"A_KEY": "", "B_KEY": "x"}) == ("B_KEY",)


def test_longer_values_come_first() -> None:
    environment = {"A_KEY": "abcdef123456XYZ", "B_KEY": "abcdef123456XYZ-and-more"}
    assert secret_values(environment) == ("abcdef123456XYZ-and-more", "abcdef123456XYZ")


@pytest.mark.parametrize(
    ("environment", "names"),
    [
        ({"API_KEY": placeholder("API_KEY")}, ("API_KEY",)),
        ({"API_KEY": placeholder("TOKEN"), "TOKEN": placeholder("TOKEN")}, ("API_KEY", "TOKEN")),
        ({"AUTH": f"Bearer {placeholder('AUTH')}", "TOKEN": "sk-0123456789"}, ("AUTH",)),
        ({"PLACE": placeholder("PLACE")}, ()),
        ({"API_KEY": "sk-0123456789", "TOKEN": ""}, ()),
        ({"API_KEY": placeholder("API_KEY")[:-1]}, ()),
    ],
)
def test_variables_that_hold_placeholders(environment: dict[str, str], names: tuple[str, ...]) -> None:
    assert placeholder_names(environment) == names
