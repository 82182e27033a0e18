// Draws one request of a warp: its lanes on the sectors of memory, or its words on the banks, pass by pass.

import { s, label } from "./dom.js";
import { expandLanes } from "./model.js";
import { count } from "./figures.js";

const SECTOR = 32;
const LINE = 128;
const WORD = 4;
const MOST_LINES = 34;
const MOST_PASSES = 34;

export function drawPicture([scene, width, together, lanes]) {
  return scene === "sectors" ? drawSectors(width, expandLanes(lanes)) : drawBanks(width, together, expandLanes(lanes));
}

// Left the lanes, right the 128-byte lines that they touch, each of four sectors of eight words.
function drawSectors(width, lanes) {
  const lines = new Map();
  lanes.forEach((place) => {
    if (place === null) return;
    for (let line = Math.floor(place / LINE); line <= Math.floor((place + width - 1) / LINE); line++) lines.set(line, null);
  });
  const order = [...lines.keys()].sort((a, b) => a - b);
  const shown = order.length > MOST_LINES ? [...order.slice(0, MOST_LINES - 1), order[order.length - 1]] : order;
  const laneStep = 11;
  const step = Math.max(11, Math.min(30, (32 * laneStep) / shown.length));
  const height = Math.max(32 * laneStep, shown.length * step) + 26;
  const top = 20;
  const lineTop = top + Math.max(0, (32 * laneStep - shown.length * step) / 2);
  const left = 186;
  const word = 6.4;
  const rowAt = new Map(shown.map((line, number) => [line, lineTop + number * step]));
  const box = Math.min(12, step - 2);
  const used = new Set();
  lanes.forEach((place) => {
    if (place !== null) for (let byte = place; byte < place + width; byte += Math.min(WORD, width)) used.add(Math.floor(byte / WORD));
  });
  const svg = s("svg", { viewBox: `0 0 480 ${height}`, role: "img", "aria-label": describeSectors(lanes, width, order.length) });
  svg.append(label(20, 12, "lane", { "text-anchor": "middle" }), label(left, 12, "byte offset of the line, its four sectors of 32 B"));
  for (const line of shown) drawLine(svg, line, rowAt.get(line), { left, word, box, used });
  if (shown.length < order.length) svg.append(label(left - 8, lineTop + (shown.length - 1) * step - 2, `… ${order.length - shown.length} more`, { "text-anchor": "end" }));
  lanes.forEach((place, lane) => {
    const y = top + lane * laneStep;
    const group = s("g", { class: "lane" });
    group.append(s("rect", { x: 6, y, width: 28, height: laneStep - 2, rx: 2, fill: place === null ? "var(--rule)" : laneColor(lane) }));
    group.append(label(20, y + 8, String(lane), { class: "mono", "text-anchor": "middle", style: place === null ? "" : "fill:#fff;font-weight:600" }));
    const row = place === null ? undefined : rowAt.get(Math.floor(place / LINE));
    if (row !== undefined) {
      const x = left + 2 + ((place % LINE) / WORD) * word + Math.floor((place % LINE) / SECTOR) * 3;
      const end = row + box / 2;
      group.append(s("path", { d: `M34 ${y + 4.5} C 100 ${y + 4.5}, 108 ${end}, ${Math.min(x, left)} ${end}`, stroke: laneColor(lane), "stroke-width": 1.1, fill: "none", opacity: 0.75 }));
    }
    svg.append(group);
  });
  return svg;
}

function drawLine(svg, line, y, { left, word, box, used }) {
  for (let sector = 0; sector < 4; sector++) {
    const x = left + sector * (8 * word + 3);
    const words = Array.from({ length: 8 }, (_, each) => line * 32 + sector * 8 + each);
    const touched = words.some((each) => used.has(each));
    words.forEach((each, number) => {
      const kind = used.has(each) ? "ideal" : touched ? "excess" : "muted";
      svg.append(s("rect", { x: x + number * word, y, width: word - 1, height: box, class: kind, opacity: kind === "excess" ? 0.45 : 1 }));
    });
  }
  svg.append(label(left + 4 * (8 * word + 3) + 4, y + Math.min(box, 12) / 2 + 3.5, `+${(line * LINE).toLocaleString("en-US")}`, { class: "mono" }));
}

function describeSectors(lanes, width, lines) {
  const touched = new Set();
  lanes.forEach((place) => {
    if (place !== null) for (let sector = Math.floor(place / SECTOR); sector <= Math.floor((place + width - 1) / SECTOR); sector++) touched.add(sector);
  });
  const active = lanes.filter((place) => place !== null).length;
  return `${active} lanes of ${width} bytes touch ${touched.size} sectors of ${lines} lines`;
}

// A hue a lane, of one lightness, so that neighbours can be told apart and white text is read on each.
export function laneColor(lane) {
  return `hsl(${205 + lane * 3.4} 48% ${44 - (lane % 2) * 6}%)`;
}

// Which words each pass serves: lanes that go together, and of each bank one word a pass.
export function splitPasses(width, together, lanes) {
  const passes = [];
  for (let first = 0; first < 32; first += together) {
    const banks = Array.from({ length: 32 }, () => new Map());
    for (let lane = first; lane < first + together; lane++) {
      const place = lanes[lane];
      if (place === null) continue;
      for (let word = Math.floor(place / WORD); word * WORD < place + width; word++) {
        const bank = banks[word % 32];
        if (!bank.has(word)) bank.set(word, []);
        bank.get(word).push(lane);
      }
    }
    const depth = Math.max(...banks.map((bank) => bank.size));
    for (let pass = 0; pass < depth; pass++) {
      passes.push(banks.map((bank) => [...bank.values()][pass] || null));
    }
  }
  return passes;
}

function drawBanks(width, together, lanes) {
  const passes = splitPasses(width, together, lanes);
  const shown = passes.slice(0, MOST_PASSES);
  const cell = 13.4;
  const left = 40;
  const high = 12;
  const top = 30;
  const height = top + shown.length * high + (shown.length < passes.length ? 18 : 6);
  const svg = s("svg", { viewBox: `0 0 480 ${height}`, role: "img", "aria-label": `${passes.length} passes over 32 banks` });
  svg.append(label(left, 11, "bank"), label(0, 24, "pass"));
  for (let bank = 0; bank < 32; bank += 4) svg.append(label(left + (bank + 0.5) * cell, 24, String(bank), { "text-anchor": "middle", class: "mono" }));
  shown.forEach((banks, pass) => {
    const y = top + pass * high;
    if (pass % 4 === 0 || shown.length < 10) svg.append(label(26, y + 9, String(pass + 1), { "text-anchor": "end", class: "mono" }));
    banks.forEach((served, bank) => {
      const x = left + bank * cell;
      svg.append(s("rect", { x, y, width: cell - 1.4, height: high - 1.4, rx: 1.5, fill: served ? laneColor(served[0]) : "var(--sunken)" }));
      if (served) {
        const text = served.length > 1 ? `${served[0]}+` : String(served[0]);
        svg.append(label(x + cell / 2 - 0.7, y + 8.6, text, { "text-anchor": "middle", style: "fill:#fff;font-size:7.5px;font-weight:600" }));
      }
    });
  });
  if (shown.length < passes.length) svg.append(label(left, height - 5, `… ${count(passes.length - shown.length)} more passes`));
  return svg;
}
