// Draws what is known of the chosen instruction: its numbers, one warp of it, what is wrong, and what would help.

import { h } from "./dom.js";
import { count, percent, plural, ratio, time } from "./figures.js";
import { colorSass } from "./code.js";
import { drawPicture, splitPasses } from "./warp.js";
import { expandLanes } from "./model.js";

export function drawInspector(kernel, data, { line, site, pattern }, act) {
  if (!site && !line) return [h("section", {}, h("h2", {}, "Nothing chosen"), h("p", { class: "quiet" }, "Choose a line with a bar, or a finding."))];
  const parts = [h("section", {}, drawHead(kernel, line, site, act), site ? h("div", { class: "sass" }, colorSass(site.sass)) : null, site ? drawPlace(site, data) : null, site ? null : h("p", { class: "quiet" }, `No memory instruction, but ${time(line.ns)} of the estimated time.`))];
  if (!site) return parts;
  if (site.unknown_because) parts.push(h("section", {}, h("h3", {}, "Not known"), h("p", {}, site.unknown_because)));
  else if (site.isCopy) parts.push(h("section", {}, drawCopies(site)));
  else parts.push(h("section", {}, drawNumbers(site)), drawWarp(data, site, pattern, act));
  for (const fault of kernel.faults.filter((each) => (site.isCopy ? each.offset === site.offset : each.site === site.number))) parts.push(drawFault(fault));
  for (const finding of site.findings) parts.push(drawFinding(finding));
  return parts.filter(Boolean);
}

function drawHead(kernel, line, site, act) {
  const sites = line ? line.sites : site ? [site] : [];
  const where = line && line.line ? `line ${line.line}` : site ? site.offset : "";
  const head = h("div", { class: "head" }, h("h2", {}, site ? `${capital(site.name)} of ${site.width_bytes === null ? "?" : count(site.width_bytes)} B` : "Line"), h("span", { class: "quiet small" }, where));
  if (sites.length < 2) return head;
  const chips = sites.map((each) => h("button", { type: "button", "aria-pressed": String(each === site), title: `${each.name}, ${each.sass}`, onclick: () => act({ site: each.number }) }, each.sass.replace(/^@\S+\s+/, "").split(/[. ;]/)[0] + " " + each.offset));
  return [head, h("div", { class: "chips", role: "group", "aria-label": "Instructions of the line" }, chips)];
}

function capital(text) {
  return text[0].toUpperCase() + text.slice(1);
}

function drawPlace(site, data) {
  if (!site.place) return h("p", { class: "quiet small" }, "no line information");
  const callers = site.place[2].map(([file, line]) => ` · inlined at ${file === site.place[0] ? "line" : file} ${line}`);
  return h("p", { class: "quiet small" }, `${site.offset} · ${site.place[0]}:${site.place[1]}`, callers, data.files[site.place[0]] ? null : " (source not found)");
}

function drawNumbers(site) {
  const rows = [];
  const add = (name, real, ideal) => rows.push({ name, real, ideal });
  if (site.hasSectors && site.space !== "local") {
    add("sectors", site.sectors, site.sectors_ideal);
    add("L1 tags (lines)", site.tag_requests, null);
  }
  if (site.sectors_local) add("local sectors", site.sectors_local, null);
  if (site.hasWavefronts) {
    add("wavefronts", site.wavefronts, site.wavefronts_ideal);
    // What the L1 pipe passes may be less than the ideal: copies around L1 take none of its passes.
    const { wavefronts_hardware: passes, wavefronts_ideal: ideal } = site;
    if (passes !== site.wavefronts) add("… in hardware", passes, passes < ideal ? null : ideal);
  }
  const per = (value) => (site.executed ? ratio(value / site.executed) : "–");
  const body = rows.map(({ name, real, ideal }) =>
    h("tr", {}, h("td", {}, name), h("td", { class: ideal !== null && real > ideal ? "bad" : null }, count(real)), h("td", {}, ideal === null ? "–" : count(ideal)), h("td", { class: ideal !== null && real > ideal ? "bad" : null }, per(real)), h("td", {}, ideal === null ? "–" : per(ideal)), h("td", {}, ideal === null || !real ? "–" : percent(ideal / real))),
  );
  const head = h("thead", {}, h("tr", {}, ["", "counted", "ideal", "a request", "ideal", "eff."].map((text) => (text ? h("th", { scope: "col" }, text) : h("td")))));
  const sure = { exact: "exact: every lane was executed", schedule_dependent: "varies with the order of the warps" }[site.certainty] || site.certainty;
  return [h("table", { class: "numbers" }, head, h("tbody", {}, body)), h("p", { class: "quiet small" }, `${plural(site.executed, "request")} · ${sure}`)];
}

function drawCopies(site) {
  const rows = [["copies", site.copies], ["bytes asked", site.asked_bytes], ["bytes a row", site.row_bytes]];
  if (site.outside_bytes) rows.push([site.operation === "load" ? "outside, filled" : "outside, left out", site.outside_bytes]);
  if (site.multicast) rows.push(["blocks that get one", site.targets]);
  rows.push(["bytes written", site.written_bytes]);
  if (site.sectors) rows.push(["sectors", site.sectors], ["sectors, ideal", site.sectors_ideal]);
  rows.push(["sectors at the L2", site.sectors_l2]);
  const sure = site.certainty === "exact" ? "exact: every copy was made" : site.certainty;
  return [h("table", { class: "numbers" }, h("tbody", {}, rows.map(([name, value]) => h("tr", {}, h("td", {}, name), h("td", { class: name === "sectors" && value > site.sectors_ideal ? "bad" : null }, count(value)))))), h("p", { class: "quiet small" }, `from ${site.source === "l2" ? "L2" : site.source} to ${site.target === "l2" ? "L2" : site.target} memory · ${sure}`)];
}

function drawWarp(data, site, pattern, act) {
  if (!site.patterns.length) return null;
  const at = Math.min(pattern || 0, site.patterns.length - 1);
  const [number, requests] = site.patterns[at];
  const [sectors, sectorsIdeal, wavefronts, wavefrontsIdeal, pictures] = data.patterns[number];
  if (!pictures.length) return null;
  const costs = [];
  if (site.hasSectors) costs.push(`${plural(sectors, "sector")} (ideal ${sectorsIdeal})`);
  if (site.hasWavefronts) costs.push(`${plural(wavefronts, "wavefront")} (ideal ${wavefrontsIdeal})`);
  const several = site.patterns.length > 1;
  const step = (by) => () => act({ pattern: (at + by + site.patterns.length) % site.patterns.length });
  const notes = pictures.flatMap(([scene, width, together, lanes]) => {
    const drawn = scene === "banks" ? splitPasses(width, together, expandLanes(lanes)).length : wavefronts;
    return drawn !== wavefronts && scene === "banks" ? [h("p", { class: "quiet small" }, `The picture has ${plural(drawn, "pass", "passes")}; counted are ${wavefronts}, by the rules that were measured for such instructions.`)] : [];
  });
  return h(
    "section",
    { class: "warp", "aria-label": "One warp" },
    h("div", { class: "head" }, h("h3", {}, "One warp"), several ? h("span", { class: "quiet small" }, `way ${at + 1} of ${site.patterns.length} that differ`) : h("span", { class: "quiet small" }, "all warps alike")),
    h("div", { class: "step" }, several ? h("button", { class: "button", type: "button", "aria-label": "Previous way", onclick: step(-1) }, "‹") : null, several ? h("button", { class: "button", type: "button", "aria-label": "Next way", onclick: step(1) }, "›") : null, h("p", { class: "say" }, `${costs.join(", ")} a request; ${several ? "at least " : ""}${plural(requests, "request")} like this`)),
    pictures.map(drawPicture),
    notes,
    pictures.some((picture) => picture[0] === "sectors") ? h("p", { class: "legend" }, h("span", {}, h("i", { class: "a" }), "bytes used"), h("span", {}, h("i", { class: "b", style: "opacity:.45" }), "moved, not used")) : null,
  );
}

function drawFault(fault) {
  return h("section", {}, h("div", { class: "finding" }, h("div", {}, h("span", { class: "tag error" }, fault.code), " ", fault.kind.replaceAll("_", " ")), h("p", {}, `${fault.message}, at ${fault.address}`), h("p", { class: "quiet small" }, `first in block (${fault.block.join(", ")}), warp ${fault.warp}, lane ${fault.lane}; ${plural(fault.occurrences, "lane")} in all`)));
}

export function drawFinding(finding) {
  const evidence = finding.evidence;
  const parts = [h("div", { class: "head" }, h("span", {}, h("span", { class: `tag ${finding.severity}` }, finding.code), " ", h("b", {}, finding.rule)), finding.cost_ns ? h("span", { class: "quiet small" }, `about ${time(finding.cost_ns)}`) : null), h("p", {}, finding.message)];
  if (evidence && evidence.ideal !== null) parts.push(drawBars([["is", evidence.real, "b"], ["ideal", evidence.ideal, "a"]], evidence.quantity));
  parts.push(h("p", {}, h("b", {}, "Help: "), finding.advice, "."));
  for (const remedy of finding.remedies) {
    parts.push(h("h3", {}, `Proven${remedy.proven_on ? ` on ${remedy.proven_on}, not on this one` : ""}: ${remedy.title}`), drawBars([["before", remedy.before, "b"], ["after", remedy.after, "a"]], remedy.quantity), h("pre", { class: "change", tabindex: "0", "aria-label": "Code of the remedy" }, remedy.change));
    for (const refusal of remedy.refused) parts.push(h("p", { class: "quiet small" }, `Not: ${refusal}`));
  }
  return h("section", {}, h("div", { class: "finding" }, parts));
}

function drawBars(rows, quantity) {
  const most = Math.max(1, ...rows.map((row) => row[1]));
  return h("div", {}, h("div", { class: "before-after" }, rows.map(([name, value, kind]) => [h("span", { class: "quiet" }, name), h("i", { class: kind, style: `width:${((100 * value) / most).toFixed(2)}%` }), h("span", {}, count(value))])), h("p", { class: "quiet small" }, quantity));
}
