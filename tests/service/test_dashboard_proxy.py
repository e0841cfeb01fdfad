"""The dashboard behind a real nginx, set up as docs/dashboard.md says."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from game_run import make_game_run
from playwright.sync_api import Browser, Page
from ports import free_port
from test_dashboard import CHROMIUM, apart, begin, browsing, choose, new_tab, serving
from waiting import wait_for

from league.security.tokens import TokenFile

NGINX = shutil.which("nginx")
NAME = "kumite.example.org"
DOCS = (Path(__file__).parents[2] / "docs" / "dashboard.md").read_text()
pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        None in (CHROMIUM, NGINX), reason="needs Chromium and nginx: apt-get install chromium nginx"
    ),
]


def documented() -> str:
    """The documented block that passes requests on."""
    found = re.search(r"location / \{.*?\n    \}", DOCS, re.DOTALL)
    assert found
    return found[0]


def with_host(block: str) -> str:
    """The block with the browser's Host, as the page says."""
    line = "proxy_set_header Host $http_host;"
    assert line in DOCS
    return block.replace("proxy_http", f"{line} proxy_http")


def with_prefix(block: str) -> str:
    """The block under a prefix, as the page says."""
    lines = ["location /kumite/ {", "proxy_pass http://127.0.0.1:8080/;",
             "proxy_set_header X-Forwarded-Prefix /kumite;"]  # fmt: skip
    assert all(f"`{line}`" in DOCS for line in lines)
    block = block.replace("location / {", lines[0]).replace(lines[1].replace("/;", ";"), lines[1])
    return block.replace("proxy_http", f"{lines[2]} proxy_http")


@contextmanager
def proxied(folder: Path, block: str, port: int, target: str) -> Iterator[None]:
    """nginx on a port, in front of the dashboard at `target`."""
    assert NGINX is not None
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    paths = "".join(f"{kind}_temp_path {folder}/{kind};" for kind in kinds)
    block = block.replace("http://127.0.0.1:8080", target)
    config = folder / "nginx.conf"
    config.write_text(
        f"daemon off; pid {folder}/pid; error_log {folder}/error.log; events {{}}\n"
        f"http {{ access_log off; {paths} server {{ listen 127.0.0.1:{port};\n"
        f"server_name {NAME}; {block} }} }}\n"
    )
    command = [NGINX, "-p", str(folder), "-c", str(config), "-e", f"{folder}/error.log"]
    with subprocess.Popen(command) as process:
        try:
            wait_for(lambda: (folder / "pid").exists() or process.poll() is not None)
            assert process.poll() is None, (folder / "error.log").read_text()
            yield
        finally:
            process.send_signal(signal.SIGTERM)


@pytest.fixture(scope="module")
def port() -> int:
    return free_port()


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a finished run."""
    folder = tmp_path_factory.mktemp("proxied") / "run"
    apart(make_game_run, folder, ["game.name=kuhn"])
    return folder


@pytest.fixture(scope="module")
def target(run: Path, port: int) -> Iterator[str]:
    """A dashboard that knows the proxy's name."""
    with serving(run, f"--name={NAME}:{port}") as address:
        yield address


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with browsing(f"--host-resolver-rules=MAP {NAME} 127.0.0.1") as tab:
        assert tab.context.browser is not None
        yield tab.context.browser


@pytest.fixture
def tab(browser: Browser) -> Iterator[Page]:
    found = new_tab(browser)
    yield found
    found.context.close()


@pytest.mark.long
@pytest.mark.parametrize("change", [str, with_host, with_prefix])
def test_everything_works_behind_the_documented_proxy(
    change: Callable[[str], str],
    tab: Page,
    target: str,
    run: Path,
    port: int,
    tmp_path: Path,
) -> None:
    prefix = "/kumite" if change is with_prefix else ""
    base = f"http://{NAME}:{port}{prefix}"
    token = (TokenFile(run).folder / "operator.token").read_text().strip()
    wrong = list[str]()
    tab.on("pageerror", lambda error: wrong.append(str(error)))
    tab.on("requestfailed", lambda one: wrong.append(one.url))
    with proxied(tmp_path, change(documented()), port, target):
        tab.goto(f"{base}/curves")
        tab.fill("[name=token]", token)
        tab.click("button")  # a form
        tab.wait_for_url(f"{base}/")
        tab.click("nav >> text=Leaderboard")
        tab.wait_for_url(f"{base}/leaderboard")
        tab.wait_for_function("window.socket?.connected")
        tab.click("nav >> text=Evaluate")
        form = tab.locator("form[action='evaluate']")
        form.locator("[name=player]").fill("main@1000")
        form.locator("[name=opponents]").fill("random")
        form.locator("button").click()
        tab.wait_for_selector('[role="status"]:has-text("only reads")')  # the run is finished
        begin(tab, f"{base}/play?first=human&second=caller")  # a websocket
        choose(tab)
        tab.click('[data-part="choices"] a:has-text("replay")')
        tab.wait_for_selector('[data-film] [data-part="clock"]:not(:empty)')
        tab.close()
    assert not wrong


def test_another_name_and_visitors_without_a_token_are_refused(
    target: str, port: int, tmp_path: Path
) -> None:
    import httpx

    with proxied(tmp_path, with_host(documented()), port, target):
        address = f"http://127.0.0.1:{port}/"
        assert httpx.get(address, headers={"host": "evil.example"}).status_code == 400
        assert httpx.get(address, headers={"host": f"{NAME}:{port}"}).status_code == 401
    assert httpx.get(target).status_code == 401
