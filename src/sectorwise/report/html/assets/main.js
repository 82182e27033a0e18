// Puts the page together, and keeps what is chosen in the address, so that every view can be linked to.

import { byId, h } from "./dom.js";
import { amount, count, digits, percent, plural, time } from "./figures.js";
import { METRICS, findSite, readData, worstSite } from "./model.js";
import { drawCards } from "./charts.js";
import { drawSass, drawSource, markMatches, sourceFiles } from "./code.js";
import { drawFinding, drawInspector } from "./inspector.js";
import { flipTheme, startTheme } from "./theme.js";

const data = readData(byId("data").textContent);
const state = { kernel: 0, view: "source", metric: "time", line: null, site: null, pattern: 0, finding: null };
const drawn = { kernel: null, code: null };
let matches = [];

function currentKernel() {
  return data.kernels[state.kernel].prepare();
}

// ---------------------------------------------------------------- the address

function address(change) {
  const next = { ...state, pattern: 0, finding: null, ...change };
  if (change.line !== undefined && change.site === undefined) next.site = null;
  if (change.site !== undefined && change.line === undefined) next.line = null;
  const parts = { k: next.kernel || null, view: next.view === "sass" ? "sass" : null, metric: next.metric, line: next.site === null ? next.line : null, site: next.site, warp: next.pattern || null };
  return "#" + Object.entries(parts).filter(([, value]) => value !== null && value !== undefined).map(([name, value]) => `${name}=${encodeURIComponent(value)}`).join("&");
}

function readAddress() {
  const parts = new URLSearchParams(location.hash.slice(1));
  const number = (name, most) => (parts.has(name) && /^\d+$/.test(parts.get(name)) && Number(parts.get(name)) < most ? Number(parts.get(name)) : null);
  const kernel = number("k", data.kernels.length) || 0;
  const found = data.kernels[kernel].prepare();
  const change = { kernel, view: parts.get("view") === "sass" ? "sass" : "source" };
  if (METRICS.includes(parts.get("metric"))) change.metric = parts.get("metric");
  else change.metric = kernel === state.kernel && drawn.kernel ? state.metric : defaultMetric(found);
  change.site = number("site", found.list.length);
  change.line = change.site !== null ? lineOf(found.list[change.site]) : found.lines.has(parts.get("line")) ? parts.get("line") : null;
  change.pattern = number("warp", 64) || 0;
  if (change.site === null && change.line === null) Object.assign(change, firstChoice(found));
  if (change.site === null && change.line !== null) change.site = chooseSite(found.lines.get(change.line), change.metric);
  return change;
}

function defaultMetric(kernel) {
  return kernel.time ? "time" : kernel.list.some((site) => site.hasWavefronts && site.wavefronts > site.wavefronts_ideal) ? "wavefronts" : "sectors";
}

function lineOf(site) {
  return site.place ? `${site.place[0]}:${site.place[1]}` : "";
}

function chooseSite(line) {
  const worst = worstSite(line.sites);
  return worst === null ? null : worst.number;
}

function firstChoice(kernel) {
  const finding = kernel.findings.find((each) => each.first !== null);
  const dearest = kernel.time ? [...kernel.lines.values()].filter((line) => line.sites.length && line.key).sort((a, b) => b.ns - a.ns)[0] : null;
  const site = finding ? findSite(kernel, finding) : worstSite(dearest ? dearest.sites : kernel.list);
  return site ? { site: site.number, line: lineOf(site) } : {};
}

function act(change) {
  const next = address({ kernel: state.kernel, ...change, ...(change.pattern !== undefined ? { site: state.site } : {}) });
  if (next === location.hash) update();
  else history.replaceState(null, "", next), update();
}

// A click anywhere in a row that costs something chooses it; text that was marked with the mouse stays marked.
function openRow(event) {
  const row = event.target.closest("tr.hot");
  if (!row || (event.target.closest("a") && (event.ctrlKey || event.metaKey || event.shiftKey))) return;
  if (String(window.getSelection())) return;
  event.preventDefault();
  act(row.dataset.site !== undefined ? { site: Number(row.dataset.site) } : { line: row.dataset.key });
}

// ---------------------------------------------------------------- drawing

function update({ scroll = true } = {}) {
  const before = { ...state };
  Object.assign(state, { line: null, site: null }, readAddress());
  const kernel = currentKernel();
  if (drawn.kernel !== kernel) drawKernel(kernel);
  const wanted = `${state.kernel} ${state.view} ${state.metric}`;
  if (drawn.code !== wanted) drawCode(kernel, wanted);
  choose(kernel, scroll && (before.line !== state.line || before.site !== state.site || before.view !== state.view));
}

function drawKernel(kernel) {
  drawn.kernel = kernel;
  drawn.code = null;
  byId("kernel").value = String(kernel.number);
  document.title = `${kernel.name} · ${data.source} · sectorwise`;
  const named = kernel.case !== null && kernel.case !== kernel.name ? h("span", { class: "quiet" }, kernel.case) : null;
  byId("main").replaceChildren(
    h("div", { class: "title" }, h("h1", {}, kernel.name, h("span", { class: "shape" }, kernel.title)), named, h("span", { class: "quiet" }, describeCoverage(kernel))),
    drawTiles(kernel),
    h("div", { class: "cards" }, drawCards(kernel, data.device, data.words)),
    drawFindings(kernel),
    h("div", { class: "work" }, h("section", { class: "code", "aria-label": "Code" }, h("header", { id: "tools" }), h("div", { class: "scroll", id: "lines", tabindex: "0", role: "region", "aria-label": "Code with costs", onclick: openRow })), h("aside", { class: "look", id: "look", tabindex: "0", "aria-label": "Chosen instruction", "aria-live": "polite" })),
  );
}

function describeCoverage(kernel) {
  const { blocks_executed: ran, blocks_total: all, sites_unknown: unknown } = kernel.coverage;
  const blocks = ran === all ? (all === 1 ? "its one block executed" : `all ${count(all)} blocks executed`) : `${count(ran)} of ${count(all)} blocks executed (${kernel.coverage.certainty})`;
  return blocks + (unknown ? `, ${plural(unknown, "instruction")} unknown` : "");
}

function drawTiles(kernel) {
  const totals = kernel.totals;
  const tile = (name, value, unit, note, bad) => h("div", { class: "tile" }, h("dl", {}, h("dt", {}, name), h("dd", {}, h("span", { class: "value" }, value), unit ? h("small", {}, " " + unit) : null)), note ? h("div", { class: "note" + (bad ? " bad" : "") }, note) : null);
  const efficiency = (real, ideal) => (real ? `${percent(ideal / real)} of them needed` : "");
  const bound = kernel.time ? data.words.bounds[kernel.time.bound] || kernel.time.bound : "";
  const shared = kernel.resources.static_shared_bytes + kernel.launch.dynamic_shared_bytes;
  return h("div", { class: "tiles" }, [
    kernel.time ? tile("Time, estimated", time(kernel.time.estimate_ns), "", `${bound}; median error ${percent(kernel.time.error.median)}${kernel.time.estimate_ns < 20000 ? " of longer launches" : ""}`) : tile("Time, at least", time(kernel.roofline.least_ns), "", `no estimate; ${kernel.roofline.bound}`),
    tile("Global sectors", totals.l2_theoretical_sectors === null ? "?" : count(totals.l2_theoretical_sectors), "", efficiency(totals.l2_theoretical_sectors, totals.l2_theoretical_sectors_ideal), totals.l2_theoretical_sectors > 1.2 * totals.l2_theoretical_sectors_ideal),
    tile("Shared wavefronts", totals.shared_wavefronts === null ? "?" : count(totals.shared_wavefronts), "", efficiency(totals.shared_wavefronts, totals.shared_wavefronts_ideal), totals.shared_wavefronts > 1.2 * totals.shared_wavefronts_ideal),
    kernel.copies.length ? drawCopied(tile, kernel) : null,
    kernel.traffic ? tile("DRAM", amount(kernel.traffic.dram_bytes_read), "read", `${amount(kernel.traffic.dram_bytes_write)} written`) : tile("Local sectors", totals.l2_theoretical_sectors_local === null ? "?" : count(totals.l2_theoretical_sectors_local), ""),
    tile("Occupancy", digits(kernel.occupancy.theoretical_pct) + " %", `${kernel.occupancy.blocks_per_sm} × ${kernel.occupancy.warps_per_sm / kernel.occupancy.blocks_per_sm || 0} warps`, `by ${kernel.occupancy.limiter}`),
    tile("Registers", String(kernel.resources.registers_per_thread), "a thread", totals.l2_theoretical_sectors_local ? `${kernel.resources.local_bytes_per_thread} B local, ${count(totals.l2_theoretical_sectors_local)} local sectors` : "no spills", totals.l2_theoretical_sectors_local > 0),
    tile("Shared memory", shared ? amount(shared) : "none", shared ? "a block" : "", kernel.launch.dynamic_shared_bytes ? `${amount(kernel.launch.dynamic_shared_bytes)} dynamic` : ""),
  ]);
}

function drawCopied(tile, kernel) {
  const sum = (name) => (kernel.copies.some((copy) => copy[name] === null) ? null : kernel.copies.reduce((total, copy) => total + copy[name], 0));
  const [bytes, sectors, ideal] = [sum("asked_bytes"), sum("sectors"), sum("sectors_ideal")];
  const ring = kernel.copy_ring;
  const room = ring ? `; ${amount(ring.in_flight_bytes_per_sm)} an SM in flight at most` : "";
  return tile("Bulk copies", bytes === null ? "?" : amount(bytes), sum("copies") === null ? "" : `in ${count(sum("copies"))}`, sectors ? `${count(sectors)} sectors, ${percent(ideal / sectors)} of them needed${room}` : "", sectors > 1.2 * ideal);
}

function drawFindings(kernel) {
  const worth = kernel.findings;
  const rows = worth.map((finding) => {
    const place = finding.location ? `line ${finding.location.line}` : "the kernel";
    const evidence = finding.evidence && finding.evidence.ideal !== null ? `${count(finding.evidence.real)}, ideal ${count(finding.evidence.ideal)}` : "";
    return h("button", { type: "button", class: "find", "data-finding": finding.number, onclick: () => chooseFinding(finding) }, h("span", { class: `tag ${finding.severity}` }, finding.code), h("span", { class: "what" }, h("b", {}, finding.rule.replaceAll("-", " ")), ` · ${finding.message}`), h("span", { class: "cost" }, finding.cost_ns ? `${time(finding.cost_ns)} · ` : evidence ? `${evidence} · ` : "", place));
  });
  const said = new Map();
  for (const each of kernel.limitations) said.set(each.because, (said.get(each.because) || 0) + 1);
  const unknown = [...said].map(([because, times]) => h("div", { class: "notice" }, h("span", { class: "tag unknown" }, "unknown"), ` ${because}${times > 1 ? ` (${times} instructions)` : ""}`));
  return h("section", { class: "finds", "aria-label": "Findings" }, h("header", {}, h("h2", {}, worth.length ? "What to fix, the dearest first" : "Nothing to fix was found"), h("span", { class: "quiet small" }, unknown.length ? "" : "nothing is unknown")), rows, unknown);
}

function chooseFinding(finding) {
  if (finding.first === null) {
    byId("look").replaceChildren(drawFinding(finding));
    markFinding(finding.number);
    byId("look").scrollIntoView({ block: "nearest" });
    return;
  }
  act({ site: finding.first });
  markFinding(finding.number);
}

function markFinding(number) {
  state.finding = number;
  for (const row of document.querySelectorAll(".find")) row.setAttribute("aria-current", String(Number(row.dataset.finding) === number));
}

function drawCode(kernel, wanted) {
  drawn.code = wanted;
  const files = sourceFiles(kernel, data).filter((file) => data.files[file]);
  const gone = !files.length;
  if (gone) state.view = "sass";
  const place = byId("lines");
  place.replaceChildren(...(state.view === "sass" ? drawSass : drawSource)(kernel, data, state.metric, address));
  if (gone) place.prepend(h("div", { class: "notice" }, "The source was not found: this is the SASS view alone."));
  const press = (name, value, text, disabled) => h("button", { type: "button", "aria-pressed": String(state[name] === value), "data-value": value, disabled, onclick: () => act({ [name]: value, site: state.site, line: state.line }) }, text);
  const views = h("div", { class: "tabs", id: "views", role: "group", "aria-label": "View" }, press("view", "source", "Source", gone), press("view", "sass", "SASS", false));
  const metrics = h("div", { class: "tabs", id: "metrics", role: "group", "aria-label": "Metric of the bars" }, press("metric", "time", state.view === "sass" ? "Issued" : "Time", false), press("metric", "sectors", "Sectors", false), press("metric", "wavefronts", "Wavefronts", false));
  const none = state.metric === "time" && state.view !== "sass" && !kernel.time ? "no estimate of the time" : null;
  const legend = h("span", { class: "legend" }, none ? none : state.metric === "time" ? [h("span", {}, h("i", { class: "a" }), state.view === "sass" ? "warps that issued it" : "share of the time")] : [h("span", {}, h("i", { class: "a" }), "needed"), h("span", {}, h("i", { class: "b" }), "beyond the ideal")]);
  byId("tools").replaceChildren(views, metrics, h("span", { class: "grow" }), legend);
  search(byId("search").value, false);
}

function choose(kernel, scroll) {
  const site = state.site === null ? null : kernel.list[state.site];
  const line = state.line === null ? null : kernel.lines.get(state.line);
  byId("look").replaceChildren(...drawInspector(kernel, data, { line, site, pattern: state.pattern }, act));
  const chip = byId("look").querySelector('.chips button[aria-pressed="true"]');
  if (chip) chip.parentNode.scrollTop = chip.offsetTop - chip.parentNode.offsetTop - chip.offsetHeight;
  for (const row of byId("lines").querySelectorAll("tr.here")) row.classList.remove("here");
  const row = state.view === "sass" ? site && byId("lines").querySelector(`tr[data-site="${site.number}"]`) : [...byId("lines").querySelectorAll("tr.hot")].find((each) => each.dataset.key === state.line);
  if (row) {
    row.classList.add("here");
    if (scroll) reveal(row);
  }
  markFinding(site && site.findings.length ? site.findings[0].number : state.finding);
}

function reveal(row) {
  const box = byId("lines");
  const at = row.offsetTop - box.offsetTop;
  const top = row.getBoundingClientRect().top - box.getBoundingClientRect().top + box.scrollTop;
  if (top < box.scrollTop + 40 || top > box.scrollTop + box.clientHeight - 60) box.scrollTop = Math.max(0, (Number.isFinite(top) ? top : at) - box.clientHeight / 3);
}

// ---------------------------------------------------------------- search and keys

function search(text, move) {
  matches = markMatches(byId("lines"), text.trim());
  byId("search").setAttribute("aria-description", text ? plural(matches.length, "match", "matches") : "");
  if (move && matches.length) reveal(matches[0]);
}

let match = 0;

function nextMatch() {
  if (!matches.length) return;
  match = (match + 1) % matches.length;
  reveal(matches[match]);
  const row = matches[match];
  if (row.classList.contains("hot")) act(row.dataset.site !== undefined ? { site: Number(row.dataset.site) } : { line: row.dataset.key });
}

function stepRow(by) {
  const rows = [...byId("lines").querySelectorAll("tr.hot")];
  if (!rows.length) return;
  const at = rows.findIndex((row) => row.classList.contains("here"));
  const row = rows[Math.min(rows.length - 1, Math.max(0, at < 0 ? 0 : at + by))];
  act(row.dataset.site !== undefined ? { site: Number(row.dataset.site) } : { line: row.dataset.key });
}

function stepFinding(by) {
  const all = currentKernel().findings;
  if (!all.length) return;
  const at = state.finding === null ? (by > 0 ? -1 : 0) : state.finding;
  chooseFinding(all[(at + by + all.length) % all.length]);
}

function stepWarp(by) {
  const site = state.site === null ? null : currentKernel().list[state.site];
  if (site && site.patterns.length > 1) act({ pattern: (state.pattern + by + site.patterns.length) % site.patterns.length });
}

function stepSite() {
  const line = currentKernel().lines.get(state.line);
  if (!line || line.sites.length < 2) return;
  const at = line.sites.findIndex((site) => site.number === state.site);
  act({ site: line.sites[(at + 1) % line.sites.length].number });
}

function switchKernel(number) {
  const at = (number + data.kernels.length) % data.kernels.length;
  act({ kernel: at, site: null, line: null });
}

const KEYS = {
  j: () => stepRow(1), k: () => stepRow(-1), n: () => stepFinding(1), p: () => stepFinding(-1), i: stepSite,
  "[": () => stepWarp(-1), "]": () => stepWarp(1),
  m: () => act({ metric: METRICS[(METRICS.indexOf(state.metric) + 1) % METRICS.length], site: state.site, line: state.line }),
  s: () => act({ view: state.view === "sass" ? "source" : "sass", site: state.site, line: state.line }),
  "<": () => switchKernel(state.kernel - 1), ">": () => switchKernel(state.kernel + 1),
  d: flipTheme, "?": () => byId("keys").showModal(), "/": () => byId("search").focus(),
};

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || byId("keys").open) return;
  const typing = event.target.closest("input, select");
  if (typing) {
    if (event.key === "Escape") typing.blur();
    if (event.key === "Enter" && typing.id === "search") nextMatch();
    return;
  }
  const does = KEYS[event.key];
  if (does) {
    event.preventDefault();
    does();
  }
}

function start() {
  startTheme();
  const names = data.kernels.map((kernel) => (kernel.case !== null && kernel.case !== kernel.name ? `${kernel.name} · ${kernel.case}` : kernel.name));
  const twice = new Set(names.filter((name, at) => names.indexOf(name) !== at));
  byId("kernel").append(...names.map((name, at) => h("option", { value: at }, twice.has(name) ? `${name}${data.kernels[at].title}` : name)));
  byId("kernel").addEventListener("change", (event) => switchKernel(Number(event.target.value)));
  byId("search").addEventListener("input", (event) => { match = 0; search(event.target.value, true); });
  byId("help").addEventListener("click", () => byId("keys").showModal());
  document.addEventListener("keydown", onKey);
  window.addEventListener("hashchange", () => update());
  if (!data.kernels.length) byId("main").replaceChildren(h("p", {}, "This report has no launches."));
  else update({ scroll: true });
}

start();
