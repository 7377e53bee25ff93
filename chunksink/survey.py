"""`validate --fields`: what an index will have of the chunks, and what it will not, as a table or as JSON."""

import json
from collections.abc import Iterable
from typing import Any

import click

from chunksink.chunkbus.layout import BusRoot
from chunksink.chunkbus.reader import read_partition
from chunksink.output import counted, printable, some
from chunksink.progress import progress
from chunksink.sinks.survey import FIELDS, Survey, Unread

_SHOWN_VALUE = 60
_SHOWN_PATHS = 40


def survey_partitions(root: BusRoot, keys: Iterable[str], chunks: int) -> Survey:
    """Of valid partitions, which hold so many chunks."""
    survey = Survey()
    with progress("fields", chunks, "chunks") as bar:
        for key in keys:
            for line, (_, record) in enumerate(read_partition(root, key), start=1):
                survey.take(record, key, line)
                bar.advance(1)
    return survey


def survey_as_json(survey: Survey) -> dict[str, Any]:
    fields = {
        name: {
            "filled": survey.filled[name],
            "unread": survey.unread[name],
            "first_unread": _as_json(survey.first_unread[name]) if name in survey.first_unread else None,
        }
        for name in FIELDS
    }
    return {"fields": fields, "unasked": dict(survey.unasked.most_common())}


def _as_json(unread: Unread) -> dict[str, Any]:
    return {"path": unread.path, "value": unread.value, "partition": unread.partition, "line": unread.line}


def print_survey(survey: Survey) -> None:
    click.echo(f"Fields of the index, and how many of {counted(survey.chunks, 'chunk')} fill them:")
    width = max(map(len, FIELDS))
    for name in FIELDS:
        if survey.filled[name] or survey.unread[name]:
            click.echo(f"  {name:{width}}  {survey.filled[name]:>11,}{_remark(survey, name)}")
    if empty := [name for name in FIELDS if not survey.filled[name] and not survey.unread[name]]:
        click.echo(f"Nothing fills: {', '.join(empty)}.")
    if survey.unasked:
        paths = [f"{printable(path)} ({number:,})" for path, number in survey.unasked.most_common()]
        click.echo(f"No field looks at: {some(paths, _SHOWN_PATHS)}.")
    if survey.unread or survey.unasked:
        click.echo("docs/contract.md lists where each field looks, and what it can read.", err=True)


def _remark(survey: Survey, name: str) -> str:
    first = survey.first_unread.get(name)
    if first is None:
        return ""
    value = json.dumps(first.value, ensure_ascii=False)
    shown = printable(value if len(value) <= _SHOWN_VALUE else value[:_SHOWN_VALUE] + "...")
    return f"  {survey.unread[name]:,} not read: {first.path} is {shown} in {first.partition}:{first.line}"
