"""The errata, a row each: what is printed, what is seen of it, and the line that cures it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from errata import seen_answer, seen_crawler, seen_loop
from errata.slips import SLIPS, tried


@dataclass(frozen=True)
class Erratum:
    number: str
    section: str  # of the text that prints it
    line: (
        str  # as printed: a wrong one, or the one behind which the cure is missing
    )
    printed: str  # in our words
    cure: str  # a line of `program`
    program: str
    published: str  # is it the same in the published repository?
    see: Callable[[bool], str]  # run it as printed, or cured, and say what is seen


def text(number: str) -> Callable[[bool], str]:
    return lambda printed: tried(SLIPS[number][0 if printed else 1])


COORDINATING = "Coordinating Coroutines"
CALLBACKS = "Programming With Callbacks"
GENERATORS = "Building Coroutines With Generators"
PORTED, LOOP, CRAWL = "ported.py", "ported_loop.py", "ported_crawl.py"

CHAPTER = [
    Erratum("1", COORDINATING, "self.q.put((root_url, self.max_redirect))",
        "The root is put into the queue by a coroutine that is never awaited.",
        "self.q.put_nowait((root, max_redirect))", PORTED, "no", seen_crawler.unawaited_put,
    ),
    Erratum("2", COORDINATING, "self.seen_urls = set()",
        "The root never enters the set of URLs seen.",
        "self.add({root}, max_redirect)", PORTED, "no", seen_crawler.root_unseen,
    ),
    Erratum("3", COORDINATING, "next_url = response.headers['location']",
        "The Location of a redirect is used unresolved, and assumed to be present.",
        "target = urljoin(url, location)", PORTED,
        "in part, it is resolved, but assumed to be present", seen_crawler.raw_location,
    ),
    Erratum("4", COORDINATING, "self.coro.throw(CancelledError)",
        "`cancel` throws outside the `step` that should catch the error.",
        "self.advance(self.coro.throw, CancelledError())", LOOP, "no, it has no cancel",
        seen_loop.thrown_past_step,
    ),
    Erratum("5", COORDINATING, "self._join_future.set_result(None)",
        "The queue has one future to join by, and resolved futures keep their callbacks.",
        "self.joined = Future(self.loop)", CRAWL, "no, it uses asyncio's queue",
        seen_loop.one_join,
    ),
    Erratum("6", COORDINATING, "task.add_done_callback(stop_callback)",
        "The loop waits for a callback that it adds after the task has ended; the task's "
        "value is dropped.",
        "self.loop.call(fn, self)", LOOP, "no, it has no such loop", seen_loop.late_callback_lost,
    ),
    Erratum("7", GENERATORS, "except StopIteration:",
        "`step` catches the end of a coroutine, but no other exception.",
        "self.set_result(None, error)", LOOP, "yes", seen_loop.only_stop_iteration,
    ),
    Erratum("8", CALLBACKS, "callback()",
        "The loop calls its callbacks without the two arguments that they take.",
        "key.data(key, mask)", LOOP, "no", seen_loop.no_arguments,
    ),
    Erratum("9", COORDINATING, "yield from self.fetch(url, max_redirect)",
        "A fetch that raises skips `task_done`. Row 19 is as printed in this run, too.",
        "finally:", PORTED,
        "in part, errors of aiohttp are tried again and counted, all others are not",
        seen_crawler.uncounted_failure,
    ),
    Erratum("10", COORDINATING, "if max_redirect > 0:",
        "A target past the last redirect is dropped without a word, and the way on which a "
        "URL is met first decides its budget.",
        "elif max_redirect > before and not self.printed.spent_in_silence:", PORTED,
        "in part, the target is recorded and logged, but the order decides there, too",
        seen_crawler.spent_in_silence,
    ),
    Erratum("11", COORDINATING, " else:",
        "The `else` of `fetch` stands a column to the right of its `if`.",
        "else:", PORTED, "no", text("11"),
    ),
    Erratum("12", COORDINATING, "yield from response.release()",
        "The response is released by `yield from`; later releases gave an awaitable that "
        "is no iterator.",
        "await released", PORTED, "yes", seen_crawler.yield_from_release,
    ),
    Erratum("13", CALLBACKS, "links = self.parse_links()",
        "No socket is ever closed.",
        "sock.close()", CRAWL, "yes", seen_loop.left_open,
    ),
    Erratum("14", "Async", "except OSError as e:",
        "The loop that tries until the socket is connected takes a refused connection for "
        "one that is not ready yet.",
        "error = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)", CRAWL, "yes",
        seen_loop.refusal_swallowed,
    ),
    Erratum("15", CALLBACKS, "self.sock.send(request.encode('ascii'))",
        "`send` may take a part of the request only; the rest is lost, as the chapter says.",
        'data = b"" if loop.printed.half_sent else data[sent:]', CRAWL, "yes", seen_loop.half_sent,
    ),
    Erratum("16", COORDINATING, "self.session = aiohttp.ClientSession(loop=loop)",
        "The crawler's module uses a global `loop` that belongs to the script.",
        "self.loop = loop", LOOP, "no", text("16"),
    ),
    Erratum("17", COORDINATING, "loop.run_until_complete(self.crawler.crawl())",
        "The script calls the crawler as an attribute of a `self` that it does not have.",
        "await crawler.crawl()", "seen_crawler.py", "no", text("17"),
    ),
    Erratum("18", COORDINATING, "links = yield from self.parse_links(response)",
        "`parse_links` is not shown: status, type, charset and size go unchecked, and the "
        "body is read before its type.",
        'if not self.printed.unchecked_pages and not kind.startswith("text/html"):',
        PORTED,
        "in part, status and type are checked after the body is read, the charset is not",
        seen_crawler.unchecked_pages,
    ),
    Erratum("19", COORDINATING, "workers = [asyncio.Task(self.work())",
        "All workers are started, and nothing tells that one of them died.",
        "async with asyncio.TaskGroup() as group:", PORTED, "yes", seen_crawler.unwatched_workers,
    ),
    Erratum("20", GENERATORS, "fn(self)",
        "A future runs its callbacks inside the coroutine that resolves it: the last "
        "worker's `task_done` runs `crawl`, which cancels that worker.",
        "self.ready.append(partial(fn, future))", LOOP,
        "in part, it has that future, but no cancel", seen_loop.resumed_inside,
    ),
]  # fmt: skip

ANSWER_PROGRAM = "ported_answer.py"
ANSWER = [
    Erratum("a", "3.3", "readable, _, _ = select.select(list(reads), [], [])",
        "The new line selects on a name that the program does not have.",
        "readable = clock.select(list(reading), timeout)", ANSWER_PROGRAM, "", text("a"),
    ),
    Erratum("b", "3.5", "result = return await AsyncRead(file, amount)",
        "The result is assigned from a statement.",
        "got.append(await AsyncRead(file, amount, printed))", "seen_answer.py", "", text("b"),
    ),
    Erratum("c", "3.1", "write_target = open('/tmp/foo')",
        "The file that is to be written to is opened for reading.",
        'return open(path) if printed.opened_for_reading else open(path, "w")',
        ANSWER_PROGRAM, "", seen_answer.opened_for_reading,
    ),
    Erratum("d", "3.2", "self._buffer = ''",
        "The buffer of a file of bytes begins as text.",
        'self.buffer: Any = "" if printed.text_buffer else b""', ANSWER_PROGRAM, "",
        seen_answer.text_buffer,
    ),
    Erratum("e", "3.5", "with open(path, 'rb') as file:",
        "A buffered file empties the descriptor that is selected on: 5 bytes come, then 5 "
        "more, and 10 are asked for.",
        'return open(fd, "rb") if printed.buffered_file else open(fd, "rb", buffering=0)',
        ANSWER_PROGRAM, "", seen_answer.buffered_file,
    ),
    Erratum("f", "3.4", "waiting_read[command.file] = coroutine",
        "One coroutine is kept for each file: a second reader replaces the first.",
        "reading.setdefault(command.file, []).append(coroutine)", ANSWER_PROGRAM, "",
        seen_answer.one_reader,
    ),
    Erratum("g", "3.4", "waiting.sort()",
        "The sleepers are sorted without a key once a file was readable.",
        "waiting.sort(key=lambda item: item[0])", ANSWER_PROGRAM, "", seen_answer.unkeyed_sort,
    ),
    Erratum("h", "4.1", "self._buffer += self.connection.recv(self.read_buffer)",
        "The end of the stream is taken for data that have not come yet.",
        "if not chunk and not self.printed.blind_to_the_end:", ANSWER_PROGRAM, "",
        seen_answer.blind_to_the_end,
    ),
    Erratum("i", "4.1", "def __init__(self, connection, amount=1, read_buffer=1024):",
        "As much is read as comes, and not the amount that was asked for.",
        "amount = 1024 if self.printed.over_reading else missing",
        ANSWER_PROGRAM, "", seen_answer.over_reading,
    ),
    Erratum("j", "3.5", "id background round 1",
        "The sample output is not what the printed code prints.",
        'lines.append(f"{identifier} step {i + 1}")', "seen_answer.py", "",
        seen_answer.sample_output,
    ),
]  # fmt: skip


OMITTED = ("9", "13", "15")  # the printed line is right, and another one is missing


@cache
def seen(each: Erratum) -> tuple[str, str]:
    """Return what is seen as printed, and cured."""
    return each.see(True), each.see(False)


def block(each: Erratum) -> list[str]:
    """Return a row of the page in Markdown: it has been run, as printed and cured."""
    place = f"Section {each.section}."
    if each.published:
        place = f"*{each.section}*. The same in the repository: {each.published}."
    return [
        f"**{each.number}.** {each.printed} ({place})",
        "",
        f"- as printed: {seen(each)[0]}",
        f"- cured: {seen(each)[1]}",
        "",
        "```diff",
        f"{' ' if each.number in OMITTED else '-'} {each.line}",
        f"+ {each.cure}",
        "```",
        "",
    ]


def lines(errata: list[Erratum]) -> list[str]:
    return [line for each in errata for line in block(each)]


if __name__ == "__main__":
    print("\n".join([*lines(CHAPTER), "", *lines(ANSWER)]))
