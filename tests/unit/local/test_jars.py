from __future__ import annotations

import hashlib
import os
import re
from dataclasses import replace
from pathlib import Path

import pytest

from mirrorless.errors import PrerequisiteError
from mirrorless.local import jars
from mirrorless.local.jars import KAFKA, JarSet, cache_folder, class_path, ivy_file, ivy_jar

TWO = JarSet(name="two-1", title="Two", modules=("org.one:one:1", "org.two:two_2.13:2"))

# Stands in for Java: Ivy's arguments end with the pattern, whose folder gets one jar.
RETRIEVES = '#!/bin/sh\nfor last; do :; done\nmkdir -p "$(dirname "$last")"\ntouch "$(dirname "$last")/one-1.jar"\n'
FAILS = "#!/bin/sh\necho unresolved\nexit 1\n"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv("MIRRORLESS_CACHE", str(folder))
    return folder


def use_java(script: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java = tmp_path / "java"
    java.write_text(script)
    java.chmod(0o755)
    monkeypatch.setattr(jars, "java_executable", lambda: java)


def test_the_cache_is_the_chosen_folder_else_the_desktops_else_the_users() -> None:
    assert cache_folder({"MIRRORLESS_CACHE": "/a", "XDG_CACHE_HOME": "/b"}) == Path("/a")
    assert cache_folder({"XDG_CACHE_HOME": "/b"}) == Path("/b/mirrorless")
    assert cache_folder({"XDG_CACHE_HOME": "relative"}) == Path.home() / ".cache" / "mirrorless"
    assert cache_folder({}) == Path.home() / ".cache" / "mirrorless"


def test_pyspark_brings_ivy() -> None:
    assert ivy_jar().is_file()


def test_all_modules_are_asked_for_in_one_resolution() -> None:
    asked = [line.strip() for line in ivy_file(TWO).splitlines() if "<dependency " in line]
    assert asked == [
        '<dependency org="org.one" name="one" rev="1" conf="default->default"/>',
        '<dependency org="org.two" name="two_2.13" rev="2" conf="default->default"/>',
    ]


def test_a_variant_of_a_jar_is_asked_for_by_its_classifier() -> None:
    one = JarSet(name="one-1", title="One", modules=("org.one:one:1",), exact=True, classifier="all")
    asked = ivy_file(one)
    assert 'transitive="false"><artifact name="one" type="jar" ext="jar" m:classifier="all"/></dependency>' in asked
    assert 'xmlns:m="http://ant.apache.org/ivy/maven"' in asked
    assert one.file_names() == {"org.one:one:1": "one-1-all.jar"}
    assert TWO.file_names() == {"org.one:one:1": "one-1.jar", "org.two:two_2.13:2": "two_2.13-2.jar"}


def test_a_folder_that_is_there_is_used_without_java(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jars, "java_executable", lambda: pytest.fail("Java was looked for"))
    folder = cache / "two-1"
    folder.mkdir(parents=True)
    for name in ("b.jar", "a.jar", "notes.txt"):
        (folder / name).touch()
    said: list[str] = []
    assert class_path(TWO, say=said.append) == os.pathsep.join([str(folder / "a.jar"), str(folder / "b.jar")])
    assert said == []


def test_a_download_is_announced_and_leaves_only_its_jars(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_java(RETRIEVES, tmp_path, monkeypatch)
    said: list[str] = []
    assert class_path(TWO, say=said.append) == str(cache / "two-1" / "one-1.jar")
    assert said == ["downloading Two, once"]
    assert [entry.name for entry in cache.iterdir()] == ["two-1"]


def test_a_failed_download_is_one_line_that_names_its_log(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_java(FAILS, tmp_path, monkeypatch)
    log = cache / "two-1-download.log"
    with pytest.raises(PrerequisiteError, match=rf"^Two could not be downloaded .* {log}$"):
        class_path(TWO)
    assert log.read_text() == "unresolved\n"
    assert list(cache.iterdir()) == [log]


@pytest.mark.parametrize(
    ("sha256", "wrong"),
    [
        ({"org.one:one:1": hashlib.sha256(b"").hexdigest()}, None),
        ({"org.one:one:1": "another"}, "one-1.jar has SHA-256 e3b0c442[0-9a-f]*, expected another"),
        ({"org.two:two_2.13:2": "missing"}, "one-1.jar has SHA-256 e3b0c442[0-9a-f]*, expected None"),
    ],
    ids=["as pinned", "another content", "another file"],
)
def test_only_files_with_the_pinned_digests_are_kept(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sha256: dict[str, str], wrong: str | None
) -> None:
    use_java(RETRIEVES, tmp_path, monkeypatch)
    pinned = replace(TWO, sha256=sha256)
    if wrong is None:
        assert class_path(pinned) == str(cache / "two-1" / "one-1.jar")
        return
    with pytest.raises(PrerequisiteError, match=f"^Two was not downloaded: {wrong}; check the mirror"):
        class_path(pinned)
    assert not list(cache.iterdir())


def repository(folder: Path, *modules: str) -> JarSet:
    """Make a repository of Maven with these modules, and return the set of all of them."""
    for module in modules:
        organisation, name, revision = module.split(":")
        place = folder / organisation.replace(".", "/") / name / revision
        place.mkdir(parents=True)
        (place / f"{name}-{revision}.jar").write_text(module)
    digests = {module: hashlib.sha256(module.encode()).hexdigest() for module in modules}
    return JarSet(name="two-1", title="Two", modules=modules, exact=True, sha256=digests)


def test_a_set_whose_jars_are_all_pinned_is_downloaded_without_java_and_ivy(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jars, "java_executable", lambda: pytest.fail("Java was looked for"))
    monkeypatch.setattr(jars, "ivy_jar", lambda: pytest.fail("Ivy was looked for"))
    monkeypatch.setenv("MIRRORLESS_MAVEN", f"{(tmp_path / 'maven').as_uri()}/")
    pinned = repository(tmp_path / "maven", *TWO.modules)
    names = [cache / "two-1" / name for name in ("one-1.jar", "two_2.13-2.jar")]
    assert class_path(pinned) == os.pathsep.join(map(str, names))
    assert [name.read_text() for name in names] == list(TWO.modules)
    assert [entry.name for entry in cache.iterdir()] == ["two-1"]


def test_a_jar_that_the_repository_lacks_is_one_line(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = (tmp_path / "maven").as_uri()
    monkeypatch.setenv("MIRRORLESS_MAVEN", place)
    pinned = repository(tmp_path / "maven", *TWO.modules)
    (tmp_path / "maven" / "org" / "one" / "one" / "1" / "one-1.jar").unlink()
    line = f"Two could not be downloaded from {place}/org/one/one/1/one-1.jar: "
    with pytest.raises(PrerequisiteError, match=f"^{re.escape(line)}[^\n]*MIRRORLESS_MAVEN, and try again$"):
        class_path(pinned)
    assert not list(cache.iterdir())


def test_kafka_is_pinned_completely() -> None:
    assert KAFKA.sha256.keys() == set(KAFKA.modules)
    assert {"org.apache.kafka:kafka_2.13:4.3.0", "org.slf4j:slf4j-simple:1.7.36"} <= set(KAFKA.modules)
    assert len({module.split(":")[1] for module in KAFKA.modules}) == len(KAFKA.modules)


def test_the_first_of_two_downloads_at_once_wins(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    meanwhile = f'mkdir -p "{cache}/two-1"\ntouch "{cache}/two-1/other-1.jar"\n'
    use_java(RETRIEVES + meanwhile, tmp_path, monkeypatch)
    assert class_path(TWO) == str(cache / "two-1" / "other-1.jar")
    assert [entry.name for entry in cache.iterdir()] == ["two-1"]


def test_a_cache_that_cannot_be_written_is_named(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_java(RETRIEVES, tmp_path, monkeypatch)
    cache.touch()
    with pytest.raises(PrerequisiteError, match=r"cannot be written to .*MIRRORLESS_CACHE"):
        class_path(TWO)
