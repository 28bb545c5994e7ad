"""A login configuration is read as Kafka's JaasConfig reads it, and no error quotes it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirrorless.clusters.jaas import parse


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ('M required username="a" password="b";', {"username": "a", "password": "b"}),
        ("M REQUIRED username='it''s';", None),
        ("M required username='a\"b' password=\"c'd\" ;", {"username": 'a"b', "password": "c'd"}),
        (r'M required password="a\"b\\c\td\101\0479";', {"password": "a\"b\\c\tdA'9"}),
        ('M required password="a=b;c//d/*e*/";', {"password": "a=b;c//d/*e*/"}),
        ("M required // note\n /* more\n */ password = plain-word_1.$x ;", {"password": "plain-word_1.$x"}),
        ("M required;", {}),
    ],
)
def test_options(text: str, options: dict[str, str] | None) -> None:
    if options is None:
        with pytest.raises(ValueError, match="options must be given as"):
            parse(text)
    else:
        assert parse(text).options == options


@given(st.text(alphabet=st.characters(exclude_characters="\r\n")), st.sampled_from("'\""))
def test_a_quoted_value_comes_back(value: str, quote: str) -> None:
    quoted = value.replace("\\", "\\\\").replace(quote, f"\\{quote}")

    assert parse(f"a.b.Module required password={quote}{quoted}{quote};").options == {"password": value}


def test_the_module_is_known_by_its_short_name_and_the_options_stay_out_of_repr() -> None:
    login = parse("a.b.Module required password=swordfish;")

    assert (login.module, login.short_name) == ("a.b.Module", "Module")
    assert "swordfish" not in repr(login)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "login module class must come first"),
        ("; swordfish", "login module class must come first"),
        ("M", "must be followed by one of required"),
        ("M swordfish=x;", "must be followed by one of required"),
        ("M required password=swordfish", "a semicolon is missing"),
        ("M required password;", "options must be given as"),
        ("M required password=;", "option 1 has no value"),
        ("M required password=", "option 1 has no value"),
        ("M required password=swordfish!;", "character 30 is unexpected"),
        ('M required password="swordfish;', "character 21 is unexpected"),
        ("M required password=1swordfish;", "character 21 is unexpected"),
        ("M required password=swordfish; N required;", "exactly one login module"),
    ],
)
def test_what_is_wrong_is_said_without_quoting_it(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason) as caught:
        parse(text)

    assert "swordfish" not in str(caught.value)
