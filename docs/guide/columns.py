"""Crawl with `--facts`; print some columns of the CSV, and what an SQL query finds."""

from __future__ import annotations

import csv
import sqlite3
import sys
from contextlib import chdir, closing
from pathlib import Path
from tempfile import TemporaryDirectory

from command import command

COLUMNS = "kind url h1 h1_count words inlinks redirected_from".split()
PAGES = """SELECT url, h1, words, coalesce(pages, 0)
    FROM facts LEFT JOIN inlinks USING (walk, url)
    WHERE facts.newest AND description IS NULL ORDER BY url"""


def table() -> None:
    """Print these columns of each line of pages.csv, in the order of the URLs."""
    print(*COLUMNS, sep=" | ")
    with Path("pages.csv").open(newline="", encoding="utf-8") as file:
        for row in sorted(csv.DictReader(file), key=lambda row: row["url"]):
            print(*(row[name] for name in COLUMNS), sep=" | ")


def query(sql: str) -> None:
    """Print what a query of the crawl directory finds, as the shell sqlite3 does."""
    print(f'$ sqlite3 site/crawl.sqlite "{sql}"')
    with closing(sqlite3.connect("site/crawl.sqlite")) as database:
        for row in database.execute(sql):
            print(*("" if cell is None else cell for cell in row), sep="|")


if __name__ == "__main__":
    site = sys.argv[1]
    with TemporaryDirectory() as directory, chdir(directory):
        command(site, ["--facts", "--csv", "pages.csv"], short=True)
        table()
        command(site, ["--facts", "-o", "site"], short=True)
        query(PAGES)
