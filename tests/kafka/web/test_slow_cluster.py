"""The page in a real browser while a cluster answers slowly: a real one, across a link that delays."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from mirrorless.local.broker import SecureListener
from mirrorless.local.embedded_kafka import ClusterSpec, start_clusters
from tests.support.link import Link, LinkTerms
from tests.support.page_browser import Browser, is_installed, pictures
from tests.support.processes import Mirrorless
from tests.support.secured import eventually
from tests.support.world import World, fill

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from mirrorless.local.embedded_kafka import EmbeddedCluster

pytestmark = pytest.mark.skipif(not is_installed(), reason="the browser is not installed: `make test` does")
FAR = LinkTerms(round_trip_s=1.3)


@pytest.fixture(scope="module")
def link() -> Iterator[Link]:
    found = Link()
    yield found
    found.close()


@pytest.fixture(scope="module")
def clusters(link: Link) -> Iterator[dict[str, EmbeddedCluster]]:
    door = SecureListener(name="DOOR", protocol="PLAINTEXT", settings={}, advertised=(link.port,))
    with start_clusters([ClusterSpec(name="source"), ClusterSpec(name="target", secure=(door,))]) as found:
        link.connect(found["target"].secure_ports("DOOR")[0])
        yield found


def test_a_slow_cluster_is_shown_as_slow_until_it_is_not(
    clusters: dict[str, EmbeddedCluster], link: Link, tmp_path: Path
) -> None:
    world = World(clusters["source"], clusters["target"], tmp_path)
    topic = world.topic(partitions=3, name="orders")
    fill(world.source, topic, (b"%d" % number for number in range(300)), partitions=3)
    world.copy_to_the_end()
    world.write_settings(**{f"{world.target_alias}.bootstrap.servers": f"127.0.0.1:{link.port}"})
    with Mirrorless(world.file, "--web", "0", "--engine", "functions") as process, Browser() as browser:
        eventually(lambda: "the page is at " in process.text())
        browser.open(re.findall(r"http://localhost:\d+/", process.text())[0])
        browser.wait_for("document.querySelector('.card')?.innerText.includes('Copied by functions')", seconds=60)
        browser.wait_for("document.querySelector('.card .badge.good')", seconds=30)
        browser.wait_for("!document.querySelector('.problem')", seconds=30)
        link.become(FAR)
        notice = "document.querySelector('.problem[data-kind=\"cluster slow\"]')"
        browser.wait_for(f"{notice}?.innerText.includes('{world.target_alias}')", seconds=30)
        found = re.search(r"(\d+) ms", browser.run(f"{notice}.innerText"))
        assert found is not None
        assert int(found[1]) >= FAR.round_trip_s * 1_000
        assert not browser.run("Boolean(document.querySelector('.problem.bad'))")
        browser.picture(pictures() / "slow.png")
        link.become(LinkTerms())
        browser.wait_for(f"!{notice}", seconds=30)
        browser.run("(location.hash = '#/events', 0)")
        browser.wait_for(f"document.querySelector('main').innerText.includes('{world.target_alias} answers again')")
        assert browser.errors() == []
