"use strict";
// The tables are numbers; texts and URLs are indices of two lists, and 0 is none. Only the rows on
// the screen are elements, and no text is ever read as HTML.

const PAGE = 1, REDIRECT = 2, FAILURE = 3, SKIPPED = 4, CHECKED = 5;
const KINDS = ["", "page", "redirect", "failure", "skipped", "checked"];
const AT_ONCE = 50;
const number = new Intl.NumberFormat("en").format;
const many = (n, noun) => `${number(n)} ${noun}${n === 1 ? "" : "s"}`;
const rest = () => new Promise(resolve => setTimeout(resolve));
const $ = id => document.getElementById(id);

function put(element, children) {
  for (const child of children.flat(3)) {
    if (child !== null && child !== undefined && child !== "") element.append(child);
  }
  return element;
}

function made(element, given, children) {
  for (const [key, value] of Object.entries(given || {})) {
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (value !== false && value !== null && value !== undefined) {
      element.setAttribute(key, value === true ? "" : value);
    }
  }
  return put(element, children);
}

const h = (name, given, ...children) => made(document.createElement(name), given, children);
const svg = (name, given, ...children) => made(document.createElementNS("http://www.w3.org/2000/svg", name), given, children);

function size(bytes) {
  if (bytes < 1024) return `${bytes} B`;
  let amount = bytes / 1024, at = 0;
  while (amount >= 1023.95 && at < 3) { amount /= 1024; at++; }
  return `${amount.toFixed(1)} ${["KiB", "MiB", "GiB", "TiB"][at]}`;
}

function duration(ms) {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  return ms < 1e5 ? `${(ms / 1000).toFixed(2)} s` : `${number(Math.round(ms / 1000))} s`;
}

let urls, texts, ends, head, rows;
// By the number of a URL: its row and 1, and whether a problem has it.
let rowOf, isBad;

const isWeb = url => /^https?:\/\//i.test(url);

// A URL of the site itself is a path, as in the text for the terminal.
const near = url => head.home && url.startsWith(`${head.home}/`) ? url.slice(head.home.length) : url;

function link(at, text = near(urls[at])) {
  const url = urls[at];
  if (!at) return h("span", {class: "dim"}, "(given)");
  if (!isWeb(url)) return h("span", {class: "url"}, text);
  return h("a", {class: "url", href: url, rel: "noreferrer noopener", target: "_blank"}, text);
}

const code = (text, kind) => h("b", {class: `code ${kind || ""}`}, text);

function result(i) {
  const status = ends.status[i], why = texts[ends.why[i]];
  if (ends.kind[i] === PAGE) return code(status, status < 400 ? "plain" : "");
  if (ends.kind[i] === REDIRECT) return code(status, "plain");
  return code(status || why || KINDS[ends.kind[i]], ends.kind[i] === FAILURE ? "" : "plain");
}

const failed = i => ends.kind[i] === FAILURE || ends.status[i] >= 400;

// The URLs that have a text, as one byte each.
function hits(list, query) {
  const found = new Uint8Array(list.length), wanted = query.toLowerCase();
  for (let i = 1; i < list.length; i++) found[i] = list[i].toLowerCase().includes(wanted) ? 1 : 0;
  return found;
}

function later(work) {
  let waiting = 0;
  return () => { clearTimeout(waiting); waiting = setTimeout(work, 120); };
}

function select(name, options, onchange) {
  return h("select", {"aria-label": name, onchange},
    options.map(([value, text]) => h("option", {value}, text)));
}

// Buttons of which one is chosen.
function choice(name, options, chosen) {
  const buttons = options.map(([value, text], at) => h("button", {
    type: "button", "aria-pressed": String(at === 0),
    onclick: event => {
      for (const each of buttons) each.setAttribute("aria-pressed", String(each === event.currentTarget));
      chosen(value);
    },
  }, text));
  return h("div", {class: "choice", role: "group", "aria-label": name}, buttons);
}

// One page of the rows of an element, each made only for it: the pager, and what sets the number of rows.
function paged(element, make) {
  const before = h("button", {type: "button", class: "before", onclick: () => draw(page - 1)}, "‹ Previous");
  const after = h("button", {type: "button", class: "after", onclick: () => draw(page + 1)}, "Next ›");
  const where = h("span", {class: "dim"}), pager = h("div", {class: "pager"}, before, where, after);
  let page = 0, pages = 1, total = 0;
  function draw(next) {
    page = Math.max(0, Math.min(pages - 1, next));
    before.disabled = page === 0;
    after.disabled = page === pages - 1;
    where.textContent = `${number(page + 1)} of ${number(pages)}`;
    const start = page * AT_ONCE, length = Math.min(total - start, AT_ONCE);
    element.replaceChildren(...Array.from({length}, (_, at) => make(start + at)));
  }
  function turn(rows) {
    total = rows;
    pages = Math.max(1, Math.ceil(rows / AT_ONCE));
    pager.hidden = pages === 1;
    draw(0);
  }
  return [pager, turn];
}

function listed(total, make, kind = "places") {
  const element = h("ul", {class: kind}), [pager, turn] = paged(element, at => h("li", null, make(at)));
  turn(total);
  return [element, pager];
}

// A list of rows that open; what is in them is made then.
function groups(list, summary, inner, kind = "groups wide") {
  return listed(list.length, at => {
    const details = h("details", null, h("summary", null, summary(list[at])));
    details.addEventListener("toggle", () => {
      if (details.open && details.children.length === 1) details.append(h("div", {class: "inner"}, inner(list[at])));
    });
    return details;
  }, kind);
}

function counted(total, key, weight = () => 1) {
  const found = new Map();
  for (let i = 0; i < total; i++) found.set(key(i), (found.get(key(i)) || 0) + weight(i));
  return [...found];
}

// A table of which only one page of rows is made. A column has a name and a cell; a key to sort by,
// and whether that is a number. `has` returns whether a row has a query.
function table(box, about) {
  const {name, total, columns, filters = [], has} = about;
  let order = Uint32Array.from({length: total}, (_, i) => i), shown = order;
  let sorted = null, down = false, query = "";
  const search = has && h("input", {type: "search", placeholder: "Search", "aria-label": `Search in ${name}`,
    oninput: later(() => { query = search.value.trim(); update(); })});
  const picks = filters.map(([label, options]) => select(label, [["", label], ...options.map(([text], at) => [at, text])], () => update()));
  const told = h("span", {class: "count", role: "status"});
  const sorts = select("Sort by", [["", "Sort by"], ...columns.flatMap((each, at) =>
    each.key ? [[`${at}`, `${each.name} ↑`], [`${at}d`, `${each.name} ↓`]] : [])],
    () => { if (sorts.value) sort(columns[parseInt(sorts.value)], sorts.value.endsWith("d")); });
  sorts.classList.add("sorts");
  const headers = columns.map(each => h("th", {scope: "col", role: "columnheader", class: each.num ? "num" : ""},
    each.key ? h("button", {type: "button", onclick: () => sort(each, sorted === each ? !down : Boolean(each.num))}, each.name) : each.name));
  const body = h("tbody", {role: "rowgroup"});
  const [pager, turn] = paged(body, at => h("tr", {role: "row"}, columns.map(each => h("td",
    {role: "cell", "data-label": each.name, class: `${each.num ? "num" : ""}${each.whole ? " whole" : ""}`}, each.cell(shown[at])))));
  function sort(column, descending) {
    sorted = column; down = descending;
    const keys = Array.from({length: total}, (_, i) => column.key(i));
    const sign = down ? -1 : 1;
    order = Uint32Array.from({length: total}, (_, i) => i).sort((a, b) => {
      const x = keys[a], y = keys[b];
      return x < y ? -sign : x > y ? sign : a - b;
    });
    update();
  }
  function update() {
    const tests = picks.flatMap((each, at) => each.value === "" ? [] : [filters[at][1][each.value][1]]);
    const hit = query && has(query);
    shown = tests.length || hit ? order.filter(i => tests.every(test => test(i)) && (!hit || hit(i))) : order;
    told.textContent = `${shown.length === total ? "" : `${number(shown.length)} of `}${many(total, about.noun)}`;
    columns.forEach((each, at) => {
      if (each === sorted) headers[at].setAttribute("aria-sort", down ? "descending" : "ascending");
      else headers[at].removeAttribute("aria-sort");
    });
    turn(shown.length);
  }
  put(box, [total > 10 || about.always ? h("div", {class: "tools"}, search, picks, sorts, told) : "",
    h("table", {class: "table", role: "table", "aria-label": name}, h("thead", {role: "rowgroup"}, h("tr", {role: "row"}, headers)), body), pager]);
  update();
  return {find(text) { search.value = text; query = text; update(); }};
}

function explained(codes) {
  return h("div", {class: "why"}, [...codes].filter(each => head.problems.codes[each]).map(each => {
    const [says, remedy] = head.problems.codes[each];
    return h("p", null, code(each, "plain"), " ", says, " ", remedy);
  }));
}

function faults(box) {
  const {list, places} = head.problems;
  const total = places.length, starts = new Uint32Array(list.length + 1), of = new Uint32Array(total);
  list.forEach((each, p) => { starts[p + 1] = starts[p] + each[8]; of.fill(p, starts[p], starts[p + 1]); });
  const links = list.reduce((sum, each) => sum + each[7], 0), kept = new Uint8Array(total);
  let by = "target", query = "", counts = new Map();
  const verdict = select("Verdict", [["", "Faults and notes"], ["0", "Faults"], ["1", "Notes"]], () => update());
  const codes = select("Code", [["", "Every code"], ...counted(list.length, p => texts[list[p][1]], p => list[p][7])
    .sort((a, b) => b[1] - a[1]).map(([text, n]) => [text, `${text} (${number(n)})`])], () => update());
  const kinds = [...new Set(places.map(each => each[5]))].filter(Boolean);
  const kind = select("Kind of link", [["", "Every kind"], ...kinds.map(each => [each, texts[each]])], () => update());
  const where = select("Target", [["", "Every target"], ["0", "On this site"], ["1", "On other sites"]], () => update());
  const sorts = select("Sort by", [["", "Most links first"], ["code", "By code"], ["url", "By URL"]], () => update());
  const search = h("input", {type: "search", placeholder: "Search", "aria-label": "Search in faults",
    oninput: later(() => { query = search.value.trim(); update(); })});
  const shown = h("span", {class: "count", role: "status"}), about = h("div"), found = h("div");

  function update() {
    const url = query && hits(urls, query), text = query && hits(texts, query);
    const fits = list.map(each => (!verdict.value || verdict.value === String(each[0]))
      && (!codes.value || codes.value === texts[each[1]]) && (!where.value || where.value === String(each[5])));
    counts = new Map();
    let sum = 0;
    for (let i = 0; i < total; i++) {
      const p = of[i], each = list[p], place = places[i];
      const fit = fits[p] && (!kind.value || Number(kind.value) === place[5]) && (!query || url[each[2]]
        || url[place[0]] || text[place[3]] || text[place[4]] || text[each[1]] || text[each[3]]);
      kept[i] = fit ? 1 : 0;
      if (fit) { const key = by === "target" ? p : place[0]; counts.set(key, (counts.get(key) || 0) + 1); sum++; }
    }
    if (by === "target" && !query && !kind.value) {
      sum = 0;
      for (const p of counts.keys()) { counts.set(p, list[p][7]); sum += list[p][7]; }
    }
    const name = key => urls[by === "target" ? list[key][2] : key], first = key => by === "target" ? list[key][0] : 0;
    const order = [...counts.keys()].sort((a, b) =>
      (sorts.value === "code" && by === "target" && compare(texts[list[a][1]], texts[list[b][1]]))
      || (sorts.value === "" && (first(a) - first(b) || counts.get(b) - counts.get(a))) || compare(name(a), name(b)));
    const different = new Set(order.map(key => by === "target" ? list[key][2] : key)).size;
    shown.textContent = `${sum === links ? "" : `${number(sum)} of `}${many(links, "link")}, ${many(different, by)}`;
    about.replaceChildren(...(codes.value ? [explained([codes.value])] : []));
    found.replaceChildren();
    put(found, groups(order, ...(by === "target" ? [targetLine, target, "groups"] : [pageLine, page])));
  }
  const badge = each => code(texts[each[1]], each[0] ? "note" : "");
  const targetLine = p => [badge(list[p]), h("span", {class: "url"}, near(urls[list[p][2]])), counter(counts.get(p), "link")];
  function chosen(from, to, test) {
    const found = [];
    for (let i = from; i < to; i++) if (kept[i] && test(i)) found.push(i);
    return found;
  }
  function place(each) {
    const written = texts[each[4]];
    return [each[1] ? `Line ${each[1]}, column ${each[2]}` : "", texts[each[3]] ? h("bdi", {dir: "ltr"}, `“${texts[each[3]]}”`) : "",
      written ? h("span", null, head.check ? "written " : "by way of ", h("code", null, written)) : "", texts[each[5]] === "a" ? "" : texts[each[5]]]
      .filter(Boolean).flatMap((part, at) => at ? [" · ", part] : [part]);
  }
  function told(each) {
    const says = `${texts[each[3]]}.`;
    return says === head.problems.codes[texts[each[1]]][0] ? "" : says;
  }
  function target(p) {
    const each = list[p], found = chosen(starts[p], starts[p + 1], () => true), detail = texts[each[4]], left = each[7] - each[8];
    return [isWeb(urls[each[2]]) ? h("p", null, link(each[2], urls[each[2]])) : "", told(each) ? h("p", null, told(each)) : "",
      texts[each[3]].includes(detail) ? "" : h("p", {class: "dim"}, detail), explained([texts[each[1]]]), chain(each[6]), h("h3", null, "Linked from"),
      listed(found.length, at => [link(places[found[at]][0]), h("div", {class: "dim"}, place(places[found[at]]))]),
      left ? h("p", {class: "dim"}, `${number(left)} more are not in this file.`) : ""];
  }
  const pageLine = at => [at ? h("span", {class: "url"}, near(urls[at])) : "(given)", counter(counts.get(at), "link")];
  function page(at) {
    const found = chosen(0, total, i => places[i][0] === at).sort((a, b) => places[a][1] - places[b][1] || places[a][2] - places[b][2]);
    return [isWeb(urls[at]) ? h("p", null, link(at, urls[at])) : "", listed(found.length, row => {
      const i = found[row], problem = list[of[i]];
      return [badge(problem), " ", link(problem[2]), h("div", {class: "dim"}, told(problem) ? `${told(problem)} ` : "", place(places[i]))];
    }), explained(new Set(found.map(i => texts[list[of[i]][1]])))];
  }
  put(box, [h("div", {class: "tools"}, choice("Group by", [["target", "By target"], ["page", "By page"]], value => { by = value; update(); }),
    verdict, codes, kinds.length > 1 ? kind : null, list.some(each => each[5]) ? where : null, sorts, search, shown), about, found]);
  update();
}

const compare = (a, b) => a < b ? -1 : a > b ? 1 : 0;

function chain(hops) {
  if (!hops.length) return null;
  // A circle is shown once.
  const again = hops.findIndex(([, at], i) => hops.findIndex(hop => hop[1] === at) < i);
  return [h("h3", null, "Redirects"), h("ol", {class: "chain"}, hops.slice(0, again < 0 ? hops.length : again + 1).map(([status, at]) => h("li", null, status ? `${status} → ` : "", link(at))), again < 0 ? "" : h("li", null, "and so on"))];
}

let allUrls;

function pages(box) {
  const kinds = counted(rows, i => ends.kind[i]).sort((a, b) => a[0] - b[0]);
  const types = counted(rows, i => ends.type[i]).filter(([key]) => key).sort((a, b) => b[1] - a[1]).slice(0, 20);
  if (ends.omitted) put(box, [h("p", {class: "about"}, `${number(ends.omitted)} more URLs are not in this file.`)]);
  allUrls = table(box, {
    name: "all URLs", noun: "URL", total: rows, always: true,
    has: query => {
      const url = hits(urls, query), text = hits(texts, query);
      return i => url[ends.url[i]] || text[ends.title[i]] || text[ends.why[i]];
    },
    filters: [
      ["Every kind", kinds.map(([kind, n]) => [`${KINDS[kind]} (${number(n)})`, i => ends.kind[i] === kind])],
      ["Every result", [["fine", i => !failed(i)], ["error", failed], ["with a flaw", i => ends.kind[i] === PAGE && ends.why[i] > 0], ["slower than 1 s", i => ends.ms[i] > 1000]]],
      ["Every type", types.map(([type, n]) => [`${texts[type]} (${number(n)})`, i => ends.type[i] === type])],
    ],
    columns: [
      {name: "URL", key: i => i, cell: i => [link(ends.url[i]), ends.title[i] ? h("span", {class: "dim"}, texts[ends.title[i]]) : "",
        ends.kind[i] === PAGE && ends.why[i] ? h("span", {class: "dim"}, texts[ends.why[i]]) : ""]},
      {name: "Result", key: i => ends.status[i], cell: result},
      {name: "Time", num: true, key: i => ends.ms[i], cell: i => ends.ms[i] ? duration(ends.ms[i]) : ""},
      {name: "Size", num: true, key: i => ends.size[i], cell: i => ends.size[i] ? size(ends.size[i]) : ""},
      {name: "Depth", num: true, key: i => ends.depth[i], cell: i => `${ends.depth[i]}`},
      {name: "Inlinks", num: true, key: i => ends.inlinks[i], cell: i => number(ends.inlinks[i])},
    ],
  });
}

function notes(box) {
  put(box, groups(head.notes, ([, says,, list]) => h("span", {class: "url"}, `${many(list.length, "page")} ${says}`), ([, , remedy, list]) => [h("p", null, remedy),
    listed(list.length, at => [link(list[at][0]), list[at][1] ? h("div", {class: "dim"}, texts[list[at][1]]) : ""])]));
}

function facts(box) {
  const list = head.facts, text = (name, at, whole = true) => ({name, whole, key: i => texts[list[i][at]], cell: i => texts[list[i][at]]});
  const count = (name, at) => ({name, num: true, key: i => list[i][at], cell: i => number(list[i][at])});
  table(box, {name: "facts of pages", noun: "page", total: list.length,
    has: query => { const url = hits(urls, query), text = hits(texts, query); return i => url[list[i][0]] || [1, 2, 3, 6].some(at => text[list[i][at]]); },
    columns: [{name: "Page", key: i => urls[list[i][0]], cell: i => [link(list[i][0]), h("span", {class: "dim"}, texts[list[i][1]])]},
      text("First h1", 2), text("Description", 3), count("Words", 4), count("Images", 7), text("Language", 5, false), text("JSON-LD", 6)]});
}

const share = (n, sum) => n && n * 200 < sum ? "<1" : sum ? Math.round(100 * n / sum) : 0;

function bars(title, list, tone) {
  const most = Math.max(1, ...list.map(([, n]) => n)), sum = list.reduce((all, [, n]) => all + n, 0);
  const left = 118, width = 360, room = width - left - 92;
  return h("figure", null, h("figcaption", null, title), svg("svg", {viewBox: `0 0 ${width} ${list.length * 22}`, role: "img",
    "aria-label": `${title}: ${list.map(([name, n]) => `${name} ${number(n)}`).join(", ")}`},
  list.map(([name, n, kind], at) => [
    svg("text", {x: left - 8, y: at * 22 + 15, "text-anchor": "end"}, name.length > 19 ? `${name.slice(0, 18)}…` : name),
    svg("rect", {class: `b-${kind || tone || "page"}`, x: left, y: at * 22 + 4, rx: 2, height: 14, width: Math.max(n ? 2 : 0, room * n / most)}),
    svg("text", {class: "dim", x: left + Math.max(2, room * n / most) + 6, y: at * 22 + 15}, `${number(n)} · ${share(n, sum)} %`),
  ])));
}

function buckets(limits, names, value, test) {
  const found = names.map(name => [name, 0]);
  for (let i = 0; i < rows; i++) {
    if (!test(i)) continue;
    const at = limits.findIndex(limit => value(i) < limit);
    found[at < 0 ? limits.length : at][1]++;
  }
  while (found.length > 1 && !found.at(-1)[1]) found.pop();
  while (found.length > 1 && !found[0][1]) found.shift();
  return found;
}

function figures(box) {
  const asked = i => ends.ms[i] > 0, isPage = i => ends.kind[i] === PAGE;
  const status = counted(rows, i => ends.kind[i] === SKIPPED ? "" : String(ends.status[i] || texts[ends.why[i]] || "none"))
    .filter(([name]) => name).sort((a, b) => compare(a[0], b[0]))
    .map(([name, n]) => [name, n, name < "300" ? "page" : name < "400" ? "redirect" : "failure"]);
  const types = counted(rows, i => isPage(i) ? texts[ends.type[i]] || "unknown" : "").filter(([name]) => name).sort((a, b) => b[1] - a[1]);
  const others = types.slice(9).reduce((sum, [, n]) => sum + n, 0);
  const deepest = 12, depths = Array.from({length: deepest}, (_, i) => i + 1);
  put(box, [h("div", {class: "cards"},
    bars("Kind", counted(rows, i => ends.kind[i]).sort((a, b) => a[0] - b[0]).map(([kind, n]) => [KINDS[kind], n, KINDS[kind]])),
    bars("Status", status.slice(0, 14)),
    bars("Response time", buckets([50, 100, 250, 500, 1000, 2500, 5000, 10000, 30000],
      ["below 50 ms", "50 to 100 ms", "100 to 250 ms", "250 to 500 ms", "500 ms to 1 s", "1 to 2.5 s", "2.5 to 5 s", "5 to 10 s", "10 to 30 s", "30 s and more"], i => ends.ms[i], asked)),
    bars("Depth", buckets(depths, [...depths.map(i => String(i - 1)), `${deepest} and more`], i => ends.depth[i], i => ends.kind[i] !== CHECKED)),
    bars("Size of pages", buckets([1024, 4096, 16384, 65536, 262144, 1048576, 4194304],
      ["below 1 KiB", "1 to 4 KiB", "4 to 16 KiB", "16 to 64 KiB", "64 to 256 KiB", "256 KiB to 1 MiB", "1 to 4 MiB", "4 MiB and more"], i => ends.size[i], isPage)),
    bars("Type of pages", others ? [...types.slice(0, 9), ["others", others]] : types))]);
}

// The parts of a range of rows, which are sorted by URL: all begin with the first `length` letters.
function parts(from, to, length) {
  const found = [];
  let before = null;
  for (let i = from; i < to; i++) {
    const url = urls[ends.url[i]];
    if (before?.open && url.startsWith(before.prefix)) { before.to = i + 1; before.section = true; continue; }
    const start = length || (isWeb(url) ? url.indexOf("://") + 3 : 0);
    let end = url.slice(start).search(/[/?]/);
    end = end < 0 ? url.length : start + end + 1;
    const prefix = url.slice(0, end), open = /[/?]$/.test(prefix) && end > length;
    before = {prefix, name: url.slice(length, end) || "index", from: i, to: i + 1, open, section: open && end < url.length};
    found.push(before);
  }
  return found;
}

// Tiles in a rectangle: each half of the area gets one side of it.
function tiled(tiles, x, y, width, height, place) {
  if (tiles.length < 2) { for (const each of tiles) place(each, x, y, width, height); return; }
  const sum = tiles.reduce((all, each) => all + each.area, 0);
  let first = tiles[0].area, at = 1;
  while (at < tiles.length - 1 && first + tiles[at].area / 2 < sum / 2) first += tiles[at++].area;
  const part = first / sum, [w, tall] = width > height ? [width * part, height] : [width, height * part];
  tiled(tiles.slice(0, at), x, y, w, tall, place);
  if (width > height) tiled(tiles.slice(at), x + w, y, width - w, height, place);
  else tiled(tiles.slice(at), x, y + tall, width, height - tall, place);
}

function map(box) {
  const crumbs = h("nav", {class: "crumbs", "aria-label": "Place in the map"}), tiles = h("div", {class: "tiles"});
  const measures = {urls: () => 1, bytes: i => ends.size[i], seconds: i => ends.ms[i]};
  const format = {urls: n => many(n, "URL"), bytes: size, seconds: duration};
  let measure = "urls", way = [{name: "All", from: 0, to: rows, prefix: "", section: true}];
  function weigh(part) {
    part.area = part.bad = 0;
    for (const [from, to] of part.ranges || [[part.from, part.to]]) {
      for (let i = from; i < to; i++) { part.area += measures[measure](i); part.bad += isBad[ends.url[i]]; }
    }
    part.count = part.ranges ? part.ranges.reduce((sum, [a, b]) => sum + b - a, 0) : part.to - part.from;
    return part;
  }
  function together(name, list, prefix) {
    return {name, ranges: list.flatMap(each => each.ranges || [[each.from, each.to]]), prefix, section: false};
  }
  function go(part) {
    const at = way.indexOf(part);
    if (at >= 0) way.length = at + 1; else way.push(part);
    draw(true);
  }
  // Most of a site is at one host: the map begins there.
  const main = parts(0, rows, 0).find(each => head.home && each.prefix === `${head.home}/` && each.section);
  if (main && main.to - main.from === rows) way[0] = main; else if (main) way.push(main);
  function draw(focus) {
    const here = way.at(-1);
    let found = here.list || parts(here.from, here.to, here.prefix.length);
    if (found.length === 1 && found[0].section) {
      way[way.length - 1] = {...found[0], name: way.length === 1 ? found[0].prefix : here.name + found[0].name};
      return draw(focus);
    }
    const leaves = found.filter(each => !each.section && !each.ranges);
    if (leaves.length > 12 || (leaves.length > 1 && leaves.length < found.length)) {
      found = [...found.filter(each => each.section || each.ranges), together("pages here", leaves, here.prefix)];
    }
    found = found.map(weigh).sort((a, b) => b.area - a.area || compare(a.name, b.name));
    if (found.length > 40) {
      const others = found.slice(39);
      const rest = weigh(together(`${number(others.length)} others`, others, here.prefix));
      rest.list = others; rest.section = true;
      found = [...found.slice(0, 39), rest];
    }
    const width = tiles.clientWidth || 1000, height = tiles.clientHeight || 480;
    tiles.replaceChildren();
    tiled(found.filter(each => each.area > 0), 0, 0, width, height, (part, x, y, w, tall) => {
      const share = part.bad / part.count, tone = share === 0 ? 0 : share < .05 ? 1 : share < .25 ? 2 : 3;
      const says = `${part.name}: ${format[measure](part.area)}${part.bad ? `, ${number(part.bad)} with a fault` : ""}`;
      const tile = h("button", {type: "button", class: `tile t${tone}${w > 52 && tall > 26 ? "" : " bare"}`, title: says, "aria-label": w > 52 && tall > 26 ? null : says,
        onclick: () => part.section ? go(part) : list(part)},
      w > 52 && tall > 26 ? [h("b", null, part.name), tall > 46 ? [" ", h("span", null, w < 110 && measure === "urls" ? number(part.area) : format[measure](part.area))] : ""] : "");
      tile.style.left = `${x / width * 100}%`; tile.style.top = `${y / height * 100}%`;
      tile.style.width = `${w / width * 100}%`; tile.style.height = `${tall / height * 100}%`;
      tiles.append(tile);
    });
    crumbs.replaceChildren(...way.map((each, at) => h("button", {type: "button", "aria-current": at === way.length - 1 ? "true" : null,
      onclick: () => go(each)}, each.name)));
    if (focus) crumbs.lastChild.focus();
  }
  function list(part) {
    allUrls.find(part.prefix);
    $("pages").scrollIntoView();
  }
  put(box, [h("div", {class: "tools"}, crumbs,
    h("button", {type: "button", onclick: () => list(way.at(-1))}, "List these URLs"),
    choice("Area", [["urls", "URLs"], ["bytes", "Bytes"], ["seconds", "Time"]], value => { measure = value; draw(false); })),
  tiles, h("ul", {class: "key"}, [["t0", "no fault"], ["t1", "below 5 % with a fault"], ["t2", "below 25 %"], ["t3", "25 % and more"]]
    .map(([tone, text]) => h("li", null, h("i", {class: tone}), text)))]);
  draw(false);
}

// Milliseconds of a crawl without the rests between its runs.
function clock(list) {
  const spans = list.map(i => [Math.max(0, ends.at[i] - ends.ms[i]), ends.at[i]]).sort((a, b) => a[0] - b[0]);
  const gaps = [];
  let until = 0;
  for (const [start, end] of spans) {
    if (start - until > 60000) gaps.push([until, start - until - 1000]);
    until = Math.max(until, end);
  }
  const moved = time => gaps.reduce((left, [at, length]) => time > at ? left - length : left, time);
  return {moved, gaps: gaps.length, end: moved(until)};
}

function strip(title, values, top, kind, unit) {
  const width = 900, height = 84, base = height - 16, step = width / values.length;
  const bars = values.map((n, at) => n ? svg("rect", {class: `b-${kind}`, x: at * step, width: Math.max(1, step - 1), y: base - (base - 6) * n / top, height: (base - 6) * n / top}) : "");
  return h("figure", {class: "strip"}, h("figcaption", null, title, h("span", {class: "dim"}, ` · at most ${unit}`)),
    svg("svg", {viewBox: `0 0 ${width} ${height}`, role: "img", preserveAspectRatio: "none", "aria-label": `${title}: at most ${unit}`},
      svg("line", {class: "axis", x1: 0, x2: width, y1: base, y2: base}), bars));
}

function time(box) {
  const list = [];
  for (let i = 0; i < rows; i++) if (ends.at[i]) list.push(i);
  const {moved, gaps, end} = clock(list), bins = Math.min(180, Math.max(20, list.length)), step = Math.max(1, end / bins);
  const flying = new Float64Array(bins), rate = new Array(bins).fill(0), wrong = new Array(bins).fill(0), hosts = new Map();
  const bin = at => Math.min(bins - 1, Math.max(0, Math.floor(at / step)));
  for (const i of list) {
    const to = moved(ends.at[i]), from = Math.max(0, to - ends.ms[i]);
    for (let at = bin(from); at <= bin(to); at++) flying[at] += Math.max(0, Math.min(to, (at + 1) * step) - Math.max(from, at * step)) / step;
    rate[bin(to)]++;
    if (failed(i)) {
      wrong[bin(to)]++;
      const url = urls[ends.url[i]], host = isWeb(url) ? url.split("/")[2] : "this folder";
      if (!hosts.has(host)) hosts.set(host, []);
      hosts.get(host).push(to);
    }
  }
  const most = Math.max(...flying), quick = Math.max(...rate) * 1000 / step, worst = Math.max(...wrong);
  const told = [...hosts].sort((a, b) => b[1].length - a[1].length);
  put(box, [
    strip("Requests in flight", [...flying], most || 1, "page", most < 10 ? most.toFixed(1) : String(Math.round(most))),
    strip("URLs a second", rate, Math.max(...rate), "page", `${quick < 10 ? quick.toFixed(1) : number(Math.round(quick))} a second`),
    worst ? strip("Errors", wrong, worst, "failure", `${worst} in ${duration(step)}`) : null,
    h("p", {class: "dim"}, `From 0 to ${duration(end)}${gaps ? `, without ${many(gaps, "rest")} between runs` : ""}.`),
    told.length ? h("h3", null, "Errors by host") : ""]);
  const column = (name, value, show) => ({name, num: true, key: i => value(told[i][1]), cell: i => show(value(told[i][1]))});
  if (told.length) table(box, {name: "errors by host", noun: "host", total: told.length, has: query => i => told[i][0].includes(query), columns: [
    {name: "Host", key: i => told[i][0], cell: i => told[i][0]}, column("Errors", each => each.length, number),
    column("First", each => Math.min(...each), duration), column("Last", each => Math.max(...each), duration)]});
}

function hosts(box) {
  const list = head.hosts;
  table(box, {name: "hosts", noun: "host", total: list.length, has: query => i => list[i][0].includes(query.toLowerCase()), columns: [
    {name: "Host", key: i => list[i][0], cell: i => h("span", {class: "url"}, list[i][0])},
    {name: "Pages", num: true, key: i => list[i][1], cell: i => number(list[i][1])},
    {name: "Bytes", num: true, key: i => list[i][2], cell: i => size(list[i][2])},
    {name: "Errors", num: true, key: i => list[i][3], cell: i => number(list[i][3])},
    {name: "In all", num: true, key: i => list[i][4], cell: i => duration(list[i][4] * 1000)},
    {name: "A page", num: true, key: i => list[i][5], cell: i => duration(list[i][5] * 1000)},
    {name: "Delay", num: true, key: i => list[i][6], cell: i => list[i][6] ? `${list[i][6]} s` : ""},
  ]});
}

function redirects(box) {
  const list = head.redirects;
  const way = at => {
    const found = [], seen = new Set();
    while (rowOf[at] && !seen.has(at) && found.length < 20) {
      const i = rowOf[at] - 1;
      if (!ends.target[i] || ends.kind[i] === PAGE) break;
      seen.add(at);
      found.push([ends.status[i], ends.target[i], texts[ends.why[i]]]);
      at = ends.target[i];
    }
    if (seen.has(at)) found.at(-1)[2] = "a circle";
    return found;
  };
  const ways = list.map(([at]) => way(at));
  const last = i => ways[i].at(-1)?.[1];
  const longest = i => ways[i].length;
  table(box, {name: "redirects", noun: "redirect", total: list.length,
    has: query => { const url = hits(urls, query); return i => url[list[i][0]] || ways[i].some(hop => url[hop[1]]); },
    filters: [["Every redirect", [["chains of several", i => longest(i) > 1], ["for good (301, 308)", i => [301, 308].includes(ways[i][0]?.[0])],
      ["to an error", i => rowOf[last(i)] && failed(rowOf[last(i)] - 1)], ["linked", i => list[i][1] > 0]]]],
    columns: [
      {name: "From", key: i => urls[list[i][0]], cell: i => link(list[i][0])},
      {name: "To", whole: true, key: i => urls[last(i)] || "", cell: i => ways[i].map(([status, at, why]) => h("div", null,
        code(status, "plain"), " → ", link(at), why ? h("span", {class: "dim"}, why) : ""))},
      {name: "Hops", num: true, key: longest, cell: i => String(longest(i))},
      {name: "Linked from", whole: true, num: false, key: i => list[i][1], cell: i => list[i][1] ? h("details", null, h("summary", null, many(list[i][1], "page")),
        listed(list[i][2].length, at => link(list[i][2][at])), more(list[i][1], list[i][2])) : ""},
    ]});
}

// What a list has not.
const more = (total, list) => total > list.length ? h("p", {class: "dim"}, `and ${number(total - list.length)} more`) : "";

const counter = (n, noun) => h("span", {class: "dim num"}, many(n, noun));

function duplicates(box, list) {
  const sets = new Map();
  for (const i of list) {
    if (!sets.has(ends.target[i])) sets.set(ends.target[i], []);
    sets.get(ends.target[i]).push(ends.url[i]);
  }
  const order = [...sets].sort((a, b) => b[1].length - a[1].length || compare(urls[a[0]], urls[b[0]]));
  put(box, [h("p", {class: "count"}, `${many(list.length, "duplicate")} of ${many(order.length, "page")}`),
    groups(order, ([at, copies]) => [h("span", {class: "url"}, near(urls[at])), counter(copies.length, "duplicate")],
      ([at, copies]) => [h("p", null, "First: ", link(at)), listed(copies.length, i => link(copies[i]))])]);
}

function sitemaps(box) {
  const {list, orphans, unlisted} = head.sitemaps;
  const alone = [["Orphans: a sitemap lists them, and no page links to them", orphans], ["Unlisted: no sitemap lists them, although their host has one", unlisted]];
  put(box, groups(alone.filter(([, pages]) => pages.length), ([name, pages]) => [h("span", {class: "url"}, name), counter(pages.length, "page")],
    ([, pages]) => listed(pages.length, at => link(pages[at]))));
  table(box, {name: "sitemaps", noun: "sitemap", total: list.length, has: query => { const url = hits(urls, query); return i => url[list[i][0]]; }, columns: [
    {name: "Sitemap", key: i => urls[list[i][0]], cell: i => [link(list[i][0]), list[i][4] ? [" ", code(list[i][4])] : "", list[i][5] ? h("span", {class: "dim"}, list[i][5]) : ""]},
    {name: "Kind", key: i => list[i][1], cell: i => list[i][1]},
    {name: "Entries", num: true, key: i => list[i][2], cell: i => number(list[i][2])},
    {name: "New", num: true, key: i => list[i][3], cell: i => number(list[i][3])},
    {name: "Rejected", num: true, key: i => list[i][6].length, cell: i => list[i][6].length ? h("details", null, h("summary", null, number(list[i][6].length)),
      listed(list[i][6].length, at => [link(list[i][6][at][0]), " ", list[i][6][at][1]])) : ""},
  ]});
}

function rejected(box) {
  put(box, groups(head.rejected, each => [code(each.reason, "plain"), h("span", {class: "url"}, each.says), counter(each.number || each.urls, each.number ? "link" : "URL")],
    each => [each.option ? h("p", {class: "dim"}, each.option) : "", each.shapes.length ? "" : h("p", {class: "dim"}, "They were counted only: --why lists them."),
      groups(each.shapes, ([shape, n]) => [h("span", {class: "url"}, shape), counter(n, "URL")], ([, n, links]) => [
        listed(links.length, at => [link(links[at][0]), links[at][1] ? h("div", {class: "dim"}, "from ", link(links[at][1])) : ""]), more(n, links)])], "groups"));
}

function unasked(box) {
  put(box, groups(head.notChecked, each => [h("span", {class: "url"}, each.says), counter(each.number, "link")], each => [listed(each.links.length, at => {
    const [url, page, line, column, text] = each.links[at];
    return [link(url), h("div", {class: "dim"}, "on ", link(page), line ? `, line ${line}, column ${column}` : "", texts[text] ? ` · “${texts[text]}”` : "")];
  }), more(each.number, each.links)]));
}

function changes(box) {
  const {since, unchanged, list} = head.changes, kinds = ["new", "changed", "gone"];
  put(box, [h("p", {class: "about"}, `Since ${since}: ${kinds.map(kind => `${number(list.filter(each => each[0] === kind).length)} ${kind}`).join(", ")}, ${number(unchanged)} unchanged.`)]);
  if (list.length) table(box, {name: "changes", noun: "URL", total: list.length, has: query => { const url = hits(urls, query), text = hits(texts, query); return i => url[list[i][1]] || text[list[i][2]]; },
    filters: [["Every change", kinds.map(kind => [kind, i => list[i][0] === kind])]], columns: [
      {name: "URL", key: i => urls[list[i][1]], cell: i => link(list[i][1])},
      {name: "Change", key: i => list[i][0], cell: i => code(list[i][0], "plain")},
      {name: "Detail", whole: true, key: i => texts[list[i][2]], cell: i => texts[list[i][2]]},
    ]});
}

const KEYS = {
  "/": () => search()?.focus(), "?": () => $("keys").showModal(),
  j: () => step(1), k: () => step(-1), n: () => turn("after"), p: () => turn("before"),
};

function here() {
  const sections = [...document.querySelectorAll("main > section:not([hidden])")];
  return sections.findLast(each => each.getBoundingClientRect().top < innerHeight / 3) || sections[0];
}

// The pager of the section itself comes last.
function turn(way) {
  [...here().querySelectorAll(`.pager:not([hidden]) .${way}`)].at(-1)?.click();
}

function search() {
  return here()?.querySelector("input[type=search]") || document.querySelector("input[type=search]");
}

function step(by) {
  const list = [...here().querySelectorAll("summary")].filter(each => each.checkVisibility());
  const at = list.indexOf(document.activeElement);
  list[at < 0 ? (by > 0 ? 0 : list.length - 1) : Math.max(0, Math.min(list.length - 1, at + by))]?.focus();
}

function keyboard() {
  document.addEventListener("keydown", event => {
    if (event.ctrlKey || event.metaKey || event.altKey || $("keys").open || event.target.matches("input, select")) return;
    const section = /^[1-9]$/.test(event.key) && document.querySelectorAll("#nav a")[event.key - 1];
    const work = KEYS[event.key] || (section && (() => section.click()));
    if (work) { event.preventDefault(); work(); }
  });
  addEventListener("beforeprint", () => { for (const each of document.querySelectorAll("#faults details")) each.open = true; });
}

function navigation() {
  const links = new Map();
  for (const section of document.querySelectorAll("main > section:not([hidden])")) {
    const amount = section.dataset.amount;
    links.set(section, h("a", {href: `#${section.id}`}, section.querySelector("h2").textContent, amount ? h("b", null, number(Number(amount))) : ""));
  }
  put($("nav"), [[...links.values()], h("button", {type: "button", onclick: () => $("keys").showModal()}, "Keys ", h("kbd", null, "?"))]);
  const mark = () => {
    const now = here();
    for (const [section, each] of links) {
      if (section !== now) each.removeAttribute("aria-current");
      else if (!each.hasAttribute("aria-current")) {
        each.setAttribute("aria-current", "location");
        $("nav").scrollLeft = each.offsetLeft - 16;
      }
    }
  };
  addEventListener("scroll", mark, {passive: true});
  mark();
}

async function main() {
  const read = async name => {
    await rest();
    const element = $(`data-${name}`), found = JSON.parse(element.textContent);
    element.remove();
    return found;
  };
  head = await read("head");
  urls = await read("urls");
  texts = await read("texts");
  ends = await read("ends");
  rows = ends.url.length;
  await rest();
  rowOf = new Uint32Array(urls.length);
  isBad = new Uint8Array(urls.length);
  for (let i = 0; i < rows; i++) rowOf[ends.url[i]] = i + 1;
  for (const each of head.problems.list) if (!each[0]) isBad[each[2]] = 1;
  for (let i = 0; i < rows; i++) if (failed(i)) isBad[ends.url[i]] = 1;
  const copies = [];
  let timed = false;
  for (let i = 0; i < rows; i++) { if (ends.kind[i] === PAGE && ends.target[i] && ends.target[i] !== ends.url[i]) copies.push(i); timed ||= ends.at[i] > 0; }
  const parts = [
    ["faults", faults, head.problems.list.reduce((sum, each) => sum + each[7], 0)], ["pages", pages, rows + ends.omitted],
    ["notes", notes, head.notes.reduce((sum, each) => sum + each[3].length, 0)], ["facts", facts, head.facts.length],
    ["figures", figures, rows && -1], ["map", map, rows > 1 && -1], ["time", time, timed && -1], ["hosts", hosts, head.hosts.length],
    ["redirects", redirects, head.redirects.length], ["duplicates", box => duplicates(box, copies), copies.length],
    ["sitemaps", sitemaps, head.sitemaps.list.length], ["rejected", rejected, head.rejected.reduce((sum, each) => sum + (each.number || each.urls), 0)],
    ["unasked", unasked, head.notChecked.reduce((sum, each) => sum + each.number, 0)], ["changes", changes, head.changes ? head.changes.list.length || -1 : 0],
  ];
  for (const [name, draw, amount] of parts) {
    if (!amount) { $(name).remove(); continue; }
    if (amount > 0) $(name).dataset.amount = amount;
    $(name).hidden = false;
    draw($(name).querySelector(".body"));
    await rest();
  }
  $("loading").remove();
  navigation();
  keyboard();
  document.documentElement.dataset.ready = "true";
}

main();
