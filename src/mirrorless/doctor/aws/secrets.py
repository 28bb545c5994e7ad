"""Checks the secrets that clients and triggers log in with, and the KMS keys that encrypt them.

MSK refuses SCRAM secrets under the default key aws/secretsmanager, and their names begin with AmazonMSK_ ("Sign-in
credentials authentication with AWS Secrets Manager" in the MSK developer guide). The roles may decrypt with the keys of
`KmsKeyArns`; with the default key every role of the account may.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mirrorless.doctor.aws.api import Api, Missing
from mirrorless.doctor.aws.deployment import parse_arn
from mirrorless.doctor.findings import Finding, Status

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mirrorless.doctor.aws.deployment import Deployment

SECRETS: Final = "secrets"
_MSK: Final = "AmazonMSK_"
_DEFAULT: Final = "alias/aws/secretsmanager"


def check_secrets(deployment: Deployment, api: Api) -> Iterator[Finding]:
    """Check each secret that the parameters name."""
    named = {
        end.secret.text: f"{end.prefix}SecretArn"
        for end in deployment.clusters
        if end.secret is not None and end.cluster is not None
    }
    scram = set(named)
    for text in deployment.secrets:
        named.setdefault(text, "SecretArns")
        arn = parse_arn(text)
        if arn is not None and _MSK in arn.resource:
            scram.add(text)
    for text, parameter in named.items():
        yield _secret(text, parameter, deployment, api, is_scram=text in scram)
    if not named:
        yield Finding(check=SECRETS, status=Status.OK, text="no parameter names a secret")


def _secret(text: str, parameter: str, deployment: Deployment, api: Api, *, is_scram: bool) -> Finding:
    def finding(status: Status, what: str, fix: str | None = None) -> Finding:
        return Finding(check=SECRETS, status=status, text=what, fix=fix)

    arn = parse_arn(text)
    there = api if arn is None or arn.region in ("", api.region) else Api(arn.region)
    try:
        secret = there.ask("secretsmanager:DescribeSecret", SecretId=text)
    except Missing:
        return finding(
            Status.FAILED, f"{text} ({parameter}) does not exist", f"create the secret, or correct {parameter}"
        )
    name, key = str(secret["Name"]), str(secret.get("KmsKeyId") or _DEFAULT)
    if is_scram and not name.startswith(_MSK):
        fix = f"create it again with a name that begins with {_MSK}, and associate it with the cluster"
        return finding(Status.FAILED, f"{name} ({parameter}): MSK accepts only secrets named {_MSK}...", fix)
    if key.endswith(_DEFAULT):
        if is_scram:
            fix = "encrypt the secret with a customer managed key, and add the key to KmsKeyArns"
            return finding(Status.FAILED, f"{name} ({parameter}) is encrypted with {_DEFAULT}, which MSK refuses", fix)
        return finding(Status.OK, f"{name} ({parameter}): {_DEFAULT}")
    found = there.ask("kms:DescribeKey", KeyId=key)["KeyMetadata"]
    own = str(found["Arn"])
    if is_scram and found.get("KeyManager") != "CUSTOMER":
        fix = "encrypt the secret with a customer managed key, and add the key to KmsKeyArns"
        return finding(
            Status.FAILED, f"{name} ({parameter}) is encrypted with {own}, a key of AWS, which MSK refuses", fix
        )
    if found.get("KeyState") != "Enabled":
        what = f"key {own} of {name} ({parameter}) is {found.get('KeyState')}: nothing can be decrypted"
        return finding(Status.FAILED, what, "enable the key, or encrypt the secret with another one")
    if found.get("KeyManager") == "CUSTOMER" and own not in deployment.keys:
        what = f"the roles may not decrypt {name} ({parameter}): its key {own} is not in KmsKeyArns"
        return finding(Status.FAILED, what, "add the key to KmsKeyArns, and deploy the stack again")
    return finding(Status.OK, f"{name} ({parameter}): {own}")
