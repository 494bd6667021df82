"""``soubench report`` in a real browser: loading, filters, keys, narrow screens, no network."""

import json
import shutil

import datasets
import pytest

from soubench.cli import main
from soubench.inference.report.figures import figures_of
from soubench.inference.report.page import PageOptions, write_page
from tests.inference.report_runs import HOSTILE, change, make_run, synthetic_section

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), ""
)
DRIVER = shutil.which("chromedriver") or ""

pytestmark = pytest.mark.skipif(
    not (CHROMIUM and DRIVER), reason="needs Chromium and chromedriver on the PATH"
)
WIDE, NARROW = (1280, 900), (360, 740)


@pytest.fixture(scope="module")
def chromium(tmp_path_factory):
    """One browser for all tests of this module."""
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for argument in (
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--disable-background-networking",
        "--no-first-run",
        f"--user-data-dir={tmp_path_factory.mktemp('profile')}",
    ):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    yield driver
    driver.quit()


class Opened:
    """A page in the browser."""

    def __init__(self, driver):
        self.driver = driver

    def run(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def press(self, *keys):
        from selenium.webdriver.common.action_chains import ActionChains

        ActionChains(self.driver).send_keys(*keys).perform()

    def choose(self, name, text):
        """Choose an option of a filter by its text."""
        self.run(
            "const s = document.getElementById(arguments[0]);"
            "s.value = [...s.options].find(o => o.text === arguments[1]).value;"
            "s.dispatchEvent(new Event('change'))",
            name,
            text,
        )

    def search(self, text):
        from selenium.webdriver.common.keys import Keys

        self.press("/")
        assert self.run("return document.activeElement.id") == "search"
        # The key selects what is there, so that typing replaces it.
        self.press(Keys.BACKSPACE, text, Keys.ENTER)
        assert self.run("return document.activeElement.id") == "list"

    @property
    def count(self):
        return self.run("return document.getElementById('count').textContent")

    @property
    def chosen(self):
        return self.run("return document.querySelector('#detail h3')?.textContent")

    @property
    def detail(self):
        return self.run("return document.getElementById('detail').innerText")

    @property
    def items(self):
        """What the list shows, each as (name, verdicts)."""
        return self.run(
            "return [...document.querySelectorAll('.item')].map(i =>"
            "[i.querySelector('.clip').textContent, i.querySelector('.verdict').ariaLabel])"
        )

    def requests(self):
        """Return what was asked for since the page was opened."""
        entries = [json.loads(e["message"])["message"] for e in self.driver.get_log("performance")]
        return [
            entry["params"]["request"]["url"]
            for entry in entries
            if entry["method"] == "Network.requestWillBeSent"
        ]


@pytest.fixture
def open_page(chromium):
    """Return a function that opens a page; at the end, the console must be silent."""

    def open_it(path, size=WIDE, scheme="light"):
        chromium.get("about:blank")
        chromium.get_log("browser")
        chromium.get_log("performance")
        chromium.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": size[0], "height": size[1], "deviceScaleFactor": 1, "mobile": False},
        )
        chromium.execute_cdp_cmd(
            "Emulation.setEmulatedMedia",
            {"features": [{"name": "prefers-color-scheme", "value": scheme}]},
        )
        chromium.get(path.as_uri())
        return Opened(chromium)

    yield open_it
    assert chromium.get_log("browser") == []


@pytest.fixture(scope="module")
def folder(small_cache, tmp_path_factory, installed_metrics):
    """Reports of two runs over sou-vqa and one over shapes."""
    before = datasets.config.HF_DATASETS_CACHE
    datasets.config.HF_DATASETS_CACHE = small_cache
    home = tmp_path_factory.mktemp("report")
    strange = dict(enumerate(HOSTILE)) | {10: "", 11: ("timeout",)}
    mixed = change(make_run(home / "mixed"), strange)
    oracle = make_run(home / "oracle", model="baseline:oracle")
    shapes = make_run(home / "shapes", dataset="primitive-shapes", config="sentence")
    runs = [str(mixed), str(oracle), str(shapes)]
    assert main(["report", *runs, "--out", str(home / "report.html"), "--workers=1"]) == 0
    lazy = ["--embed=2", f"--pictures={home / 'pictures'}", "--workers=1"]
    assert main(["report", str(mixed), "--out", str(home / "lazy.html"), *lazy]) == 0
    beside = ["--published", "--embed=2", "--workers=1", "--out", str(home / "published.html")]
    assert main(["report", *runs[:2], *beside]) == 0
    section = synthetic_section()
    write_page([section], [figures_of(section)], PageOptions(out=home / "large.html"))
    datasets.config.HF_DATASETS_CACHE = before
    return home


@pytest.fixture
def verdicts(folder):
    lines = (folder / "mixed" / "verdicts.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def test_the_page_loads_from_a_file_and_asks_for_nothing(open_page, folder):
    page = open_page(folder / "report.html")
    assert page.count == "72 of 72 rows"
    assert page.run("return document.querySelector('.views image').href.baseVal").startswith(
        "data:"
    )
    page.press("j", "j")
    asked = [url for url in page.requests() if not url.startswith("data:")]
    assert asked == [(folder / "report.html").as_uri()]


def test_hostile_replies_are_shown_and_do_nothing(open_page, folder, verdicts):
    page = open_page(folder / "report.html")
    for verdict, said in zip(verdicts, HOSTILE[:3], strict=False):
        page.search(verdict["id"])
        assert said in page.detail
    assert page.run("return window.hacked") is None
    assert page.run("return document.querySelectorAll('#detail script, #detail img').length") == 0


def test_filters_show_the_rows_that_they_name(open_page, folder, verdicts):
    page = open_page(folder / "report.html")

    def total(rows):
        return f"{sum(1 for _ in rows)} of 72 rows"

    page.choose("task", "OL")
    assert page.count == total(v for v in verdicts if v["task"] == "OL")
    page.choose("subset", "a-aitod")
    assert page.count == total(
        v for v in verdicts if v["task"] == "OL" and v["subset"] == "a-aitod"
    )
    page.choose("task", "all")
    page.choose("subset", "all")
    page.choose("run", "baseline:random")
    page.choose("verdict", "wrong")
    wrong = [v for v in verdicts if not v["right"] and not v["unparsed"] and not v["error"]]
    assert page.count == total(wrong)
    assert {verdict for _, verdict in page.items} == {"wrong"}
    page.choose("verdict", "error")
    assert page.count == "1 of 72 rows"
    assert "timeout" in page.detail
    page.choose("run", "baseline:oracle")
    assert page.count.startswith("No row of 72 fits.")
    page.choose("run", "any")
    page.choose("verdict", "models differ")
    assert page.count == total(v for v in verdicts if v["right"] < 1)


def test_search_looks_into_ids_questions_options_and_replies(open_page, folder):
    page = open_page(folder / "report.html")
    page.search("ONERROR")
    assert page.count == "1 of 72 rows"
    page.search("leftmost aitod")
    assert {name.split("/")[0] for name, _ in page.items} <= {"a-aitod"}
    page.search("no such words anywhere")
    assert page.count.startswith("No row")
    page.search("")
    assert page.count == "72 of 72 rows"


def test_keys_move_through_the_rows(open_page, folder):
    from selenium.webdriver.common.keys import Keys

    page = open_page(folder / "report.html")
    names = [name for name, _ in page.items]
    assert page.chosen == names[0]
    page.press("j", "j")
    assert page.chosen == names[2]
    page.press("k")
    assert page.chosen == names[1]
    page.run("document.getElementById('list').focus()")
    page.press(Keys.ARROW_DOWN)
    assert page.chosen == names[2]
    page.press(Keys.END)
    last = page.chosen
    page.press("j")
    assert page.chosen == last
    page.press(Keys.HOME, Keys.ARROW_UP)
    assert page.chosen == names[0]
    active = page.run(
        "return document.getElementById('list').getAttribute('aria-activedescendant')"
    )
    assert page.run("return document.getElementById(arguments[0]).ariaSelected", active) == "true"
    page.press("m")
    assert page.run("return getComputedStyle(document.querySelector('.marks')).display") == "none"
    # In the search, letters are letters.
    page.press("/", "jk")
    assert page.run("return document.getElementById('search').value") == "jk"
    page.press(Keys.ESCAPE)
    assert page.run("return document.activeElement.id") == "list"


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
def test_keys_bring_the_rows_into_view(open_page, folder, size):
    page = open_page(folder / "report.html", size)

    def top(name):
        script = "return document.getElementById(arguments[0]).getBoundingClientRect().top"
        return page.run(script, name)

    for key in "jk":
        page.run("scrollTo(0, 0)")
        assert top("list") > size[1], "the rows are in view before the key is pressed"
        page.press(key)
        assert 0 <= top("list") < size[1]
    # Whoever reads the answers, below the list on a narrow screen, goes on with those.
    page.run("document.getElementById('detail').scrollIntoView()")
    page.press("j")
    assert top("detail") < size[1] / 2


def test_an_address_leads_back_to_its_row(open_page, folder):
    page = open_page(folder / "report.html")
    page.press("j", "j", "j")
    row, address = page.chosen, page.run("return location.href")
    page.driver.get("about:blank")
    page.driver.get(address)
    assert page.chosen == row


def test_another_dataset_can_be_chosen(open_page, folder):
    page = open_page(folder / "report.html")
    page.choose("section", "primitive-shapes sentence test")
    assert page.count == "3 of 3 rows"
    assert "Right answer" in page.detail
    assert "sama" in page.detail
    assert page.run("return document.querySelectorAll('.views .mark-evidence').length") >= 2


def test_points_and_boxes_are_drawn_where_they_are(open_page, folder, verdicts):
    page = open_page(folder / "report.html")
    page.choose("run", "baseline:random")
    page.choose("task", "OL")
    page.choose("verdict", "wrong")
    frame = [
        float(x)
        for x in page.run(
            "return document.querySelector('.views svg').getAttribute('viewBox')"
        ).split(" ")
    ]
    shapes = page.run(
        "return [...document.querySelectorAll('.mark-right, .mark-answer')].map(m => {"
        "const b = m.getBBox(); return [m.classList[1], b.x, b.y, b.x + b.width, b.y + b.height]})"
    )
    options = page.run(
        "return [...document.querySelectorAll('.options li')].map(li =>"
        "[li.className, li.querySelector('span').textContent, li.innerText])"
    )
    right = next(json.loads(text) for kind, text, _ in options if kind == "right")
    said = next(
        json.loads(text) for _, text, all_ in options if "chosen by baseline:random" in all_
    )
    drawn = {kind: box for kind, *box in shapes}
    for kind, numbers in (("mark-right", right), ("mark-answer", said)):
        xs, ys = numbers[::2], numbers[1::2]
        assert drawn[kind] == pytest.approx([min(xs), min(ys), max(xs), max(ys)], abs=0.01)
        assert frame[0] <= min(xs)
        assert max(xs) <= frame[0] + frame[2]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_narrow_screen_needs_no_sideways_scrolling_and_text_can_be_read(
    open_page, folder, scheme
):
    page = open_page(folder / "report.html", size=NARROW, scheme=scheme)
    width, inner = page.run("return [document.documentElement.scrollWidth, innerWidth]")
    assert width <= inner == 360
    page.run("document.querySelectorAll('.item')[2].click()")
    top = page.run("return document.getElementById('detail').getBoundingClientRect().top")
    assert 0 <= top < 200
    low = page.run(
        """
        const numbers = c => c.match(/[\\d.]+/g).slice(0, 3).map(x => {
          const v = x / 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4 });
        const light = c => { const [r, g, b] = numbers(c); return .2126*r + .7152*g + .0722*b };
        const behind = e => { for (; e; e = e.parentElement) {
          const c = getComputedStyle(e).backgroundColor;
          if (c !== 'rgba(0, 0, 0, 0)') return c } return 'rgb(255,255,255)' };
        return [...document.querySelectorAll('main *')].filter(e => e.checkVisibility()
            && !e.closest('svg') && [...e.childNodes].some(n => n.nodeType === 3 && n.data.trim()))
          .map(e => { const a = light(getComputedStyle(e).color), b = light(behind(e));
            return [(Math.max(a, b) + .05) / (Math.min(a, b) + .05), e.outerHTML.slice(0, 80)] })
          .filter(([ratio]) => ratio < 4.5)
        """
    )
    assert low == []


TABLES = """
    return [...document.querySelectorAll('.scroll')].map(box => {
      const more = !box.previousElementSibling.hidden;
      const hidden = box.scrollWidth > box.clientWidth + 1;
      const inside = e => { const b = box.getBoundingClientRect(), r = e.getBoundingClientRect();
        const label = e.parentElement.querySelector('th').getBoundingClientRect();
        return r.left >= label.right - 1 && r.right <= b.right + 1 };
      const seen = () => [...box.querySelectorAll('tr')].map(
        line => [...line.querySelectorAll('td')]).filter(cells => cells.length).map(
        cells => cells.map(inside));
      const first = seen(); box.scrollLeft = 1e6; const last = seen();
      const left = box.getBoundingClientRect().left;
      const stays = [...box.querySelectorAll('th[scope=row], th[scope=rowgroup] span')].every(
        e => Math.abs(e.getBoundingClientRect().left - left) < 30);
      box.scrollLeft = 0;
      return { more, hidden, first, last, stays, title: box.ariaLabel } })
"""


@pytest.mark.parametrize("size", [WIDE, (1200, 900), (760, 900), NARROW])
def test_every_number_of_a_table_can_be_reached_and_named(open_page, folder, size):
    page = open_page(folder / "published.html", size=size)
    tables = page.run(TABLES)
    assert len(tables) >= 4
    for table in tables:
        # Numbers are in sight from the start, beside the name of their line.
        assert all(sum(cells) >= 1 for cells in table["first"]), table["title"]
        assert table["more"] == table["hidden"]
        assert all(all(cells) for cells in table["first"]) == (not table["hidden"])
        assert all(cells[-1] for cells in table["last"])
        assert table["stays"]
    published = next(t for t in tables if t["title"].startswith("Accuracy in %: sou-vqa"))
    assert published["hidden"] == (size[0] < 1000)


def test_every_control_has_a_name(open_page, folder):
    page = open_page(folder / "report.html")
    nameless = page.run(
        "return [...document.querySelectorAll('select, input, [role=listbox], [role=region]')]"
        ".filter(e => !e.ariaLabel && !e.closest('label')?.textContent.trim())"
        ".map(e => e.outerHTML)"
    )
    assert nameless == []
    assert page.run("return document.documentElement.lang") == "en"
    assert page.run("return [...document.querySelectorAll('svg.plot')].every(s => s.ariaLabel)")


def test_pictures_beside_the_page_are_read_when_their_row_is_chosen(open_page, folder):
    page = open_page(folder / "lazy.html")
    assert len(list((folder / "pictures").iterdir())) > 20
    page.press("j", "j", "j")
    page.run(
        "return new Promise(done => { const i = new Image(); i.onload = () => done(i.width);"
        "i.src = document.querySelector('.views image').href.baseVal })"
    )
    read = {url for url in page.requests() if "/pictures/" in url}
    assert 1 <= len(read) <= 4
    assert all(url.startswith(folder.as_uri()) for url in read)


def test_the_page_of_all_rows_stays_light(open_page, folder):
    from selenium.webdriver.common.keys import Keys

    page = open_page(folder / "large.html")
    assert page.count == "18,204 of 18,204 rows"
    assert page.chosen == "synthetic/00000"
    page.run("document.getElementById('list').focus()")
    page.press(Keys.END)
    assert page.chosen == "synthetic/18203"
    page.run("document.getElementById('list').scrollTop = 400000")
    page.run("return new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    names = [name for name, _ in page.items]
    assert len(names) < 60
    assert names == [f"synthetic/{int(names[0][-5:]) + i:05d}" for i in range(len(names))]
    assert abs(int(names[0][-5:]) - 400_000 / 46) < 10
    page.choose("task", "POI")
    assert page.count == "3,034 of 18,204 rows"
    page.search("synthetic/07205")
    assert (page.count, page.chosen) == ("1 of 18,204 rows", "synthetic/07205")
