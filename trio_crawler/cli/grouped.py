"""Grouped: a command whose help shows its options under headings."""

from __future__ import annotations

from typing import Any

import click


class Grouped(click.Command):
    """Head each option named in `headings`, and those declared after it, by its heading."""

    def __init__(self, *args: Any, headings: dict[str, str], **more: Any) -> None:
        super().__init__(*args, **more)
        self._headings = headings

    def format_options(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, each group in the order of declaration, in the same two columns."""
        groups: dict[str, list[tuple[str, str]]] = {}
        heading = "Options"
        for parameter in self.get_params(context):
            heading = self._headings.get(parameter.name or "", heading)
            record = parameter.get_help_record(context)
            if record and isinstance(parameter, click.Option):
                groups.setdefault(heading, []).append(record)
        width = max(len(names) for records in groups.values() for names, _ in records)
        for heading, records in groups.items():
            with formatter.section(heading):
                formatter.write_dl([(names.ljust(width), text) for names, text in records])
