"""Certificates for a test, made with the JDK's keytool: an authority, brokers and clients, in every kind of store."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mirrorless.local.java import java_executable

if TYPE_CHECKING:
    from pathlib import Path

PASSWORD = "sword-fish"  # noqa: S105 -- of stores that live for one test


@dataclass(frozen=True)
class Authority:
    """Signs certificates; `folder` holds everything it makes."""

    folder: Path

    @classmethod
    def make(cls, folder: Path) -> Authority:
        """A new authority."""
        authority = cls(folder)
        folder.mkdir(parents=True, exist_ok=True)
        generate = [
            "-genkeypair",
            "-alias",
            "ca",
            "-keyalg",
            "EC",
            "-dname",
            "CN=ca",
            "-ext",
            "bc:c",
            "-validity",
            "30",
        ]
        authority.tool("ca.p12", *generate)
        authority.tool("ca.p12", "-exportcert", "-alias", "ca", "-rfc", "-file", str(authority.certificate))
        return authority

    @property
    def certificate(self) -> Path:
        """The authority's own certificate, PEM."""
        return self.folder / "ca.pem"

    def issue(self, name: str, *, host: str = "ip:127.0.0.1", days: int = 30, begin: str = "-1d") -> Path:
        """A PKCS12 store with a key and its signed chain; `begin` as keytool's -startdate."""
        store = f"{name}.p12"
        request, signed = self.folder / f"{name}.csr", self.folder / f"{name}.cer"
        self.tool(store, "-genkeypair", "-alias", name, "-keyalg", "EC", "-dname", f"CN={name}")
        self.tool(store, "-certreq", "-alias", name, "-file", str(request))
        sign = ["-gencert", "-alias", "ca", "-infile", str(request), "-outfile", str(signed), "-rfc"]
        self.tool("ca.p12", *sign, "-startdate", begin, "-validity", str(days), "-ext", f"san={host}")
        self.tool(store, "-importcert", "-noprompt", "-alias", "ca", "-file", str(self.certificate))
        self.tool(store, "-importcert", "-noprompt", "-alias", name, "-file", str(signed))
        self.tool(store, "-delete", "-alias", "ca")  # it is in the chain now
        return self.folder / store

    def trust_store(self, name: str = "trust.p12", *, kind: str = "PKCS12") -> Path:
        """A store with the authority's certificate only."""
        path = self.folder / name
        if not path.exists():
            imports = ["-importcert", "-noprompt", "-alias", "ca", "-file", str(self.certificate)]
            self.tool(name, *imports, kind=kind)
        return path

    def as_jks(self, store: Path, *, key_password: str = PASSWORD) -> Path:
        """The same store in Java's old format."""
        path = store.with_suffix(".jks" if key_password == PASSWORD else ".own.jks")
        if not path.exists():
            run(
                *("keytool", "-importkeystore", "-noprompt", "-srckeystore", str(store), "-srcstorepass", PASSWORD),
                *("-destkeystore", str(path), "-deststoretype", "JKS", "-deststorepass", PASSWORD),
                *("-srcalias", store.stem, "-destkeypass", key_password),
            )
        return path

    def as_pem(self, store: Path, *, password: str | None = None) -> Path:
        """Key and chain in one PEM file, the key under a password if there is one."""
        path = store.with_suffix(".encrypted.pem" if password else ".pem")
        protection = ["-passout", f"pass:{password}"] if password else ["-nodes"]
        run("openssl", "pkcs12", "-in", str(store), "-passin", f"pass:{PASSWORD}", "-out", str(path), *protection)
        return path

    def tool(self, store: str, *arguments: str, kind: str = "PKCS12") -> None:
        """Run keytool on a store."""
        place = ["-keystore", str(self.folder / store), "-storetype", kind, "-storepass", PASSWORD]
        run("keytool", *arguments, *place, "-J-XX:TieredStopAtLevel=1", "-J-XX:+UseSerialGC")


def run(program: str, *arguments: str) -> None:
    """Run a program of the JDK, or another one, and fail with what it wrote."""
    path = str(java_executable().parent / program) if program == "keytool" else program
    done = subprocess.run([path, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{program} {arguments[0]}: {done.stdout}{done.stderr}"
