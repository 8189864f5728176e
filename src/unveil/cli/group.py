"""The command `unveil` itself: what a user can cause becomes one sentence and an exit code; the
rest keeps its traceback."""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Sequence
from typing import Any

import click

from unveil._version import __version__
from unveil.cli.options import Command
from unveil.cli.terminal import echo_error

WIDE = {"max_content_width": 100}


class _Polite(click.Group):
    """Turns what a user can cause into one sentence and an exit code; anything else is a bug and
    keeps its traceback."""

    command_class = Command

    def main(self, args: Sequence[str] | None = None, *_: Any, **extra: Any) -> Any:
        args = sys.argv[1:] if args is None else list(args)
        # A wrong option is told before --json is read: look for the word itself. A file of options
        # may also ask for it; then the option says so (`options.as_json`).
        asked: dict[str, Any] = {"json": "--json" in args, "args": args}
        settings = {**extra, "prog_name": "unveil", "standalone_mode": False, "obj": asked}
        try:
            sys.exit(super().main(args, **settings) or 0)
        except click.Abort:
            sys.exit(130)
        except click.UsageError as error:
            where = f" (see {error.ctx.command_path} --help)" if error.ctx else ""
            sentence = error.format_message().rstrip(".") + where
            if "unexpected extra argument" in sentence and error.ctx and "audit" in args:
                sentence += "; data stand behind --private"
        except click.ClickException as error:
            sentence = error.format_message()
        except MemoryError:
            sentence = "not enough memory: lower m or d, or use a larger machine"
        except OSError as error:
            place = f"{error.filename}: " if error.filename else ""
            cure = "check the path, its permissions and the space on the disk"
            sentence = f"{place}{error.strerror or error}; {cure}"
        except ValueError as error:
            # Only ours is the user's to mend; any other ValueError is a bug and keeps its
            # traceback.
            from unveil.checks import InputError

            if not isinstance(error, InputError):
                raise
            sentence = _with_flags(str(error))
        sys.exit(echo_error(" ".join(sentence.split()), 2, as_json=asked["json"]))


def _with_flags(sentence: str) -> str:
    """The library names its own arguments; beside them, what to say on the command line."""
    flags = ["--shape 32x32x3, or the like"] if "image_shape=" in sentence else []
    asked = re.findall(r"\b(text|missing)='([\w-]+)' \(or", sentence)
    flags += [" ".join(f"--{name} {value}" for name, value in asked)] * bool(asked)
    return "; on the command line add ".join([sentence, *flags])


@click.group("unveil", cls=_Polite, invoke_without_command=True, context_settings=WIDE)
@click.version_option(__version__, prog_name="unveil")
@click.pass_context
def main(ctx: click.Context) -> None:
    """What can be recovered of private data from its InstaHide encodings?

    Exit code 0: done; 1: records leak, where `audit --fail-on` asked for a gate; 2: bad input; 3:
    it ran, but could not recover.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A terminal that lacks × or Σ shows ?, not a traceback.
            stream.reconfigure(errors="replace")
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())
