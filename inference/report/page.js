"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const byId = (id) => document.getElementById(id);
  const LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
  const STATES = ["wrong", "right", "partly", "unparsed", "error"];
  const SIGNS = { right: "✓", wrong: "✗", partly: "◐", unparsed: "?", error: "!", none: "–" };
  const ITEM_PX = 46;
  const SPARE_ITEMS = 6;
  const SVG = "http://www.w3.org/2000/svg";

  /* Everything that is shown comes in as text nodes and attributes, never as HTML. */
  function element(name, attributes = {}, ...children) {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) {
      if (value !== null && value !== false) made.setAttribute(key, value);
    }
    made.append(...children.filter((child) => child !== null));
    return made;
  }

  function drawing(name, attributes = {}, ...children) {
    const made = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children);
    return made;
  }

  /* One item per row and rotation, with the verdict of every run that was asked. */
  const sections = data.sections.map((section) => {
    const items = new Map();
    section.verdicts.forEach((verdicts, run) => {
      for (const [row, rotation, reply, parsed, right, state, error, values] of verdicts) {
        const key = `${row} ${rotation}`;
        let item = items.get(key);
        if (!item) {
          const [id, subset, task, question, options, answer, group, area] = section.rows[row];
          item = { row, rotation, id, subset, task, question: section.questions[question],
            options, answer, group, area, said: new Array(section.runs.length).fill(null),
            views: section.views[row] || null, text: null };
          items.set(key, item);
        }
        item.said[run] = { reply, parsed, right, state: STATES[state], error: error || null,
          values: values || "" };
      }
    });
    const listed = [...items.values()];
    listed.sort((a, b) => a.row - b.row || a.rotation - b.rotation);
    return { ...section, items: listed };
  });

  const controls = ["section", "subset", "task", "run", "verdict", "order"];
  const control = Object.fromEntries(controls.map((name) => [name, byId(name)]));
  const search = byId("search");
  const list = byId("list");
  const spacer = byId("spacer");
  const detail = byId("detail");
  let section = sections[0];
  let shown = [];
  let chosen = 0;
  let marked = true;
  let large = false;

  function fill(select, choices) {
    const before = select.value;
    select.replaceChildren(...choices.map(([value, text]) => element("option", { value }, text)));
    if (choices.some(([value]) => value === before)) select.value = before;
  }

  function named(texts) {
    return texts.map((text, i) => [String(i), text || "(none)"]);
  }

  function fillFilters() {
    fill(control.subset, [["", "all"], ...named(section.subsets)]);
    fill(control.task, [["", "all"], ...named(section.tasks)]);
    control.subset.parentElement.hidden = section.subsets.length < 2;
    control.task.parentElement.hidden = section.tasks.length < 2;
    const runs = section.runs.map((run, i) => [String(i), run.name]);
    fill(control.run, section.runs.length > 1 ? [["", "any"], ...runs] : runs);
    const verdicts = [["", "all"], ["missed", "not right"], ...STATES.map((s) => [s, s])];
    if (section.runs.length > 1) verdicts.push(["differ", "models differ"]);
    fill(control.verdict, verdicts);
  }

  function textOf(item) {
    if (item.text === null) {
      const said = item.said.map((s) => (s ? `${s.reply ?? ""} ${s.error ?? ""}` : ""));
      item.text = [item.id, item.question, ...item.options, item.answer, ...said]
        .join("\n").toLowerCase();
    }
    return item.text;
  }

  function hasVerdict(item, verdict, run) {
    const said = run === "" ? item.said : [item.said[Number(run)]];
    const there = said.filter((s) => s !== null);
    if (!there.length) return false;
    if (verdict === "") return true;
    if (verdict === "missed") return there.some((s) => s.state !== "right");
    if (verdict === "differ") {
      return new Set(item.said.filter((s) => s).map((s) => s.state === "right")).size > 1;
    }
    return there.some((s) => s.state === verdict);
  }

  function applyFilters(keep = null) {
    const subset = control.subset.value, task = control.task.value;
    const run = control.run.value, verdict = control.verdict.value;
    const words = search.value.toLowerCase().split(/\s+/).filter((word) => word);
    shown = section.items.filter((item) =>
      (subset === "" || item.subset === Number(subset))
      && (task === "" || item.task === Number(task))
      && hasVerdict(item, verdict, run)
      && words.every((word) => textOf(item).includes(word)));
    if (control.order.value === "pictures") {
      const with_ = shown.filter((item) => item.views);
      if (with_.length < shown.length) shown = [...with_, ...shown.filter((item) => !item.views)];
    }
    const number = (n) => n.toLocaleString("en");
    const total = number(section.items.length);
    byId("count").textContent = shown.length
      ? `${number(shown.length)} of ${total} rows`
      : `No row of ${total} fits. Choose "all" in a filter or empty the search.`;
    spacer.style.height = `${shown.length * ITEM_PX}px`;
    const at = keep ? shown.indexOf(keep) : -1;
    list.scrollTop = 0;
    choose(Math.max(0, at));
  }

  function mark(item, run) {
    const said = item.said[run];
    const state = said ? said.state : "none";
    return element("span", { class: `state-${state}`, title: `${section.runs[run].name}: ${state}` },
      SIGNS[state]);
  }

  /* Only what can be seen is in the document. */
  function drawList() {
    const first = Math.max(0, Math.floor(list.scrollTop / ITEM_PX) - SPARE_ITEMS);
    const count = Math.ceil(list.clientHeight / ITEM_PX) + 2 * SPARE_ITEMS;
    const run = control.run.value === "" ? null : Number(control.run.value);
    const drawn = shown.slice(first, first + count).map((item, offset) => {
      const i = first + offset;
      const runs = section.runs.map((_, r) => r).filter((r) => run === null || r === run);
      const words = runs.length === 1 && item.said[runs[0]]
        ? item.said[runs[0]].state : runs.map((r) => item.said[r]?.state ?? "not asked").join(", ");
      const signs = element("span", { class: "verdict", "aria-label": words });
      for (const r of runs) signs.append(mark(item, r), " ");
      const label = [section.tasks[item.task], section.subsets[item.subset]].filter((t) => t);
      const made = element("div", {
        class: "item", role: "option", id: `item-${i}`, "aria-selected": String(i === chosen),
        "aria-posinset": i + 1, "aria-setsize": shown.length, "data-index": i,
      },
      element("div", {}, element("span", { class: "clip" }, nameOf(item)),
        element("span", { class: "picture" }, item.views ? "picture" : ""), signs),
      element("div", { class: "faint" }, element("span", { class: "clip" },
        [...label, item.question].join(" · "))));
      made.style.top = `${i * ITEM_PX}px`;
      return made;
    });
    spacer.replaceChildren(...drawn);
    if (shown.length) list.setAttribute("aria-activedescendant", `item-${chosen}`);
    else list.removeAttribute("aria-activedescendant");
  }

  function nameOf(item) {
    return item.rotation ? `${item.id}, rotated by ${item.rotation}` : item.id;
  }

  function choose(i) {
    chosen = Math.min(Math.max(i, 0), Math.max(0, shown.length - 1));
    const top = chosen * ITEM_PX;
    if (top < list.scrollTop) list.scrollTop = top;
    else if (top + ITEM_PX > list.scrollTop + list.clientHeight) {
      list.scrollTop = top + ITEM_PX - list.clientHeight;
    }
    drawList();
    drawDetail();
  }

  /* Boxes, quads, points and outlines in an answer: lists of x, y, x, y, .. */
  function shapesIn(value) {
    let found = value;
    if (typeof found === "string") {
      if (!/^\s*[[{]/.test(found)) return [];
      try { found = JSON.parse(found); } catch { return []; }
    }
    if (found && Array.isArray(found.polygons)) found = found.polygons;
    if (!Array.isArray(found)) return [];
    const isShape = (s) => Array.isArray(s) && s.length >= 2 && s.length % 2 === 0
      && s.every((x) => typeof x === "number" && Number.isFinite(x));
    if (isShape(found)) return [found];
    return found.filter(isShape);
  }

  function optionsOf(item) {
    const n = item.options.length;
    return item.options.map((_, i) => item.options[(i + item.rotation) % n]);
  }

  function rightLetter(item) {
    const n = item.options.length;
    return LETTERS[(LETTERS.indexOf(item.answer) + n - (item.rotation % n)) % n];
  }

  function answerShapes(item, said) {
    if (!said) return [];
    if (item.options.length) {
      const at = typeof said.parsed === "string" ? LETTERS.indexOf(said.parsed) : -1;
      return at >= 0 && at < item.options.length ? shapesIn(optionsOf(item)[at]) : [];
    }
    return shapesIn(said.parsed || said.reply);
  }

  function outline(numbers, unit) {
    if (numbers.length === 2) {
      const [x, y] = numbers, r = 7 * unit, gap = 2.5 * unit;
      return `M${x - r},${y}H${x - gap}M${x + gap},${y}H${x + r}`
        + `M${x},${y - r}V${y - gap}M${x},${y + gap}V${y + r}`;
    }
    if (numbers.length === 4) {
      const [x1, y1, x2, y2] = numbers;
      return `M${x1},${y1}H${x2}V${y2}H${x1}Z`;
    }
    const points = [];
    for (let i = 0; i + 1 < numbers.length; i += 2) points.push(`${numbers[i]},${numbers[i + 1]}`);
    return `M${points.join("L")}Z`;
  }

  function reaches(numbers, [x, y, w, h]) {
    const xs = numbers.filter((_, i) => i % 2 === 0), ys = numbers.filter((_, i) => i % 2);
    return Math.min(...xs) <= x + w && Math.max(...xs) >= x
      && Math.min(...ys) <= y + h && Math.max(...ys) >= y;
  }

  function drawViews(item) {
    const holder = element("div", { class: `views${large ? " large" : ""}${marked ? "" : " unmarked"}` });
    const present = new Map();
    const texts = { asked: "what is asked about", evidence: "what proves the answer",
      right: "right answer" };
    let outside = 0;
    item.views.forEach((view, i) => {
      const frame = view.frame;
      const unit = frame[2] / 384;
      const svg = drawing("svg", { viewBox: frame.join(" "), role: "img" },
        drawing("title", {}, `Picture ${i + 1} of ${item.id}`),
        drawing("image", { href: data.pictures[view.picture] ?? view.picture, x: frame[0],
          y: frame[1], width: frame[2], height: frame[3], preserveAspectRatio: "none" }));
      const marks = drawing("g", { class: "marks" });
      const add = (role, label, numbers, color = null) => {
        if (!reaches(numbers, frame)) { outside += role === "evidence" ? 0 : 1; return; }
        const d = outline(numbers, unit);
        const path = drawing("path", { class: `mark mark-${role}`, d }, drawing("title", {}, label));
        if (color) path.style.stroke = color;
        marks.append(drawing("path", { class: "halo", d }), path);
        present.set(color ? label : texts[role], [role, color]);
      };
      for (const { role, label, shapes } of view.marks) {
        for (const shape of shapes) add(role, label, shape);
      }
      if (i === 0) {
        const right = item.options.length
          ? item.options[LETTERS.indexOf(item.answer)] : item.answer;
        for (const shape of shapesIn(right)) add("right", "right answer", shape);
        item.said.forEach((said, run) => {
          if (said?.state === "right" && item.options.length) return;
          for (const shape of answerShapes(item, said)) {
            add("answer", `answer of ${section.runs[run].name}`, shape,
              `var(--mark${run % 8})`);
          }
        });
      }
      svg.append(marks);
      holder.append(svg);
    });
    const legend = element("ul", { class: "legend" }, ...[...present].map(([text, [role, color]]) => {
      const swatch = element("span", { class: `swatch key-mark key-${role}` });
      if (color) swatch.style.borderColor = color;
      return element("li", {}, swatch, text);
    }));
    if (outside) legend.append(element("li", {}, `${outside} outside of the picture's part`));
    return [holder, legend];
  }

  function percent(x) {
    return `${Math.round(1000 * x) / 10} %`;
  }

  function verdictText(said) {
    if (said.state === "partly") return `partly right (${percent(said.right)})`;
    return said.state;
  }

  function drawAnswers(item) {
    const only = control.run.value === "" ? null : Number(control.run.value);
    return item.said.map((said, run) => {
      if (only !== null && run !== only) return null;
      const card = element("div", { class: "answer" });
      card.style.borderLeftColor = `var(--run${run % 8})`;
      const head = element("h4", {}, section.runs[run].name);
      card.append(head);
      if (!said) {
        head.append(element("span", { class: "state-none" }, "not asked"));
        return card;
      }
      head.append(element("span", { class: `verdict state-${said.state}` },
        `${SIGNS[said.state]} ${verdictText(said)}`));
      if (said.parsed) head.append(element("span", { class: "faint" }, `read as ${said.parsed}`));
      if (said.values) card.append(element("div", { class: "faint" }, said.values));
      if (said.error !== null) card.append(element("pre", {}, said.error));
      else card.append(element("pre", {}, said.reply === "" ? "(empty reply)" : said.reply));
      return card;
    }).filter((card) => card);
  }

  function drawOptions(item) {
    if (!item.options.length) {
      return [element("h4", {}, "Right answer"), element("pre", {}, item.answer)];
    }
    const right = rightLetter(item);
    const made = element("ol", { class: "options" });
    optionsOf(item).forEach((text, i) => {
      const letter = LETTERS[i];
      const who = section.runs.filter((_, run) => item.said[run]?.parsed === letter);
      made.append(element("li", { class: letter === right ? "right" : "" },
        element("strong", {}, letter), element("span", {}, text),
        letter === right ? element("span", { class: "state-right verdict" }, "✓ right answer") : null,
        who.length ? element("span", { class: "who" },
          `chosen by ${who.map((run) => run.name).join(", ")}`) : null));
    });
    return [made];
  }

  /* These keys work anywhere on the page; what they move has to be seen. */
  function step(by) {
    choose(chosen + by);
    const { top, bottom } = byId("rows").getBoundingClientRect();
    if (top > innerHeight / 2 || bottom < innerHeight / 2) byId("rows").scrollIntoView();
  }

  function drawDetail() {
    const item = shown[chosen];
    if (!item) { detail.replaceChildren(); return; }
    const facts = [section.subsets[item.subset], section.tasks[item.task]];
    if (item.group) facts.push(`group ${item.group}`);
    if (item.area !== null) facts.push(`object ${Math.round(item.area)} px²`);
    const button = (text, pressed, action) => {
      const made = element("button", { type: "button", "aria-pressed": String(pressed) }, text);
      made.addEventListener("click", action);
      return made;
    };
    const parts = [element("h3", {}, nameOf(item)),
      element("div", { class: "faint" }, facts.filter((fact) => fact).join(" · "))];
    if (item.views) {
      parts.push(...drawViews(item), element("div", { class: "buttons" },
        button("Marks", marked, toggleMarks), button("Large", large, toggleLarge)));
    } else {
      parts.push(element("p", { class: "note" }, "The page holds no picture of this row."));
    }
    parts.push(element("p", { class: "question" }, item.question), ...drawOptions(item),
      element("div", { class: "answers" }, ...drawAnswers(item)));
    detail.replaceChildren(...parts);
    const place = `#row=${sections.indexOf(section)},${item.rotation},${encodeURIComponent(item.id)}`;
    if (ready) history.replaceState(null, "", place);
  }

  function toggleMarks() { marked = !marked; drawDetail(); }
  function toggleLarge() { large = !large; drawDetail(); }

  function openPlace() {
    const found = /^#row=(\d+),(\d+),(.*)$/.exec(location.hash);
    if (!found) return;
    let id;
    try { id = decodeURIComponent(found[3]); } catch { return; }
    const there = sections[Number(found[1])];
    const item = there?.items.find((i) => i.id === id && i.rotation === Number(found[2]));
    if (!item) return;
    control.section.value = found[1];
    section = there;
    fillFilters();
    for (const name of ["subset", "task", "verdict"]) control[name].value = "";
    search.value = "";
    applyFilters(item);
    byId("rows").scrollIntoView();
  }

  let ready = false;
  fill(control.section, sections.map((s, i) => [String(i), s.name]));
  byId("label-section").hidden = sections.length < 2;
  fillFilters();
  applyFilters();
  openPlace();
  ready = true;
  window.addEventListener("hashchange", openPlace);

  for (const name of controls) {
    control[name].addEventListener("change", () => {
      const kept = shown[chosen];
      if (name === "section") { section = sections[Number(control.section.value)]; fillFilters(); }
      applyFilters(name === "order" || name === "run" ? kept : null);
    });
  }
  byId("filters").addEventListener("submit", (event) => event.preventDefault());
  let timer = 0;
  search.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(applyFilters, 80);
  });
  search.addEventListener("keydown", (event) => {
    if (event.key === "Escape" || event.key === "Enter") {
      event.preventDefault();
      clearTimeout(timer);
      applyFilters();
      list.focus();
    }
  });
  /* Where a table has columns out of sight to the right, a line over it says so. */
  const hints = [...document.querySelectorAll(".more")].map((more) => () => {
    const box = more.nextElementSibling;
    more.hidden = box.scrollWidth - box.clientWidth < 2;
  });
  hints.forEach((hint) => hint());
  window.addEventListener("resize", () => hints.forEach((hint) => hint()));
  list.addEventListener("scroll", drawList, { passive: true });
  window.addEventListener("resize", drawList);
  list.addEventListener("click", (event) => {
    const item = event.target.closest(".item");
    if (!item) return;
    choose(Number(item.dataset.index));
    if (matchMedia("(max-width: 52rem)").matches) detail.scrollIntoView({ block: "start" });
  });
  list.addEventListener("keydown", (event) => {
    const page = Math.max(1, Math.floor(list.clientHeight / ITEM_PX) - 1);
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page,
      Home: -shown.length, End: shown.length };
    if (!(event.key in steps) || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    choose(chosen + steps[event.key]);
  });
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.closest?.("input, select, textarea")) return;
    const actions = { j: () => step(1), k: () => step(-1),
      m: toggleMarks, z: toggleLarge,
      "/": () => { search.focus(); search.select(); } };
    if (!(event.key in actions)) return;
    event.preventDefault();
    actions[event.key]();
  });
})();
