"use strict";
/* The flame graph on its canvas: a window [left, right] of the tree's width, and rows of calls below each other.
 * Zooming moves the window to a call; its callers then fill the width by themselves. What is narrower than a pixel is
 * drawn together with its smaller siblings, so that a frame costs what can be seen and not what is there. */

const ROW_HEIGHT = 20;
const NARROW = 1.2; /* pixels: what is not drawn on its own */

class Flame {
  constructor(canvas, callbacks) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d", { alpha: false });
    this.callbacks = callbacks; /* zoom(node), hover(node, event), select(node) */
    this.left = 0;
    this.right = 1;
    this.top = 0;
    this.selected = 0;
    this.hovered = -1;
    this.matches = null;
    this.widths = new Map();
    this.listen();
    new ResizeObserver(() => this.resize()).observe(canvas.parentElement);
  }

  setTree(tree, report, colours, theme) {
    this.tree = tree;
    this.report = report;
    this.colours = colours;
    this.theme = theme;
    this.resize();
  }

  /* Which frames match the search: an array of 0 and 1 by frame, or null. */
  setMatches(matches) {
    this.matches = matches;
    this.draw();
  }

  whole() { return this.tree.value(this.tree.root) || 1; }

  /* The deepest call sets the height, up to what the window has room for; the rest scrolls. */
  resize() {
    if (!this.tree) return;
    const rows = this.tree.deepest + 1;
    this.rows = rows;
    this.width = this.canvas.parentElement.clientWidth;
    this.height = Math.max(3 * ROW_HEIGHT, Math.min(rows * ROW_HEIGHT + 2, Math.max(280, window.innerHeight * 0.68)));
    const ratio = window.devicePixelRatio || 1;
    this.canvas.style.height = this.height + "px";
    this.canvas.width = Math.round(this.width * ratio);
    this.canvas.height = Math.round(this.height * ratio);
    this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.clampWindow();
    this.drawNow();
  }

  clampWindow() {
    const span = Math.min(1, Math.max(1e-9, this.right - this.left));
    this.left = Math.max(0, Math.min(this.left, 1 - span));
    this.right = this.left + span;
    this.top = Math.max(0, Math.min(this.top, Math.max(0, this.rows * ROW_HEIGHT - this.height + 2)));
  }

  /* At most once for each frame of the screen. */
  draw() {
    if (this.drawing || !this.tree) return;
    this.drawing = requestAnimationFrame(() => {
      this.drawing = 0;
      this.drawNow();
    });
  }

  drawNow() {
    const { context, theme } = this;
    context.fillStyle = theme.back;
    context.fillRect(0, 0, this.width, this.height);
    context.font = theme.font;
    context.textBaseline = "middle";
    this.boxes = 0;
    this.scale = this.width / (this.right - this.left) / this.whole();
    this.origin = this.left * this.whole();
    if (this.tree.value(this.tree.root) > 0) this.drawBranch(this.tree.root);
    this.outline(this.hovered, theme.hover, 1);
    this.outline(this.selected, theme.select, 2);
    if (this.canvas.parentElement.dataset) this.canvas.dataset.boxes = this.boxes;
  }

  /* Without recursion: stacks are deep. */
  drawBranch(root) {
    const { tree } = this;
    const waiting = [root];
    while (waiting.length) {
      const node = waiting.pop();
      const y = tree.depth(node) * ROW_HEIGHT - this.top;
      this.drawBox(node, y);
      if (y + ROW_HEIGHT > this.height) continue;
      const children = tree.children(node);
      for (let i = 0; i < children.length; i++) {
        const child = children[i];
        const x = (tree.start(child) - this.origin) * this.scale;
        const width = tree.value(child) * this.scale;
        if (x > this.width) break;
        if (width < NARROW) {
          this.drawRest(node, child, x, y + ROW_HEIGHT);
          break;
        }
        if (x + width >= 0) waiting.push(child);
      }
    }
  }

  /* The children of a node from `child` on, which are all narrower than it. */
  drawRest(node, child, x, y) {
    const children = this.tree.children(node), last = children[children.length - 1];
    const end = (this.tree.start(last) + this.tree.value(last) - this.origin) * this.scale;
    if (end < 0 || y + ROW_HEIGHT < 0) return;
    this.context.fillStyle = this.theme.rest;
    const from = Math.max(0, x);
    this.context.fillRect(from, y + 0.5, Math.max(0.6, Math.min(end, this.width) - from - 0.5), ROW_HEIGHT - 1);
    this.boxes++;
  }

  drawBox(node, y) {
    if (y + ROW_HEIGHT < 0) return;
    const { context, tree, theme } = this;
    const x = Math.max(0, (tree.start(node) - this.origin) * this.scale);
    const end = Math.min(this.width, (tree.start(node) + tree.value(node) - this.origin) * this.scale);
    const frame = tree.frame(node);
    const width = end - x - (end - x > 2 ? 0.7 : 0);
    const matched = this.matches && frame >= 0 && this.matches[frame];
    this.boxes++;
    context.fillStyle = matched ? theme.match : this.colours.fillOf(tree, node) ?? theme.rest;
    if (this.matches && !matched) context.globalAlpha = 0.45;
    context.fillRect(x, y + 0.5, Math.max(0.5, width), ROW_HEIGHT - 1);
    context.globalAlpha = 1;
    if (width > 26) this.drawLabel(node, frame, x, y, width, matched);
  }

  drawLabel(node, frame, x, y, width, matched) {
    const { context, theme } = this;
    const text = this.fit(this.colours.signOf(this.tree, node) + this.label(node, frame), width - 8);
    if (!text) return;
    context.fillStyle = matched ? theme.matchText : this.colours.fillOf(this.tree, node) ? theme.text : theme.quiet;
    context.fillText(text, x + 4, y + ROW_HEIGHT / 2 + 0.5);
  }

  label(node, frame) {
    if (node === this.tree.root) return "all";
    if (frame < 0) return `${Units.plural(this.tree.merged(node), "smaller call")}`;
    return this.report.frames[frame].label;
  }

  /* The beginning of the text that fits into the width. */
  fit(text, room) {
    const width = this.widthOf(text);
    if (width <= room) return text;
    for (let count = Math.floor((text.length * room) / width); count >= 3; count--) {
      const cut = text.slice(0, count) + "…";
      if (this.widthOf(cut) <= room) return cut;
    }
    return "";
  }

  /* Measuring is slow, so widths are kept; not for ever, as every zoom cuts texts in other places. */
  widthOf(text) {
    let width = this.widths.get(text);
    if (width === undefined) {
      if (this.widths.size > 20000) this.widths.clear();
      this.widths.set(text, (width = this.context.measureText(text).width));
    }
    return width;
  }

  outline(node, colour, thickness) {
    if (node < 0 || !(this.tree.value(node) > 0)) return;
    const x = (this.tree.start(node) - this.origin) * this.scale;
    const end = x + this.tree.value(node) * this.scale;
    const y = this.tree.depth(node) * ROW_HEIGHT - this.top;
    if (end < 0 || x > this.width) return;
    this.context.strokeStyle = colour;
    this.context.lineWidth = thickness;
    const from = Math.max(1, x), to = Math.min(this.width - 1, end);
    this.context.strokeRect(from, y + 1, Math.max(1, to - from - 1), ROW_HEIGHT - 2);
  }

  /* The call at a place of the canvas, or -1. */
  nodeAt(x, y) {
    const { tree } = this;
    if (!tree) return -1;
    const wanted = Math.floor((y + this.top) / ROW_HEIGHT);
    const value = this.origin + x / this.scale;
    let node = tree.root;
    if (value < 0 || value > tree.value(node)) return -1;
    for (let depth = 0; depth < wanted; depth++) {
      const next = tree.children(node).find(
        (child) => value >= tree.start(child) && value < tree.start(child) + tree.value(child));
      if (next === undefined || tree.value(next) * this.scale < NARROW) return -1;
      node = next;
    }
    return node;
  }

  /* Moves the window to a call. */
  zoomTo(node, animated) {
    this.selected = node;
    const whole = this.whole();
    const left = this.tree.start(node) / whole, right = (this.tree.start(node) + this.tree.value(node)) / whole;
    const y = this.tree.depth(node) * ROW_HEIGHT;
    const outside = y < this.top || y > this.top + this.height - 4 * ROW_HEIGHT;
    const top = outside ? Math.max(0, y - 3 * ROW_HEIGHT) : this.top;
    if (animated) this.animate(left, right > left ? right : left + 1e-9, top);
    else this.setWindow(left, right > left ? right : 1, top);
  }

  setWindow(left, right, top) {
    [this.left, this.right, this.top] = [left, right, top];
    this.clampWindow();
    this.draw();
  }

  animate(left, right, top) {
    const from = [this.left, this.right, this.top], began = performance.now();
    const run = (this.run = (this.run || 0) + 1);
    const step = (now) => {
      if (run !== this.run) return;
      const t = Math.min(1, (now - began) / 160), eased = 1 - (1 - t) ** 3;
      const at = [left, right, top].map((goal, i) => (t === 1 ? goal : from[i] + (goal - from[i]) * eased));
      this.setWindow(...at);
      if (t < 1) requestAnimationFrame(step);
    };
    requestAnimationFrame(step);
  }

  stopAnimation() { this.run = (this.run || 0) + 1; }

  pan(pixelsX, pixelsY) {
    this.stopAnimation();
    const moved = (pixelsX / this.width) * (this.right - this.left);
    this.setWindow(this.left - moved, this.right - moved, this.top - pixelsY);
  }

  zoomAt(x, factor) {
    this.stopAnimation();
    const at = this.left + (x / this.width) * (this.right - this.left);
    const span = Math.min(1, (this.right - this.left) * factor);
    this.setWindow(at - (x / this.width) * span, at - (x / this.width) * span + span, this.top);
  }

  select(node) {
    this.selected = node;
    const y = this.tree.depth(node) * ROW_HEIGHT;
    if (y < this.top) this.top = y;
    if (y + ROW_HEIGHT > this.top + this.height) this.top = y + ROW_HEIGHT - this.height + 2;
    this.clampWindow();
    this.draw();
    this.callbacks.select(node);
  }

  listen() {
    const { canvas } = this;
    let drag = null;
    canvas.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      drag = { x: event.offsetX, y: event.offsetY, moved: false };
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      if (drag && (drag.moved || Math.hypot(event.offsetX - drag.x, event.offsetY - drag.y) > 4)) {
        this.pan(event.offsetX - drag.x, event.offsetY - drag.y);
        drag = { x: event.offsetX, y: event.offsetY, moved: true };
        this.hover(-1, event);
        return;
      }
      this.hover(this.nodeAt(event.offsetX, event.offsetY), event);
    });
    canvas.addEventListener("pointerup", (event) => {
      const clicked = drag && !drag.moved;
      drag = null;
      if (!clicked) return;
      const node = this.nodeAt(event.offsetX, event.offsetY);
      if (node >= 0) this.callbacks.zoom(node);
    });
    canvas.addEventListener("pointercancel", () => (drag = null));
    canvas.addEventListener("pointerleave", (event) => this.hover(-1, event));
    canvas.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    canvas.addEventListener("keydown", (event) => this.key(event));
  }

  hover(node, event) {
    if (node !== this.hovered) {
      this.hovered = node;
      this.canvas.style.cursor = node < 0 ? "default" : "pointer";
      this.draw();
    }
    this.callbacks.hover(node, event);
  }

  /* Where the graph cannot scroll further, the page scrolls. */
  wheel(event) {
    if (event.ctrlKey || event.metaKey) {
      event.preventDefault();
      this.zoomAt(event.offsetX, Math.exp(event.deltaY * 0.004));
      return;
    }
    const before = [this.left, this.top];
    this.pan(-event.deltaX, -event.deltaY);
    if (this.left !== before[0] || this.top !== before[1]) event.preventDefault();
  }

  key(event) {
    const { tree } = this;
    if (event.ctrlKey || event.metaKey || event.altKey || !tree) return;
    const node = this.selected;
    const siblings = node === tree.root ? [node] : tree.children(tree.parent(node));
    const place = siblings.indexOf(node);
    const goal = {
      ArrowUp: node === tree.root ? undefined : tree.parent(node),
      ArrowDown: tree.children(node)[0],
      ArrowLeft: siblings[place - 1],
      ArrowRight: siblings[place + 1],
      Home: tree.root,
    }[event.key];
    if (goal !== undefined) this.select(goal);
    else if (event.key === "Enter") this.callbacks.zoom(node);
    else if (!event.key.startsWith("Arrow")) return;
    event.preventDefault();
  }
}
