"""URLs that look as if they change something, and those that only look like these."""

from __future__ import annotations

import time
from pathlib import Path
from urllib.parse import quote

import pytest
from cases import for_each
from hypothesis import given
from hypothesis import strategies as st
from test_real_traps import SITES

from trio_crawler import normalise
from trio_crawler.policy.url_shapes import changes_something

HOST = "http://h.test"
CHANGING = """
/logout /Logout /log-out /log_out /logoff /signout /sign-off /log-out/ /accounts/logout/
/users/sign_out /Account/LogOff /user/logout /wp-logout /logout.php /login/logout.php?sesskey=1
/session/logout;jsessionid=1 /wiki/Special:UserLogout /wiki/Special%3AUserLogout
/w/index.php?title=Special:UserLogout&returnto=x /wp-login.php?action=logout&_wpnonce=1
/doku.php?id=x&do=logout&sectok= /ucp.php?mode=logout&sid=1 /index.php?action=logout;sesc=1
/?r=/site/logout /?logout /?logout=1 /?q=user/logout /site?page=logout /index.php?r=site/logout
/index.php?route=account/logout /index.php?option=com_users&task=user.logout&x=1
/item/5/delete/ /delete/5 /delete/ /Items/Delete/5 /x/%64elete/ /posts/delete.php?id=1
/delete_item/5 /remove-user?id=5 /confirm-delete/5/ /a?delete=5 /cart/?remove_item=abc
/index.php?title=A&action=delete /posting.php?mode=delete&f=1 /a?action=deleteUser&id=3
/index.php?title=A&action=edit /index.php?title=A&action=edit&redlink=1 /start?do=edit&rev=0
/doku.php?id=x&do=edit /unsubscribe/abc /list?unsubscribe=1 /post/5/unsubscribe /oauth/revoke
/?a=1&action=rollback /?action=purge /?do=draftdel
/shop/?add-to-cart=5 /shop/?add_to_wishlist=5&x=1 /add-to-cart/5 /add_to_basket.php?id=5
""".split()
HONEST = """
/ /how-to-delete-a-file /sql-delete.html /lang_delete.html /library/delete.html /wiki/Deletion
/blog/logout-problems /page/login-and-logout-explained /docs/delete-file /reference/delete-user
/?q=delete /?s=logout /search?q=how+to+delete+a+file /tag/removed/ /login/ /accounts/login/
/accounts/login/?next=/accounts/logout/ /lang/de/?next=/item/5/delete/ /print?url=/logout
/print?page=http://h.test/logout /?page=docs/delete-file
/print?url=http://h.test/logout /index.php?title=A&action=history /a?action=view
/doku.php?do=recent /doku.php?id=x&do=diff /a?sort=edit /edit /edition/5 /editorial?page=2
/logs/out /signals/off
/dialog/out /blog/out /catalog-out /remover /std/fs/fn.remove_file.html /undelete-notes
/how-to-add-to-cart /docs/add-to-cart.html /add-to-homescreen/ /?q=add+to+cart
/subscribe /subscribers/5 /viewtopic.php?mode=viewprofile /trashcan /save/the/whales /move
/x?search=remove /a?name=delete /a?id=edit /index.php?title=Delete&oldid=5 /restore
/article?action=read /article?action=credits /logout.html /2026/05/sign-off-sheet /a?mode=edition
""".split()


@for_each("url", CHANGING)
def test_a_url_changes_something(url: str) -> None:
    assert changes_something(normalise(HOST + url))


@for_each("url", HONEST)
def test_a_url_changes_nothing(url: str) -> None:
    assert not changes_something(normalise(HOST + url))


@pytest.mark.parametrize("host", ["logout.test", "delete.test", "action.edit.test:81"])
def test_the_name_of_a_host_does_not_count(host: str) -> None:
    assert not changes_something(f"http://{host}/a?b=c")


@given(st.text("/?&=;%-_.:log outdel25", max_size=40))
def test_no_url_raises(rest: str) -> None:
    assert changes_something(f"{HOST}/{rest}") in (True, False)


@for_each(
    "piece", ["/delete-", "-log", "log-", "?action=", "&action=edi", "%64", "/a:", "user", "; "]
)
def test_a_long_url_is_judged_in_no_time(piece: str) -> None:
    url = f"{HOST}/x?{piece * 500}"
    started = time.process_time()
    for _ in range(10):
        changes_something(url)
        changes_something(url.replace("?", "/"))
    assert time.process_time() - started < 0.5


@pytest.mark.real
@pytest.mark.parametrize("name", SITES)
def test_no_file_of_a_documentation_changes_something(name: str) -> None:
    root: Path = SITES[name]
    if not (root / "index.html").exists():
        pytest.skip(f"{root} is not installed")
    paths = (quote(str(path.relative_to(root))) for path in root.rglob("*"))
    assert not [path for path in paths if changes_something(f"{HOST}/{path}")]
