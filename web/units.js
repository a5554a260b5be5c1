"use strict";
/* Numbers as people read them, and elements without HTML: text only ever goes in as text. */

const Units = {
  /* "12.3 MiB": three digits. */
  bytes(value) {
    const names = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let power = 0;
    let size = Math.abs(value);
    while (size >= 1023.5 && power < names.length - 1) {
      size /= 1024;
      power++;
    }
    const digits = power === 0 ? Math.round(size).toString() : Units.threeDigits(size);
    return (value < 0 ? "−" : "") + digits + " " + names[power];
  },

  /* "1,234", from a million on "1.23 M". */
  count(value) {
    const size = Math.abs(value);
    const sign = value < 0 ? "−" : "";
    if (size < 999999.5) return sign + Math.round(size).toLocaleString("en-US");
    if (size < 999.5e6) return sign + Units.threeDigits(size / 1e6) + " M";
    if (size < 999.5e9) return sign + Units.threeDigits(size / 1e9) + " G";
    return sign + Units.threeDigits(size / 1e12) + " T";
  },

  threeDigits(size) {
    if (size >= 99.95) return size.toFixed(0);
    return size >= 9.995 ? size.toFixed(1) : size.toFixed(2);
  },

  percent(share) {
    const value = 100 * share;
    if (!Number.isFinite(value)) return "–";
    if (value > 0 && value < 0.1) return "<0.1 %";
    return (value >= 9.95 ? value.toFixed(0) : value.toFixed(1)) + " %";
  },

  seconds(value) {
    if (value === 0) return "0 s";
    if (value < 1e-6) return Math.round(value * 1e9) + " ns";
    if (value < 1e-3) return Units.short(value * 1e6) + " µs";
    if (value < 1) return Units.short(value * 1e3) + " ms";
    if (value < 120) return Units.short(value) + " s";
    if (value < 7200) return Math.floor(value / 60) + " min " + String(Math.floor(value % 60)).padStart(2, "0") + " s";
    if (value < 172800)
      return Math.floor(value / 3600) + " h " + String(Math.floor((value % 3600) / 60)).padStart(2, "0") + " min";
    return Units.short(value / 86400) + " days";
  },

  short(value) {
    return Number(value.toPrecision(3)).toString();
  },

  of(unit, value) {
    return unit === "bytes" ? Units.bytes(value) : Units.count(value);
  },

  /* "+12.3 MiB": with its sign, whatever it is. */
  signed(unit, value) {
    return (value > 0 ? "+" : "") + (value === 0 ? "0" : Units.of(unit, value));
  },

  plural(count, noun) {
    return Units.count(count) + " " + noun + (Math.round(count) === 1 ? "" : "s");
  },
};

/* element("p", {class: "quiet", onclick: …}, "text", otherElement, …) */
function element(name, attributes, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else made.setAttribute(key, value === true ? "" : value);
  }
  for (const child of children.flat()) if (child !== null && child !== undefined) made.append(child);
  return made;
}

function byId(id) {
  return document.getElementById(id);
}
