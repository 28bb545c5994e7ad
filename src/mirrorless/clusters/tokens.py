"""Sources of bearer tokens: a token endpoint (OIDC, KIP-768), AWS IAM for MSK, or unsecured, for trials.

One source serves both client libraries; a token is used until a fifth of its lifetime is left.
"""

from __future__ import annotations

import base64
import importlib
import ipaddress
import json
import os
import threading
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol, Self
from urllib.parse import quote, quote_plus, urlencode, urlsplit

from mirrorless.clusters.msk import region_of

if TYPE_CHECKING:
    from collections.abc import Mapping

_EXTENSION: Final = "extension_"
_UNSECURED: Final = "unsecuredLoginStringClaim_"
_UNSECURED_LIFE_S: Final = 3600.0
_TIMEOUT_S: Final = 10.0
_LARGEST_ANSWER_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Token:
    """A token, when it expires (seconds since 1970), and the extensions that are sent with it."""

    value: str = field(repr=False)
    expires_s: float
    extensions: Mapping[str, str] = field(default_factory=dict)


class TokenSource(Protocol):
    """Fetches tokens; raises ValueError, in one line without secrets, if it fails."""

    def fetch(self) -> Token:
        """Get a new token."""


class CachedToken:
    """A source that returns the same token until a fifth of its lifetime is left, or longer if fetching fails."""

    def __init__(self, source: TokenSource) -> None:
        self._source = source
        self._token: Token | None = None
        self._renew_s = 0.0
        self._lock = threading.Lock()

    def fetch(self) -> Token:
        """Return a valid token."""
        with self._lock:
            now_s = time.time()
            if self._token is None or now_s >= self._renew_s:
                try:
                    self._token = self._source.fetch()
                except ValueError:
                    if self._token is None or now_s + _TIMEOUT_S >= self._token.expires_s:
                        raise
                    self._renew_s = now_s + _TIMEOUT_S  # the token is still valid
                else:
                    self._renew_s = now_s + 0.8 * (self._token.expires_s - now_s)
            return self._token


@dataclass(frozen=True, slots=True)
class Unsecured:
    """Unsigned tokens (`OAuthBearerUnsecuredLoginCallbackHandler`), for trial brokers."""

    claims: Mapping[str, str]
    extensions: Mapping[str, str]

    @classmethod
    def of(cls, options: Mapping[str, str]) -> Self:
        """Read a login configuration's options; raises ValueError if there is no subject."""
        claims = {key.removeprefix(_UNSECURED): value for key, value in options.items() if key.startswith(_UNSECURED)}
        if "sub" not in claims:
            raise ValueError(
                "has no token settings; set sasl.oauthbearer.token.endpoint.url with clientId and clientSecret, "
                f'or for unsecured tokens {_UNSECURED}sub="..."'
            )
        return cls(claims, _extensions(options))

    def fetch(self) -> Token:
        """Make a token."""
        now_s = time.time()
        claims = {**self.claims, "iat": now_s, "exp": now_s + _UNSECURED_LIFE_S}
        return Token(f"{_coded({'alg': 'none'})}.{_coded(claims)}.", now_s + _UNSECURED_LIFE_S, self.extensions)


@dataclass(frozen=True, slots=True)
class ClientCredentials:
    """Tokens of an endpoint, fetched with an id and a secret; `file:` is a token that another process renews."""

    endpoint: str
    client_id: str
    client_secret: str = field(repr=False)
    scope: str | None
    urlencode: bool
    extensions: Mapping[str, str]

    @classmethod
    def of(cls, options: Mapping[str, str], *, endpoint: str, urlencode: bool) -> Self:
        """Read a login configuration's options; raises ValueError for what is missing."""
        scheme = urlsplit(endpoint).scheme
        if scheme not in ("https", "http", "file"):
            raise ValueError("the token endpoint must be an https: or file: URL")
        if scheme == "http" and not _is_loopback(urlsplit(endpoint).hostname or ""):
            raise ValueError("the token endpoint must be an https: URL: by http: the secret would be readable")
        missing = [name for name in ("clientId", "clientSecret") if not options.get(name)] if scheme != "file" else []
        if missing:
            raise ValueError(f'has no {missing[0]}; add {missing[0]}="..."')
        return cls(
            endpoint=endpoint,
            client_id=options.get("clientId", ""),
            client_secret=options.get("clientSecret", ""),
            scope=options.get("scope"),
            urlencode=urlencode,
            extensions=_extensions(options),
        )

    def fetch(self) -> Token:
        """Fetch a token from the endpoint."""
        if self.endpoint.startswith("file:"):
            try:
                return _with_life(Path(urlsplit(self.endpoint).path).read_text("utf-8").strip(), None, self.extensions)
            except OSError as error:
                raise ValueError(f"{self.endpoint} cannot be read: {error.strerror}") from None
        answer = self._answer()
        value = answer.get("access_token")
        if not isinstance(value, str) or not value:
            raise ValueError(f"{self._place()} answered without an access_token")
        return _with_life(value, answer.get("expires_in"), self.extensions)

    def _answer(self) -> dict[str, Any]:
        pair = (self.client_id, self.client_secret)
        user, secret = map(quote_plus, pair) if self.urlencode else pair
        basic = base64.b64encode(f"{user}:{secret}".encode()).decode("ascii")
        form = {"grant_type": "client_credentials"} | ({"scope": self.scope} if self.scope else {})
        request = urllib.request.Request(  # noqa: S310 -- the scheme was checked
            self.endpoint,
            data=urlencode(form, quote_via=quote).encode("ascii"),
            headers={"Authorization": f"Basic {basic}", "Accept": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as response:  # noqa: S310 -- as above
                answer = json.loads(response.read(_LARGEST_ANSWER_BYTES))
        except urllib.error.HTTPError as error:
            error.close()
            advice = "; check clientId and clientSecret" if error.code in (400, 401, 403) else ""
            raise ValueError(f"{self._place()} answered {error.code} {error.reason}{advice}") from None
        except (OSError, ValueError) as error:
            reason = getattr(error, "reason", None) or (
                error if isinstance(error, OSError) else "its answer is not JSON"
            )
            raise ValueError(f"{self._place()} returned no token: {reason}") from None
        return answer if isinstance(answer, dict) else {}

    def _place(self) -> str:
        parts = urlsplit(self.endpoint)
        return f"token endpoint {parts.scheme}://{parts.hostname}{f':{parts.port}' if parts.port else ''}{parts.path}"


@dataclass(frozen=True, slots=True)
class Iam:
    """Tokens for MSK, signed with AWS credentials by Amazon's signer."""

    region: str
    profile: str | None
    role_arn: str | None
    session_name: str

    @classmethod
    def of(cls, options: Mapping[str, str], *, servers: str) -> Self:
        """Read a login configuration's options; raises ValueError for what is not supported or missing."""
        known = ("awsProfileName", "awsRoleArn", "awsRoleSessionName", "awsStsRegion", "awsDebugCreds")
        strangers = [option for option in options if option not in known and not option.startswith("awsMax")]
        if strangers:
            raise ValueError(f"option {strangers[0]} is not supported; remove it")
        region = region_of(servers) or os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
        if not region:
            raise ValueError("the brokers' names have no region; set AWS_REGION")
        _signer()
        return cls(
            region,
            options.get("awsProfileName"),
            options.get("awsRoleArn"),
            options.get("awsRoleSessionName") or "mirrorless",
        )

    def fetch(self) -> Token:
        """Sign a token."""
        provider = _signer()
        try:
            if self.role_arn:
                value, ends_ms = provider.generate_auth_token_from_role_arn(
                    self.region, self.role_arn, sts_session_name=self.session_name
                )
            elif self.profile:
                value, ends_ms = provider.generate_auth_token_from_profile(self.region, self.profile)
            else:
                value, ends_ms = provider.generate_auth_token(self.region)
        except Exception as error:  # noqa: BLE001 -- the signer's and botocore's have no common type
            raise ValueError(f"no AWS credentials for MSK: {' '.join(str(error).split())}") from None
        return Token(value, ends_ms / 1000)


def _signer() -> Any:  # noqa: ANN401 -- the package has no types
    try:
        return importlib.import_module("aws_msk_iam_sasl_signer.MSKAuthTokenProvider")
    except ImportError:
        package = "aws-msk-iam-sasl-signer-python"
        raise ValueError(f"AWS_MSK_IAM needs the package {package}: pip install mirrorless") from None


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _with_life(value: str, life_s: object, extensions: Mapping[str, str]) -> Token:
    """Make a token with its lifetime from the response, or from the token itself, which then is a JWT."""
    now_s = time.time()
    if isinstance(life_s, int | float) and life_s > 0:
        return Token(value, now_s + life_s, extensions)
    try:
        payload = value.split(".")[1]
        ends_s = float(json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))["exp"])
    except (IndexError, ValueError, KeyError, TypeError):
        raise ValueError("the token has no lifetime: no expires_in, and no exp claim") from None
    return Token(value, ends_s, extensions)


def _extensions(options: Mapping[str, str]) -> dict[str, str]:
    return {key.removeprefix(_EXTENSION): value for key, value in options.items() if key.startswith(_EXTENSION)}


def _coded(claims: Mapping[str, object]) -> str:
    return base64.urlsafe_b64encode(json.dumps(claims).encode()).decode("ascii").rstrip("=")
