"use strict";
/* What is known about one call: in short beside the pointer, in full below the graph. */

const Details = {
  /* "12.3 MiB ± 0.4 MiB" */
  withError(report, sum, metric, unit) {
    const value = sum[`${metric}_${unit}`];
    const error = Figures.error(report, value, sum[`${metric}_${unit}_variance`], unit);
    return Units.of(unit, value) + (error > 0 ? " ± " + Units.of(unit, error) : "");
  },

  place(frame) {
    if (!frame.file) return frame.module || "";
    return frame.file + (frame.line > 0 ? ":" + frame.line : "");
  },

  title(app, node) {
    const frame = app.tree.frame(node);
    if (node === app.tree.root) return app.report.raw.filter ? "All that matches" : "All";
    return frame < 0 ? Units.plural(app.tree.merged(node), "smaller call") + ", merged" : app.report.frames[frame].name;
  },

  average(sum, metric) {
    const objects = sum[`${metric}_objects`];
    return objects > 0 ? Units.bytes(sum[`${metric}_bytes`] / objects) : "–";
  },

  /* Figures that rest on few samples say so. */
  caution(report, sum, metric) {
    const samples = Figures.samples(sum, metric);
    if (report.exact || samples >= FEW_SAMPLES) return null;
    return `rests on ${Units.plural(samples, "sample")}: take it as rough`;
  },

  /* One line, to be read aloud. */
  inShort(app, node) {
    const { report, state, tree } = app;
    const sum = Figures.sum(report, tree.rows(node));
    const share = Units.percent(tree.value(node) / tree.value(tree.root));
    return `${Details.withError(report, sum, state.metric, state.unit)}, ${share}`;
  },

  where(frame) {
    if (!frame) return null;
    const module = frame.file && frame.module ? `  ${frame.module}` : "";
    return element("p", { class: "quiet" }, Details.place(frame) + module + (frame.inlined ? ", inlined" : ""));
  },

  tooltip(app, node) {
    const { report, state } = app;
    const sum = Figures.sum(report, app.tree.rows(node));
    const frame = report.frames[app.tree.frame(node)];
    const share = app.tree.value(node) / app.tree.value(app.tree.root);
    const caution = Details.caution(report, sum, state.metric);
    const period = app.period() ? ` (${app.periodText()}: ${Units.of(state.unit, app.tree.value(node))})` : "";
    const objects = Units.plural(sum[state.metric + "_objects"], "object");
    return [
      element("p", { class: "name" }, Details.title(app, node)),
      Details.where(frame),
      element("p", { class: "figure" }, Details.withError(report, sum, state.metric, state.unit),
        element("span", { class: "quiet" },
          ` ${METRIC_NAMES[state.metric].toLowerCase()}${period}, ${Units.percent(share)} of all`)),
      element("p", null, `${objects}, ${Details.average(sum, state.metric)} on average`),
      caution ? element("p", { class: "caution" }, caution) : null,
      Details.lifetimes(report, sum),
    ];
  },

  /* Bars with a logarithmic axis of time: bucket b holds what lived for less than 4^b µs. */
  lifetimes(report, sum) {
    const most = Math.max(...sum.lifetime);
    if (!(most > 0)) return element("p", { class: "quiet" }, "none of it has been freed");
    const bars = [...sum.lifetime].map((objects, bucket) => {
      const bar = element("span", {
        class: bucket < report.raw.temporary_buckets ? "bar short" : "bar",
        title: `under ${Units.seconds(1.024e-6 * 4 ** bucket)}: ${Units.count(objects)}`,
      });
      bar.style.height = `${objects > 0 ? Math.max(4, (100 * objects) / most) : 0}%`;
      return bar;
    });
    const largest = sum.lifetime.indexOf(most);
    const spoken = `Lifetimes: most lived for less than ${Units.seconds(1.024e-6 * 4 ** largest)}`;
    return element("figure", { class: "lifetimes" },
      element("div", { class: "bars", role: "img", "aria-label": spoken }, bars),
      element("figcaption", { class: "quiet" }, element("span", null, "1 µs"),
        element("span", null, "lifetimes of what was freed"), element("span", null, "18 min")));
  },

  births(report, births) {
    const most = births ? Math.max(...births) : 0;
    if (!(most > 0)) return null;
    const bars = [...births].map((bytes, i) => {
      const title = `${Units.seconds(i * report.raw.birth_width)}: ${Units.bytes(bytes)}`;
      const bar = element("span", { class: "bar", title });
      bar.style.height = `${bytes > 0 ? Math.max(4, (100 * bytes) / most) : 0}%`;
      return bar;
    });
    return element("figure", { class: "lifetimes" },
      element("div", { class: "bars", role: "img", "aria-label": "When what is live was allocated" }, bars),
      element("figcaption", { class: "quiet" }, element("span", null, "0"),
        element("span", null, "when what is live was allocated"),
        element("span", null, Units.seconds(report.duration))));
  },

  panel(app, node) {
    const { report } = app;
    const body = byId("details-body");
    byId("details").hidden = node === app.tree.root;
    byId("details-title").textContent = Details.title(app, node);
    body.replaceChildren(element("div", { class: "columns" },
      element("div", null, app.details.figures(app, node)),
      element("div", null, Details.source(report, report.frames[app.tree.frame(node)]), Details.stack(app, node))));
  },

  figures(app, node) {
    const { report } = app;
    const sum = Figures.sum(report, app.tree.rows(node));
    return [Details.figureTable(app, node, sum), Details.lifetimes(report, sum),
      Details.births(report, Figures.births(report, app.tree.rows(node)))].flat();
  },

  figureTable(app, node, sum) {
    const { report } = app;
    const live = Units.of(app.state.unit, app.tree.value(node));
    const then = app.period() ? element("p", null, `${live} of what is live was ${app.periodText()}.`) : null;
    const rows = METRICS.map((metric) => element("tr", null,
      element("th", { scope: "row" }, METRIC_NAMES[metric]),
      element("td", null, Details.withError(report, sum, metric, "bytes")),
      element("td", null, Details.withError(report, sum, metric, "objects")),
      element("td", null, Details.average(sum, metric))));
    const cautions = METRICS.map((metric) => [metric, Details.caution(report, sum, metric)]).filter(([, text]) => text);
    const few = sum.samples < FEW_SAMPLES || cautions.length === METRICS.length;
    const caution = () => (few ? Details.caution(report, sum, "total") || cautions[0][1]
      : `${METRIC_NAMES[cautions[0][0]]} ${cautions[0][1]}`);
    const samples = `, ${Units.plural(sum.samples, "sample")}, ${Units.count(sum.live_samples)} of them live`;
    const titles = ["", "Bytes", "Objects", "Average"].map((title) => element("th", { scope: "col" }, title));
    return [
      element("div", { class: "figures" }, element("table", null,
        element("thead", null, element("tr", null, titles)),
        element("tbody", null, rows))),
      then,
      element("p", { class: "quiet" }, `${Units.count(sum.frees)} freed` + (report.exact ? "" : samples)),
      cautions.length ? element("p", { class: "caution" }, caution()) : null,
    ];
  },

  /* The callers, innermost first; each can be gone to. */
  stack(app, node) {
    const items = [];
    for (let at = node; at !== app.tree.root; at = app.tree.parent(at)) {
      const goal = at, frame = app.report.frames[app.tree.frame(at)];
      items.push(element("li", null,
        element("button", { type: "button", class: "link", onclick: () => app.zoom(goal) },
          frame ? frame.short : Details.title(app, at)),
        frame ? element("span", { class: "quiet" }, " " + Details.place(frame)) : null));
    }
    if (app.tree.kind === "callers") items.reverse();
    return items.length ? element("ol", { class: "stack", "aria-label": "Stack, innermost first" }, items) : null;
  },

  source(report, frame) {
    const source = frame && report.sources.get(frame.fileNumber);
    if (!source || !source.lines.has(frame.line)) {
      if (!frame || !frame.file || !frame.line) return null;
      return element("p", { class: "quiet" }, report.raw.sources ? "Its source was not there when the page was made."
        : "The page was made without source lines.");
    }
    const lines = [];
    for (let line = frame.line - 5; line <= frame.line + 5; line++)
      if (source.lines.has(line))
        lines.push(element("div", { class: line === frame.line ? "here" : null },
          element("span", { class: "number" }, String(line).padStart(5)),
          " " + source.lines.get(line).replaceAll("\t", "    ")));
    return element("figure", { class: "source" },
      element("figcaption", { class: "quiet" },
        Details.place(frame) + (source.changed ? ", which has changed since the recording" : "")),
      element("pre", { tabindex: "0" }, lines));
  },
};
