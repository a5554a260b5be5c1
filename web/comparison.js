"use strict";
/* The page of a comparison: the same graph, table and controls, of what changed from one recording to another. */

const STEPS = [0, 0.01, 0.1]; /* how strong a colour is, by the share of the whole that a change makes */

const CHANGE_COLUMNS = [
  { key: "site", title: "Site" },
  { key: "change", title: "Change", by: "rank" },
  { key: "error", title: "±" },
  { key: "significant", title: "Verdict" },
  { key: "base", title: "Base" },
  { key: "new", title: "New" },
];

/* Red grew, blue shrank, grey may be chance. The sign before the name says the same. */
class ChangeColours extends Colours {
  constructor(report, changes) {
    super(report);
    this.changes = changes;
  }

  setMode(mode, dark) {
    this.byChange = mode === "change";
    super.setMode(this.byChange ? "module" : mode, dark);
    if (!this.byChange) return;
    this.neutral = `hsl(220 6% ${dark ? 27 : 88}%)`;
    const [lights, saturation] = dark ? [[26, 33, 40], 52] : [[88, 77, 66], 84];
    this.scale = (hue) => lights.map((light) => `hsl(${hue} ${saturation}% ${light}%)`);
    [this.grew, this.shrank] = [this.scale(6), this.scale(214)];
    const amounts = STEPS.map((share) => (share ? `over ${Math.round(100 * share)} %` : "less"));
    const nameOf = (title, sign, i) =>
      (i === STEPS.length - 1 ? `${sign} ${title} by ${amounts[i]} of the whole` : `${sign} ${amounts[i]}`);
    const entries = (title, sign, fills) => fills.map((fill, i) => ({ name: nameOf(title, sign, i), fill }));
    this.legend = [...entries("grew", "+", this.grew).reverse(), { name: "no significant change", fill: this.neutral },
      ...entries("shrank", "−", this.shrank)];
  }

  fillOf(tree, node) {
    if (!this.byChange) return super.fillOf(tree, node);
    const { change, significant } = this.changes.of(tree, node);
    if (!significant) return this.neutral;
    const share = Math.abs(change) / tree.value(tree.root);
    return (change > 0 ? this.grew : this.shrank)[STEPS.findLastIndex((least) => share >= least)];
  }

  signOf(tree, node) {
    const { change, significant } = this.changes.of(tree, node);
    return !significant ? "" : change > 0 ? "+ " : "− ";
  }
}

const ChangeDetails = {
  ...Details,

  inShort(app, node) {
    const change = app.changes.of(app.tree, node), { unit } = app.state;
    return `${Changes.text(change, unit)}, ${Changes.verdict(change)}, ${Changes.way(change, unit)}`;
  },

  tooltip(app, node) {
    const { state, tree } = app;
    const change = app.changes.of(tree, node);
    return [
      element("p", { class: "name" }, Details.title(app, node)),
      Details.where(app.report.frames[tree.frame(node)]),
      element("p", { class: "figure" }, Changes.text(change, state.unit),
        element("span", { class: "quiet" },
          ` ${METRIC_NAMES[state.metric].toLowerCase()} ${state.unit}, ${Changes.verdict(change)}`)),
      element("p", null, Changes.way(change, state.unit)),
    ];
  },

  figures(app, node) {
    const rows = app.metrics.flatMap((metric) => UNITS.map((unit) => {
      const change = app.changes.ofRows(app.tree.rows(node), metric, unit);
      const texts = [Units.of(unit, change.base), Units.of(unit, change.new), Changes.text(change, unit),
        Changes.verdict(change)];
      return element("tr", null, element("th", { scope: "row" }, `${METRIC_NAMES[metric]} ${unit}`),
        texts.map((text) => element("td", null, text)));
    }));
    const titles = ["", "Base", "New", "Change", "Verdict"].map((title) => element("th", { scope: "col" }, title));
    return element("div", { class: "figures" }, element("table", null,
      element("thead", null, element("tr", null, titles)),
      element("tbody", null, rows)));
  },
};

class ChangeTables extends Tables {
  makeColumns() { return CHANGE_COLUMNS; }
  get lines() { return this.app.report.lines[`${this.app.state.metric}_${this.app.state.unit}`]; }
  get sites() { return this.lines.sites; }

  restText() {
    const { count, significant, sites } = this.lines;
    return `; ${Units.count(significant)} of ${Units.count(count)} changed significantly`
      + (count > sites.length ? `, ${Units.count(count - sites.length)} with the smallest changes are not listed` : "");
  }

  siteCell(site, { key }) {
    const { unit } = this.app.state;
    if (key === "change") {
      const way = site.significant ? (site.change > 0 ? "grew" : "shrank") : null;
      return element("span", { class: way }, Units.signed(unit, site.change));
    }
    if (key === "error") return site.error > 0 ? Units.of(unit, site.error) : "";
    if (key === "significant")
      return element("span", { class: site.significant ? null : "quiet" }, Changes.verdict(site));
    return Units.of(unit, site[key]);
  }

  callTitles() { return ["Change", "±", "Verdict", "Base", "New"]; }

  callCells(node) {
    const { unit } = this.app.state;
    const change = this.app.changes.of(this.app.tree, node);
    return [Units.signed(unit, change.change), change.error > 0 ? Units.of(unit, change.error) : "",
      Changes.verdict(change), Units.of(unit, change.base), Units.of(unit, change.new)];
  }
}

class ComparisonApp extends App {
  get metrics() { return ["live", "peak", "total"]; }
  get colourings() { return ["change", "module", "language"]; }

  parts() {
    this.changes = new Changes(this.report);
    const colours = new ChangeColours(this.report, this.changes);
    return { colours, tables: new ChangeTables(this), details: ChangeDetails };
  }

  defaults() {
    return { ...super.defaults(), colour: "change", sort: "change" };
  }

  values() {
    this.changes.choose(this.state.metric, this.state.unit);
    return this.changes.widths();
  }

  writeHead() {
    const { raw } = this.report;
    const sides = [["Base", raw.comparison.base], ["New", raw.comparison.new]];
    const { processes } = raw.comparison.new;
    const name = processes.length === 1 ? processes[0].name : `${processes.length} processes`;
    document.documentElement.dataset.kind = "comparison";
    document.title = `${name}, what changed · malloscope`;
    byId("program").textContent = name;
    byId("run").replaceChildren(
      ...sides.map(([title, side]) => element("span", { class: "side" }, `${title}: ${this.sideText(side)}`)),
      ...(raw.filter ? [`Only stacks that match ${raw.filter}`] : []));
    byId("graph-title").textContent = "What changed";
    this.writeNotes();
    const quality = (side) => (side.exact ? "every allocation was recorded" : Units.plural(side.samples, "sample"));
    const qualities = sides.map(([title, side]) => `${title.toLowerCase()}: ${quality(side)}`);
    byId("footer").textContent = `${raw.tool} · ${qualities.join(" · ")}`;
  }

  sideText(side) {
    const [first] = side.processes;
    return [side.source, side.at_peak ? "at its peak" : null,
      side.seconds === undefined ? null : `what was allocated in the first ${Units.seconds(side.seconds)}`,
      side.processes.length === 1 ? this.lifeText(first) : null,
      first && first.command_line ? `${first.command_line} (pid ${first.pid})` : null].filter(Boolean).join(", ");
  }

  cardText(metric) {
    const { total } = this.report.lines[metric + "_bytes"];
    return [
      element("span", { class: "value" }, element("span", { class: "whole" }, Units.signed("bytes", total.change)),
        total.error > 0 ? element("span", { class: "quiet" }, ` ± ${Units.bytes(total.error)}`) : null),
      element("span", { class: "quiet" }, Changes.way(total, "bytes")),
      element("span", { class: total.significant ? null : "quiet" }, Changes.verdict(total)),
    ];
  }

  matchedText() {
    const { metric, unit } = this.state;
    const change = this.changes.ofRows({ list: this.matchedRows() }, metric, unit);
    Object.assign(byId("matched").dataset, { base: change.base, new: change.new });
    return `Matches went from ${Changes.way(change, unit)} ${METRIC_NAMES[metric].toLowerCase()}:`
      + ` ${Changes.text(change, unit)}, ${Changes.verdict(change)}`;
  }
}
