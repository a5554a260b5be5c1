"use strict";
/* Colours of frames, by module or by language. Large ones get colours that are far apart; the legend says which. */

const PALETTE = [212, 150, 28, 268, 84, 340, 188, 48, 300, 8, 120, 236];
const NEUTRAL = -1;

const LANGUAGES = [
  { name: "Python", hue: 48, file: /\.(py|pyx|pyi)$/ },
  { name: "Rust", hue: 22, file: /\.rs$/, name_of: /::h[0-9a-f]{16}$|^<.* as .*>::/ },
  { name: "Go", hue: 186, file: /\.go$/ },
  { name: "C++", hue: 268, file: /\.(cc|cpp|cxx|c\+\+|hpp|hh|hxx|tcc|ipp|inl)$|\/c\+\+\//,
    name_of: /::|^operator |<.*>/ },
  { name: "Java, JavaScript", hue: 92, file: /\.(java|kt|scala|js|ts|mjs)$/ },
  { name: "Assembler", hue: 340, file: /\.(s|S|asm)$/ },
  { name: "Fortran", hue: 128, file: /\.(f|f90|f95|f03|f08)$/i },
  { name: "C", hue: 212, file: /\.(c|h|y|l|inc|def)$/ },
];

class Colours {
  constructor(report) {
    this.report = report;
    this.groups = { module: this.byModule(), language: this.byLanguage() };
    this.setMode("module", false);
  }

  /* For each kind of grouping: the name of each frame's group, and the hue of each name, largest first. */
  arrange(nameOf) {
    const { report } = this;
    const names = report.frames.map(nameOf);
    const weight = new Map();
    for (let row = 0; row < report.rowCount; row++) {
      const seen = new Set();
      for (let node = report.row.node[row]; node > 0; node = report.parent[node]) {
        const name = report.frame[node] < 0 ? null : names[report.frame[node]];
        if (name !== null) seen.add(name);
      }
      for (const name of seen) weight.set(name, (weight.get(name) || 0) + report.row.total_bytes[row]);
    }
    const order = [...weight.keys()].sort((a, b) => weight.get(b) - weight.get(a) || (a < b ? -1 : 1));
    return { names, order };
  }

  byModule() {
    const moduleOf = (frame) => frame.module || (frame.given ? "[named by the program]" : "[no module]");
    const { names, order } = this.arrange((frame) => (frame.interpreted ? "Python code" : moduleOf(frame)));
    const hues = new Map();
    let next = 0;
    for (const name of order) hues.set(name, name.startsWith("[") ? NEUTRAL : PALETTE[next++ % PALETTE.length]);
    return { names, order, hues };
  }

  byLanguage() {
    const languageOf = (frame) => {
      if (frame.given) return "[named by the program]";
      if (frame.interpreted) return "Python";
      const found = frame.file
        ? LANGUAGES.find((language) => language.file.test(frame.file))
        : LANGUAGES.find((language) => language.name_of && language.name_of.test(frame.name));
      return found ? found.name : "not known";
    };
    const { names, order } = this.arrange(languageOf);
    const hueOf = (name) => LANGUAGES.find((language) => language.name === name)?.hue ?? NEUTRAL;
    const hues = new Map(order.map((name) => [name, hueOf(name)]));
    return { names, order, hues };
  }

  /* Each frame gets the hue of its group and a shade by its name, so that neighbours can be told apart. */
  setMode(mode, dark) {
    const group = this.groups[mode];
    this.mode = mode;
    this.dark = dark;
    this.fill = this.report.frames.map((frame, i) => this.shade(group.hues.get(group.names[i]) ?? NEUTRAL, frame.name));
    this.legend = group.order.map((name) => ({ name, fill: this.shade(group.hues.get(name), "") }));
  }

  /* The colour of a box; null for merged calls. */
  fillOf(tree, node) {
    const frame = tree.frame(node);
    return frame < 0 ? null : this.fill[frame];
  }

  /* The sign before the name in a box; the page of a comparison has some. */
  signOf() { return ""; }

  shade(hue, name) {
    let hash = 0;
    for (let i = 0; i < name.length; i++) hash = (hash * 31 + name.charCodeAt(i)) | 0;
    const step = name ? ((hash >>> 3) % 5) - 2 : 0;
    const saturation = hue === NEUTRAL ? 6 : this.dark ? 30 : 46;
    const lightness = (this.dark ? 34 : 81) + step * (this.dark ? 2 : 2.2);
    return `hsl(${hue === NEUTRAL ? 220 : hue} ${saturation}% ${lightness}%)`;
  }
}
