"use strict";
/* The page: one state, which is kept in the address (after #), and all that is shown by it. */

const THEMES = {
  light: {
    back: "#ffffff", text: "#20242c", quiet: "#6b7280", line: "#e8e8e4", rest: "#e9e8e4", hover: "#4b5563",
    select: "#1d4ed8", match: "#f5b301", matchText: "#1f1600", heap: "#8fb4dd", heapMost: "#d5e3f3",
    peak: "#b4371f", shade: "rgba(251,250,248,.72)",
  },
  dark: {
    back: "#1b1e24", text: "#e6e8ec", quiet: "#9aa1ad", line: "#2b2f37", rest: "#2a2e36", hover: "#c3c8d1",
    select: "#8ab4ff", match: "#d99a08", matchText: "#1f1600", heap: "#3f6796", heapMost: "#2b3f57",
    peak: "#ff8a70", shade: "rgba(20,22,27,.66)",
  },
};
const FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif';
for (const theme of Object.values(THEMES)) {
  theme.font = `12px ${FONT}`;
  theme.smallFont = `11px ${FONT}`;
}

class App {
  constructor(report) {
    this.report = report;
    this.trees = { calls: new CallTree(report), callers: new CallerTree(report) };
    Object.assign(this, this.parts());
    this.flame = new Flame(byId("flame"), {
      zoom: (node) => this.zoom(node),
      hover: (node, event) => this.hover(node, event),
      select: (node) => this.speak(node),
    });
    this.state = this.fromAddress();
    this.timeline = new Timeline(report, this.theme(), (range, step) => this.change({ range, at: "" }, { step }));
    this.writeHead();
    this.makeControls();
    this.listen();
    this.apply();
  }

  /* The page of a comparison overrides these. */
  get metrics() { return METRICS; }
  get colourings() { return ["module", "language"]; }
  parts() { return { colours: new Colours(this.report), tables: new Tables(this), details: Details }; }
  values() { return Figures.values(this.report, this.state.metric, this.state.unit, this.period()); }

  /* State and address */

  defaults() {
    const { raw } = this.report;
    const sorts = { live: "live_bytes", peak: "at_peak_bytes", total: "total_bytes", temporary: "temporary" };
    return { metric: raw.metric, unit: raw.unit, view: "calls", colour: "module", search: "", at: "", range: null,
      sort: sorts[raw.metric], ascending: false, table: false };
  }

  fromAddress() {
    const given = new URLSearchParams(location.hash.slice(1));
    const state = this.defaults();
    const choose = (key, allowed) => {
      if (allowed.includes(given.get(key))) state[key] = given.get(key);
    };
    choose("metric", this.metrics);
    choose("unit", ["bytes", "objects"]);
    choose("view", ["calls", "callers"]);
    choose("colour", this.colourings);
    choose("sort", this.tables.columns.map((column) => column.key));
    state.search = given.get("search") || "";
    state.at = given.get("at") || "";
    state.ascending = given.has("ascending");
    state.table = given.has("table");
    const range = (given.get("time") || "").split("-").map(Number);
    if (range.length === 2 && range.every(Number.isFinite) && range[1] > range[0]) state.range = range;
    return state;
  }

  address() {
    const { state } = this, usual = this.defaults(), given = new URLSearchParams();
    for (const key of ["metric", "unit", "view", "colour", "search", "at", "sort"])
      if (state[key] !== usual[key]) given.set(key, state[key]);
    if (state.ascending) given.set("ascending", "1");
    if (state.table) given.set("table", "1");
    if (state.range) given.set("time", state.range.map((seconds) => Number(seconds.toPrecision(6))).join("-"));
    return "#" + given.toString();
  }

  /* Changes the state. With `step` the former state stays in the browser's history, for the button Back. */
  change(changes, { step = true } = {}) {
    const before = this.address();
    Object.assign(this.state, changes);
    const after = this.address();
    if (after !== before) {
      /* The number in the browser's history: how many steps of this page can be gone back. */
      if (step) history.pushState(this.steps() + 1, "", after);
      else history.replaceState(this.steps(), "", after);
    }
    this.apply(changes);
  }

  /* Draws anew what depends on the keys of the state that `changes` has; without `changes`, everything. */
  apply(changes) {
    const has = (...keys) => !changes || keys.some((key) => key in changes);
    const { state, report } = this;
    if (has("search")) this.search();
    if (has("colour", "theme")) this.colours.setMode(state.colour, this.isDark());
    if (has("range")) this.timeline.setRange(state.range, true);
    const remade = has("metric", "unit", "view", "range");
    if (remade) {
      this.tree = this.trees[state.view];
      this.tree.setValues(this.values());
    }
    this.at = this.tree.find(state.at);
    if (remade || has("colour", "theme")) this.flame.setTree(this.tree, report, this.colours, this.theme());
    if (remade || has("at")) {
      const still = remade || !changes || matchMedia("(prefers-reduced-motion: reduce)").matches;
      this.flame.zoomTo(this.at, !still);
      this.details.panel(this, this.at);
    }
    this.writeCrumbs();
    this.flame.setMatches(this.matches);
    if (has("search", "sort", "ascending", "metric", "unit")) this.tables.drawSites();
    this.writeMatched();
    this.writeControls();
    byId("graph").hidden = state.table;
    byId("calls").hidden = !state.table;
    byId("as-table").setAttribute("aria-pressed", String(state.table));
    if (state.table) this.tables.drawCalls();
    else if (has("table")) this.flame.resize();
    byId("flame").setAttribute("aria-label",
      `Flame graph of ${METRIC_NAMES[state.metric].toLowerCase()} ${state.unit}, ${state.view}`);
    byId("tooltip").hidden = true;
  }

  steps() { return Number(history.state) || 0; }

  /* To the view before. If the page was opened with this view, to the caller of the call that is shown. */
  back() {
    if (this.steps() > 0) history.back();
    else if (this.at !== this.tree.root) this.zoom(this.tree.parent(this.at));
  }

  zoom(node) { this.change({ at: node === this.tree.root ? "" : this.tree.key(node) }); }
  sortBy(key) {
    const ascending = this.state.sort === key ? !this.state.ascending : key === "site";
    this.change({ sort: key, ascending }, { step: false });
  }

  showCallers(frame) {
    this.change({ view: "callers", at: "" });
    this.zoom(this.tree.widest(frame));
    byId("graph-title").scrollIntoView({ block: "start", behavior: "instant" });
    byId(this.state.table ? "as-table" : "flame").focus({ preventScroll: true });
  }

  /* The period that restricts what is live, or null. */
  period() {
    if (!this.state.range || this.state.metric !== "live" || !this.report.births) return null;
    return Figures.period(this.report, ...this.state.range);
  }

  periodText() {
    const period = this.period();
    return `allocated between ${Units.seconds(period.from)} and ${Units.seconds(period.to)}`;
  }

  /* Search */

  search() {
    const { report, state } = this;
    byId("search").value = state.search;
    this.matches = null;
    this.searchError = "";
    if (!state.search) return;
    try {
      const expression = new RegExp(state.search);
      this.isMatch = ({ name, file, module }) => [name, file, module].some((text) => text && expression.test(text));
      this.matches = Uint8Array.from(report.frames, (frame) => (this.isMatch(frame) ? 1 : 0));
    } catch (error) {
      this.searchError = error.message;
    }
  }

  /* Rows of stacks in which some frame matches: each counts once. */
  matchedRows() {
    const { report } = this;
    const below = new Uint8Array(report.nodeCount);
    const list = [];
    for (let i = 1; i < report.nodeCount; i++)
      below[i] = below[report.parent[i]] || (report.frame[i] >= 0 && this.matches[report.frame[i]]) ? 1 : 0;
    for (let row = 0; row < report.rowCount; row++) if (below[report.row.node[row]]) list.push(row);
    return list;
  }

  matchedText() {
    const { state, tree } = this;
    const sum = this.matchedRows().reduce((a, row) => a + tree.rowValues[row], 0), all = tree.value(tree.root);
    byId("matched").dataset.value = sum;
    return `Matches hold ${Units.of(state.unit, sum)} of ${Units.of(state.unit, all)} `
      + `${METRIC_NAMES[state.metric].toLowerCase()} (${Units.percent(all > 0 ? sum / all : 0)})`;
  }

  writeMatched() {
    const { state } = this;
    const line = byId("matched");
    line.hidden = !state.search;
    byId("search").setAttribute("aria-invalid", String(!!this.searchError));
    if (this.searchError) line.textContent = this.searchError;
    if (!this.matches) return;
    const lines = this.matches.reduce((a, b) => a + b, 0);
    line.textContent = `${this.matchedText()}, in ${Units.plural(lines, "line")} of code`;
  }

  /* What is written once */

  writeHead() {
    const { raw } = this.report;
    const [first] = raw.processes;
    const one = raw.processes.length === 1;
    const name = one ? first.name : `${raw.processes.length} processes`;
    document.title = `${name} · malloscope`;
    byId("program").textContent = name;
    byId("run").textContent = (one ? this.lifeText(first) : "their figures added up")
      + (raw.filter ? `; only stacks that match ${raw.filter}` : "")
      + (first && first.command_line ? `; ${first.command_line} (pid ${first.pid})` : "");
    this.writeNotes();
    const { totals, health } = raw;
    if (raw.levels_only) {
      for (const id of ["metrics", "calls-section", "sites-section"]) byId(id).hidden = true;
      byId("notes").append(element("li", { class: "note" },
        "Only the size of the memory over time was recorded: who allocated it is not known."));
      byId("footer").textContent = raw.tool;
      return;
    }
    const exactly = totals.drops || totals.partial ? "exact, but incomplete" : "every allocation was recorded";
    const sampled = `${Units.plural(totals.samples, "sample")}, one every ${Units.bytes(totals.rate)}`;
    const drops = totals.drops ? Units.plural(totals.drops, "drop") : "no drops";
    byId("footer").textContent = `${raw.tool} · ${totals.exact ? exactly : sampled} · ${drops}`
      + ` · ${Units.percent(health.complete)} of the stacks complete, ${health.mean_depth.toFixed(1)} calls deep`
      + `, confidence ${health.confidence}`
      + ` · recorder ${Units.bytes(totals.recorder_bytes)}`;
  }

  writeNotes() {
    const texts = this.report.raw.notes.map((text) => text.replace(/^note: /, ""));
    byId("notes").replaceChildren(...texts.map((text) => element("li", { class: "note" }, text)));
  }

  lifeText(process) {
    const started = new Date(process.start_ms).toLocaleString();
    return `${this.stateText(process)} ${Units.seconds(process.duration)}, started ${started}`;
  }

  stateText(process) {
    if (process.snapshot) return "copied while it ran, after";
    if (process.attached) return "attached to for";
    return { running: "running for", finished: "finished after", killed: "ended without notice after" }[process.state];
  }

  makeControls() {
    this.cards = this.metrics.map((metric) => element("button",
      { type: "button", role: "radio", class: "card", "data-metric": metric,
        onclick: () => this.change({ metric, at: "" }) },
      element("span", { class: "title" }, METRIC_NAMES[metric]), this.cardText(metric)));
    byId("metrics").replaceChildren(...this.cards);
    const choices = { unit: ["bytes", "objects"], view: ["calls", "callers"], colour: this.colourings };
    this.choices = Object.entries(choices).flatMap(([key, values]) => values.map((value) => {
      const button = element("button",
        { type: "button", role: "radio", "data-key": key, "data-value": value,
          onclick: () => this.change(key === "view" ? { view: value, at: "" } : { [key]: value }) },
        value[0].toUpperCase() + value.slice(1));
      byId(key).append(button);
      return button;
    }));
  }

  cardText(metric) {
    const { totals } = this.report.raw;
    const sum = Figures.sum(this.report, { from: 0, to: this.report.rowCount });
    const [bytes, objects] = [totals[metric + "_bytes"], totals[metric + "_objects"]];
    const share = totals.total_objects > 0 ? totals.temporary_objects / totals.total_objects : 0;
    const error = totals[metric + "_error"]
      ?? Figures.error(this.report, sum[metric + "_bytes"], sum[metric + "_bytes_variance"], "bytes");
    const rest = Figures.samples({ live_samples: totals.live_samples, samples: totals.samples }, metric);
    return [
      element("span", { class: "value" }, element("span", { class: "whole" }, Units.bytes(bytes)),
        error > 0 ? element("span", { class: "quiet" }, ` ± ${Units.bytes(error)}`) : null),
      element("span", { class: "quiet" },
        Units.plural(objects, "object") + (metric === "temporary" ? `, ${Units.percent(share)} of all` : "")),
      !totals.exact && rest < FEW_SAMPLES && objects > 0
        ? element("span", { class: "caution" }, `rests on ${Units.plural(rest, "sample")}`) : null,
    ];
  }

  writeControls() {
    const { state } = this;
    for (const card of this.cards) this.mark(card, card.dataset.metric === state.metric);
    for (const button of this.choices) this.mark(button, state[button.dataset.key] === button.dataset.value);
    const few = this.colours.legend.slice(0, 12), more = this.colours.legend.length - few.length;
    byId("legend").replaceChildren(...few.map(({ name, fill }) => {
      const swatch = element("span", { class: "swatch" });
      swatch.style.background = fill;
      return element("li", null, swatch, name);
    }), more > 0 ? element("li", { class: "quiet" }, `and ${more} more`) : "");
    byId("merged").textContent = this.mergedText();
    byId("period").hidden = !state.range;
    if (state.range)
      byId("period").textContent = this.period() ? `Shows what is live and was ${this.periodText()}.`
        : "Recordings keep stacks for the whole run: of the graphs, only that of live can tell what was allocated"
          + " in a period.";
    if (!(this.tree.value(this.tree.root) > 0))
      byId("merged").textContent = "There is nothing of this kind.";
  }

  mark(button, chosen) {
    button.setAttribute("aria-checked", String(chosen));
    button.tabIndex = chosen ? 0 : -1;
  }

  mergedText() {
    const { raw, frame, row, rowCount } = this.report;
    if (!raw.merged_calls) return "";
    let sum = 0;
    for (let i = 0; i < rowCount; i++) if (row.node[i] > 0 && frame[row.node[i]] < 0) sum += this.tree.rowValues[i];
    const [calls, below] = [Units.plural(raw.merged_calls, "call"), Units.percent(raw.merged_below)];
    return `${calls} that hold less than ${below} of every figure are merged:`
      + ` ${Units.percent(sum / this.tree.value(this.tree.root))} of the graph's width.`
      + " The option “--nodes 0” tells all apart.";
  }

  writeCrumbs() {
    const { tree } = this;
    const path = [];
    for (let at = this.at; at !== tree.root; at = tree.parent(at)) path.unshift(at);
    const crumb = (node, text) => element("button", { type: "button", class: "link", onclick: () => this.zoom(node),
      "aria-current": node === this.at ? "location" : null }, text);
    const shown = path.length > 8 ? [path[0], path[1], -1, ...path.slice(-5)] : path;
    const label = (node) => (tree.frame(node) < 0 ? "merged" : this.report.frames[tree.frame(node)].label);
    byId("crumbs").replaceChildren(
      element("button",
        { type: "button", id: "back", disabled: path.length === 0 && this.steps() === 0, onclick: () => this.back() },
        "Back"),
      crumb(tree.root, "all"),
      ...shown.flatMap((node) => [element("span", { class: "quiet", "aria-hidden": "true" }, "›"),
        node < 0 ? element("span", { class: "quiet" }, "…") : crumb(node, label(node))]));
  }

  /* Pointer and voice */

  hover(node, event) {
    const tip = byId("tooltip");
    if (node < 0 || event.pointerType === "touch") {
      tip.hidden = true;
      return;
    }
    if (this.hinted !== node || this.hintedTree !== this.tree || tip.hidden)
      tip.replaceChildren(...this.details.tooltip(this, node).filter(Boolean));
    [this.hinted, this.hintedTree] = [node, this.tree];
    tip.hidden = false;
    const box = tip.getBoundingClientRect();
    const x = Math.min(event.clientX + 14, document.documentElement.clientWidth - box.width - 8);
    const fits = event.clientY + 18 + box.height <= window.innerHeight;
    const y = fits ? event.clientY + 18 : event.clientY - box.height - 12;
    tip.style.transform = `translate(${Math.max(4, x)}px, ${Math.max(4, y)}px)`;
  }

  speak(node) {
    byId("spoken").textContent = `${Details.title(this, node)}, ${this.details.inShort(this, node)}`;
    this.details.panel(this, node);
  }

  /* Light and dark */

  isDark() {
    const chosen = document.documentElement.dataset.theme;
    return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  }

  theme() { return THEMES[this.isDark() ? "dark" : "light"]; }

  switchTheme() {
    document.documentElement.dataset.theme = this.isDark() ? "light" : "dark";
    this.themeChanged();
  }

  themeChanged() {
    this.timeline.setTheme(this.theme());
    this.apply({ theme: true });
  }

  async copyLink() {
    const button = byId("copy");
    try {
      await navigator.clipboard.writeText(location.href);
      button.textContent = "Copied";
    } catch {
      const field = element("input", { value: location.href, "aria-label": "Link", readonly: true });
      button.after(field);
      field.select();
      button.textContent = document.execCommand("copy") ? "Copied" : "Copy it from the address";
      field.remove();
    }
    setTimeout(() => (button.textContent = "Copy link"), 1500);
  }

  listen() {
    byId("copy").addEventListener("click", () => this.copyLink());
    byId("theme").addEventListener("click", () => this.switchTheme());
    byId("help-open").addEventListener("click", () => byId("help").showModal());
    byId("help-close").addEventListener("click", () => byId("help").close());
    byId("as-table").addEventListener("click", () => this.change({ table: !this.state.table }, { step: false }));
    byId("search").addEventListener("input", (event) => this.change({ search: event.target.value }, { step: false }));
    window.addEventListener("popstate", () => {
      this.state = this.fromAddress();
      this.apply();
    });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.themeChanged());
    document.addEventListener("keydown", (event) => this.key(event));
  }

  /* In a radio group the arrow keys choose the next button. */
  chooseByArrow(event) {
    const group = event.target.closest?.('[role="radiogroup"]');
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (!group || !step) return false;
    const buttons = [...group.querySelectorAll('[role="radio"]')];
    const next = buttons[(buttons.indexOf(event.target) + step + buttons.length) % buttons.length];
    next.click();
    next.focus();
    return true;
  }

  key(event) {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || byId("help").open) return;
    const { state } = this;
    const writing = event.target.matches?.("input[type=search]");
    if (event.key === "Escape") {
      if (writing || (!state.at && state.search)) this.change({ search: "" }, { step: false });
      else if (state.at) this.zoom(this.tree.root);
      if (writing) byId("flame").focus();
      event.preventDefault();
      return;
    }
    if (writing || event.target.matches?.("input")) return;
    const next = (value, values) => values[(values.indexOf(value) + 1) % values.length];
    const actions = {
      "/": () => byId("search").focus(),
      "?": () => byId("help").showModal(),
      Backspace: () => this.back(),
      b: () => this.change({ unit: next(state.unit, ["bytes", "objects"]) }),
      i: () => this.change({ view: next(state.view, ["calls", "callers"]), at: "" }),
      c: () => this.change({ colour: next(state.colour, this.colourings) }),
      t: () => this.switchTheme(),
    };
    this.metrics.forEach((metric, i) => (actions[i + 1] = () => this.change({ metric, at: "" })));
    if (!this.chooseByArrow(event)) {
      if (!actions[event.key]) return;
      actions[event.key]();
    }
    event.preventDefault();
  }
}
