"use strict";
/* What changed from one recording to another: of any set of rows, with its error bar, and whether it is more than
 * chance. The rows hold the figures of both; those of the base have names that begin with "base_". */

const UNITS = ["bytes", "objects"];

class Changes {
  /* What the page of a comparison has (src/format/page_diff.h). */
  static read(report) {
    const { lines, comparison, strings, files, modules } = report.raw;
    const { base, new: fresh } = comparison;
    Object.assign(report, { exact: base.exact && fresh.exact, duration: 0, births: null });
    const textOf = (texts, number) => (number < 0 ? null : texts[number]);
    const names = [];
    for (let i = 0; i < lines.names.length; i += 9) {
      const [name, short, file, line, module, heap, type, scope, frame] = lines.names.slice(i, i + 9);
      const known = { name: textOf(strings, name), file: textOf(files, file), line, module: textOf(modules, module),
        heap: textOf(strings, heap), type: textOf(strings, type), frame };
      const place = known.file ? known.file + (line > 0 ? ":" + line : "") : known.module;
      const site = textOf(strings, short) ?? place ?? textOf(strings, scope) ?? known.type ?? known.heap;
      names.push({ ...known, site: site ?? "" });
    }
    report.lines = {};
    for (const [value, { count, significant, total, rows }] of Object.entries(lines.values)) {
      const changeOf = ([before, after, error, marked]) =>
        ({ base: before, new: after, change: after - before, error, significant: marked === 1 });
      const sites = [];
      for (let i = 0; i < rows.length; i += 5)
        sites.push({ number: i / 5, rank: -i, ...names[rows[i]], ...changeOf(rows.slice(i + 1, i + 5)) });
      report.lines[value] = { count, significant, total: changeOf(total), sites };
    }
  }

  constructor(report) {
    this.report = report;
    this.sides = report.raw.comparison;
    this.known = new Map();
  }

  /* Chooses the figure that `of` compares from now on. */
  choose(metric, unit) {
    this.metric = metric;
    this.unit = unit;
    this.known.clear();
  }

  of(tree, node) {
    const key = tree.kind + node;
    if (!this.known.has(key)) this.known.set(key, this.ofRows(tree.rows(node), this.metric, this.unit));
    return this.known.get(key);
  }

  ofRows(rows, metric, unit) {
    const { row } = this.report;
    const name = `${metric}_${unit}`;
    const sumOf = (column) => {
      let sum = 0;
      Figures.each(rows, (i) => (sum += column[i]));
      return sum;
    };
    const base = { value: sumOf(row["base_" + name]), variance: sumOf(row[`base_${name}_variance`]) };
    const fresh = { value: sumOf(row[name]), variance: sumOf(row[name + "_variance"]) };
    let size = 1;
    if (unit === "objects") {
      const prefix = sumOf(row.total_objects) > 0 ? "" : "base_";
      const objects = sumOf(row[prefix + "total_objects"]);
      size = objects > 0 ? sumOf(row[prefix + "total_bytes"]) / objects : 0;
    }
    return this.judge(base, fresh, unit, size);
  }

  /* The rule of judge_row in src/view/diff.c, for all calls of the graph together. `size`: the bytes of one unit. */
  judge(base, fresh, unit, size) {
    const { judge } = this.sides;
    const change = fresh.value - base.value;
    const before = Figures.error(this.sides.base, base.value, base.variance, unit);
    const after = Figures.error(this.sides.new, fresh.value, fresh.variance, unit);
    const error = change !== 0 || base.variance + fresh.variance > 0 ? Math.hypot(before, after) : 0;
    const deviation = Math.hypot(base.value > 0 ? before : 0, fresh.value > 0 ? after : 0) / 1.96;
    const bytes = Math.abs(change) * size;
    const chances = 2 * Math.max(((base.value + fresh.value) * size) / bytes, 1);
    const missed = judge.rate > 1 && chances * Math.exp(-bytes / judge.rate) > judge.doubt;
    const significant = change !== 0 && Math.abs(change) > judge.deviation * deviation && !missed;
    return { base: base.value, new: fresh.value, change, error, significant };
  }

  /* The width of each row: the larger of base and new, so that a call that is gone still has a box. */
  widths() {
    const name = `${this.metric}_${this.unit}`;
    const base = this.report.row["base_" + name], fresh = this.report.row[name];
    return fresh.map((value, i) => Math.max(value, base[i]));
  }

  /* "+1.2 MiB ± 0.1 MiB" */
  static text({ change, error }, unit) {
    return Units.signed(unit, change) + (error > 0 ? " ± " + Units.of(unit, error) : "");
  }

  static verdict({ change, significant }) {
    if (change === 0) return "no change";
    return significant ? "significant" : "may be chance";
  }

  /* "3.1 MiB → 4.3 MiB (+38 %)" */
  static way({ base, new: fresh, change }, unit) {
    const part = Units.percent(Math.abs(change) / base);
    const share = base > 0 && change !== 0 ? ` (${change > 0 ? "+" : "−"}${part})` : "";
    return `${Units.of(unit, base)} → ${Units.of(unit, fresh)}${share}`;
  }
}
