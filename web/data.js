"use strict";
/* The report, from what the tool has put into the page: base 64, gzip, JSON (src/format/page_data.h). Afterwards all
 * is in typed arrays, by node, row, frame or site. */

const Data = {
  async load(text) {
    if (typeof DecompressionStream === "undefined")
      throw new Error("This browser is too old for the page: it needs Chrome 80, Firefox 113 or Safari 16.4.");
    const packed = Uint8Array.from(atob(text.trim()), (character) => character.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
    return Data.read(JSON.parse(await new Response(stream).text()));
  },

  read(raw) {
    const report = { raw };
    Data.readFrames(report);
    Data.readNodes(report);
    Data.readRows(report);
    if (raw.comparison) Changes.read(report);
    else Data.readRun(report);
    Data.readSources(report);
    return report;
  },

  /* What the page of one recording has. */
  readRun(report) {
    const { raw } = report;
    report.exact = raw.totals.exact;
    report.unseen = raw.unseen;
    report.duration = raw.processes.length === 1 ? raw.processes[0].duration : 0;
    Data.addTemporaryVariance(report);
    report.lifetimes = Data.readSparse(raw.lifetimes, report.rowCount, 1, raw.object_scale);
    report.births = !raw.births ? null
      : Data.readSparse(raw.births, report.rowCount, 2, raw.byte_scale, raw.object_scale);
    Data.readSites(report);
  },

  readFrames(report) {
    const { frames, strings, files, modules } = report.raw;
    report.frames = [];
    for (let i = 0; i < frames.length; i += 6) {
      const [name, short, file, line, module, flags] = frames.slice(i, i + 6);
      report.frames.push({
        name: strings[name],
        short: strings[short],
        file: file < 0 ? null : files[file],
        fileNumber: file,
        line,
        module: module < 0 ? null : modules[module],
        inlined: (flags & 1) !== 0,
        interpreted: (flags & 4) !== 0,
        given: (flags & 2) !== 0, /* by the program: a scope, a type, a heap, a thread */
      });
    }
    /* A function that makes calls on several lines is several frames: the line tells them apart. */
    const counts = new Map();
    for (const frame of report.frames) counts.set(frame.name, (counts.get(frame.name) || 0) + 1);
    for (const frame of report.frames)
      frame.label = counts.get(frame.name) > 1 && frame.line > 0 ? `${frame.short}:${frame.line}` : frame.short;
  },

  /* Nodes come before their callees, and the callees before the next sibling: a branch is a range. */
  readNodes(report) {
    const nodes = report.raw.nodes;
    const count = nodes.length / 3 + 1;
    report.nodeCount = count;
    report.parent = new Int32Array(count).fill(-1);
    report.frame = new Int32Array(count).fill(-1);
    report.merged = new Int32Array(count);
    report.depth = new Int32Array(count);
    report.end = new Int32Array(count);
    for (let i = 1; i < count; i++) {
      const at = 3 * (i - 1);
      report.parent[i] = i - nodes[at];
      report.frame[i] = nodes[at + 1];
      report.merged[i] = nodes[at + 2];
      report.depth[i] = report.depth[report.parent[i]] + 1;
    }
    for (let i = count - 1; i >= 0; i--) {
      report.end[i] = Math.max(report.end[i], i + 1);
      if (i) report.end[report.parent[i]] = Math.max(report.end[report.parent[i]], report.end[i]);
    }
    report.childStart = new Int32Array(count + 1);
    for (let i = 1; i < count; i++) report.childStart[report.parent[i] + 1]++;
    for (let i = 0; i < count; i++) report.childStart[i + 1] += report.childStart[i];
    const filled = report.childStart.slice();
    report.childList = new Int32Array(count);
    for (let i = 1; i < count; i++) report.childList[filled[report.parent[i]]++] = i;
  },

  readRows(report) {
    const { columns, rows, byte_scale, object_scale } = report.raw;
    const count = rows.length / columns.length;
    report.rowCount = count;
    report.row = {};
    columns.forEach((name, position) => {
      const scale = name.endsWith("_variance") ? 1 : name.endsWith("bytes") ? byte_scale
        : name.endsWith("objects") || name === "frees" ? object_scale : 1;
      const values = new Float64Array(count);
      for (let i = 0; i < count; i++) values[i] = rows[i * columns.length + position] / scale;
      report.row[name] = values;
    });
    for (const name of columns)
      if (/_(bytes|objects)$/.test(name)) report.row[`${name}_variance`] ||= new Float64Array(count);
    const node = report.row.node;
    for (let i = 1; i < count; i++) node[i] += node[i - 1];
    /* The first row at or after a node. */
    report.firstRow = new Int32Array(report.nodeCount + 1);
    for (let i = 0, row = 0; i <= report.nodeCount; i++) {
      while (row < count && node[row] < i) row++;
      report.firstRow[i] = row;
    }
  },

  /* Temporary allocations are a part of all: their variance is the same part of the total's. */
  addTemporaryVariance(report) {
    for (const unit of ["bytes", "objects"]) {
      const part = report.row[`temporary_${unit}`], whole = report.row[`total_${unit}`];
      const variance = report.row[`total_${unit}_variance`];
      report.row[`temporary_${unit}_variance`] =
        part.map((value, i) => (whole[i] > 0 ? variance[i] * Math.min(value / whole[i], 1) : 0));
    }
  },

  /* Reads entries of [groups since the last entry, bucket, value…] into lists by group. */
  readSparse(flat, groupCount, valueCount, ...scales) {
    const width = 2 + valueCount;
    const count = flat.length / width;
    const sparse = { start: new Int32Array(groupCount + 1), bucket: new Uint8Array(count), values: [] };
    for (let v = 0; v < valueCount; v++) sparse.values.push(new Float64Array(count));
    for (let i = 0, group = 0; i < count; i++) {
      group += flat[i * width];
      sparse.start[group + 1]++;
      sparse.bucket[i] = flat[i * width + 1];
      for (let v = 0; v < valueCount; v++) sparse.values[v][i] = flat[i * width + 2 + v] / scales[v];
    }
    for (let i = 0; i < groupCount; i++) sparse.start[i + 1] += sparse.start[i];
    return sparse;
  },

  readSites(report) {
    const { names, frames, values, rest, left_out, heaps, types } = report.raw.sites;
    const rowOf = (flat, at) => Object.fromEntries(names.map((name, i) => [name, flat[at + i]]));
    report.sites = frames.map((frame, i) => ({
      number: i, frame, heap: heaps?.[i] ?? null, type: types?.[i] ?? null, ...rowOf(values, i * names.length),
    }));
    report.sitesLeftOut = left_out ? { count: left_out, ...rowOf(rest, 0) } : null;
    const births = report.raw.site_births;
    report.siteBirths = births
      ? Data.readSparse(births, report.sites.length, 2, report.raw.byte_scale, report.raw.object_scale) : null;
  },

  readSources(report) {
    report.sources = new Map();
    for (const [file, changed, ...parts] of report.raw.sources || []) {
      const lines = new Map();
      for (let i = 0; i < parts.length; i += 2) parts[i + 1].forEach((text, k) => lines.set(parts[i] + k, text));
      report.sources.set(file, { changed, lines });
    }
  },
};
