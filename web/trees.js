"use strict";
/* The two trees that can be drawn. Both answer the same questions about a node: value, frame, parent, children
 * (largest first, those without value left out), where it starts, and which rows it is made of. */

/* From the start of the program down to the allocation. */
class CallTree {
  constructor(report) {
    this.report = report;
    this.kind = "calls";
    this.root = 0;
  }

  setValues(values) {
    const { report } = this;
    this.rowValues = values;
    this.inclusive = new Float64Array(report.nodeCount);
    this.begin = new Float64Array(report.nodeCount);
    this.known = new Array(report.nodeCount);
    for (let row = 0; row < report.rowCount; row++) this.inclusive[report.row.node[row]] += values[row];
    for (let i = report.nodeCount - 1; i > 0; i--) this.inclusive[report.parent[i]] += this.inclusive[i];
    this.deepest = 0;
    for (let i = 0; i < report.nodeCount; i++)
      if (this.inclusive[i] > 0 && report.depth[i] > this.deepest) this.deepest = report.depth[i];
  }

  value(node) { return this.inclusive[node]; }
  start(node) { return this.begin[node]; }
  frame(node) { return this.report.frame[node]; }
  merged(node) { return this.report.merged[node]; }
  parent(node) { return this.report.parent[node]; }
  depth(node) { return this.report.depth[node]; }
  key(node) { return String(node); }

  find(key) {
    const node = Number(key);
    if (!Number.isInteger(node) || node < 0 || node >= this.report.nodeCount) return this.root;
    this.place(node);
    return node;
  }

  /* Computes where the node begins. That needs the places of its callers, from the root on. */
  place(node) {
    const path = [];
    for (let at = node; at >= 0; at = this.parent(at)) path.push(at);
    while (path.length) this.children(path.pop());
  }

  children(node) {
    if (this.known[node]) return this.known[node];
    const { childStart, childList } = this.report;
    const children = [];
    for (let i = childStart[node]; i < childStart[node + 1]; i++)
      if (this.inclusive[childList[i]] > 0) children.push(childList[i]);
    children.sort((a, b) => this.inclusive[b] - this.inclusive[a] || a - b);
    let begin = this.begin[node];
    for (const child of children) {
      this.begin[child] = begin;
      begin += this.inclusive[child];
    }
    return (this.known[node] = children);
  }

  rows(node) {
    return { from: this.report.firstRow[node], to: this.report.firstRow[this.report.end[node]] };
  }
}

/* From the allocation up to its callers. Nodes are made when they are shown first, as the whole tree would be huge. */
class CallerTree {
  constructor(report) {
    this.report = report;
    this.kind = "callers";
    this.root = 0;
  }

  setValues(values) {
    const list = Int32Array.from({ length: this.report.rowCount }, (_, row) => row);
    const whole = values.reduce((a, b) => a + b, 0);
    this.rowValues = values;
    /* `at`: for each row of the list, the node of the report that it has reached on its way to the root. */
    this.nodes = [
      { parent: -1, frame: -1, merged: 0, depth: 0, value: whole, start: 0, list, at: null, children: null },
    ];
    this.deepest = 0;
    for (const row of list)
      if (values[row] > 0) this.deepest = Math.max(this.deepest, this.report.depth[this.report.row.node[row]]);
  }

  value(node) { return this.nodes[node].value; }
  start(node) { return this.nodes[node].start; }
  frame(node) { return this.nodes[node].frame; }
  merged(node) { return this.nodes[node].merged; }
  parent(node) { return this.nodes[node].parent; }
  depth(node) { return this.nodes[node].depth; }
  rows(node) { return { list: this.nodes[node].list }; }

  /* The node's path for the address: the frames from the root on, "m" for merged calls. */
  key(node) {
    const parts = [];
    for (let at = node; at > 0; at = this.parent(at)) parts.unshift(this.frame(at) < 0 ? "m" : this.frame(at));
    return parts.join(".");
  }

  /* The widest node of a frame near the root: types and scopes may stand before a site. */
  widest(frame) {
    let level = [this.root];
    for (let depth = 0; depth < 8 && level.length; depth++) {
      level = level.flatMap((node) => this.children(node));
      const found = level.filter((node) => this.frame(node) === frame).sort((a, b) => this.value(b) - this.value(a));
      if (found.length) return found[0];
      level = level.filter((node) => this.report.frames[this.frame(node)]?.given);
    }
    return this.root;
  }

  find(key) {
    let node = this.root;
    for (const part of key ? key.split(".") : []) {
      const frame = part === "m" ? -1 : Number(part);
      const next = this.children(node).find((child) => this.frame(child) === frame);
      if (next === undefined) break;
      node = next;
    }
    return node;
  }

  children(node) {
    const of = this.nodes[node];
    if (of.children) return of.children;
    const groups = new Map();
    for (let i = 0; i < of.list.length; i++) {
      const row = of.list[i];
      const at = of.at === null ? this.report.row.node[row] : this.report.parent[of.at[i]];
      if (at <= 0) continue;
      const frame = this.report.frame[at];
      let group = groups.get(frame);
      if (!group) groups.set(frame, (group = { frame, merged: 0, value: 0, list: [], at: [] }));
      group.value += this.rowValues[row];
      group.merged += this.report.merged[at];
      group.list.push(row);
      group.at.push(at);
    }
    const sorted = [...groups.values()].filter((group) => group.value > 0)
      .sort((a, b) => b.value - a.value || a.frame - b.frame);
    let start = of.start;
    of.children = sorted.map((group) => {
      this.nodes.push({ ...group, parent: node, depth: of.depth + 1, start, children: null });
      start += group.value;
      return this.nodes.length - 1;
    });
    return of.children;
  }
}
