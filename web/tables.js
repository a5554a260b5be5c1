"use strict";
/* The tables: sites, and the graph as rows (“As a table”). */

const SITE_COLUMNS = [
  { key: "site", title: "Site" },
  { key: "live_bytes", title: "Live", error: "live_error" },
  { key: "live_objects", title: "Objects", count: true },
  { key: "at_peak_bytes", title: "Peak", error: "at_peak_error" },
  { key: "total_bytes", title: "Total", error: "total_error" },
  { key: "total_objects", title: "Allocations", count: true },
  { key: "average", title: "Average" },
  { key: "temporary", title: "Temporary" },
  { key: "growth", title: "Growth" },
];
const SITES_STEP = 50;

class Tables {
  constructor(app) {
    this.app = app;
    this.shown = SITES_STEP;
    this.columns = this.makeColumns();
    byId("sites-more").addEventListener("click", () => {
      this.shown += 4 * SITES_STEP;
      this.drawSites();
    });
  }

  get sites() { return this.app.report.sites; }

  /* Adds what the columns show of each site. */
  makeColumns() {
    const { report } = this.app;
    for (const site of report.sites) {
      const frame = report.frames[site.frame];
      const { short, name, file, line, module } = frame;
      Object.assign(site, { site: short, name, file, line, module });
      site.average = site.total_objects > 0 ? site.total_bytes / site.total_objects : 0;
      site.temporary = site.total_objects > 0 ? site.temporary_objects / site.total_objects : 0;
      site.births = this.birthsOf(site.number);
      site.growth = this.growthOf(site.births);
    }
    return SITE_COLUMNS.filter((column) => column.key !== "growth" || report.siteBirths);
  }

  birthsOf(site) {
    const sparse = this.app.report.siteBirths;
    if (!sparse || sparse.start[site] === sparse.start[site + 1]) return null;
    const births = new Float64Array(this.app.report.raw.birth_buckets);
    for (let i = sparse.start[site]; i < sparse.start[site + 1]; i++) births[sparse.bucket[i]] += sparse.values[0][i];
    return births;
  }

  /* Bytes a second: live bytes that were allocated in the second half of the run, by the length of that half. */
  growthOf(births) {
    if (!births) return 0;
    const half = births.length / 2;
    let bytes = 0;
    for (let i = half; i < births.length; i++) bytes += births[i];
    return bytes / (this.app.report.duration / 2);
  }

  sortedSites() {
    const { sort, ascending } = this.app.state;
    const key = this.columns.find((column) => column.key === sort).by || sort;
    const order = (a, b) => (typeof a[key] === "string" ? a[key].localeCompare(b[key]) : a[key] - b[key]);
    return this.sites
      .filter((site) => !this.app.matches || this.app.isMatch(site))
      .sort((a, b) => (ascending ? order(a, b) : order(b, a)) || a.number - b.number);
  }

  drawSites() {
    const sites = this.sortedSites();
    const known = this.columns;
    const nothing = this.app.matches ? "No site matches the search." : "Nothing was allocated.";
    const emptyRow = () => element("tr", null, element("td", { class: "first quiet", colspan: known.length }, nothing));
    byId("sites").replaceChildren(
      element("caption", { class: "hidden" }, "Sites, sortable by each column"),
      element("thead", null, element("tr", null, known.map((column) => this.header(column)))),
      element("tbody", null, sites.slice(0, this.shown).map((site) => this.siteRow(site, known)),
        sites.length ? null : emptyRow()));
    const hidden = sites.length - this.shown;
    byId("sites-more").hidden = hidden <= 0;
    byId("sites-more").textContent = `Show more: ${Units.count(Math.max(0, hidden))} are left`;
    const matching = ` of ${Units.count(this.sites.length)} match` + (sites.length === 1 ? "es" : "");
    byId("sites-text").textContent = Units.plural(sites.length, "site") + (this.app.matches ? matching : "")
      + this.restText();
  }

  restText() {
    const rest = this.app.report.sitesLeftOut;
    if (!rest) return "";
    return `; ${Units.count(rest.count)} more, the smallest, hold ${Units.bytes(rest.live_bytes)} live`
      + ` and ${Units.bytes(rest.total_bytes)} in total`;
  }

  header(column) {
    const { state } = this.app;
    const sorted = state.sort === column.key ? (state.ascending ? "ascending" : "descending") : "none";
    const arrow = sorted === "none" ? "" : state.ascending ? " ▴" : " ▾";
    return element("th", { scope: "col", "aria-sort": sorted, class: column.key === "site" ? "first" : null },
      element("button", { type: "button", "data-sort": column.key, onclick: () => this.app.sortBy(column.key) },
        column.title, element("span", { class: "arrow", "aria-hidden": "true" }, arrow)));
  }

  siteRow(site, columns) {
    return element("tr", { "data-site": site.number }, columns.map((column) => (column.key === "site"
      ? this.siteHead(site) : element("td", { "data-key": column.key }, this.siteCell(site, column)))));
  }

  siteHead(site) {
    const { frame } = site;
    const name = frame < 0 ? site.site : element("button",
      { type: "button", class: "link", title: site.name, onclick: () => this.app.showCallers(frame) }, site.site);
    const places = [Details.place(site), site.heap && `heap ${site.heap}`, site.type && `type ${site.type}`];
    return element("th", { scope: "row", class: "first" }, name,
      element("span", { class: "quiet place" }, places.filter(Boolean).join(" · ")));
  }

  siteCell(site, column) {
    const value = site[column.key];
    if (column.key === "temporary") return Units.percent(value);
    if (column.key === "growth") return this.growthCell(site);
    if (column.count) return Units.count(value);
    const error = column.error && value > 0 ? site[column.error] : 0;
    const quiet = error > 0 ? element("span", { class: "quiet error" }, " ±" + Units.percent(error / value)) : null;
    return [Units.bytes(value), quiet];
  }

  /* What is live now, added up by the time at which it was allocated. */
  growthCell(site) {
    if (!site.births) return element("span", { class: "quiet" }, "–");
    let sum = 0;
    const whole = site.births.reduce((a, b) => a + b, 0);
    const points = [...site.births].map((bytes, i) => {
      sum += bytes;
      return `${((i + 1) / site.births.length * 64).toFixed(1)},${(17 - (sum / whole) * 15).toFixed(1)}`;
    });
    const namespace = "http://www.w3.org/2000/svg";
    const picture = document.createElementNS(namespace, "svg");
    picture.setAttribute("viewBox", "0 0 64 18");
    picture.setAttribute("class", "spark");
    picture.setAttribute("aria-hidden", "true");
    const line = document.createElementNS(namespace, "polyline");
    line.setAttribute("points", `0,17 ${points.join(" ")}`);
    picture.append(line);
    return [picture, element("span", { class: "rate" }, site.growth > 0 ? `+${Units.bytes(site.growth)}/s` : "0")];
  }

  /* The canvas as a table: the call that the graph is zoomed to, its callers above and its callees below. */
  drawCalls() {
    const { app } = this;
    const { tree, report } = app;
    const node = app.at;
    const row = (at, level) => {
      const frame = report.frames[tree.frame(at)];
      const name = at === tree.root ? Details.title(app, at) : frame ? frame.short : Details.title(app, at);
      const cell = element("th", { scope: "row", class: "first" },
        element("button", { type: "button", class: "link", onclick: () => app.zoom(at) }, name),
        frame ? element("span", { class: "quiet place" }, Details.place(frame)) : null);
      cell.style.paddingInlineStart = `${0.7 + Math.min(level, 24) * 0.6}em`;
      return element("tr", { class: at === node ? "here" : null, "aria-current": at === node ? "true" : null },
        cell, this.callCells(at).map((text) => element("td", null, text)));
    };
    const path = [];
    for (let at = node; at >= 0; at = tree.parent(at)) path.unshift(at);
    const children = tree.children(node);
    byId("calls").replaceChildren(element("table", null,
      element("caption", { class: "hidden" }, "The calls of the graph, as a table"),
      element("thead", null, element("tr", null,
        [tree.kind === "calls" ? "Call" : "Caller", ...this.callTitles()]
          .map((title, i) => element("th", { scope: "col", class: i ? null : "first" }, title)))),
      element("tbody", null, path.map((at, i) => row(at, i)),
        children.slice(0, 200).map((at) => row(at, path.length)))),
      children.length <= 200 ? ""
        : element("p", { class: "quiet" }, `${Units.count(children.length - 200)} smaller ones are not listed.`));
  }

  callTitles() { return [METRIC_NAMES[this.app.state.metric], "±", "Share", "Objects"]; }

  callCells(node) {
    const { tree, report, state } = this.app;
    const sum = Figures.sum(report, tree.rows(node)), all = tree.value(tree.root);
    return [
      Units.of(state.unit, tree.value(node)),
      this.app.period() ? "" : Details.withError(report, sum, state.metric, state.unit).split(" ± ")[1] || "",
      Units.percent(all > 0 ? tree.value(node) / all : 0),
      Units.count(sum[state.metric + "_objects"]),
    ];
  }
}
