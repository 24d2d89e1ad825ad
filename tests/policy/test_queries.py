"""What the parameters of URLs bring: texts, families of paths, and what is left out."""

from __future__ import annotations

import pytest
from cases import for_each

from trio_crawler.model import Job, Reason
from trio_crawler.policy.news import Novelty, Queries, Shape
from trio_crawler.policy.traps import HostTraps, Traps

H = "http://h"


def pages(queries: Queries, form: str, count: int, *, news: bool = False, new=()) -> None:
    """Record numbered pages of a form, with letters in place of the number."""
    for number in range(count):
        queries.record(form.format(letters(number)), news=news, new=new)


def letters(number: int) -> str:
    return "".join(chr(97 + int(digit)) for digit in str(number))


def standing(queries: Queries, url: str) -> str:
    shape: Shape = queries.shape(url)
    assert not (shape.is_good and shape.is_left_out)
    return "good" if shape.is_good else "left out" if shape.is_left_out else "unproven"


# Novelty.


def page(*texts: str) -> bytes:
    return f"<nav>Home</nav>{''.join(f'<p>{text}</p>' for text in texts)}".encode()


def test_the_first_page_is_news_and_the_same_again_is_not():
    novelty = Novelty()
    assert novelty.add(1, page("a b", "c d", "e f")).is_news
    again = novelty.add(1, page("a b", "c d", "e f"))
    assert again == (4, 0, 0)
    assert not again.is_news


@for_each(
    "texts, is_news",
    [
        (["One", "Two", "Three", "Four"], False),
        (["Four", "Three", "One"], False),
        (["One", "Two", "Three", "Sorted by date"], False),
        (["One", "Two", "Three", "31 articles", "page 7"], True),
        (["One", "Two", "Three", *"abcdefg", "31 articles", "page 7"], True),
        (["A new one", "Another", "And a third"], True),
    ],
)
def test_a_page_is_news_by_three_texts_or_by_two_that_are_a_fifth(texts, is_news):
    novelty = Novelty()
    novelty.add(1, page("One", "Two", "Three", "Four"))
    assert novelty.add(1, page(*texts)).is_news is is_news


def photo(name: str, image: str) -> bytes:
    """Return the page of a photo: 20 texts of the site, a title, a heading, and the image."""
    own = f"<title>{name} - Photos</title><h1>{name}</h1><img src='{image}'>"
    return page(*"abcdefghijklmnopqrs") + own.encode()


def test_the_page_of_a_photo_is_news_if_it_has_a_title_of_its_own():
    novelty = Novelty()
    for name in ("lake", "forest", "meadow"):
        assert novelty.add(1, photo(name, f"/img/{name}.jpg")).is_news
    # Neither a new title alone, nor the image of a captcha.
    assert not novelty.add(1, photo("river", "/img/lake.jpg")).is_news
    assert not novelty.add(1, photo("lake", "/captcha/xkcd.png")).is_news
    # Of an address the query does not count: this one says nothing new from the second time on.
    novelty.add(1, photo("shore", "/img.php?of=shore"))
    assert not novelty.add(1, photo("hill", "/img.php?of=hill")).is_news


def test_tags_attributes_case_and_punctuation_are_no_text():
    novelty = Novelty()
    novelty.add(1, b"<p>One, two</p>")
    assert novelty.add(1, b"<DIV class='x'>one; TWO!</div>") == (1, 0, 0)
    assert novelty.add(1, b"<b data-z=1>one, two three").new == 1


def test_scripts_styles_and_text_areas_are_no_text():
    novelty = Novelty()
    novelty.add(1, page("a b"))
    form = (
        b"<script>page = 'one'</script><SCRIPT async>id = 'two'</SCRIPT><style>p {}</style>"
        b"<textarea name=text>the source of a page</textarea>"
    )
    assert novelty.add(1, form + page("a b")) == (2, 0, 0)
    assert novelty.add(1, b"<scope>new</scope><p>newer</p>").worded == 2


def test_when_its_bits_are_used_up_all_texts_are_new_once_more():
    novelty = Novelty()
    novelty.add(1, page("One"))
    novelty._texts = 2**22 + 1
    assert novelty.add(1, page("One")).new == 2


# Families.


def test_a_family_is_the_first_names_of_a_path_and_numbers_are_folded():
    queries = Queries(16)
    assert queries.family("/repo/tree/src/a.c") == queries.family("/repo/tree/src/b.c")
    assert queries.family("/repo/tree/a") != queries.family("/repo/commit/a")
    assert queries.family("/2031/05/") == queries.family("/1999/12")
    assert queries.family("/a") != queries.family("/a/b")
    assert queries.family("/") == queries.family("")


def test_the_items_of_a_large_directory_are_one_family():
    queries = Queries(16)
    found = {queries.family(f"/articles/{letters(number)}") for number in range(1_000)}
    assert len(found) == 17
    assert (
        len({queries.family(f"/articles/{letters(number)}/edit") for number in range(1_000)}) == 17
    )


def test_a_host_has_a_bounded_number_of_families():
    queries = Queries(16)
    found = {
        queries.family(f"/{letters(one)}/{letters(two)}/{letters(three)}" + "/x" * depth)
        for one in range(20)
        for two in range(20)
        for three in range(20)
        for depth in range(3)
    }
    assert len(found) < 500 * 17


# What is left out.


def test_a_parameter_without_news_is_left_out_after_so_many_pages():
    queries, url = Queries(16), f"{H}/list?tag={{}}"
    assert standing(queries, url) == "unproven"
    pages(queries, url, 15)
    assert standing(queries, url) == "unproven"
    pages(queries, url, 1)
    assert standing(queries, url) == "left out"
    assert standing(queries, f"{H}/list?tag=x&page=y") == "left out"
    assert standing(queries, f"{H}/list?page=y") == "unproven"
    assert standing(queries, f"{H}/other?tag=x") == "unproven"


def test_a_page_with_news_brings_its_parameter_back():
    queries, url = Queries(16), f"{H}/list?tag={{}}"
    pages(queries, url, 30)
    assert standing(queries, url) == "left out"
    pages(queries, url, 1, news=True)
    assert standing(queries, url) == "good"
    pages(queries, url, 15)
    assert standing(queries, url) == "unproven"


def test_a_parameter_that_brought_much_is_left_out_after_twice_as_many_pages():
    queries, url = Queries(16), f"{H}/list?tag={{}}"
    pages(queries, url, 20, news=True)
    pages(queries, url, 39)
    assert standing(queries, url) == "unproven"
    pages(queries, url, 1)
    assert standing(queries, url) == "left out"


def test_the_blame_goes_to_the_parameters_that_brought_nothing():
    queries = Queries(16)
    pages(queries, f"{H}/list?after={{}}", 3, news=True)
    pages(queries, f"{H}/list?after={{}}&sort=up", 16)
    assert standing(queries, f"{H}/list?sort=up") == "left out"
    assert standing(queries, f"{H}/list?after=z") == "good"


def test_one_number_alone_counts_pages_and_is_never_left_out():
    queries = Queries(16)
    assert standing(queries, f"{H}/list?page=2") == "good"
    for number in range(1_000):
        queries.record(f"{H}/list?page={number}", news=False)
    assert standing(queries, f"{H}/list?page=2") == "unproven"
    assert standing(queries, f"{H}/list?page=2&tag=5") == "left out"


def test_two_numbers_are_left_out_after_eight_times_as_many_pages():
    queries = Queries(16)
    for number in range(127):
        queries.record(f"{H}/list?category={number}&tag={number}", news=False)
    assert standing(queries, f"{H}/list?category=1&tag=2") == "unproven"
    queries.record(f"{H}/list?category=1&tag=2", news=False)
    assert standing(queries, f"{H}/list?category=1&tag=2") == "left out"


@for_each(
    "new, pages_until_left_out",
    [
        ([], 16),
        ([f"{H}/list?after=zz"], 128),
        ([f"{H}/list?after=zz", f"{H}/list?after=zy"], 128),
        ([f"{H}/list?after=z{letter}" for letter in "xyz"], 16),
        ([f"{H}/other?after=zz"], 16),
    ],
)
def test_a_chain_may_go_on_eight_times_as_long(new, pages_until_left_out):
    queries, url = Queries(16), f"{H}/list?after={{}}"
    pages(queries, url, pages_until_left_out - 1, new=new)
    assert standing(queries, url) == "unproven"
    pages(queries, url, 1, new=new)
    assert standing(queries, url) == "left out"


@pytest.mark.parametrize("value", ["/a/{}", "%2Fa%2F{}", "http://h/{}", "https%3A%2F%2Fh%2F{}"])
def test_a_url_in_a_query_is_an_echo_poor_from_the_start_and_soon_left_out(value):
    queries, url = Queries(16), f"{H}/login?next={value}"
    assert standing(queries, url) == "unproven"
    pages(queries, url, 3)
    assert standing(queries, url) == "unproven"
    pages(queries, url, 1)
    assert standing(queries, url) == "left out"


def test_parameters_are_told_apart_at_both_separators_and_without_their_order():
    queries = Queries(16)
    shapes = {queries.shape(f"{H}/?{query}") for query in ("C=N;O=D", "O=A;C=M", "C=S&O=A")}
    assert len(shapes) == 1
    assert queries.shape(f"{H}/?C=N") not in shapes


def test_shapes_beyond_the_bound_share_one_that_is_never_left_out():
    queries = Queries(16)
    for number in range(256):
        queries.shape(f"{H}/?{letters(number)}=x")
    others = queries.shape(f"{H}/?another=x")
    assert others is queries.shape(f"{H}/?and-another=x")
    pages(queries, f"{H}/?another={{}}", 100)
    assert not others.is_left_out


def test_links_out_of_the_family_are_worth_something_if_they_have_no_query():
    queries = Queries(16)
    here = f"{H}/list?page=1"
    assert queries.leads_on(here, [f"{H}/article/a"])
    assert not queries.leads_on(here, [f"{H}/list?page=2"])
    assert not queries.leads_on(here, [f"{H}/list/"])
    assert not queries.leads_on(here, [f"{H}/print?of=x", f"{H}/login?next=/list"])
    pages(queries, f"{H}/print?of={{}}", 1, news=True)
    assert queries.leads_on(here, [f"{H}/print?of=y"])
    assert not queries.leads_on(here, [])


def test_links_to_other_hosts_are_no_shapes_of_this_one():
    queries = Queries(16)
    here = f"{H}/list?page=1"
    others = [f"http://other.test/go?{letters(number)}=x" for number in range(300)]
    assert not queries.leads_on(here, others)
    assert queries.leads_on(here, ["http://other.test/article"])
    # They have used up none of the shapes and families of this host.
    url = f"{H}/print?of={{}}"
    pages(queries, url, 16)
    assert standing(queries, url) == "left out"


# The traps of a host.


def host_with(form: str, count: int, body: bytes) -> HostTraps:
    """Return the traps of a host after pages that all say the same."""
    host = HostTraps(Traps())
    for number in range(count):
        url = form.format(letters(number))
        assert host.rejection(Job(url)) is None
        host.record_links(url, body, [])
    return host


def test_a_url_with_a_parameter_that_is_left_out_is_rejected_but_for_one_in_fifty():
    # The host is examined from its ninth URL on, whose page is all news.
    host = host_with(f"{H}/list?tag={{}}", 9 + 16, page("The same", "and", "again"))
    urls = [f"{H}/list?tag=x{letters(number)}" for number in range(5_000)]
    let_through = [url for url in urls if host.rejection(Job(url)) is None]
    assert 50 < len(let_through) < 160
    # Always the same ones.
    assert let_through == [url for url in urls if host.rejection(Job(url)) is None]
    assert {host.rejection(Job(url)) for url in urls} == {None, Reason.BARREN_QUERY}


def test_two_urls_of_each_path_are_let_through():
    host = host_with(f"{H}/list?tag={{}}", 9 + 16, page("The same", "and", "again"))
    for folder in range(40):
        # Folders beyond the 16th are one family.
        url = f"{H}/folder-{letters(folder)}/?C=N"
        host.rejection(Job(url))
        host.record_links(url, page("The same"), [])
    for folder in ("x", "y"):
        urls = [f"{H}/folder-z{folder}/?C={letter}" for letter in "ABCDEFGH"]
        reasons = [host.rejection(Job(url)) for url in urls]
        assert reasons[:2] == [None, None]
        assert reasons.count(Reason.BARREN_QUERY) >= 4
        assert [host.left_out(url) for url in urls[:2]] == [None, None]


def test_a_url_that_was_let_through_is_left_out_when_its_turn_comes():
    host = HostTraps(Traps())
    urls = [f"{H}/list?tag={letters(number)}" for number in range(200)]
    assert {host.rejection(Job(url)) for url in urls} == {None}
    assert {host.left_out(url) for url in urls} == {None}
    for url in urls[:17]:
        host.record_links(url, page("The same", "and", "again"), [])
    left = [host.left_out(url) for url in urls]
    assert 185 < left.count(Reason.BARREN_QUERY) < 200
    assert host.left_out(f"{H}/plain") is None


def test_an_error_and_a_redirect_to_a_known_page_bring_nothing():
    host = HostTraps(Traps())
    urls = [f"{H}/go?to={letters(number)}" for number in range(30)]
    for url in urls:
        host.rejection(Job(url))
    for url in urls[:16]:
        host.record_nothing(url)
    assert Reason.BARREN_QUERY in {host.left_out(url) for url in urls}
