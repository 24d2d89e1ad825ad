"""Each slip of the chapter and of the answer is a switch: on, it shows; off, it is cured."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import pytest
from errata import ported, ported_answer, ported_loop, seen_crawler, table
from sites import plain
from sites.serving import Answerer

ERRATA = Path(ported.__file__).parent
GENERATED = ERRATA.parent / "generated"
ALL = [*table.CHAPTER, *table.ANSWER]
BY_NUMBER = {each.number: each for each in ALL}


def seen(number: str) -> tuple[str, str]:
    return table.seen(BY_NUMBER[number])


def test_1_a_put_that_is_not_awaited_crawls_nothing() -> None:
    assert seen("1") == (
        "ends; 0 paths asked for; coroutine 'Queue.put' was never awaited",
        "ends; 13 paths asked for",
    )


def test_2_a_root_that_is_not_marked_is_fetched_again() -> None:
    assert seen("2") == ("ends; the root asked for 2x", "ends; the root asked for 1x")


def test_3_a_location_that_is_relative_or_missing_kills_a_worker() -> None:
    assert seen("3") == (
        "relative: a worker fails; no Location: raises KeyError",
        "relative: ends; no Location: ends",
    )


def test_4_a_cancel_past_step_leaves_the_loop_running() -> None:
    assert seen("4") == (
        "waits for ever; 1 of 4 workers unwound",
        "ends with 'its report'; 4 of 4 workers unwound",
    )


def test_a_task_cancelled_in_the_turn_of_its_result_is_not_resumed_twice() -> None:
    loop = ported_loop.Loop()
    result, never = ported_loop.Future(loop), ported_loop.Future(loop)
    woken = []

    def work() -> ported_loop.Coroutine:
        try:
            yield from result
        except ported_loop.CancelledError:
            yield from never
            woken.append("by the result, at another future")

    def main() -> ported_loop.Coroutine:
        task = ported_loop.Task(loop, work())
        result.set_result(None)
        task.cancel()
        turn = ported_loop.Future(loop)
        turn.set_result(None)
        yield from turn

    loop.run_until_complete(main())
    assert woken == []


def test_5_a_queue_with_one_future_is_joined_once() -> None:
    printed, cured = seen("5")
    assert "ends with [0, 1]" in printed
    assert "by a future that nothing resolved" in printed
    assert "ends with [0, 0]" in cured


def test_6_a_coroutine_that_never_waits_never_stops_the_loop() -> None:
    printed, cured = seen("6")
    assert printed.count("waits for ever") == 2
    assert "ends with 42" in cured
    assert "raises ValueError" in cured


def test_7_one_failing_coroutine_ends_the_loop_for_all() -> None:
    assert seen("7") == (
        "raises ValueError; the healthy task finished: False",
        "ends with True; the healthy task finished: True",
    )


def test_8_a_callback_without_its_arguments_ends_the_loop() -> None:
    assert seen("8") == ("raises TypeError", "ends with '13 pages'")


def test_9_a_fetch_that_raises_leaves_the_join_waiting() -> None:
    assert seen("9") == ("waits for ever; 12 paths asked for", "ends; 12 paths asked for")


def test_10_a_spent_redirect_is_dropped_in_silence() -> None:
    printed, cured = seen("10")
    assert "never asked for" in printed
    assert "left: []" in printed
    assert "never" not in cured
    assert "left: ['/s3']" in cured


@pytest.mark.parametrize(
    ("number", "error"),
    [
        ("11", "IndentationError"),
        ("16", "NameError: name 'loop'"),
        ("17", "NameError: name 'self'"),
        ("a", "NameError: name 'reads'"),
        ("b", "SyntaxError"),
    ],
)
def test_a_text_that_does_not_run_is_cured_by_one_line(number: str, error: str) -> None:
    printed, cured = seen(number)
    assert printed.startswith(error)
    assert cured == "runs"


def test_12_a_yield_from_of_an_awaitable_kills_every_worker() -> None:
    assert seen("12") == ("raises TypeError; 3 paths asked for", "ends; 13 paths asked for")


def test_13_a_socket_that_nobody_closes_is_left_for_each_page() -> None:
    assert seen("13") == (
        "ends with '13 pages'; 13 sockets never closed",
        "ends with '13 pages'; 0 sockets never closed",
    )


def test_14_a_refusal_that_is_swallowed_is_tried_for_ever() -> None:
    assert seen("14") == (
        "still trying after 10,000 times, nothing said",
        "raises ConnectionRefusedError",
    )


def test_15_a_send_that_is_not_looked_at_loses_bytes() -> None:
    assert seen("15") == ("of 1,000,000 bytes arrive: not all", "of 1,000,000 bytes arrive: all")


def test_18_a_page_that_is_not_checked_kills_a_worker_and_is_read_whole() -> None:
    assert seen("18") == (
        "charset that lies: raises UnicodeDecodeError; 10 paths asked for; "
        "of a video of 3,000,000 bytes read: all",
        "charset that lies: ends; 12 paths asked for; of a video of 3,000,000 bytes read: none",
    )


def test_19_workers_that_nobody_watches_die_unseen() -> None:
    assert seen("19") == (
        "one bad page: ends; more bad pages than workers: waits for ever",
        "one bad page: raises RemoteProtocolError; "
        "more bad pages than workers: raises RemoteProtocolError",
    )


@pytest.mark.parametrize(
    ("slip", "site"),
    [
        ("raw_location", seen_crawler.redirecting(a="b")),
        ("yield_from_release", plain.answer),
        ("unchecked_pages", seen_crawler.lying),
    ],
)
def test_a_worker_that_dies_as_printed_is_waited_for(slip: str, site: Answerer) -> None:
    printed = ported.Printed(uncounted_failure=True, unwatched_workers=True, **{slip: True})
    assert seen_crawler.crawled(site, printed).ended == "waits for ever"


def test_20_a_future_that_resumes_at_once_cancels_who_is_running() -> None:
    assert seen("20") == ("raises ValueError", "ends with '13 pages'")


def test_c_a_file_opened_for_reading_is_writable_to_select_alone() -> None:
    printed, cured = seen("c")
    assert printed == "select says writable: True; write raises UnsupportedOperation"
    assert cured == "select says writable: True; written"


def test_d_a_buffer_of_text_takes_no_bytes() -> None:
    assert seen("d") == ("raises TypeError; 0 of 1 readers served", "ends; 1 of 1 readers served")


def test_e_a_buffered_file_hides_from_select_what_it_has() -> None:
    assert seen("e") == ("waits for ever; 0 of 1 readers served", "ends; 1 of 1 readers served")


def test_f_a_second_reader_replaces_the_first_in_silence() -> None:
    assert seen("f") == ("ends; 1 of 2 readers served", "ends; 2 of 2 readers served")


def test_g_a_sort_without_a_key_compares_coroutines() -> None:
    printed, cured = seen("g")
    assert printed.endswith("raises TypeError")
    assert cured.endswith("ends")


def test_h_the_end_of_a_stream_is_asked_again_for_ever() -> None:
    printed, cured = seen("h")
    assert printed.endswith("asks 1,000 times without a pause")
    assert cured.endswith("raises EOFError")


def test_i_more_is_read_than_was_asked_for() -> None:
    assert seen("i") == ("asked for 3 bytes, got 12", "asked for 3 bytes, got 3")


def test_j_the_sample_output_is_of_another_program() -> None:
    printed, cured = seen("j")
    assert len(set(printed.split("'")[1::2])) == 2
    assert len(set(cured.split("'")[1::2])) == 1


@pytest.mark.parametrize("number", BY_NUMBER)
def test_a_cure_is_a_line_of_the_program_that_it_names(number: str) -> None:
    row = BY_NUMBER[number]
    lines = (ERRATA / row.program).read_text().splitlines()
    assert row.cure in [line.strip() for line in lines]


def test_every_switch_is_named_by_the_number_of_its_row() -> None:
    numbers = set()
    for module in (ported, ported_loop, ported_answer):
        text = Path(module.__file__).read_text()
        for switch in dataclasses.fields(module.Printed):
            number = text.partition(f"    {switch.name}: bool = False  # ")[2].split("\n")[0]
            assert BY_NUMBER[number].see.__name__ == switch.name
            numbers.add(number)
    assert set(BY_NUMBER) - numbers == {"11", "16", "17", "a", "b", "j"}


def test_the_pages_tables_are_what_the_programs_did(
    recorded: Callable[[Path, str], None],
) -> None:
    chapter, answer = table.lines(table.CHAPTER), table.lines(table.ANSWER)
    recorded(GENERATED / "errata.md", "\n".join(chapter) + "\n")
    recorded(GENERATED / "errata-answer.md", "\n".join(answer) + "\n")
