"""Read-only requests to AWS in one region, named as the IAM actions that allow them."""

from __future__ import annotations

import importlib
import json
from typing import TYPE_CHECKING, Any, Final

from mirrorless.errors import AwsError

if TYPE_CHECKING:
    from collections.abc import Iterator

_DENIED: Final = frozenset(
    {"AccessDenied", "AccessDeniedException", "AuthorizationError", "UnauthorizedOperation", "UnauthorizedException"}
)
_UNAUTHORIZED: Final = "is not authorized to perform"


class Denied(Exception):
    """A right is missing: `action` has to be granted."""

    def __init__(self, action: str) -> None:
        self.action = action
        super().__init__(f"grant {action}")


class Missing(AwsError):
    """What was asked for does not exist."""


class Api:
    """Asks AWS in one region, or in the default one; answers are kept."""

    def __init__(self, region: str | None = None) -> None:
        self._boto3 = importlib.import_module("boto3")
        self._botocore = importlib.import_module("botocore")
        self._exceptions = importlib.import_module("botocore.exceptions")
        self._session: Any = self._boto3.Session(region_name=region)
        self._clients: dict[str, Any] = {}
        self._answers: dict[str, dict[str, Any]] = {}

    @property
    def region(self) -> str:
        """The region; raises `AwsError` if none is configured."""
        name = self._session.region_name
        if name is None:
            raise AwsError("AWS: no region is configured; set AWS_REGION")
        return str(name)

    def ask(self, action: str, **parameters: object) -> dict[str, Any]:
        """Send the request that `action` allows; raises `Denied`, `Missing` or `AwsError`."""
        key = json.dumps([action, parameters], sort_keys=True)
        if key not in self._answers:
            self._answers[key] = self._ask(action, parameters)
        return self._answers[key]

    def every(self, action: str, field: str, **parameters: object) -> Iterator[dict[str, Any]]:
        """Yield a field's items of all pages."""
        token: dict[str, object] = {}
        while True:
            answer = self.ask(action, **parameters, **token)
            yield from answer.get(field, [])
            name = next((one for one in ("NextToken", "NextMarker") if answer.get(one)), None)
            if name is None:
                return
            token = {"NextToken" if name == "NextToken" else "Marker": answer[name]}

    def _ask(self, action: str, parameters: dict[str, Any]) -> dict[str, Any]:
        service, _, operation = action.partition(":")
        try:
            client = self._client(service)
            answer: dict[str, Any] = getattr(client, self._botocore.xform_name(operation))(**parameters)
        except self._exceptions.ClientError as error:
            found = error.response.get("Error", {})
            code = str(found.get("Code", "an error"))
            text = f"{service} answered {code}: {' '.join(str(found.get('Message', '')).split())}"
            if code in _DENIED or _UNAUTHORIZED in text:
                raise Denied(action) from None
            raise (Missing if _is_missing(code, text) else AwsError)(text) from None
        except self._exceptions.BotoCoreError as error:
            of_settings = ("NoCredentialsError", "PartialCredentialsError", "NoRegionError")
            what = "was not asked" if type(error).__name__ in of_settings else "is not reachable"
            raise AwsError(f"{service} {what}: {' '.join(str(error).split())}") from None
        return answer

    def _client(self, service: str) -> Any:  # noqa: ANN401 -- boto3's
        if service not in self._clients:
            self._clients[service] = self._session.client(service)
        return self._clients[service]


def _is_missing(code: str, text: str) -> bool:
    return "NotFound" in code or code.startswith("NoSuch") or (code == "ValidationError" and "does not exist" in text)
