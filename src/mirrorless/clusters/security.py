"""Logins: the `sasl.` settings of Java clients.

Supported: PLAIN, SCRAM, OAUTHBEARER and Amazon's AWS_MSK_IAM. Anything else is refused with what to do instead.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from mirrorless.clusters import jaas, tokens

if TYPE_CHECKING:
    from mirrorless.clusters.java_settings import JavaSettings
    from mirrorless.clusters.tokens import TokenSource
    from mirrorless.settings import Cluster

_PASSWORDS: Final = {
    "PLAIN": "PlainLoginModule",
    "SCRAM-SHA-256": "ScramLoginModule",
    "SCRAM-SHA-512": "ScramLoginModule",
}
_BEARER: Final = "OAUTHBEARER"
_BEARER_OPTIONS: Final = ("clientId", "clientSecret", "scope")
_MSK: Final = "AWS_MSK_IAM"
_HANDLERS: Final = ("client", "login")
_MSK_HANDLERS: Final = ("IAMClientCallbackHandler", "IAMOAuthBearerLoginCallbackHandler")
_OIDC_HANDLER: Final = "OAuthBearerLoginCallbackHandler"
_UNSECURED_HANDLER: Final = "OAuthBearerUnsecuredLoginCallbackHandler"
_MECHANISMS: Final = (*_PASSWORDS, _BEARER, _MSK)

# When and how often Java refreshes logins; both libraries do this differently.
_TUNING: Final = (
    "sasl.kerberos.",
    "sasl.login.connect.",
    "sasl.login.read.",
    "sasl.login.refresh.",
    "sasl.login.retry.",
    "sasl.oauthbearer.clock.",
    "sasl.oauthbearer.expected.",
    "sasl.oauthbearer.jwks.",
    "sasl.oauthbearer.scope.claim.",
    "sasl.oauthbearer.sub.claim.",
)


@dataclass(frozen=True, slots=True)
class Login:
    """The login settings; all None without SASL. `mechanism` is the name in the protocol."""

    mechanism: str | None = None
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    tokens: TokenSource | None = None


def logs_in_with_iam(cluster: Cluster) -> bool:
    """Whether clients log in to a cluster with AWS IAM: their identities ignore Kafka's ACLs."""
    values = {key: value for key, value in cluster.client.items() if key.startswith("sasl.")}
    handlers = {values.get(f"sasl.{which}.callback.handler.class", "").rpartition(".")[2] for which in _HANDLERS}
    return values.get("sasl.mechanism") == _MSK or bool(handlers & set(_MSK_HANDLERS))


def read_login(settings: JavaSettings, *, used: bool) -> Login:
    """Read `sasl.`, which is used only if `used`; raises ConfigurationError for what is missing or not supported."""
    if not used:
        settings.pass_over(prefix="sasl.")
        return Login()
    mechanism = settings.choice("sasl.mechanism", default="GSSAPI", allowed=_MECHANISMS)  # Java's default
    for prefix in _TUNING:
        settings.pass_over(prefix=prefix)
    if mechanism in _PASSWORDS:
        settings.pass_over(prefix="sasl.oauthbearer.")
        return _by_password(settings, mechanism)
    handlers = {_handler(settings, which) for which in _HANDLERS} - {None}
    if mechanism == _MSK or handlers & set(_MSK_HANDLERS):
        settings.pass_over(prefix="sasl.oauthbearer.")
        return _by_iam(settings, mechanism, handlers)
    return _by_bearer(settings, handlers)


def _by_password(settings: JavaSettings, mechanism: str) -> Login:
    module = _PASSWORDS[mechanism]
    login = _parsed(settings, mechanism, module, advice=f'{module} required username="..." password="...";')
    if login.options.get("tokenauth", "").lower() == "true":
        settings.refuse("sasl.jaas.config", "delegation tokens are not supported; log in with user and password")
    for option in ("username", "password"):
        if not login.options.get(option):
            settings.refuse("sasl.jaas.config", f'has no {option}; add {option}="..."')
    return Login(mechanism, login.options["username"], login.options["password"])


def _by_iam(settings: JavaSettings, mechanism: str, handlers: set[str | None]) -> Login:
    strangers = handlers - set(_MSK_HANDLERS)
    if strangers:
        settings.refuse("sasl.client.callback.handler.class", f"Java classes are not loaded; with {_MSK} remove it")
    options: dict[str, str] = {}
    if mechanism == _MSK or settings.text("sasl.jaas.config") is not None:
        module = "IAMLoginModule" if mechanism == _MSK else "OAuthBearerLoginModule"
        options = dict(_parsed(settings, mechanism, module, advice=f"{module} required;").options)
    try:
        source = tokens.Iam.of(options, servers=settings.text("bootstrap.servers") or "")
    except ValueError as error:
        settings.refuse("sasl.jaas.config", str(error))
    return Login(_BEARER, tokens=source)


def _by_bearer(settings: JavaSettings, handlers: set[str | None]) -> Login:
    strangers = handlers - {_OIDC_HANDLER, _UNSECURED_HANDLER}
    if strangers:
        key = "sasl.login.callback.handler.class"
        settings.refuse(key, f"Java classes are not loaded; use {_OIDC_HANDLER}, which uses a token endpoint")
    for key in ("sasl.oauthbearer.jwt.retriever.class", "sasl.oauthbearer.jwt.validator.class"):
        name = (settings.text(key) or "Default").rpartition(".")[2]
        if not name.startswith(("Default", "ClientCredentials", "Client")):
            settings.refuse(key, "Java classes are not loaded; tokens are fetched with client credentials; remove it")
    module = "OAuthBearerLoginModule"
    options = _parsed(settings, _BEARER, module, advice=f"{module} required;").options
    for option in options:
        if option not in _BEARER_OPTIONS and not option.startswith(("extension_", "unsecuredLogin")):
            advice = "a token endpoint's certificate is checked with the system's CAs, or those of SSL_CERT_FILE"
            advice = f"; {advice}" if option.startswith("ssl.") else ""
            settings.refuse("sasl.jaas.config", f"option {option} is not supported; remove it{advice}")
    endpoint = settings.text("sasl.oauthbearer.token.endpoint.url")
    stated = {
        "clientId": settings.text("sasl.oauthbearer.client.credentials.client.id"),
        "clientSecret": settings.raw("sasl.oauthbearer.client.credentials.client.secret"),
        "scope": settings.text("sasl.oauthbearer.scope"),
    }
    merged = dict(options) | {key: value for key, value in stated.items() if value is not None}
    encoded = (settings.text("sasl.oauthbearer.header.urlencode") or "false").lower() == "true"
    try:
        if endpoint is None:
            if _OIDC_HANDLER in handlers:
                settings.refuse(
                    "sasl.oauthbearer.token.endpoint.url", "is not set; set it to the URL of the token endpoint"
                )
            return Login(_BEARER, tokens=tokens.Unsecured.of(merged))
        return Login(_BEARER, tokens=tokens.ClientCredentials.of(merged, endpoint=endpoint, urlencode=encoded))
    except ValueError as error:
        settings.refuse("sasl.jaas.config", str(error))


def _handler(settings: JavaSettings, which: str) -> str | None:
    text = settings.text(f"sasl.{which}.callback.handler.class")
    return None if text is None else text.rpartition(".")[2]


def _parsed(settings: JavaSettings, mechanism: str, module: str, *, advice: str) -> jaas.JaasLogin:
    text = settings.text("sasl.jaas.config")
    if text is None:
        settings.refuse("sasl.jaas.config", f"is not set; use {advice}")
    try:
        login = jaas.parse(text)
    except ValueError as error:
        settings.refuse("sasl.jaas.config", str(error))
    if login.short_name != module:
        settings.refuse("sasl.jaas.config", f"{mechanism} requires login module {module}")
    return login
