// Runs the importer of the npm package speedscope on a file and prints what it understood, as JSON.
//
//     node speedscope_import.js NODE_MODULES/speedscope FILE
//
// The package holds the built page and nothing else. Its bundle is run with a document that accepts everything;
// the function that the page calls for its own format is handed out before the page starts to draw (and fails).
'use strict';
const fs = require('fs');
const path = require('path');
const vm = require('vm');

const [folder, file] = process.argv.slice(2);
const release = path.join(folder, 'dist', 'release');
const bundle = fs.readdirSync(release).find((name) => /^speedscope.*\.js$/.test(name));
let source = fs.readFileSync(path.join(release, bundle), 'utf8');

const call = /"Importing as speedscope json file"\),([\w$]+)\(/.exec(source);
const start = source.indexOf('(()=>{') + '(()=>{'.length;
if (!call || start < '(()=>{'.length) throw new Error('this version of speedscope is built differently');
source = source.slice(0, start) + `globalThis.importProfiles = (text) => ${call[1]}(text);` + source.slice(start);

const anything = new Proxy(function () {}, {
  get(target, key) {
    if (key === Symbol.toPrimitive) return () => '';
    if (key === Symbol.iterator) return function* () {};
    return key === 'length' ? 0 : anything;
  },
  apply: () => anything,
  construct: () => anything,
  set: () => true,
});
for (const name of ['document', 'window', 'localStorage', 'location', 'matchMedia', 'requestAnimationFrame'])
  globalThis[name] = anything;

const print = console.log;
console.log = () => {};
try {
  vm.runInThisContext(source);
} catch (error) {
  // The page cannot be drawn here.
}

const group = globalThis.importProfiles(JSON.parse(fs.readFileSync(file, 'utf8')));
print(
  JSON.stringify({
    name: group.name,
    active: group.indexToView,
    profiles: group.profiles.map((profile) => {
      const frames = [];
      profile.forEachFrame((frame) =>
        frames.push({
          name: frame.name,
          file: frame.file,
          line: frame.line,
          self: frame.getSelfWeight(),
          total: frame.getTotalWeight(),
        })
      );
      return { name: profile.getName(), unit: profile.getWeightUnit(), total: profile.getTotalWeight(), frames };
    }),
  })
);
