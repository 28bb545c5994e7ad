"""Bearer tokens come from an endpoint, from AWS or from nowhere, for both libraries; one line says why they do not."""

from __future__ import annotations

import base64
import json
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

import pytest

from mirrorless.clusters.client_settings import for_confluent, for_kafka_python
from mirrorless.clusters.tokens import CachedToken, ClientCredentials, Iam, Token
from mirrorless.errors import ClusterUnavailable, ConfigurationError
from mirrorless.settings import Cluster

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
OIDC = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler"
IAM = "software.amazon.msk.auth.iam.IAMLoginModule required"
MSK = "b-1.x.abc.c2.kafka.eu-central-1.amazonaws.com:9098"


class Endpoint(HTTPServer):
    """Gives out tokens to whoever knows the secret, and remembers what it was asked."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answers)
        self.asked: list[dict[str, list[str]]] = []
        self.answer: object = {"access_token": "a.b.c", "expires_in": 3600}

    @property
    def url(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self.server_port}/token"


class Answers(BaseHTTPRequestHandler):
    server: Endpoint

    def do_POST(self) -> None:
        form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
        self.server.asked.append(form)
        basic = base64.b64decode(self.headers["Authorization"].removeprefix("Basic ")).decode()
        self.send_response(200 if basic == "me:swordfish" else 401)
        self.end_headers()
        body = self.server.answer
        self.wfile.write(body if isinstance(body, bytes) else json.dumps(body).encode())

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    server = Endpoint()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def cluster(servers: str = "a:1", **client: str) -> Cluster:
    settings = {key.replace("_", "."): value for key, value in client.items()}
    defaults = {"security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER"}
    return Cluster(alias="A", bootstrap_servers=servers, client=defaults | settings)


def tokens(one: Cluster) -> tuple[str, str]:
    """The tokens that both libraries would send."""
    confluent = for_confluent(one, role="admin")
    kafka_python = for_kafka_python(one, role="admin")
    assert confluent["sasl.mechanism"] == kafka_python["sasl_mechanism"] == "OAUTHBEARER"
    return confluent["oauth_cb"]("")[0], kafka_python["sasl_oauth_token_provider"].token()


def jwt(**claims: object) -> str:
    payload = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    return f"e30.{payload}.x"


def test_client_credentials_in_the_login_configuration(endpoint: Endpoint) -> None:
    one = cluster(
        sasl_login_callback_handler_class=OIDC,
        sasl_oauthbearer_token_endpoint_url=endpoint.url,
        sasl_jaas_config=f'{MODULE} clientId=me clientSecret=swordfish scope="kafka rw" extension_logicalCluster=lkc;',
    )

    assert tokens(one) == ("a.b.c", "a.b.c")
    assert endpoint.asked[0] == {"grant_type": ["client_credentials"], "scope": ["kafka rw"]}
    assert for_confluent(one, role="admin")["oauth_cb"]("")[3] == {"logicalCluster": "lkc"}
    assert for_kafka_python(one, role="admin")["sasl_oauth_token_provider"].extensions() == {"logicalCluster": "lkc"}


def test_client_credentials_in_settings(endpoint: Endpoint) -> None:
    one = cluster(
        sasl_oauthbearer_token_endpoint_url=endpoint.url,
        sasl_jaas_config=f"{MODULE};",
        sasl_oauthbearer_client_credentials_client_id="me",
        sasl_oauthbearer_client_credentials_client_secret="swordfish",  # noqa: S106
        sasl_oauthbearer_scope="s",
    )

    assert tokens(one) == ("a.b.c", "a.b.c")
    assert endpoint.asked[0]["scope"] == ["s"]


def test_a_token_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "token").write_text(jwt(exp=time.time() + 60) + "\n")
    one = cluster(sasl_oauthbearer_token_endpoint_url=f"file://{tmp_path}/token", sasl_jaas_config=f"{MODULE};")

    assert tokens(one)[0] == (tmp_path / "token").read_text().strip()


def test_the_token_says_itself_how_long_it_lives(endpoint: Endpoint) -> None:
    ends_s = float(int(time.time()) + 120)
    endpoint.answer = {"access_token": jwt(exp=ends_s)}
    one = cluster(
        sasl_oauthbearer_token_endpoint_url=endpoint.url,
        sasl_jaas_config=f"{MODULE} clientId=me clientSecret=swordfish;",
    )

    assert for_confluent(one, role="admin")["oauth_cb"]("")[1] == ends_s


def test_unsecured_tokens_have_the_subject() -> None:
    one = cluster(sasl_jaas_config=f'{MODULE} unsecuredLoginStringClaim_sub="alice";')
    header, payload, signature = tokens(one)[0].split(".")

    assert json.loads(base64.urlsafe_b64decode(header + "==")) == {"alg": "none"}
    assert json.loads(base64.urlsafe_b64decode(payload + "==")).items() >= {("sub", "alice")}
    assert signature == ""


def test_a_token_is_used_again_until_it_grows_old() -> None:
    class Source:
        given = 0

        def fetch(self) -> Token:
            self.given += 1
            return Token(str(self.given), time.time() + (3600 if self.given > 1 else -1))

    kept = CachedToken(Source())
    assert [kept.fetch().value for _ in range(3)] == ["1", "2", "2"]


def test_a_token_that_cannot_be_renewed_is_used_as_long_as_it_lives() -> None:
    class Source:
        lives_s: float | None = 30.0

        def fetch(self) -> Token:
            if self.lives_s is None:
                raise ValueError("503")
            return Token("first", time.time() + self.lives_s)

    source = Source()
    kept = CachedToken(source)
    kept.fetch()
    source.lives_s = None
    kept._renew_s = 0.0
    assert kept.fetch().value == "first"
    assert kept._renew_s > time.time()
    kept._renew_s, kept._token = 0.0, Token("old", time.time() + 1)
    with pytest.raises(ValueError, match="503"):
        kept.fetch()


@pytest.mark.parametrize(
    ("answer", "line"),
    [
        (b"<html>", "returned no token: its answer is not JSON"),
        ([], "answered without an access_token"),
        ({"access_token": ""}, "answered without an access_token"),
        ({"access_token": "opaque"}, "the token has no lifetime: no expires_in, and no exp claim"),
    ],
)
def test_an_endpoint_that_answers_something_else(endpoint: Endpoint, answer: object, line: str) -> None:
    endpoint.answer = answer
    one = cluster(
        sasl_oauthbearer_token_endpoint_url=endpoint.url,
        sasl_jaas_config=f"{MODULE} clientId=me clientSecret=swordfish;",
    )
    with pytest.raises(ClusterUnavailable, match=line):
        tokens(one)


def test_a_wrong_secret_and_an_endpoint_that_is_not_there(endpoint: Endpoint) -> None:
    def ask(url: str) -> str:
        one = cluster(
            sasl_oauthbearer_token_endpoint_url=url, sasl_jaas_config=f"{MODULE} clientId=me clientSecret=tunafish;"
        )
        with pytest.raises(ClusterUnavailable, match="token") as caught:
            tokens(one)
        return str(caught.value)

    assert ask(endpoint.url) == (
        "cluster A: no token for the login: "
        f"token endpoint {endpoint.url} answered 401 Unauthorized; check clientId and clientSecret"
    )
    assert "returned no token: [Errno 111] Connection refused" in ask("http://127.0.0.1:1/token")


@pytest.mark.parametrize("host", ["idp.example.com", "10.0.0.1", "[fd00::1]", "localhost.example.com"])
def test_a_secret_is_not_sent_by_http_but_to_loopback(host: str) -> None:
    def source(url: str) -> ClientCredentials:
        return ClientCredentials.of({"clientId": "me", "clientSecret": "x"}, endpoint=url, urlencode=False)

    with pytest.raises(ValueError, match="must be an https: URL"):
        source(f"http://{host}/token")
    assert source(f"https://{host}/token")
    for loopback in ("localhost", "127.0.0.1:8080", "[::1]"):
        assert source(f"http://{loopback}/token")


@pytest.mark.parametrize(
    ("client", "line"),
    [
        ({}, "A.sasl.jaas.config: is not set; use OAuthBearerLoginModule required;"),
        ({"sasl_jaas_config": f"{MODULE};"}, "A.sasl.jaas.config=***: has no token settings; set sasl.oauth"),
        (
            {"sasl_jaas_config": f"{MODULE};", "sasl_login_callback_handler_class": OIDC},
            "A.sasl.oauthbearer.token.endpoint.url: is not set; set it to the URL of the token endpoint",
        ),
        (
            {"sasl_jaas_config": f"{MODULE};", "sasl_login_callback_handler_class": "my.Handler"},
            "A.sasl.login.callback.handler.class=my.Handler: Java classes are not loaded",
        ),
        (
            {"sasl_jaas_config": f"{MODULE} clientId=me;", "sasl_oauthbearer_token_endpoint_url": "https://x"},
            'A.sasl.jaas.config=***: has no clientSecret; add clientSecret="..."',
        ),
        (
            {"sasl_jaas_config": f"{MODULE} clientId=me;", "sasl_oauthbearer_token_endpoint_url": "gopher://x"},
            "A.sasl.jaas.config=***: the token endpoint must be an https: or file: URL",
        ),
        (
            {
                "sasl_jaas_config": f"{MODULE} clientId=me clientSecret=s ssl.truststore.type=PEM;",
                "sasl_oauthbearer_token_endpoint_url": "https://x",
            },
            "A.sasl.jaas.config=***: option ssl.truststore.type is not supported; remove it; a token endpoint's",
        ),
        (
            {"sasl_jaas_config": f"{MODULE};", "sasl_oauthbearer_jwt_retriever_class": "my.Retriever"},
            "A.sasl.oauthbearer.jwt.retriever.class=my.Retriever: Java classes are not loaded",
        ),
    ],
)
def test_what_is_missing_is_one_line(client: dict[str, str], line: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        for_confluent(cluster(**client), role="admin")

    assert str(caught.value).startswith(line)


@pytest.fixture
def _credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")


@pytest.mark.filterwarnings("default")
@pytest.mark.usefixtures("_credentials")
@pytest.mark.parametrize(
    "client",
    [
        {
            "sasl_mechanism": "AWS_MSK_IAM",
            "sasl_jaas_config": f"{IAM};",
            "sasl_client_callback_handler_class": "software.amazon.msk.auth.iam.IAMClientCallbackHandler",
        },
        {
            "sasl_jaas_config": f"{MODULE};",
            "sasl_login_callback_handler_class": "software.amazon.msk.auth.iam.IAMOAuthBearerLoginCallbackHandler",
        },
    ],
)
def test_iam_signs_for_the_brokers_region(client: dict[str, str]) -> None:
    for token in tokens(cluster(MSK, **client)):
        signed = base64.urlsafe_b64decode(token + "==").decode()
        assert signed.startswith("https://kafka.eu-central-1.amazonaws.com/?Action=kafka-cluster%3AConnect")


@pytest.mark.usefixtures("_credentials")
def test_iam_needs_a_region_and_knows_its_options(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ValueError, match="the brokers' names have no region; set AWS_REGION"):
        Iam.of({}, servers="kafka.example.com:9098")
    with pytest.raises(ValueError, match="option awsRoleExternalId is not supported; remove it"):
        Iam.of({"awsRoleExternalId": "x"}, servers=MSK)
    role = Iam.of({"awsRoleArn": "arn:aws:iam::1:role/r", "awsRoleSessionName": "me"}, servers=MSK)
    assert (role.region, role.role_arn, role.session_name) == ("eu-central-1", "arn:aws:iam::1:role/r", "me")


def test_without_the_signer_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "aws_msk_iam_sasl_signer.MSKAuthTokenProvider", None)
    with pytest.raises(
        ConfigurationError, match="AWS_MSK_IAM needs the package aws-msk-iam-sasl-signer-python: pip in"
    ):
        for_confluent(cluster(MSK, sasl_mechanism="AWS_MSK_IAM", sasl_jaas_config=f"{IAM};"), role="admin")
