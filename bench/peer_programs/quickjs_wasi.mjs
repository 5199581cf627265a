// Runs where npm's `quickjs-wasi` is installed: the same engine as ours, in Node.js's own process.
import { readFile } from "node:fs/promises";
import { QuickJS } from "quickjs-wasi";

const CALLS = 200;
const AT_ONCE = 16;
const ROUNDS = 20;
const SEQUENTIAL = `(async () => { for (let i = 0; i < ${CALLS}; i++) await nothing(i); })()`;
const PARALLEL = `(async () => { for (let r = 0; r < ${ROUNDS}; r++)
  await Promise.all(Array.from({ length: ${AT_ONCE} }, (_, i) => nothing(i))); })()`;
const HOLDING = `let settle; (async () => {
  const kept = Array.from({ length: 200 }, (_, n) => ({ id: n, name: "order " + n, open: n % 2 === 0 }));
  await new Promise((done) => { settle = done; }); return kept.length; })()`;

const count = Number(process.argv[1]);
const few = Math.max(3, Math.floor(count / 20));
const wasm = await WebAssembly.compile(await readFile(new URL(import.meta.resolve("quickjs-wasi/quickjs.wasm"))));
const found = { evaluate: [], call: [], parallel: [], suspend: [], resume: [], bytes: [] };

const evaluate = async () => {
  const started = performance.now();
  const vm = await QuickJS.create(wasm);
  vm.evalCode("1 + 1").dispose();
  vm.dispose();
  return performance.now() - started;
};

const addHostFunction = (vm) => {
  const nothing = vm.newFunction("nothing", (n) => {
    const deferred = vm.newPromise();
    const value = n.toNumber();
    Promise.resolve(value).then((settled) => {
      deferred.resolve(vm.newNumber(settled));
      vm.executePendingJobs();
    });
    return deferred.handle;
  });
  vm.setProp(vm.global, "nothing", nothing);
  nothing.dispose();
};

const calls = async (code, each) => {
  const vm = await QuickJS.create(wasm);
  addHostFunction(vm);
  const taken = [];
  for (let n = 0; n <= few; n += 1) {
    const started = performance.now();
    const promise = vm.evalCode(code);
    const result = vm.resolvePromise(promise);
    vm.executePendingJobs();
    await result;
    taken.push((performance.now() - started) / each);
    promise.dispose();
  }
  vm.dispose();
  return taken.slice(1);
};

const suspending = async () => {
  const started = performance.now();
  const vm = await QuickJS.create(wasm);
  vm.evalCode(HOLDING).dispose();
  vm.executePendingJobs();
  const data = QuickJS.serializeSnapshot(vm.snapshot());
  vm.dispose();
  const middle = performance.now();
  const again = await QuickJS.restore(QuickJS.deserializeSnapshot(data), wasm);
  again.evalCode("settle(1)").dispose();
  again.executePendingJobs();
  again.dispose();
  found.suspend.push(middle - started);
  found.resume.push(performance.now() - middle);
  found.bytes.push(data.length);
};

for (let n = 0; n < count + 3; n += 1) found.evaluate.push(await evaluate());
found.evaluate.splice(0, 3);
found.call = await calls(SEQUENTIAL, CALLS);
found.parallel = await calls(PARALLEL, AT_ONCE * ROUNDS);
for (let n = 0; n < Math.max(10, count / 2); n += 1) await suspending();
console.log(JSON.stringify(found));
process.exit(0);
