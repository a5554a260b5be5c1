"use strict";
/* The heap over time, with its peak marked, and a brush. The recording keeps its stacks for the whole run, not over
 * time. So of a period the page can tell how the heap's size changed in it, and which of the blocks that are live at
 * the end were allocated in it; it cannot tell the blocks that were live then. */

class Timeline {
  constructor(report, theme, onChange) {
    this.report = report;
    this.theme = theme;
    this.onChange = onChange;
    this.canvas = byId("timeline");
    this.context = this.canvas.getContext("2d");
    const { timeline } = report.raw;
    this.count = timeline ? timeline.live_max.length : 0;
    this.exists = this.count > 0 && report.duration > 0;
    byId("time").hidden = !this.exists;
    if (!this.exists) return;
    this.end = Math.max(report.duration, this.count * timeline.width);
    if (this.end > report.duration * 1.02) this.end = report.duration;
    this.shown = [0, this.end];
    this.range = null;
    this.listen();
    new ResizeObserver(() => this.draw()).observe(this.canvas.parentElement);
  }

  setTheme(theme) {
    this.theme = theme;
    this.draw();
  }

  /* `range` is [from, to] in seconds or null. */
  setRange(range, quiet) {
    if (!this.exists) return;
    this.range = range && range[1] > range[0] ? [Math.max(0, range[0]), Math.min(this.end, range[1])] : null;
    if (!this.range) this.shown = [0, this.end];
    this.describe();
    this.draw();
    if (!quiet) this.onChange(this.range);
  }

  zoom() {
    if (!this.range) return;
    this.shown = [...this.range];
    this.describe();
    this.draw();
  }

  xOf(seconds) {
    return ((seconds - this.shown[0]) / (this.shown[1] - this.shown[0])) * this.width;
  }

  secondsAt(x) {
    return this.shown[0] + (Math.max(0, Math.min(this.width, x)) / this.width) * (this.shown[1] - this.shown[0]);
  }

  /* What happened in the period. */
  sum(from, to) {
    const { timeline } = this.report.raw;
    const sum = { allocated: 0, events: 0, highest: 0, last: 0 };
    const first = Math.max(0, Math.floor(from / timeline.width));
    for (let i = first; i < this.count && i * timeline.width < to; i++) {
      sum.allocated += timeline.allocated[i];
      sum.events += timeline.events[i];
      sum.highest = Math.max(sum.highest, timeline.live_max[i]);
      sum.last = timeline.live_last[i];
    }
    return sum;
  }

  describe() {
    const [from, to] = this.range || [0, this.end];
    const sum = this.sum(from, to);
    const when = this.range ? `${Units.seconds(from)} to ${Units.seconds(to)}: ` : `${Units.seconds(this.end)}: `;
    const { timeline } = this.report.raw;
    const text = `${when}highest ${Units.bytes(sum.highest)}, ${Units.bytes(sum.last)} at its end`
      + (this.report.raw.levels_only ? "" : `, ${Units.bytes(sum.allocated)} allocated`)
      + `, in steps of ${Units.seconds(timeline.width)}`;
    byId("time-text").textContent = text;
    const [peak, process] = [Units.bytes(this.report.raw.totals.peak_bytes), this.report.raw.processes[0]];
    this.canvas.setAttribute("aria-label",
      `Heap over time. ${text}. Peak ${peak} after ${Units.seconds(process.peak_seconds)}.`);
    byId("time-zoom").disabled = !this.range;
    byId("time-clear").disabled = !this.range;
    for (const [id, value] of [["time-from", from], ["time-to", to]]) {
      const input = byId(id);
      [input.min, input.max] = this.shown;
      input.step = (this.shown[1] - this.shown[0]) / 512;
      input.value = value;
      input.setAttribute("aria-valuetext", Units.seconds(value));
    }
  }

  draw() {
    if (!this.exists) return;
    const ratio = window.devicePixelRatio || 1;
    const height = (this.height = 120);
    this.width = this.canvas.clientWidth;
    this.canvas.width = Math.round(this.width * ratio);
    this.canvas.height = Math.round(height * ratio);
    this.canvas.style.height = height + "px";
    this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
    const { timeline } = this.report.raw;
    let most = 0;
    const first = Math.max(0, Math.floor(this.shown[0] / timeline.width));
    const last = Math.min(this.count - 1, Math.ceil(this.shown[1] / timeline.width));
    for (let i = first; i <= last; i++) most = Math.max(most, timeline.live_max[i]);
    this.most = most || 1;
    this.drawGrid();
    this.drawHeap(first, last);
    this.drawPeak();
    this.drawRange();
  }

  yOf(bytes) {
    const base = this.height - 18;
    return base - (bytes / this.most) * (base - 14);
  }

  drawGrid() {
    const { context, theme } = this;
    context.clearRect(0, 0, this.width, this.height);
    context.font = theme.smallFont;
    context.fillStyle = theme.quiet;
    context.strokeStyle = theme.line;
    context.lineWidth = 1;
    context.textBaseline = "middle";
    for (const share of [0, 0.5, 1]) {
      const y = Math.round(this.yOf(this.most * share)) + 0.5;
      context.beginPath();
      context.moveTo(0, y);
      context.lineTo(this.width, y);
      context.stroke();
    }
    const ticks = Math.max(2, Math.min(8, Math.floor(this.width / 120)));
    for (let i = 0; i <= ticks; i++) {
      const seconds = this.shown[0] + ((this.shown[1] - this.shown[0]) * i) / ticks;
      context.textAlign = i === 0 ? "left" : i === ticks ? "right" : "center";
      context.fillText(Units.seconds(seconds), (this.width * i) / ticks, this.height - 7);
    }
  }

  /* The highest of each step, and below it the level at its end. */
  drawHeap(first, last) {
    const { context, theme } = this;
    const { timeline } = this.report.raw;
    const draw = (values, colour) => {
      context.beginPath();
      context.moveTo(this.xOf(first * timeline.width), this.yOf(0));
      for (let i = first; i <= last; i++) {
        context.lineTo(this.xOf(i * timeline.width), this.yOf(values[i]));
        context.lineTo(this.xOf((i + 1) * timeline.width), this.yOf(values[i]));
      }
      context.lineTo(this.xOf((last + 1) * timeline.width), this.yOf(0));
      context.fillStyle = colour;
      context.fill();
    };
    draw(timeline.live_max, theme.heapMost);
    draw(timeline.live_last, theme.heap);
    context.fillStyle = theme.quiet;
    context.textAlign = "left";
    context.fillText(Units.bytes(this.most), 2, 7);
  }

  drawPeak() {
    const { context, theme } = this;
    const process = this.report.raw.processes[0];
    const x = this.xOf(process.peak_seconds), bytes = this.report.raw.totals.peak_bytes;
    if (x < -1 || x > this.width + 1 || !(bytes > 0)) return;
    const y = Math.max(14, this.yOf(bytes));
    context.strokeStyle = context.fillStyle = theme.peak;
    context.lineWidth = 1;
    context.beginPath();
    context.moveTo(x, y);
    context.lineTo(x, this.yOf(0));
    context.stroke();
    context.beginPath();
    context.arc(x, y, 3.5, 0, 7);
    context.fill();
    const text = `peak ${Units.bytes(bytes)}, ${Units.seconds(process.peak_seconds)}`;
    const right = x + 10 + context.measureText(text).width < this.width;
    context.textAlign = right ? "left" : "right";
    context.fillText(text, right ? x + 8 : x - 8, Math.max(7, y - 7));
  }

  drawRange() {
    if (!this.range || (this.range[0] === this.shown[0] && this.range[1] === this.shown[1])) return;
    const { context, theme } = this;
    const [from, to] = this.range.map((seconds) => this.xOf(seconds));
    context.fillStyle = theme.shade;
    context.fillRect(0, 0, from, this.height - 17);
    context.fillRect(to, 0, this.width - to, this.height - 17);
    context.strokeStyle = theme.select;
    context.lineWidth = 1.5;
    context.strokeRect(from, 1, Math.max(1, to - from), this.height - 19);
  }

  listen() {
    let start = null;
    const { canvas } = this;
    canvas.addEventListener("pointerdown", (event) => {
      start = event.offsetX;
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      if (start === null || Math.abs(event.offsetX - start) < 3) return;
      const ends = [start, event.offsetX].sort((a, b) => a - b).map((x) => this.secondsAt(x));
      this.setRange(ends, true);
    });
    const stop = (event) => {
      if (start === null) return;
      const moved = Math.abs(event.offsetX - start) >= 3;
      start = null;
      if (moved) this.onChange(this.range);
    };
    canvas.addEventListener("pointerup", stop);
    canvas.addEventListener("pointercancel", stop);
    canvas.addEventListener("dblclick", () => this.setRange(null));
    byId("time-zoom").addEventListener("click", () => this.zoom());
    byId("time-clear").addEventListener("click", () => this.setRange(null));
    for (const id of ["time-from", "time-to"])
      byId(id).addEventListener("input", () => {
        const ends = [Number(byId("time-from").value), Number(byId("time-to").value)].sort((a, b) => a - b);
        this.setRange(ends[0] <= 0 && ends[1] >= this.end * 0.9999 ? null : ends, true);
        this.onChange(this.range, false);
      });
  }
}
