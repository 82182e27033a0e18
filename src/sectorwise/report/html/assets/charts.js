// Draws how a launch fills its device: occupancy, waves, bytes in flight, roofline, traffic, and where the time goes.

import { h, s, label } from "./dom.js";
import { amount, count, digits, percent, plural, time } from "./figures.js";

const W = 320;

function chart(height, text) {
  return s("svg", { viewBox: `0 0 ${W} ${height}`, role: "img", "aria-label": text });
}

function card(title, aside, ...content) {
  return h("section", { class: "card" }, h("header", {}, h("h2", {}, title), h("span", { class: "quiet" }, aside)), ...content);
}

function say(...text) {
  return h("p", { class: "say" }, ...text);
}

export function drawCards(kernel, device, words) {
  return [
    timeCard(kernel, words),
    trafficCard(kernel),
    occupancyCard(kernel),
    flightCard(kernel, device),
    rooflineCard(kernel),
    wavesCard(kernel, device),
  ];
}

const PART_COLORS = { launch: "var(--rule)", work: "var(--ideal)", sectors: "var(--excess)", conflicts: "var(--bad)", spills: "var(--unknown)", tail: "var(--good)", pace: "var(--ink-2)" };

function timeCard(kernel, words) {
  if (!kernel.time) {
    if (kernel.hangs.length) return card("Time", "none", say("The launch hangs, or may hang: counts are of what ran until then, and there is no time."));
    return card("Time", "not estimated", say("The caches were not followed, or an address is not known: then there is no estimate of the time. Least times are on the roofline."));
  }
  const total = kernel.time.estimate_ns;
  const name = (part) => (part.held_up_by ? words.bounds[part.held_up_by] || part.held_up_by : words.causes[part.cause]);
  const parts = kernel.parts.filter((part) => part.ns !== null && part.ns > total / 500);
  const sum = parts.reduce((whole, part) => whole + part.ns, 0);
  const svg = chart(34 + parts.length * 18, `About ${time(total)}: ${parts.map((part) => `${name(part)} ${time(part.ns)}`).join(", ")}`);
  let x = 0;
  parts.forEach((part, number) => {
    const width = (part.ns / sum) * W;
    svg.append(s("rect", { x, y: 2, width: Math.max(0.5, width - 1), height: 16, fill: PART_COLORS[part.cause], rx: 1.5 }));
    const y = 40 + number * 18;
    svg.append(s("rect", { x: 0, y: y - 8, width: 9, height: 9, rx: 1.5, fill: PART_COLORS[part.cause] }), label(15, y, name(part)), label(W - 40, y, time(part.ns), { "text-anchor": "end", class: "strong" }), label(W, y, percent(part.ns / sum), { "text-anchor": "end" }));
    x += width;
  });
  const guess = kernel.time.assumed.length ? " Assumed: " + kernel.time.assumed.join("; ") + "." : "";
  return card("Where the time goes", `about ${time(total)}`, svg, say(`Held up by ${words.bounds[kernel.time.bound] || kernel.time.bound}. Modelled, ${nameCaches(kernel.traffic)}; median error ${percent(kernel.time.error.median)} on ${kernel.time.error.from.split(";")[0]}.${guess}`));
}

function nameCaches(traffic) {
  return traffic && traffic.cache === "warm" ? "L2 warm" : "caches cold";
}

// DRAM to L2 to L1 to lanes above, what is stored on its way back below; bands are as wide as what flows.
function trafficCard(kernel) {
  const totals = kernel.totals;
  const bytes = (sectors) => (sectors === null ? null : 32 * sectors);
  const needed = bytes(totals.l2_theoretical_sectors_ideal);
  const asked = bytes(totals.l2_theoretical_sectors);
  if (!kernel.traffic) {
    return card("Traffic", "caches not followed", say(`Lanes need ${amount(needed)} and ask L1 for ${amount(asked)}. With --caches the report follows L1, L2 and DRAM, too.`));
  }
  const moved = kernel.traffic;
  const loads = moved.l1_hit_sectors + moved.l2_sectors_read_from_sm;
  const stores = bytes((totals.global_store_sectors || 0) + (totals.local_store_sectors || 0));
  const reads = [moved.dram_bytes_read, 32 * moved.l2_sectors_read_from_sm, 32 * loads];
  const writes = [moved.dram_bytes_write, stores, stores];
  const most = Math.max(1, ...reads, ...writes);
  const text = `Read: DRAM ${amount(reads[0])}, L2 ${amount(reads[1])}, L1 ${amount(reads[2])}. Stored: ${amount(stores)}, DRAM ${amount(writes[0])}`;
  const svg = chart(140, text);
  const xs = [0, 102, 204, 306];
  const band = (flows, middle, kind, above) => flows.forEach((flow, number) => {
    const half = Math.max(flow ? 0.75 : 0, (flow / most) * 18);
    svg.append(s("rect", { x: xs[number] + 14, y: middle - half, width: 88, height: 2 * half, class: kind, opacity: 0.4 }));
    svg.append(label(xs[number] + 58, above ? middle - half - 4 : middle + half + 11, amount(flow), { "text-anchor": "middle", class: "strong" }));
  });
  band(reads, 42, "ideal", true);
  band(writes, 84, "stored", false);
  ["DRAM", "L2", "L1", "lanes"].forEach((name, number) => {
    svg.append(s("rect", { x: xs[number], y: 16, width: 14, height: 94, rx: 3, fill: "var(--ink-2)", opacity: 0.55 }), label(number === 0 ? 0 : number === 3 ? W : xs[number] + 7, 10, name, { "text-anchor": number === 0 ? "start" : number === 3 ? "end" : "middle" }));
  });
  svg.append(s("rect", { x: 0, y: 127, width: 9, height: 9, rx: 1.5, class: "ideal", opacity: 0.6 }), label(14, 135, "read →"), s("rect", { x: 60, y: 127, width: 9, height: 9, rx: 1.5, class: "stored", opacity: 0.6 }), label(74, 135, "← stored"), label(W, 135, `L1 hits ${percent(loads ? moved.l1_hit_sectors / loads : null)}`, { "text-anchor": "end" }));
  return card("Traffic", `${moved.certainty}, ${nameCaches(moved)}`, svg, say(`All accesses together need ${amount(needed)} and move ${amount(asked)} in sectors.`));
}

function occupancyCard(kernel) {
  const held = kernel.occupancy;
  const names = { registers: "registers a thread", shared: "shared bytes a block", warps: "threads a block" };
  const limiter = { shared: "shared memory", blocks: "the number of blocks" }[held.limiter] || held.limiter;
  const here = { registers: kernel.resources.registers_per_thread, shared: kernel.resources.static_shared_bytes + kernel.launch.dynamic_shared_bytes, warps: kernel.launch.block.reduce((a, b) => a * b) };
  const aside = `${digits(held.theoretical_pct)} %, ${plural(held.blocks_per_sm, "block")} an SM`;
  if (!kernel.curves.registers) return card("Occupancy", aside);
  const place = h("div");
  const tabs = h("div", { class: "tabs", role: "group", "aria-label": "Occupancy over" });
  const show = (resource) => {
    for (const button of tabs.children) button.setAttribute("aria-pressed", String(button.dataset.resource === resource));
    place.replaceChildren(drawSteps(kernel.curves[resource], here[resource], held, names[resource]));
  };
  for (const [resource, text] of [["registers", "registers"], ["shared", "shared"], ["warps", "threads"]]) {
    tabs.append(h("button", { type: "button", "data-resource": resource, onclick: () => show(resource) }, text));
  }
  show(["shared", "registers"].includes(held.limiter) ? held.limiter : "registers");
  return card("Occupancy", aside, tabs, place, say(`Limited by ${limiter}. ${nameCliffs(held)}`));
}

function nameCliffs(held) {
  const parts = [];
  for (const [name, unit] of [["registers", "registers"], ["shared", "B shared"]]) {
    const cliff = held.cliffs[name];
    if (cliff.gain && name === held.limiter) parts.push(`${cliff.gain.blocks_per_sm} blocks up to ${count(cliff.gain.last)} ${unit}`);
    if (cliff.loss) parts.push(`${cliff.loss.blocks_per_sm || "none"} from ${count(cliff.loss.first)} ${unit} on`);
  }
  return parts.length ? `Would be ${parts.join(", ")}.` : "";
}

function drawSteps(steps, value, held, name) {
  const last = steps[steps.length - 1][1];
  const [left, right, top, bottom] = [26, W - 4, 8, 92];
  const x = (at) => left + ((right - left) * at) / last;
  const y = (warps) => bottom - ((bottom - top) * warps) / held.max_warps_per_sm;
  const svg = chart(122, `Occupancy over ${name}; here ${count(value)}`);
  for (const share of [0, 0.5, 1]) {
    svg.append(s("path", { class: "axis", d: `M${left} ${y(share * held.max_warps_per_sm)}H${right}` }), label(left - 4, y(share * held.max_warps_per_sm) + 3.5, `${share * 100}`, { "text-anchor": "end" }));
  }
  let line = `M${x(Math.max(0, steps[0][0] - 1))} ${y(steps[0][3])}`;
  for (const [, end, , warps] of steps) line += `V${y(warps)}H${x(end)}`;
  svg.append(s("path", { class: "area", d: `${line}V${bottom}H${x(Math.max(0, steps[0][0] - 1))}Z` }), s("path", { class: "line", d: line }));
  const cx = x(value);
  svg.append(s("path", { class: "guide", d: `M${cx} ${y(held.warps_per_sm)}V${bottom}` }), s("circle", { class: "dot", cx, cy: y(held.warps_per_sm), r: 5 }));
  svg.append(label(Math.min(Math.max(cx, left + 14), right - 14), bottom + 13, count(value), { "text-anchor": "middle", class: "strong" }), label(right, bottom + 26, `${name}, up to ${count(last)}`, { "text-anchor": "end" }), label(0, bottom + 26, "% of warps"));
  return svg;
}

function flightCard(kernel, device) {
  const found = kernel.concurrency;
  const curve = device.flight;
  if (!found || !curve) return card("Bytes in flight", "", say("No loop of this launch loads from global memory, or nothing was measured on such a device."));
  const kept = found.in_flight_bytes_per_sm;
  const most = 1.1 * Math.max(kept, found.needed_bytes_per_sm * 1.4);
  const [left, right, top, bottom] = [26, W - 4, 10, 96];
  const x = (bytes) => left + ((right - left) * Math.min(bytes, most)) / most;
  const y = (gbs) => bottom - ((bottom - top) * gbs) / (curve.ceiling_gbs * 1.08);
  const svg = chart(124, `${amount(kept)} in flight an SM; ${amount(found.needed_bytes_per_sm)} fill DRAM`);
  svg.append(s("path", { class: "axis", d: `M${left} ${bottom}H${right}M${left} ${y(curve.ceiling_gbs)}H${right}` }), label(left - 4, y(curve.ceiling_gbs) + 3.5, digits(curve.ceiling_gbs / 1000), { "text-anchor": "end" }), label(left - 4, bottom + 3, "0", { "text-anchor": "end" }));
  const points = [...curve.points.filter((point) => point[0] <= most), [most, Math.min(curve.ceiling_gbs, interpolate(curve.points, most))]];
  svg.append(s("path", { class: "line", d: "M" + points.map(([bytes, gbs]) => `${x(bytes)} ${y(gbs)}`).join("L") }));
  const need = x(found.needed_bytes_per_sm);
  svg.append(s("path", { class: "guide", d: `M${need} ${top}V${bottom}` }), label(need, bottom + 13, amount(found.needed_bytes_per_sm), { "text-anchor": "middle" }));
  const at = Math.min(interpolate(curve.points, kept), curve.ceiling_gbs);
  const crowded = Math.abs(x(kept) - need) < 58;
  svg.append(s("circle", { class: "dot", cx: x(kept), cy: y(at), r: 5 }), label(Math.max(x(kept), left + 22), crowded ? y(at) + 18 : bottom + 13, amount(kept), { "text-anchor": "middle", class: "strong" }), label(right, bottom + 26, "in flight an SM, on average", { "text-anchor": "end" }), label(0, bottom + 26, "TB/s"));
  const bound = { latency: "waiting for data", memory: "memory busy", issue: "schedulers busy" }[found.bound];
  const notes = found.assumed.length ? ` Assumed: ${found.assumed.join("; ")}.` : "";
  return card("Bytes in flight", bound, svg, say(`Loads run at ${digits(found.load_gbs / 1000)} TB/s${kernel.traffic ? `, DRAM ${percent(found.memory_busy)} busy` : " if none hits"}; the line is what DRAM gives for so much in flight.${notes}`));
}

function interpolate(points, at) {
  for (let number = 1; number < points.length; number++) {
    const [[x0, y0], [x1, y1]] = [points[number - 1], points[number]];
    if (at <= x1) return x1 === x0 ? y1 : y0 + ((y1 - y0) * (at - x0)) / (x1 - x0);
  }
  return points[points.length - 1][1];
}

const LEVELS = { dram: "DRAM", l2: "L2", l1: "L1, shared", issue: "issue", compute: "arithmetic" };

function rooflineCard(kernel) {
  const roof = kernel.roofline;
  const aside = `at least ${time(roof.least_ns)}, ${LEVELS[roof.bound] || roof.bound}`;
  const known = roof.levels.filter((level) => level.least_ns !== null);
  const notes = roof.assumed.length ? `Assumed: ${roof.assumed.join("; ")}.` : "";
  if (!roof.operations) return card("Roofline", aside, drawLeast(kernel, known), say(`No arithmetic that counts: the least time at each level. ${notes}`));
  const levels = roof.levels.filter((level) => level.level !== "issue");
  const placed = levels.filter((level) => level.intensity > 0);
  const xs = placed.map((level) => level.intensity).concat(levels.map((level) => level.ridge));
  const low = Math.log10(Math.min(...xs)) - 0.9;
  const high = Math.log10(Math.max(...xs)) + 0.5;
  const peak = Math.log10(roof.peak_gflops);
  const floor = Math.min(...levels.map((level) => Math.log10(level.ceiling_per_ns) + low)) - 0.45;
  const [left, right, top, bottom] = [4, W - 4, 12, 112];
  const x = (value) => left + ((right - left) * (value - low)) / (high - low);
  const y = (value) => bottom - ((bottom - top) * (value - floor)) / (peak - floor + 0.2);
  const svg = chart(140, `Roofline: ${placed.map((level) => `${LEVELS[level.level]} ${digits(level.intensity)} operations a byte`).join(", ")}`);
  svg.append(s("path", { class: "axis", d: `M${left} ${bottom}H${right}` }), label(left, top - 3, `${digits(roof.peak_gflops / 1000)} T${roof.data_type.startsWith("int") ? "OP" : "FLOP"}/s ${roof.data_type}`));
  for (const level of levels) {
    const ridge = Math.log10(level.ridge);
    svg.append(s("path", { class: "line", d: `M${x(low)} ${y(Math.log10(level.ceiling_per_ns) + low)}L${x(ridge)} ${y(peak)}H${x(high)}`, opacity: level.level === roof.bound ? 1 : 0.4 }));
    const from = y(Math.log10(level.ceiling_per_ns) + low);
    const slope = (Math.atan2(from - y(peak), x(ridge) - x(low)) * 180) / Math.PI;
    const below = level.ceiling_per_ns === Math.min(...levels.map((each) => each.ceiling_per_ns));
    svg.append(label(left + 2, from + (below ? 12 : -4), LEVELS[level.level], { transform: `rotate(${-slope} ${left} ${from})` }));
  }
  const ends = [[], []];
  const written = new Set();
  for (const level of [...placed].sort((one, other) => (other.level === roof.bound) - (one.level === roof.bound) || one.intensity - other.intensity)) {
    const [cx, cy] = [x(Math.log10(level.intensity)), y(Math.log10(level.attainable_gflops))];
    svg.append(s("path", { class: "guide", d: `M${cx} ${cy}V${bottom}` }), s("circle", { class: "dot", cx, cy, r: level.level === roof.bound ? 5 : 3.5 }));
    const text = digits(level.intensity);
    const row = ends.findIndex((taken) => taken.every((end) => Math.abs(cx - end) > 44));
    if (written.has(text) || row < 0) continue;
    written.add(text);
    ends[row].push(cx);
    svg.append(label(cx, bottom + 12 + 12 * row, text, { "text-anchor": "middle", class: level.level === roof.bound ? "strong" : "" }));
  }
  svg.append(label(right, bottom + 25, "operations a byte", { "text-anchor": "end" }));
  return card("Roofline", aside, svg, say(known.map((level) => `${LEVELS[level.level]} ${time(level.least_ns)}`).join(" · "), ` · arithmetic ${time(roof.compute_ns)}. `, notes));
}

function drawLeast(kernel, known) {
  const most = Math.max(...known.map((level) => level.least_ns), 1e-9);
  const svg = chart(known.length * 26 + 4, known.map((level) => `${LEVELS[level.level]} ${time(level.least_ns)}`).join(", "));
  known.forEach((level, number) => {
    const y = number * 26 + 6;
    svg.append(label(0, y + 12, LEVELS[level.level]), s("rect", { x: 70, y: y + 2, width: Math.max(1, ((W - 135) * level.least_ns) / most), height: 13, rx: 2, class: level.level === kernel.roofline.bound ? "excess" : "ideal" }), label(W, y + 12, time(level.least_ns), { "text-anchor": "end", class: "strong" }));
  });
  return svg;
}

const MOST_ROUNDS = 24;

// Rounds of blocks as a strip, filled as far as each is; a single round by SM, as many blocks as each has.
function wavesCard(kernel, device) {
  const waves = kernel.waves;
  const room = waves.blocks_per_wave;
  const each = room / device.sm_count;
  const svg = chart(112, `${digits(waves.waves)} waves, the last ${digits(waves.last_wave_pct)} % full`);
  const bar = (x, width, gap, full, low) => svg.append(s("rect", { x, y: 4, width: width - gap, height: 82, class: "muted", rx: 1.5 }), s("rect", { x, y: 86 - 82 * full, width: width - gap, height: 82 * full, class: low ? "excess" : "ideal", rx: 1.5 }));
  if (waves.rounds === 1) {
    const more = waves.blocks_last_wave - waves.fewest_blocks_an_sm * device.sm_count;
    const step = W / device.sm_count;
    for (let sm = 0; sm < device.sm_count; sm++) {
      const blocks = sm < more ? waves.most_blocks_an_sm : waves.fewest_blocks_an_sm;
      bar(sm * step, step, 0.6, blocks / each, blocks === 0);
    }
    svg.append(label(0, 102, `${device.sm_count} SMs, room for ${plural(each, "block")} each`));
  } else {
    const shown = Math.min(waves.rounds, MOST_ROUNDS);
    const step = W / shown;
    for (let round = 0; round < shown; round++) {
      const full = round === shown - 1 ? waves.blocks_last_wave / room : 1;
      bar(round * step, step, step > 8 ? 2 : 0.6, full, full < 0.8);
    }
    if (waves.rounds > shown) svg.append(label(W / 2, 50, `… ${count(waves.rounds)} waves …`, { "text-anchor": "middle", style: "fill:#fff;font-weight:650;font-size:12px" }));
    svg.append(label(0, 102, `${count(room)} blocks at once`));
  }
  svg.append(label(W, 102, `${waves.rounds > 1 ? "last wave " : ""}${digits(waves.last_wave_pct)} % full`, { "text-anchor": "end" }));
  const idle = waves.idle_sms_last_wave;
  const blocks = waves.fewest_blocks_an_sm === waves.most_blocks_an_sm ? plural(waves.most_blocks_an_sm, "block") : `${waves.fewest_blocks_an_sm} or ${plural(waves.most_blocks_an_sm, "block")}`;
  const slow = waves.rounds > 1 ? ` Evenly filled waves would take ${percent(waves.waves / waves.rounds)} of the time, where a block takes as long alone as beside others.` : "";
  return card("Waves", `${digits(waves.waves)} waves`, svg, say(idle ? `${idle} of ${device.sm_count} SMs are idle ${waves.rounds > 1 ? "in the last wave" : "throughout"}.` : `Every SM gets ${blocks}${waves.rounds > 1 ? " in all" : ""}.`, slow));
}
