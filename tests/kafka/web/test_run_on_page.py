"""`mirrorless run --web` in a real browser: an active/active pair under load, a gap, pausing and resuming."""

from __future__ import annotations

import re
import threading
import time
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from mirrorless.web.feed import POINT_MS
from tests.support.page_browser import Browser, is_installed, pictures
from tests.support.processes import Mirrorless
from tests.support.world import World, fill, producer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mirrorless.local.embedded_kafka import EmbeddedCluster

pytestmark = pytest.mark.skipif(not is_installed(), reason="the browser is not installed: `make test` does")
TOPICS = ("web-clicks", "web-payments")


@pytest.fixture(scope="module")
def world(source: EmbeddedCluster, target: EmbeddedCluster, tmp_path_factory: pytest.TempPathFactory) -> World:
    """A pair of flows in both directions."""
    made = World(source, target, tmp_path_factory.mktemp("pair"))
    made.topic(partitions=2, name=TOPICS[0])
    other = World(target, source, tmp_path_factory.mktemp("other"))
    other.topic(partitions=2, name=TOPICS[1])
    back = f"{made.target_alias}->{made.source_alias}"
    made.write_settings(
        **{
            f"{back}.enabled": "true",
            f"{back}.topics": TOPICS[1],
            "mirrorless.lease.seconds": "4",
            "mirrorless.engine": "functions",
            "emit.heartbeats.enabled": "true",
        }
    )
    return made


@pytest.fixture(scope="module")
def load(world: World) -> Iterator[None]:
    """Write some hundred records a second to both sides."""
    over = threading.Event()

    def write() -> None:
        clients = [producer(world.source), producer(world.target)]
        while not over.wait(0.05):
            for client, topic in zip(clients, TOPICS, strict=True):
                for number in range(20):
                    client.produce(topic, b"x" * 400, partition=number % 2)
                client.poll(0)
        for client in clients:
            client.flush(10)

    thread = threading.Thread(target=write)
    thread.start()
    yield
    over.set()
    thread.join(20)


@pytest.fixture(scope="module")
def page(world: World, load: None) -> Iterator[str]:
    """The address of the page of a process that copies, with its token."""
    with Mirrorless(world.file, "--web", "0", "--web-actions") as process:
        until = time.monotonic() + 60
        while not (found := re.search(r"http://localhost:\d+/#token=[\w-]+", process.text())):
            assert time.monotonic() < until, process.text()
            time.sleep(0.05)
        yield found[0]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with Browser() as made:
        yield made


def card(world: World) -> str:
    """Return the script that finds the card of the forward flow."""
    cards = "[...document.querySelectorAll('.card')]"
    return f"{cards}.find(one => one.innerText.startsWith('{world.source_alias} → {world.target_alias}'))"


def press(browser: Browser, world: World, button: str) -> None:
    """Press a button of the flow's card, and confirm."""
    browser.wait_for(f"[...{card(world)}.querySelectorAll('button')].some(one => one.textContent === '{button}')")
    browser.run(f"{card(world)}.querySelector('button').click()")
    browser.wait_for("document.querySelector('dialog[open] .strong')")
    browser.click("dialog .strong")
    browser.wait_for("!document.querySelector('dialog[open]')")


def test_without_the_token_the_page_asks_for_it(browser: Browser, page: str) -> None:
    browser.open(page.partition("#")[0])
    browser.wait_for("document.querySelector('#token')")
    browser.run("(document.querySelector('#token').value = 'x'.repeat(20), 0)")
    browser.click("form button")
    browser.wait_for("document.querySelector('[role=alert]')")
    assert not browser.run("document.querySelectorAll('.card').length")
    token = page.partition("#token=")[2]
    browser.run(f"(document.querySelector('#token').value = '{token}', 0)")
    browser.click("form button")
    browser.wait_for("document.querySelector('.card')")


def test_an_active_active_pair_under_load(browser: Browser, page: str, world: World) -> None:
    browser.open(page)
    browser.wait_for("document.querySelectorAll('.card').length === 2")
    assert "token" not in browser.run("location.href")
    browser.wait_for("[...document.querySelectorAll('.card')].every(one => /Latency\\n\\d+ ms/.test(one.innerText))")
    browser.wait_for("document.querySelectorAll('.picture .stream').length === 2")
    browser.wait_for(
        "[...document.querySelectorAll('.card')].every(one => one.querySelector('.line').getAttribute('d'))",
        seconds=2 * POINT_MS[True] / 1_000,  # a line has two points
    )
    time.sleep(2)
    browser.picture(pictures() / "active-active.png")
    browser.run("(location.hash = '#/topics', 0)")
    browser.wait_for(f"document.body.innerText.includes('{TOPICS[0]}')")
    assert browser.errors() == []


def test_a_gap_appears_and_disappears_and_the_flow_is_paused_and_resumed(
    browser: Browser, page: str, world: World
) -> None:
    browser.open(page)
    browser.wait_for(card(world))
    press(browser, world, "Pause")
    browser.wait_for(f"{card(world)}.innerText.includes('paused')")
    time.sleep(2)  # its copy ends
    fill(world.source, TOPICS[0], [b"lost"] * 2_000, partitions=2)
    admin = AdminClient({"bootstrap.servers": world.source.bootstrap_servers})
    place = TopicPartition(TOPICS[0], 1, -1)  # all that there is
    admin.delete_records([place])[place].result()
    press(browser, world, "Resume")
    browser.wait_for("document.querySelector('.problem[data-kind=gap]')", seconds=40)
    text = browser.run("document.querySelector('.problem[data-kind=gap]').innerText")
    assert "RETENTION: " in text
    assert "mirrorless.on.gap=continue" in text
    browser.wait_for("Number(document.querySelector('#problems-count').textContent) >= 1")
    browser.picture(pictures() / "gap.png")
    world.write_settings(**{"mirrorless.on.gap": "continue"})
    browser.wait_for("!document.querySelector('.problem[data-kind=gap]')", seconds=40)
    browser.wait_for(f"{card(world)}.innerText.match(/caught up|copying/)")
    events = browser.run("(location.hash = '#/events', document.querySelector('main').innerText)")
    assert events is not None
    assert browser.errors() == []
