"use strict";
/* Figures of any set of rows: they add up, and so do their variances. */

const METRICS = ["live", "peak", "total", "temporary"];
const METRIC_NAMES = { live: "Live", peak: "Peak", total: "Total", temporary: "Temporary" };
const FEW_SAMPLES = 100;

const Figures = {
  /* `rows`: {from, to} or {list}. */
  sum(report, rows) {
    const sum = { samples: 0, live_samples: 0, frees: 0, lifetime: new Float64Array(report.raw.lifetime_buckets) };
    for (const metric of METRICS)
      for (const unit of ["bytes", "objects"]) sum[`${metric}_${unit}`] = sum[`${metric}_${unit}_variance`] = 0;
    const names = Object.keys(sum).filter((name) => name !== "lifetime");
    Figures.each(rows, (row) => {
      for (const name of names) sum[name] += report.row[name][row];
      const { start, bucket, values } = report.lifetimes;
      for (let i = start[row]; i < start[row + 1]; i++) sum.lifetime[bucket[i]] += values[0][i];
    });
    return sum;
  },

  /* Bytes by the time at which they were allocated, of what is live; null if that is not known. */
  births(report, rows) {
    if (!report.births) return null;
    const sum = new Float64Array(report.raw.birth_buckets);
    const { start, bucket, values } = report.births;
    Figures.each(rows, (row) => {
      for (let i = start[row]; i < start[row + 1]; i++) sum[bucket[i]] += values[0][i];
    });
    return sum;
  },

  each(rows, visit) {
    if (rows.list) for (const row of rows.list) visit(row);
    else for (let row = rows.from; row < rows.to; row++) visit(row);
  },

  /* Half the width of the 95 % interval, as src/base/confidence_interval.h has it. */
  error(report, value, variance, unit) {
    if (report.exact) return 0;
    if (!(value > 0)) return unit === "bytes" ? report.unseen : 0;
    if (!(variance > 0)) return 0;
    const typical = variance / value;
    return 1.96 * Math.sqrt(variance + Math.min(typical * typical, variance));
  },

  /* The value of each row for a figure. With a period, of what is live only what was allocated in it. */
  values(report, metric, unit, period) {
    if (metric !== "live" || !period || !report.births) return report.row[`${metric}_${unit}`];
    const { start, bucket, values } = report.births;
    const chosen = values[unit === "bytes" ? 0 : 1];
    const result = new Float64Array(report.rowCount);
    for (let row = 0; row < report.rowCount; row++)
      for (let i = start[row]; i < start[row + 1]; i++)
        if (bucket[i] >= period.first && bucket[i] <= period.last) result[row] += chosen[i];
    return result;
  },

  /* How many samples a figure rests on. */
  samples(sum, metric) {
    return metric === "live" ? sum.live_samples : sum.samples;
  },

  /* The buckets of `births` that a stretch of time touches. */
  period(report, from, to) {
    const width = report.raw.birth_width, last = report.raw.birth_buckets - 1;
    if (!width) return null;
    const clamp = (bucket) => Math.max(0, Math.min(last, bucket));
    const period = { first: clamp(Math.floor(from / width + 1e-9)), last: clamp(Math.ceil(to / width - 1e-9) - 1) };
    period.last = Math.max(period.first, period.last);
    return { ...period, from: period.first * width, to: (period.last + 1) * width };
  },
};
