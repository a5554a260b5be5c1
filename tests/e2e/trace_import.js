// Runs the importer of Chrome's trace viewer on traces and prints what it understood, as a JSON list.
//
//     node trace_import.js trace_viewer_full.html FILE...
//
// The page holds the whole viewer in one script, put together from some hundred parts. Its model and its importers are
// made to run without a page as well (in catapult's own shell, vinn, which this claims to be); the parts that draw fail
// to load here and are not needed. What the heap details pane would show is made as it makes it itself.
'use strict';
const fs = require('fs');
const vm = require('vm');

const [page, ...files] = process.argv.slice(2);
const text = fs.readFileSync(page, 'utf8');
const script = text.slice(text.indexOf('<script>') + '<script>'.length, text.lastIndexOf('</script>'));
globalThis.isVinn = true;
for (const part of script.split("'use strict';")) {
  try {
    vm.runInThisContext("'use strict';" + part);
  } catch (error) {
    // It needs a document.
  }
}

function heapTree(heapDump) {
  const builder = new tr.b.MultiDimensionalViewBuilder(2, 2);
  const kinds = tr.b.MultiDimensionalViewBuilder.ValueKind;
  for (const entry of heapDump.entries) {
    const frame = entry.leafStackFrame;
    const path = frame === undefined ? [] : frame.getUserFriendlyStackTrace().reverse();
    const type = entry.objectTypeName === undefined ? [] : [entry.objectTypeName];
    builder.addPath([path, type], [entry.size, entry.count], entry.valuesAreTotals ? kinds.TOTAL : kinds.SELF);
  }
  builder.complete = heapDump.isComplete;
  const rows = [];
  (function visit(node, path) {
    rows.push([path, null, node.values[0].total, node.values[1].total]);
    for (const [type, child] of node.children[1]) rows.push([path, type, child.values[0].total, child.values[1].total]);
    for (const [name, child] of node.children[0]) visit(child, path.concat([name]));
  })(builder.buildTopDownTreeView(), []);
  return rows;
}

function allocatorSizes(dumps, sizes = {}) {
  for (const dump of dumps) {
    sizes[dump.fullName] = Object.fromEntries(Object.entries(dump.numerics).map(([name, { value }]) => [name, value]));
    allocatorSizes(dump.children, sizes);
  }
  return sizes;
}

function understood(file) {
  const model = new tr.Model();
  const options = new tr.importer.ImportOptions();
  options.showImportWarnings = false;
  try {
    new tr.importer.Import(model, options).importTraces([fs.readFileSync(file, 'utf8')]);
  } catch (error) {
    return { error: String(error) };
  }
  return {
    warnings: model.importWarnings.map((warning) => warning.message),
    counters: Object.values(model.processes).map((process) => Object.keys(process.counters)),
    dumps: model.globalMemoryDumps.map((dump) => ({
      milliseconds: dump.start,
      detailed: dump.levelOfDetail === tr.model.ContainerMemoryDump.LevelOfDetail.DETAILED,
      processes: Object.fromEntries(
        Object.entries(dump.processMemoryDumps).map(([pid, process]) => [
          pid,
          {
            name: process.process.name,
            mapped: process.vmRegions && process.vmRegions.sizeInBytes,
            allocators: allocatorSizes(process.memoryAllocatorDumps || []),
            heaps: Object.fromEntries(
              Object.entries(process.heapDumps || {}).map(([name, heapDump]) => [name, heapTree(heapDump)])
            ),
          },
        ])
      ),
    })),
  };
}

console.log(JSON.stringify(files.map(understood)));
