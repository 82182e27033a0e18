// Draws the source and the SASS of a launch as tables whose rows carry their cost as a bar.

import { h } from "./dom.js";
import { brief, count, ratio, time } from "./figures.js";
import { costOf, largest, lineCost } from "./model.js";

const TOKENS = { k: "k", t: "ty", c: "c", p: "p", s: "s", n: "num", f: "fn", b: "bi" };

const ROWS = 200;

// Rows in tables of so many, which the browser lays out when they come into view: a kernel may have thousands.
// `widths` are those of the columns before and after the text, `longest` the text's most characters.
function stack(rows, name, widths, longest) {
  const parts = [];
  const room = widths.filter((width) => width !== null).join(" + ");
  for (let first = 0; first < rows.length; first += ROWS) {
    const some = rows.slice(first, first + ROWS);
    const columns = h("colgroup", {}, widths.map((width) => h("col", width === null ? {} : { style: `width:${width}` })));
    const style = `min-width:calc(${room} + ${longest + 3}ch);contain-intrinsic-height:auto ${19 * some.length}px`;
    parts.push(h("div", { class: "stack", style }, h("table", { class: "lines", "aria-label": name }, columns, h("tbody", {}, some))));
  }
  return parts;
}

// Rows of every file that has a line with a cost.
export function drawSource(kernel, data, metric, address) {
  const files = sourceFiles(kernel, data);
  const most = largest([...kernel.lines.values()].map((line) => lineCost(line, metric)));
  const parts = [];
  for (const file of files) {
    const pieces = data.files[file];
    if (files.length > 1 || !pieces) parts.push(h("div", { class: "file" }, pieces ? file : `${file} (source not found: line numbers only)`));
    const numbers = pieces ? pieces.map((_, at) => at + 1) : [...kernel.lines.values()].filter((line) => line.file === file).map((line) => line.line).sort((a, b) => a - b);
    const rows = numbers.map((number) => drawLine(kernel, file, number, pieces ? pieces[number - 1] : [], { metric, most, address }));
    const longest = pieces ? Math.max(...pieces.map(measure)) : 0;
    parts.push(...stack(rows, `Source ${file}`, [`calc(${String(numbers.length ? numbers[numbers.length - 1] : 0).length}ch + 22px)`, "var(--heat)", null, "var(--marks)"], longest));
  }
  const without = kernel.lines.get("");
  if (without && without.sites.length) parts.push(h("div", { class: "notice" }, `${without.sites.length} memory instructions have no line: see the SASS view.`));
  return parts;
}

export function sourceFiles(kernel, data) {
  const named = new Set();
  for (const line of kernel.lines.values()) if (line.file && (line.sites.length || line.ns)) named.add(line.file);
  if (data.files[data.source]) named.add(data.source);
  return [...named].sort((a, b) => (b === data.source) - (a === data.source) || (a < b ? -1 : 1));
}

// Columns that the pieces of a line take, tabs as four.
function measure(pieces) {
  let columns = 0;
  for (let at = 1; at < pieces.length; at += 2) columns += pieces[at].length + 3 * (pieces[at].split("\t").length - 1);
  return columns;
}

function drawLine(kernel, file, number, pieces, { metric, most, address }) {
  const key = `${file}:${number}`;
  const line = kernel.lines.get(key);
  const hot = line && (line.sites.length || line.ns);
  const text = h("td", { class: "t" });
  for (let at = 0; at < pieces.length; at += 2) {
    text.append(pieces[at] ? h("span", { class: TOKENS[pieces[at]] }, pieces[at + 1]) : pieces[at + 1]);
  }
  const codes = hot ? [...new Set(line.sites.flatMap((site) => site.findings.map((finding) => `${finding.code} ${finding.severity}`)))] : [];
  const marks = codes.map((code) => h("span", { class: `tag ${code.split(" ")[1]}` }, code.split(" ")[0]));
  if (line && line.sites.some((site) => site.unknown_because)) marks.push(h("span", { class: "tag unknown" }, "unknown"));
  const shown = hot ? h("a", { href: address({ line: key }) }, String(number)) : String(number);
  return h("tr", { class: hot ? "hot" : null, "data-key": key }, h("td", { class: "n" }, shown), h("td", { class: "h" }, drawHeat(lineCost(line, metric), metric, most)), text, h("td", { class: "w" }, marks));
}

export function drawHeat(cost, metric, most) {
  if (!cost) return null;
  if (cost.unknown) return h("div", { class: "heat unknown" }, h("span", { class: "track" }, h("i", { class: "q" })), h("span", { class: "v" }, "?"));
  const width = (value) => `width:${Math.max(value ? 1.5 : 0, (100 * value) / most).toFixed(1)}%`;
  const excess = cost.real - cost.ideal;
  const times = cost.ideal ? cost.real / cost.ideal : Infinity;
  const text = metric === "time" ? time(cost.real) : brief(cost.real);
  const title = { time: `${text} of the estimated time`, issued: `issued ${count(cost.real)} times` }[metric] || `${count(cost.real)} ${metric}, ideal ${count(cost.ideal)}`;
  const bars = h("span", { class: "track" });
  if (cost.ideal) bars.append(h("i", { class: "a", style: width(cost.ideal) }));
  if (excess) bars.append(h("i", { class: "b", style: width(excess) }));
  const tail = excess && Number.isFinite(times) && times >= 1.05 ? ` ×${ratio(times).replace(/\.0$/, "")}` : "";
  return h("div", { class: `heat${excess ? " bad" : ""}`, title }, bars, h("span", { class: "v" }, tail && metric !== "time" ? tail.trim() : text));
}

export function drawSass(kernel, data, metric, address) {
  const most = largest(kernel.rows.map((row) => rowCost(row, metric)));
  const rows = kernel.rows.map((row) => {
    const hot = row.site !== null;
    const offset = hot ? h("a", { href: address({ site: row.site.number }) }, row.offset) : row.offset;
    const place = row.place ? `${row.place[0].split("/").pop()}:${row.place[1]}` : "";
    const codes = hot ? row.site.findings.map((finding) => h("span", { class: `tag ${finding.severity}` }, finding.code)) : [];
    if (hot && row.site.unknown_because) codes.push(h("span", { class: "tag unknown" }, "unknown"));
    return h(
      "tr",
      { class: hot ? "hot" : row.issued ? null : "off", "data-site": hot ? row.site.number : null },
      h("td", { class: "n" }, offset),
      h("td", { class: "h" }, drawHeat(rowCost(row, metric), metric === "time" ? "issued" : metric, most)),
      h("td", { class: "i", title: "warps that issued it" }, metric === "time" ? null : row.issued ? count(row.issued) : "–"),
      h("td", { class: "t" }, colorSass(row.sass)),
      h("td", { class: "w" }, codes),
      h("td", { class: "l" }, place),
    );
  });
  const widths = ["6.2em", "var(--heat)", metric === "time" ? "0px" : "7.5em", null, "var(--marks)", "12em"];
  const tables = stack(rows, "SASS", widths, Math.max(0, ...kernel.rows.map((row) => row.sass.length)));
  return kernel.whole ? tables : [h("div", { class: "notice" }, "Only the memory instructions are known here."), ...tables];
}

// Of an instruction no time is known: how often it was issued stands in for it.
function rowCost(row, metric) {
  if (metric === "time") return row.issued ? { real: row.issued, ideal: row.issued, unknown: false } : null;
  return row.site ? costOf([row.site], metric, null) : null;
}

// Guard, opcode with modifiers, registers: what eyes look for.
export function colorSass(text) {
  const parts = /^(@!?U?P\w+\s+)?(\S+)(.*)$/s.exec(text);
  if (!parts) return [text];
  const shown = [];
  if (parts[1]) shown.push(h("span", { class: "pr" }, parts[1]));
  shown.push(h("span", { class: "op" }, parts[2]));
  for (const piece of parts[3].split(/(\bU?[RP]\d+\b)/)) shown.push(/^U?[RP]\d+$/.test(piece) ? h("span", { class: "re" }, piece) : piece);
  return shown;
}

// Marks what was searched for, in the rows that are drawn; gives those rows.
export function markMatches(root, wanted) {
  for (const mark of root.querySelectorAll("mark")) mark.replaceWith(...mark.childNodes);
  root.normalize();
  if (!wanted) return [];
  const low = wanted.toLowerCase();
  return [...root.querySelectorAll("tr")].filter((row) => {
    const cell = row.querySelector("td.t");
    const found = cell.textContent.toLowerCase().includes(low) || row.querySelector("td.w").textContent.toLowerCase().includes(low);
    if (found) markText(cell, low);
    return found;
  });
}

// The words searched for may stand in several pieces: each piece gets its part of the mark.
function markText(cell, low) {
  const walker = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
  const texts = [];
  while (walker.nextNode()) texts.push(walker.currentNode);
  const first = cell.textContent.toLowerCase().indexOf(low);
  if (first < 0) return;
  let at = 0;
  for (const text of texts) {
    const [begin, end] = [Math.max(first - at, 0), Math.min(first + low.length - at, text.data.length)];
    at += text.data.length;
    if (begin >= end) continue;
    const marked = text.splitText(begin);
    marked.splitText(end - begin);
    marked.replaceWith(h("mark", {}, marked.data));
  }
}
