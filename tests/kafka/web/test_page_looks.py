"""The page in a real browser over snapshots that are made up: thousands of topics, hostile names, clusters in trouble.

Kept beside the other tests of the page, which share the browser's package; no cluster is needed.
"""

from __future__ import annotations

import json
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from mirrorless.web.snapshot import (
    ApplicationsRow,
    ClusterState,
    DrillCheckRow,
    FenceRow,
    Fix,
    FlowState,
    ReadingRow,
    TopicState,
)
from tests.support import axe
from tests.support.page_browser import Browser, is_installed, pictures
from tests.support.pages import (
    FakeGatherer,
    cluster,
    drill,
    flow,
    group,
    halted,
    operation,
    served_page,
    snapshot,
    topic,
)

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
WIDE = """document.documentElement.scrollWidth <= document.documentElement.clientWidth ? []
    : [...document.querySelectorAll('body *')].filter(one => one.getBoundingClientRect().right > innerWidth)
        .map(one => one.outerHTML.slice(0, 200))"""
"""What makes the window scroll to the side."""
CUT = """[
    ...[...document.querySelectorAll(`.tabs, .tabs a, h1:not(.hidden), h2, h3, .badge, .head .cell, .head button,
        .value, .limit, .problem p, .notice, .row:not([hidden]) .cell, .sub, .sub .name, .facts dd, .drawer p`)]
        .filter(one => one.scrollWidth > one.clientWidth + 1 && getComputedStyle(one).display !== 'inline')
        .map(one => one.innerText),
    ...[...document.querySelectorAll('.picture text')]
        .filter(one => {
            const [text, svg] = [one.getBoundingClientRect(), one.closest('svg').getBoundingClientRect()];
            const box = one.parentNode.querySelector(':scope > rect')?.getBoundingClientRect() ?? svg;
            return text.left < box.left || text.right > box.right;
        })
        .map(one => one.textContent),
]"""
"""What is cut off at the end of its place."""


def _pair() -> FakeGatherer:
    """Two flows with topics of the same names, one flow beyond its RPO, after a switchover, with two fences."""
    lagging = topic(state=TopicState.COPYING, lag_records=180_000, lag_s=48.0, records_per_s=1_900.0, catch_up_s=900.0)
    rows = (
        replace(lagging, lag_per_s=-200.0),
        topic("heartbeats"),
        topic(flow="B->A"),
        topic("heartbeats", flow="B->A"),
    )
    lines = "clicks on B has max.message.bytes=78, which blocks writers, and no operation explains it"
    fences = (
        FenceRow(
            cluster="A",
            operation="7",
            topics=("orders", "payments"),
            count=2,
            text="switchover 7 to B blocks writers on A",
            fix=Fix(text="Remove the fence.", command="mirrorless operation mm2.properties close"),
        ),
        FenceRow(
            cluster="B",
            operation=None,
            topics=("clicks",),
            count=1,
            text=lines,
            fix=Fix(text="Remove it.", command="kafka-configs.sh --alter"),
        ),
    )
    there = ApplicationsRow(
        between=("A", "B"),
        is_known=True,
        cluster="B",
        since_ms=1_790_000_000_000,
        kind="switchover",
        operation="7",
        text="",
    )
    forward = flow(
        topics=2,
        partitions=10,
        lag_records=180_000,
        lag_s=48.0,
        lag_per_s=-200.0,
        catch_up_s=900.0,
        rpo_s=30.0,
        records_per_s=1_900.0,
        bytes_per_s=1.9e6,
        limit_bytes_per_s=2e6,
    )
    return FakeGatherer(
        snapshot(
            flows=(forward, flow("B->A", topics=2, partitions=10)),
            topics=rows,
            applications=(there,),
            fences=fences,
            operations=(operation(id="7", outcome="completed", next_step="", next_command=None),),
        )
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
            operations=(operation(),),
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


def look(browser: Browser, view: str) -> None:
    """Open a view of the page that is open."""
    browser.run(f"(location.hash = '#/{view}', 0)")
    browser.wait_for(f"document.querySelector('main h1') && location.hash.startsWith('#/{view}')")
    time.sleep(0.2)


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
    assert "RETENTION: retention deleted 30 records" in browser.run("document.querySelector('#drawer').innerText")
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
    for view in (*VIEWS, "topics/A-%3EB/clicks", "groups/A-%3EB/billing"):
        look(browser, view)
        browser.picture(pictures() / f"narrow-{view.replace('/', '-')}.png")
        assert browser.run(WIDE) == [], view
        assert browser.run(CUT) == [], view


def test_of_an_active_active_pair_each_row_names_its_flow_at_400_pixels(browser: Browser) -> None:
    with served_page(_pair()) as server:
        show(browser, server, "topics", width=400)
        browser.wait_for("document.body.innerText.includes('4 topics')")
        browser.wait_for("document.querySelectorAll('main .body .row:not([hidden])').length === 4")
        lines = sorted(name.split("\n") for name in names(browser))
        assert lines == [
            ["heartbeats", "caught up", "A->B"],
            ["heartbeats", "caught up", "B->A"],
            ["orders", "caught up", "B->A"],
            ["orders", "copying", "A->B"],
        ]
        for view in ("topics", "overview"):
            look(browser, view)
            browser.picture(pictures() / f"narrow-pair-{view}.png")
            assert browser.run(WIDE) == [], view
            assert browser.run(CUT) == [], view
        show(browser, server, "topics", width=1280)
        assert browser.run("document.querySelector('main .table').offsetHeight") < 300  # no empty white below six rows
        assert browser.errors() == []


def test_what_needs_action_comes_first_and_where_applications_are_is_shown(browser: Browser) -> None:
    gatherer = _pair()
    with served_page(gatherer) as server:
        show(browser, server)
        browser.wait_for("document.querySelectorAll('.card').length === 2")
        kinds = "[...document.querySelectorAll('.overview .problem')].map(one => one.dataset.kind)"
        assert browser.run(kinds) == ["unexplained fence", "beyond RPO", "fence"]
        count = "document.querySelector('#problems-count')"
        assert browser.run(f"[{count}.textContent, {count}.className]") == ["3", "count bad"]
        assert browser.run("document.title") == "(3) Overview · mm2.properties · Mirrorless"
        text = browser.run("document.querySelector('.where-applications').innerText")
        assert "A and B: on B, since 20" in text
        assert "by switchover 7." in text
        assert "switchover 7 to B blocks writers on A: orders, payments." in text
        assert "mirrorless operation mm2.properties close" in text
        assert "clicks on B has max.message.bytes=78" in text
        picture = browser.run("document.querySelector('.picture').textContent")
        assert "applications · fence on 1 topic" in picture
        assert "fence on 2 topics" in picture
        forward, back = browser.run("[...document.querySelectorAll('.card')].map(one => one.innerText)")
        assert "beyond RPO" in forward
        assert "Lag in time\n48 s\nRPO 30 s" in forward
        assert "Time until caught up\nin 15 min" in forward
        assert "Throughput\n1.9 MB/s\nlimit 2.0 MB/s" in forward
        assert "Time until caught up\ncaught up" in back
        assert browser.run("document.querySelectorAll('.arrow.bad').length") == 1
        browser.picture(pictures() / "pair.png")
        assert browser.run(CUT) == []
        one = flow(lag_records=900, lag_s=20.0, lag_per_s=3.0, catch_up_s=None, rpo_s=30.0, read_ms=1)
        gatherer.known = replace(gatherer.known, flows=(one, flow("B->A", lag_records=0, unknown_partitions=2)))
        browser.wait_for("document.querySelector('.card').innerText.includes('lag grows, 3.0/s')")
        browser.wait_for("document.querySelector('.problem[data-kind=\"near RPO\"]')")
        browser.wait_for("document.querySelectorAll('.arrow.warning').length === 1")
        assert browser.errors() == []


def test_during_an_outage_nothing_is_ok_zero_or_empty(browser: Browser) -> None:
    errors = {one: f"cluster {one}: no answer from {one.lower()}.example:9092: Connection refused" for one in "AB"}
    readings = tuple(
        ReadingRow(table=one, flow="" if one in ("operations", "drills") else "A->B", read_ms=None, error=why, note="")
        for one, why in (
            ("groups", errors["A"]),
            ("fences", errors["A"]),
            ("operations", errors["B"]),
            ("drills", None),
        )
    )
    unknown: dict[str, Any] = dict.fromkeys(
        (
            *("topics", "partitions", "started", "halted", "lag_records", "last_lag_records", "lag_s", "lag_per_s"),
            *("catch_up_s", "records_per_s", "has_heartbeat", "read_ms"),
        )
    )
    never = flow(
        state=FlowState.UNKNOWN,
        copiers=(),
        **unknown,
        rpo_s=30.0,
        error=errors["A"],
    )
    known = snapshot(
        clusters=tuple(cluster(one, state=ClusterState.UNAVAILABLE, error=why) for one, why in errors.items()),
        flows=(never,),
        topics=(),
        applications=(
            ApplicationsRow(
                between=("A", "B"),
                is_known=False,
                cluster=None,
                since_ms=None,
                kind=None,
                operation=None,
                text=errors["B"],
            ),
        ),
        readings=readings,
    )
    gatherer = FakeGatherer(known)
    with served_page(gatherer) as server:
        show(browser, server)
        browser.wait_for("document.querySelectorAll('.overview .problem.bad').length === 2")
        card = browser.run("document.querySelector('.card').innerText")
        for label in ("Rate", "Lag", "Lag in time", "Time until caught up", "Topics", "Partitions", "Last heartbeat"):
            assert f"{label}\nunknown" in card, label
        page = browser.run("document.querySelector('main').innerText + document.querySelector('.picture').textContent")
        for wrong in ("running", "caught up", "no lag", "never", "No fence", "available"):
            assert wrong not in page.replace("unavailable", "").replace("Time until caught up", ""), wrong
        assert "Which process copies it is unknown" in page
        seen = browser.run("document.querySelector('main').innerText")
        assert seen.count("Connection refused") == 6  # two problems, two events, applications and fences
        browser.picture(pictures() / "outage.png")
        wanted = {
            "topics": f"Topics of A->B: unknown. {errors['A']}",
            "groups": f"groups of A->B: unknown, as they cannot be read now: {errors['A']}",
            "problems": "flow A->B cannot be read",
            "operations": f"operations: unknown, as they cannot be read now: {errors['B']}",
        }
        for view, text in wanted.items():
            look(browser, view)
            browser.wait_for(f"document.querySelector('main').innerText.includes({json.dumps(text)})")
            browser.picture(pictures() / f"outage-{view}.png")
        look(browser, "problems")
        assert browser.run("document.querySelectorAll('main .problem').length") == 2
        assert browser.run("document.title") == "(2) Problems · mm2.properties · Mirrorless"
        gatherer.known = replace(known, clusters=snapshot().clusters, flows=(replace(never, error=None),), readings=())
        browser.wait_for("document.querySelector('main').innerText.includes('No problem is known; not everything is.')")
        assert browser.run("document.querySelector('#problems-count').textContent") == "?"
        gatherer.known = snapshot()
        browser.wait_for("document.querySelector('main').innerText.includes('Nothing needs an operator: 2 clusters')")
        assert browser.run("document.title") == "Problems · mm2.properties · Mirrorless"
        assert browser.errors() == []


def test_empty_tabs_say_why_and_settings_where_they_are_set(browser: Browser) -> None:
    note = "mirrorless.drill.reports is not set, so that no report is stored."
    drills = ReadingRow(table="drills", flow="", read_ms=1, error=None, note=note)
    with served_page(
        FakeGatherer(snapshot(flows=(flow(topics=0, partitions=0),), topics=(), readings=(drills,)))
    ) as server:
        show(browser, server, "topics")
        wanted = {
            "topics": "A->B copies no topic: the setting topics selects none that A has.",
            "groups": "A has no group that the setting groups of A->B selects.",
            "operations": "No operation has moved applications between these clusters.\n\nDrills",
            "events": "Nothing has happened since this page's server started.",
        }
        for view, text in wanted.items():
            look(browser, view)
            browser.wait_for(f"document.querySelector('main').innerText.includes({json.dumps(text)})")
        look(browser, "operations")
        assert note in browser.run("document.querySelector('main').innerText")
        look(browser, "settings")
        browser.wait_for("document.querySelectorAll('.settings > div').length === 1")
        assert browser.run("document.querySelector('.settings').innerText") == "topics\norders\nmm2.properties:5"
        browser.click("#only-set")
        assert browser.run("document.querySelector('.settings .badge').innerText") == "default"
        browser.picture(pictures() / "settings.png")
        assert browser.errors() == []


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
        browser.wait_for(f"document.querySelector('.problem.bad')?.innerText.includes('{error}')")
        browser.wait_for("document.querySelector('.card .badge.bad')?.innerText === 'unreachable'")
        browser.picture(pictures() / "unreachable.png")
        gatherer.known = paused
        browser.wait_for("!document.querySelector('.problem.bad')")
        browser.wait_for("document.querySelector('.problem.warning')?.dataset.kind === 'flow paused'")
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
    assert "what is true now is unknown" in browser.run("document.querySelector('#stale').innerText")
