"""`mirrorless completion`: the script by which a shell completes commands and options."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class


@click.command
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the script that completes commands and options in SHELL.

    bash: `eval "$(mirrorless completion bash)"` in ~/.bashrc; zsh: the same in ~/.zshrc; fish:
    `mirrorless completion fish > ~/.config/fish/completions/mirrorless.fish`. bash has to be 4.4 or newer.

    Exit status 0: printed; 2: another shell.
    """
    made_by = get_completion_class(shell)
    assert made_by is not None  # click knows these three
    root = context.find_root()
    click.echo(made_by(root.command, {}, root.info_name or "mirrorless", "_MIRRORLESS_COMPLETE").source())
