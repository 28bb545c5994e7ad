"""`mirrorless completion` prints a script that asks the program itself."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from mirrorless.cli import root


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_a_shell(shell: str) -> None:
    done = CliRunner().invoke(root, ["completion", shell], prog_name="mirrorless")
    assert done.exit_code == 0, done.output
    assert f"_MIRRORLESS_COMPLETE={shell}_complete" in done.output


def test_commands_and_options_are_completed(monkeypatch: pytest.MonkeyPatch) -> None:
    environment = {"_MIRRORLESS_COMPLETE": "bash_complete", "COMP_WORDS": "mirrorless failo", "COMP_CWORD": "1"}
    done = CliRunner(env=environment).invoke(root, [], prog_name="mirrorless", complete_var="_MIRRORLESS_COMPLETE")
    assert done.output.split() == ["plain,failover", "plain,failover-plan"]
