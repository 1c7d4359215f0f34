"""Names under which secrets travel: of headers, query parameters, and fields of JSON and forms. Knows names alone."""

import re
from functools import lru_cache
from typing import Final
from urllib.parse import unquote_to_bytes

_HEADERS = frozenset(
    b"authorization proxy-authorization cookie set-cookie set-cookie2 api-key apikey x-auth x-auth-token x-access-token"
    b" token x-amz-security-token x-csrf-token x-xsrf-token x-vault-token private-token x-auth-key"
    b" x-access-key x-password x-github-token x-figma-token circle-token x-subscription-token x-rapidapi-key"
    b" x-functions-key ocp-apim-subscription-key dd-application-key".split()
)
_HEADER_ENDS = (
    *(b"-api-key", b"-apikey", b"-token", b"-secret", b"-secret-key", b"-authorization", b"-auth", b"-jwt"),
    *(b"-jwt-assertion", b"-password", b"-credential", b"-credentials"),
)
SCHEMES: Final = frozenset(
    b"basic bearer digest token negotiate ntlm hawk dpop oauth apikey api-key key aws4-hmac-sha256 mac".split()
)
"""What may stand before credentials and says nothing of them."""
_QUERY = frozenset(
    b"api_key apikey api-key x-api-key access_token access-token accesstoken id_token refresh_token refreshtoken"
    b" client_secret secret secret_key password passwd pwd session_token app_key x-amz-signature x-amz-credential"
    b" x-amz-security-token x-goog-signature x-goog-credential awsaccesskeyid signature subscription-key auth_token"
    b" authtoken bearer authorization sas".split()
)
_MAYBE_QUERY = frozenset(b"key token sig auth code jwt".split())
# In lower case and without what separates words.
_FIELDS = frozenset(
    b"pwd secret bearer authorization proxyauthorization cookie setcookie accesskey xamzsecuritytoken"
    b" connectionstring".split()
)
_FIELD_ENDS = (
    *(b"password", b"passwd", b"passphrase", b"apikey", b"accesstoken", b"refreshtoken", b"idtoken", b"authtoken"),
    *(b"sessiontoken", b"bearertoken", b"securitytoken", b"clientsecret", b"secretkey", b"secretaccesskey"),
    *(b"privatekey", b"apitoken", b"apisecret", b"appsecret", b"signingsecret", b"webhooksecret", b"oauthtoken"),
)
_MAYBE_FIELDS = frozenset(b"token key auth jwt credential credentials sessionid".split())
_SEPARATORS = re.compile(rb"[^a-z0-9]")


def is_secret_header(name: bytes) -> bool:
    """True when a header of this name carries a credential; `-bin` at its end is gRPC's, of what is in base64."""
    low = name.lower().replace(b"_", b"-").removesuffix(b"-bin")
    return low in _HEADERS or low.endswith(_HEADER_ENDS)


def is_secret_query(name: bytes) -> bool | None:
    """True when a query parameter of this name carries a credential; None when it does if it looks like one."""
    low = name.lower()
    return True if low in _QUERY else None if low in _MAYBE_QUERY else False


@lru_cache(2048)
def is_secret_pair(name: bytes) -> bool | None:
    """The same for a name of a query or form as it is written, of which the fields of JSON count, too.

    `api%5Fkey`, `db_password` and `user[password]`.
    """
    name = unquote_to_bytes(name.replace(b"+", b" ")).lower()
    if name.endswith(b"]"):
        name = name[name.rfind(b"[") + 1 : -1]
    says = is_secret_query(name)
    return is_secret_field(name) if says is False else says


@lru_cache(2048)
def is_secret_field(name: bytes) -> bool | None:
    """True when a field of this name carries a credential; None when it does if it looks like one.

    apiKey, api_key and API-KEY are one name.
    """
    short = _SEPARATORS.sub(b"", name.lower())
    if short in _FIELDS or short.endswith(_FIELD_ENDS):
        return True
    return None if short in _MAYBE_FIELDS else False
