// Turns the data of the page into launches with sites, lines and costs.

export function readData(text) {
  const data = JSON.parse(text);
  data.kernels = data.kernels.map((kernel, number) => new Lazy(data, kernel, number));
  return data;
}

// A launch is worked out when it is first shown: a report may hold many.
class Lazy {
  constructor(data, raw, number) {
    Object.assign(this, raw);
    this.data = data;
    this.number = number;
    this.ready = false;
  }

  get title() {
    const extent = ([x, y, z]) => (z !== 1 ? `(${x}, ${y}, ${z})` : y !== 1 ? `(${x}, ${y})` : String(x));
    const dynamic = this.launch.dynamic_shared_bytes ? `, ${this.launch.dynamic_shared_bytes}` : "";
    return `<<<${extent(this.launch.grid)}, ${extent(this.launch.block)}${dynamic}>>>`;
  }

  prepare() {
    if (this.ready) return this;
    const data = this.data;
    this.rows = data.codes[this.code].map(([offset, sass, place]) => ({ offset, sass, place: place === null ? null : data.places[place], site: null, issued: 0 }));
    let at = 0;
    for (let run = 0; run < this.issued.length; run += 2) {
      for (let each = 0; each < this.issued[run]; each++) this.rows[at++].issued = this.issued[run + 1];
    }
    const copies = this.copies.map((copy, number) => makeCopies(this, copy, this.sites.at.length + number));
    this.list = [...this.sites.at.map((row, number) => makeSite(this, row, number)), ...copies];
    for (const site of this.list) this.rows[site.row].site = site;
    this.findings.forEach((finding, number) => {
      finding.number = number;
      const named = [...finding.sites, ...finding.copies.map((copy) => this.sites.at.length + copy)];
      finding.first = named.length ? named[0] : null;
      for (const site of named) this.list[site].findings.push(finding);
    });
    this.lines = groupLines(this);
    this.ready = true;
    return this;
  }
}

function makeSite(kernel, row, number) {
  const columns = kernel.sites;
  const site = { number, row, place: kernel.rows[row].place, sass: kernel.rows[row].sass, offset: kernel.rows[row].offset, findings: [] };
  for (const [name, values] of Object.entries(columns)) if (name !== "at") site[name] = values[number];
  const [space, operation] = site.kind.split(" ");
  site.space = space;
  site.name = site.kind.replaceAll("_", " ");
  site.hasSectors = space !== "shared";
  site.hasWavefronts = space === "shared" || space === "generic" || operation === "async_copy";
  if (space === "local" && site.sectors_local !== null) {
    site.moved = site.sectors_local;
    site.movedIdeal = site.sectors_local;
  } else {
    site.moved = site.sectors;
    site.movedIdeal = site.sectors_ideal;
  }
  return site;
}

// Bulk copies are chosen and drawn as memory instructions are; a copy is a request.
function makeCopies(kernel, copy, number) {
  const row = copy.at;
  const site = { ...copy, number, row, place: kernel.rows[row].place, sass: kernel.rows[row].sass, offset: kernel.rows[row].offset, findings: [], patterns: [] };
  return Object.assign(site, {
    isCopy: true,
    space: "bulk",
    name: `bulk ${copy.shape} ${copy.operation}`,
    width_bytes: copy.copies ? Math.round(copy.asked_bytes / copy.copies) : null,
    hasSectors: copy.unknown_because !== null || copy.sectors > 0,
    hasWavefronts: false,
    sectors_local: 0,
    wavefronts: 0,
    wavefronts_ideal: 0,
    moved: copy.sectors,
    movedIdeal: copy.sectors_ideal,
  });
}

// Lines by file: what is inlined counts where it stands.
function groupLines(kernel) {
  const lines = new Map();
  const find = (place) => {
    const key = place === null ? "" : `${place[0]}:${place[1]}`;
    if (!lines.has(key)) lines.set(key, { key, file: place && place[0], line: place && place[1], sites: [], ns: kernel.time ? 0 : null, rows: 0 });
    return lines.get(key);
  };
  for (const site of kernel.list) find(site.place).sites.push(site);
  for (const row of kernel.rows) if (row.place) find(row.place).rows++;
  for (const part of kernel.time ? kernel.time.lines : []) {
    find(part.location && [part.location.file, part.location.line]).ns += part.ns;
  }
  return lines;
}

export const METRICS = ["time", "sectors", "wavefronts"];

// What a line, or an instruction, costs: `real` of which `ideal` is needed; null where there is nothing to show.
export function costOf(sites, metric, ns) {
  if (metric === "time") return ns === null || ns === undefined || ns <= 0 ? null : { real: ns, ideal: ns, unknown: false };
  const counted = sites.filter((site) => (metric === "sectors" ? site.hasSectors : site.hasWavefronts));
  if (!counted.length) return null;
  const pick = metric === "sectors" ? ["moved", "movedIdeal"] : ["wavefronts", "wavefronts_ideal"];
  if (counted.some((site) => site[pick[0]] === null)) return { real: null, ideal: null, unknown: true };
  const sum = (name) => counted.reduce((total, site) => total + site[name], 0);
  const cost = { real: sum(pick[0]), ideal: Math.min(sum(pick[0]), sum(pick[1])), unknown: false };
  return cost.real ? cost : null;
}

export function lineCost(line, metric) {
  return line ? costOf(line.sites, metric, line.ns) : null;
}

export function largest(costs) {
  return costs.reduce((most, cost) => Math.max(most, cost && cost.real ? cost.real : 0), 0);
}

export function findSite(kernel, finding) {
  return finding.first === null ? null : kernel.list[finding.first];
}

// The lanes of a picture: 32 offsets, null for a lane that is not active.
export function expandLanes(lanes) {
  return lanes.length === 2 ? Array.from({ length: 32 }, (_, lane) => lanes[0] + lane * lanes[1]) : lanes;
}

export function worstSite(sites) {
  const excess = (site) => (site.unknown_because ? Infinity : (site.moved - site.movedIdeal) + (site.wavefronts - site.wavefronts_ideal));
  return sites.reduce((worst, site) => (worst === null || excess(site) > excess(worst) ? site : worst), null);
}
