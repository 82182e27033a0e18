// Turns numbers into the words that people read.

export function count(value) {
  if (value === null || value === undefined) return "?";
  return Number.isInteger(value) || value >= 1000 ? Math.round(value).toLocaleString("en-US") : digits(value);
}

export function brief(value) {
  if (value === null || value === undefined) return "?";
  for (const [unit, size] of [["G", 1e9], ["M", 1e6], ["k", 1e4]]) {
    if (value >= size) return digits(value / (unit === "k" ? 1e3 : size)) + " " + unit;
  }
  return count(value);
}

export function digits(value) {
  if (value === 0) return "0";
  if (Math.abs(value) >= 99.95) return Math.round(value).toLocaleString("en-US");
  return String(Number(value.toPrecision(3)));
}

export function amount(bytes) {
  if (bytes === null || bytes === undefined) return "?";
  for (const [unit, size] of [["GB", 1e9], ["MB", 1e6], ["KB", 1e3]]) {
    if (bytes >= 0.9995 * size) return digits(bytes / size) + " " + unit;
  }
  return count(bytes) + " B";
}

export function time(ns) {
  if (ns === null || ns === undefined) return "?";
  if (ns < 999.5) return digits(ns) + " ns";
  return ns < 999500 ? digits(ns / 1e3) + " µs" : digits(ns / 1e6) + " ms";
}

export function ratio(value) {
  if (value === null || value === undefined) return "–";
  const one = value.toFixed(1);
  const hides = one.endsWith(".0") && Math.abs(value - Math.round(value)) >= 0.005;
  return hides || (value > 0 && value < 0.995) ? value.toFixed(2) : one;
}

export function percent(value) {
  return value === null || value === undefined ? "–" : Math.floor(value * 100 + 1e-9) + " %";
}

export function plural(number, one, many) {
  return count(number) + " " + (number === 1 ? one : many || one + "s");
}
