// Keeps a page light or dark, as the reader last chose or the system says.

import { byId } from "./dom.js";

function setTheme(name) {
  document.documentElement.dataset.theme = name;
  try {
    localStorage.setItem("sectorwise-theme", name);
  } catch {
    // A page that was opened from a file may keep nothing: the choice lasts as long as the page.
  }
}

export function startTheme() {
  let kept = null;
  try {
    kept = localStorage.getItem("sectorwise-theme");
  } catch {
    kept = null;
  }
  document.documentElement.dataset.theme = kept || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  byId("theme").addEventListener("click", flipTheme);
}

export function flipTheme() {
  setTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark");
}
