"""``horae apply``: create, change and delete schedules and calendars as documents say."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import typer
from rich.console import Group, RenderableType
from rich.text import Text

from horae.errors import InvalidInputError, ServerError
from horae.face.cli.command_base import Session, command, group
from horae.face.cli.options import DryRun, flag, option
from horae.face.cli.printing import none, warn
from horae.face.cli.render import short
from horae.face.cli.tables import printable
from horae.face.documents.apply_plan import (
    OUTCOMES,
    SIGNS,
    Step,
    as_json,
    checked_labels,
    in_order,
    located,
    plan,
)
from horae.face.documents.schedule_documents import read_documents

WOULD_CHANGE = 1
"""The exit status of a dry run that found changes."""
_STYLES = {"created": "green", "changed": "yellow", "removed": "red", "left": "dim", "unchanged": "dim"}
cli = group()


@command(cli, "apply")
async def apply(
    session: Session,
    files: Annotated[
        list[str] | None,
        option(
            "--file -f",
            "FILE|FOLDER|-",
            "Documents as YAML, TOML or JSON; - is standard input. Repeatable.",
        ),
    ] = None,
    managed_by: Annotated[
        str | None, option("--managed-by", "NAME", "The label of the schedules that the documents define.")
    ] = None,
    prune: Annotated[
        bool, flag("--prune", "Delete schedules with the documents' label that are in no document.")
    ] = False,
    dry_run: DryRun = False,
) -> None:
    """Create and change schedules and calendars as documents say; with --prune also delete.

    [dim]See what would change, then change it:[/dim]

      horae apply -f schedules.yaml --dry-run

      horae apply -f schedules.yaml

    [dim]A folder that defines all schedules with its label:[/dim]

      horae apply -f schedules/ --managed-by billing --prune

    All documents are checked before anything is stored. The exit status is 0 if nothing is left to do, 1 if a dry run found changes, and 2 after an error.
    """
    if not files:
        raise InvalidInputError("the documents", "are missing", hint="name a file or a folder: -f FILE")
    documents = read_documents(files)
    labels = checked_labels(documents, managed_by, prune=prune)
    steps = await plan(session.client, documents, managed_by or "", labels, prune=prune)
    for step in steps:
        for sentence in step.warnings:
            warn(f'{step.kind} "{step.name}": {sentence}')
    if not dry_run:
        await _carry_out(session, in_order(steps))
    session.show(as_json(steps, dry_run=dry_run), lambda _: _shown(steps, dry_run=dry_run))
    if dry_run and any(each.changes for each in steps):
        raise typer.Exit(WOULD_CHANGE)


async def _carry_out(session: Session, steps: Sequence[Step]) -> None:
    for number, step in enumerate(steps):
        try:
            await step.carry_out(session.client)
        except ServerError as error:
            progress = f"{number} of {len(steps)} changes were made; apply again to make the others"
            hint = progress if error.hint is None or number else error.hint
            raise located(error, step, hint) from None


def _shown(steps: Sequence[Step], *, dry_run: bool) -> RenderableType:
    lines: list[Text] = []
    for step in steps:
        if step.outcome == "unchanged":
            continue
        lines.append(
            Text(f"{SIGNS[step.outcome]} {step.kind} {printable(step.name)}", style=_STYLES[step.outcome])
        )
        if step.sentence:
            lines.append(Text(f"    {printable(step.sentence)}"))
        lines += [_difference(each.field, each.old, each.new) for each in step.differences]
    return Group(*lines, none(_counts(steps, dry_run=dry_run)))


def _difference(field: str, old: Any, new: Any) -> Text:  # noqa: ANN401 - JSON
    return Text.assemble(
        f"    {printable(field)}: ", (short(old) or "none", "red"), " → ", (short(new) or "none", "green")
    )


def _counts(steps: Sequence[Step], *, dry_run: bool) -> str:
    counts = {outcome: sum(each.outcome == outcome for each in steps) for outcome in OUTCOMES}
    words = [f"{number} {outcome}" for outcome, number in counts.items() if number and outcome != "left"]
    sentence = ", ".join(words) or "there are no documents"
    if dry_run:
        sentence = f"would be: {sentence}; nothing was stored"
    if counts["left"]:
        sentence += f"; {counts['left']} that no document has: --prune deletes them"
    return f"{sentence[0].upper()}{sentence[1:]}."
