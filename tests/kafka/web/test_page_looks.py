"""The page in a real browser over snapshots that are made up: thousands of topics, hostile names, clusters in trouble.

Kept beside the other tests of the page, which share the browser's package; no cluster is needed.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from mirrorless.web.snapshot import ClusterState, DrillCheckRow, FlowState, OperationRow, OperationStepRow, TopicState
from tests.support import axe
from tests.support.page_browser import Browser, is_installed, pictures
from tests.support.pages import FakeGatherer, cluster, drill, flow, group, halted, served_page, snapshot, topic

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mirrorless.web.server import WebServer

pytestmark = pytest.mark.skipif(not is_installed(), reason="the browser is not installed: `make test` does")
VIEWS = ("overview", "topics", "groups", "problems", "operations", "settings", "events")
LONG = "n" * 249
HOSTILE = (
    "<script>document.title='owned'</script>",
    "<img src=x onerror=alert(1)>",
    "evil\u202egnp.exe",
    "a\nb\u0000c",
    LONG,
)
MANY = 2_000


def _operation() -> OperationRow:
    now = int(time.time() * 1000)
    step = OperationStepRow(step="fence", state="done", began_ms=now - 9_000, ended_ms=now - 7_000, result="3 topics")
    return OperationRow(
        id="1",
        kind="switchover",
        source="A",
        target="B",
        outcome="running",
        owner="admin",
        began_ms=now - 9_000,
        ended_ms=None,
        blocked_s=None,
        reason="",
        next_command="mirrorless operation mm2.properties continue",
        steps=(step,),
    )


def _checks(name: str) -> tuple[DrillCheckRow, ...]:
    return (DrillCheckRow(status="failed", check=name, text=name),)


def _usual() -> FakeGatherer:
    busy = topic(records_per_s=830.0, lag_records=12, lag_s=0.3, state=TopicState.COPYING, latency_ms=5)
    topics = (
        *(replace(topic() if number % 3 else busy, topic=f"orders-{number:04}") for number in range(MANY)),
        topic("clicks", state=TopicState.HALTED, halted=1, lag_records=90_000, error="records are missing"),
    )
    return FakeGatherer(
        snapshot(
            topics=topics,
            flows=(flow(topics=MANY + 1, halted=1, partitions=10_005, records_per_s=5e5, bytes_per_s=9e6),),
            halted=(halted("clicks"),),
            groups=(group("billing", read_again=3), group("audit", state="has members")),
            operations=(_operation(),),
            drills=(drill(), drill(1_789_000_000_000, status="warning", problems=())),
        )
    )


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with Browser() as made:
        yield made


@pytest.fixture(scope="module")
def usual() -> Iterator[WebServer]:
    with served_page(_usual()) as server:
        yield server


def show(browser: Browser, server: WebServer, view: str = "overview", *, width: int = 1280, height: int = 860) -> None:
    browser.open(f"{server.url}#/{view}", width=width, height=height)
    browser.wait_for("document.querySelector('#connection.good')")


def names(browser: Browser) -> list[str]:
    """Return the first cells of the visible rows, in their order on the screen."""
    rows = "[...document.querySelectorAll('main .body .row:not([hidden])')]"
    by_index = "sort((one, other) => one.getAttribute('aria-rowindex') - other.getAttribute('aria-rowindex'))"
    found: list[str] = browser.run(f"{rows}.{by_index}.map(row => row.firstChild.innerText)")
    return found


def test_thousands_of_topics_are_filtered_sorted_and_opened(browser: Browser, usual: WebServer) -> None:
    show(browser, usual, "topics")
    browser.wait_for("document.body.innerText.includes('2,001 topics')")
    assert browser.run("document.querySelectorAll('main .row').length") < 60
    assert names(browser)[0] == "clicks"  # the greatest lag first
    browser.picture(pictures() / "topics-2000.png")
    browser.type("orders 19", "main .filter")
    matching = sum("19" in f"{number:04}" for number in range(MANY))
    browser.wait_for(f"document.body.innerText.includes('{matching} of 2,001 topics')")
    assert all("19" in name for name in names(browser))
    browser.run("([...document.querySelectorAll('.head button')].find(one => one.textContent === 'Topic').click(), 0)")
    browser.wait_for("document.querySelector('[aria-sort=ascending]')")
    assert names(browser) == sorted(names(browser))
    browser.run("([...document.querySelectorAll('.head button')].find(one => one.textContent === 'Topic').click(), 0)")
    browser.wait_for("document.querySelector('[aria-sort=descending]')")
    assert names(browser)[0] == "orders-1999"


def test_it_is_operated_by_keyboard(browser: Browser, usual: WebServer) -> None:
    show(browser, usual)
    browser.key("2", "body")
    browser.wait_for("location.hash === '#/topics' && document.querySelector('main .grid')")
    browser.key("/", "body")
    assert browser.run("document.activeElement.className") == "filter"
    browser.type("clicks", "main .filter")
    browser.key("ArrowDown")
    browser.wait_for("document.activeElement.getAttribute('role') === 'grid'")
    browser.key("ArrowDown")
    active = "document.getElementById(document.activeElement.getAttribute('aria-activedescendant'))"
    browser.wait_for(f"{active}?.innerText.includes('clicks')")
    browser.key("Enter")
    browser.wait_for("document.querySelector('#drawer h2')?.innerText === 'clicks'")
    browser.wait_for("document.querySelectorAll('#drawer .body .row:not([hidden])').length === 5")
    assert "gap: RETENTION" in browser.run("document.querySelector('#drawer').innerText")
    browser.picture(pictures() / "topic.png")
    browser.key("Escape", "body")
    browser.wait_for("document.querySelector('#drawer').hidden && location.hash === '#/topics'")
    browser.key("?", "body")
    browser.wait_for("document.querySelector('dialog[open]')")


@pytest.mark.skipif(not axe.script().exists(), reason="axe-core is not in the cache: run `make axe`")
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_no_violation(browser: Browser, usual: WebServer, theme: str) -> None:
    show(browser, usual)
    browser.run(f"(localStorage.setItem('theme', '{theme}'), 0)")
    show(browser, usual)
    found = {}
    views = (*VIEWS, "topics/A-%3EB/clicks", "groups/A-%3EB/billing") if theme == "light" else VIEWS[:2]  # colours
    for view in views:
        browser.run(f"(location.hash = '#/{view}', 0)")
        browser.wait_for("document.querySelector('main h1')")
        time.sleep(0.2)
        if lines := axe.violations(browser):
            found[view] = lines
    browser.run("(location.hash = '#/overview', 0)")
    browser.picture(pictures() / f"{theme}.png")
    browser.run("(localStorage.setItem('theme', 'auto'), 0)")
    assert found == {}


def test_a_window_of_400_pixels_is_wide_enough(browser: Browser, usual: WebServer) -> None:
    show(browser, usual, width=400)
    for view in (*VIEWS, "topics/A-%3EB/clicks"):
        browser.run(f"(location.hash = '#/{view}', 0)")
        browser.wait_for("document.querySelector('main h1')")
        browser.picture(pictures() / f"narrow-{view.replace('/', '-')}.png")
        assert browser.run("document.documentElement.scrollWidth <= document.documentElement.clientWidth"), view


def test_hostile_names_are_shown_and_do_nothing(browser: Browser) -> None:
    gatherer = FakeGatherer(
        snapshot(
            topics=tuple(topic(name, lag_records=len(HOSTILE) - number) for number, name in enumerate(HOSTILE)),
            groups=tuple(group(name, error=name) for name in HOSTILE),
            halted=tuple(halted(name, reason=name) for name in HOSTILE),
            drills=tuple(drill(number, problems=_checks(name)) for number, name in enumerate(HOSTILE)),
            flows=(flow(error=HOSTILE[0], problems=HOSTILE),),
            notes=HOSTILE,
        ),
        location=HOSTILE[0],
    )
    with served_page(gatherer) as server:
        show(browser, server)
        for view in VIEWS:
            browser.run(f"(location.hash = '#/{view}', 0)")
            browser.wait_for("document.querySelector('main h1')")
            browser.picture(pictures() / f"hostile-{view}.png")
            assert browser.run("document.querySelectorAll('main script, main img, #where script').length") == 0
            assert not browser.run("document.title").startswith("owned")
            assert browser.run("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
            assert browser.errors() == []
        show(browser, server, "groups")
        browser.wait_for("document.querySelectorAll('main .body .row:not([hidden])').length === 5")
        assert sorted(names(browser)) == sorted((*HOSTILE[:2], "evil\\u{202e}gnp.exe", "a\\u{a}b\\u{0}c", LONG))
        browser.key("ArrowDown", "main .grid")
        browser.key("Enter", "main .grid")
        browser.wait_for("document.querySelectorAll('#drawer .body .row:not([hidden])').length === 1")


def test_drills_are_listed_and_a_stored_report_does_nothing(browser: Browser, usual: WebServer) -> None:
    show(browser, usual, "operations")
    browser.wait_for("document.querySelectorAll('main article').length === 3")
    text = browser.run("document.querySelectorAll('main article')[1].innerText")
    assert "1 check failed" in text
    assert "RPO 12 records, 3.5 s; RTO at least 1.2 s; took 4.0 s" in text
    assert "the oldest record is 3.5 s old" in text
    browser.picture(pictures() / "drills.png")
    link = browser.run("document.querySelectorAll('main article')[1].querySelector('a').href")
    browser.open(link)
    time.sleep(1)  # for what it would do
    assert browser.shown() == (link, "report")


def test_a_cluster_in_trouble(browser: Browser) -> None:
    error = "cluster A: no answer from a.example:9092: Connection refused"
    answers = snapshot()
    away = replace(
        answers,
        clusters=(cluster("A", state=ClusterState.UNAVAILABLE, error=error, answer_ms=None), cluster("B")),
        flows=(flow(error=error, read_ms=int(time.time() * 1000) - 95_000),),
    )
    paused = replace(answers, flows=(flow(state=FlowState.PAUSED, copiers=()),))
    gatherer = FakeGatherer(away)
    with served_page(gatherer) as server:
        show(browser, server)
        browser.wait_for(f"document.querySelector('.notice.bad')?.innerText.includes('{error}')")
        browser.wait_for("document.querySelector('.card .badge.bad')?.innerText === 'unreachable'")
        browser.picture(pictures() / "unreachable.png")
        gatherer.known = paused
        browser.wait_for("!document.querySelector('.notice.bad')")
        browser.wait_for("document.querySelector('.card .badge.paused')")
        assert browser.errors() == []


def test_more_than_two_clusters_and_a_server_that_ends(browser: Browser) -> None:
    aliases = ("eu", "us", "ap", "hub")
    gatherer = FakeGatherer(
        snapshot(
            clusters=tuple(map(cluster, aliases)),
            flows=tuple(flow(f"{one}->hub", records_per_s=90.0) for one in aliases[:3]),
            topics=(),
        )
    )
    with served_page(gatherer) as server:
        show(browser, server)
        browser.wait_for("document.querySelectorAll('.picture .arrow').length === 3")
        browser.picture(pictures() / "hub.png")
    browser.wait_for("document.querySelector('#connection').innerText.startsWith('Not connected')")
