"""Where nothing can be seen, the doctor asks for names that the patterns tell of."""

from __future__ import annotations

import pytest

from mirrorless.doctor.examples import examples, literals


def everything(_: str) -> bool:
    return True


@pytest.mark.parametrize(
    ("pattern", "example"),
    [
        ("orders", "orders"),
        ("shop.orders", "shop.orders"),
        (r"shop\.orders", "shop.orders"),
        ("billing-.*", "billing-mirrorless-doctor"),
        (".*", "mirrorless-doctor"),
        ("orders[0-9]", "ordersmirrorless-doctor"),
        ("(a|b)", "mirrorless-doctor"),
        ("", ""),
    ],
)
def test_examples(pattern: str, example: str) -> None:
    assert examples([pattern], everything) == [example]


def test_only_what_the_filter_selects() -> None:
    assert examples(["a.*", "b.*"], lambda name: name.startswith("b")) == ["bmirrorless-doctor"]
    assert literals(["orders", "x-.*", "left-out"], lambda name: name != "left-out") == ["orders"]
