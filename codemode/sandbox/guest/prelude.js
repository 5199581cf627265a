// The guest half of the bridge: evaluated once into the boot image, before any cell.
//
// A cell's requests are only recorded here, as sealed JSON text; the worker takes the queue
// after the jobs are drained and later delivers what settled. Cells are hostile and share
// this realm, so nothing below reads a built-in after start-up: what is needed is captured
// first, text is joined rather than pushed, and tables have no prototype.
//
// The completion value is the array of the worker's entry points:
//   [begin(config, tools, names, mcp, files, namespaces), take(), deliver(text),
//    finish(value), explain(reason), finishScript({value})]
(() => {
  "use strict";

  // ---- what is captured ----
  const { apply } = Reflect;
  const uncurry = Function.prototype.bind.bind(Function.prototype.call);
  const { freeze, defineProperty, keys, getOwnPropertyDescriptor, getPrototypeOf } = Object;
  const ownNames = Reflect.ownKeys;
  const { isArray } = Array;
  const { isView } = ArrayBuffer;
  const { stringify, parse } = JSON;
  const { isError } = Error;
  const { isInteger } = Number;
  const { min } = Math;
  const toString = String;
  const NativeError = Error;
  const NativeTypeError = TypeError;
  const NativeRangeError = RangeError;
  const NativeReferenceError = ReferenceError;
  const NativeAggregateError = AggregateError;
  const NativePromise = Promise;
  const NativeProxy = Proxy;
  const objectPrototype = Object.prototype;
  const withResolvers = NativePromise.withResolvers.bind(NativePromise);
  const rejectedWith = NativePromise.reject.bind(NativePromise);
  const nativeThen = uncurry(NativePromise.prototype.then);
  const settledPromise = NativePromise.resolve(undefined);
  const wellFormed = uncurry(String.prototype.toWellFormed);
  const slice = uncurry(String.prototype.slice);
  const charCode = uncurry(String.prototype.charCodeAt);
  const indexOf = uncurry(String.prototype.indexOf);
  const startsWith = uncurry(String.prototype.startsWith);
  const lower = uncurry(String.prototype.toLowerCase);
  const isInstance = uncurry(Function.prototype[Symbol.hasInstance]);
  const hasOwn = uncurry(Object.prototype.hasOwnProperty);
  const dateTime = uncurry(Date.prototype.getTime);
  const dateText = uncurry(Date.prototype.toISOString);
  const mapSize = uncurry(getOwnPropertyDescriptor(Map.prototype, "size").get);
  const mapEach = uncurry(Map.prototype.forEach);
  const setSize = uncurry(getOwnPropertyDescriptor(Set.prototype, "size").get);
  const setEach = uncurry(Set.prototype.forEach);
  const typedLength = uncurry(
    getOwnPropertyDescriptor(getPrototypeOf(Uint8Array.prototype), "length").get,
  );
  const bigIntText = uncurry(BigInt.prototype.toString);
  const unbox = {
    __proto__: null,
    Number: uncurry(Number.prototype.valueOf),
    String: uncurry(String.prototype.valueOf),
    Boolean: uncurry(Boolean.prototype.valueOf),
    BigInt: uncurry(BigInt.prototype.valueOf),
  };
  const classes = { Map, Set, Date, DataView, ArrayBuffer, SharedArrayBuffer, Number, String, Boolean, BigInt };
  const codeOf = new WeakMap();
  const getCode = uncurry(WeakMap.prototype.get);
  const setCode = uncurry(WeakMap.prototype.set);

  // ---- limits, state ----
  const MAX_DEPTH = 100;
  const MAX_BRIDGE_UNITS = 8 << 20;
  const MAX_OTHER_PENDING = 1024;
  let maxOutput = 65536;
  let maxCalls = 16;
  let lastId = 0;
  let openCalls = 0; // nested calls: `call` and `namespace`
  let openOthers = 0; // searches, describes, timers, yields
  let table = { __proto__: null }; // id → { resolve, reject, error, kind } or { timer, args }
  let queue = "";
  let turnUnits = 0;
  let outputUnits = 0;
  let omittedUnits = 0;
  let sealed; // JSON text of the cell's value, once it has returned

  const quote = (text) => stringify(wellFormed(text));

  // The names of properties recur in every row.
  const keyTexts = { __proto__: null };
  let keyCount = 0;
  const quoteKey = (name) => {
    const known = keyTexts[name];
    if (known !== undefined) return known;
    const shown = quote(name) + ":";
    if (keyCount < 500 && name.length < 64) {
      keyCount++;
      keyTexts[name] = shown;
    }
    return shown;
  };

  // ---- the JSON adapter ----
  // Where a value is: its last step, and the chain of the objects above it. A link of the chain is made when
  // the first object below is met, so flat inputs cost none.
  const nameOf = (step, above) => {
    let path = step;
    for (let at = above; at !== null; at = at.above) path = at.step + path;
    return path;
  };

  const refuse = (step, above, reason) => {
    throw new NativeTypeError(nameOf(step, above) + " " + reason);
  };

  const encodeArray = (value, step, above, lean, length) => {
    let node = null;
    let text = "[";
    for (let i = 0; i < length; i++) {
      const item = value[i];
      if (i > 0) text += ",";
      if (isObject(item)) {
        node ??= { step, above, value };
        text += encodeObject(item, "[" + i + "]", node, lean);
      } else text += encodeScalar(item);
    }
    return text + "]";
  };

  const encodeMap = (value, step, above, lean) => {
    const node = { step, above, value };
    let allText = true;
    mapEach(value, (_, key) => {
      if (typeof key !== "string") allText = false;
    });
    let text = "";
    mapEach(value, (item, key) => {
      const inner = allText ? "." + key : "[]";
      const shown = encode(item, inner, node, lean);
      text += (text === "" ? "" : ",") + (allText ? quote(key) + ":" + shown : "[" + encode(key, inner, node, lean) + "," + shown + "]");
    });
    return allText ? "{" + text + "}" : "[" + text + "]";
  };

  const encodeSet = (value, step, above, lean) => {
    const node = { step, above, value };
    let text = "";
    setEach(value, (item) => {
      text += (text === "" ? "" : ",") + encode(item, "[]", node, lean);
    });
    return "[" + text + "]";
  };

  const encodePlain = (value, step, above, lean) => {
    const names = keys(value);
    const { length } = names;
    let node = null;
    let text = "{";
    let comma = "";
    for (let i = 0; i < length; i++) {
      const name = names[i];
      const item = value[name];
      if (isObject(item)) {
        node ??= { step, above, value };
        text += comma + quoteKey(name) + encodeObject(item, "." + name, node, lean);
      } else {
        if (lean && item === undefined) continue;
        text += comma + quoteKey(name) + encodeScalar(item);
      }
      comma = ",";
    }
    return text + "}";
  };

  const hasBrand = (test, value) => {
    try {
      test(value);
      return true;
    } catch {
      return false;
    }
  };

  const encodeObject = (value, step, above, lean) => {
    let depth = 0;
    for (let at = above; at !== null; at = at.above) {
      if (at.value === value) refuse(step, above, "closes a cycle; return ids instead of the objects themselves");
      if (++depth >= MAX_DEPTH) throw new NativeRangeError("a value is nested deeper than " + MAX_DEPTH + " levels");
    }
    if (isArray(value)) return encodeArray(value, step, above, lean, value.length);
    const isPlain = getPrototypeOf(value) === objectPrototype;
    if (!isPlain && isInstance(NativePromise, value)) refuse(step, above, "is a Promise; await it before it leaves the cell");
    const { toJSON } = value;
    if (typeof toJSON === "function") {
      if (isInstance(classes.Date, value) && hasBrand(dateTime, value)) {
        const time = dateTime(value);
        return time === time ? '"' + dateText(value) + '"' : "null";
      }
      return encode(apply(toJSON, value, [""]), "", { step, above, value }, lean);
    }
    if (isError(value) || (!isPlain && isInstance(NativeError, value))) {
      return '{"name":' + quote(toString(value.name)) + ',"message":' + quote(toString(value.message)) + "}";
    }
    if (isPlain && !isView(value)) return encodePlain(value, step, above, lean);
    if (isInstance(classes.Map, value) && hasBrand(mapSize, value)) return encodeMap(value, step, above, lean);
    if (isInstance(classes.Set, value) && hasBrand(setSize, value)) return encodeSet(value, step, above, lean);
    if (isView(value) && !isInstance(classes.DataView, value)) return encodeArray(value, step, above, lean, typedLength(value));
    if (isInstance(classes.DataView, value) || isInstance(classes.ArrayBuffer, value) || isInstance(classes.SharedArrayBuffer, value)) {
      refuse(step, above, "is binary; binary data is not supported, send base64 text or an array of numbers");
    }
    for (const name in unbox) {
      if (isInstance(classes[name], value) && hasBrand(unbox[name], value)) return encodeScalar(unbox[name](value));
    }
    return encodePlain(value, step, above, lean);
  };

  const encodeScalar = (value) => {
    switch (typeof value) {
      case "string":
        return quote(value);
      case "number":
        return value - value === 0 ? "" + value : "null";
      case "boolean":
        return value ? "true" : "false";
      case "bigint":
        return '"' + bigIntText(value) + '"';
      default:
        return "null";
    }
  };

  const isObject = (value) => typeof value === "object" && value !== null;

  // `lean` leaves out undefined properties, as in a tool's arguments.
  const encode = (value, step, above, lean) => (isObject(value) ? encodeObject(value, step, above, lean) : encodeScalar(value));

  const encodeRoot = (value, name, lean) => encode(value, name, null, lean);

  // ---- outputs ----
  const record = (row) => {
    queue += queue === "" ? row : "," + row;
  };

  const emit = (kind, raw, shown) => {
    const units = shown.length + 24;
    if (omittedUnits === 0 && outputUnits + units <= maxOutput) {
      outputUnits += units;
      record('["' + kind + '",' + shown + "]");
      return;
    }
    let kept = 0;
    if (omittedUnits === 0 && kind === "text") {
      kept = min(raw.length, maxOutput - outputUnits);
      if (kept > 0) {
        const last = charCode(raw, kept - 1);
        if (last >= 0xd800 && last <= 0xdbff) kept--;
        record('["text",' + quote(slice(raw, 0, kept)) + "]");
      }
    }
    omittedUnits += units - kept;
  };

  const asText = (value) => (typeof value === "string" ? value : encodeRoot(value, "value", false));

  const text = freeze((value) => {
    const raw = asText(value);
    emit("text", raw, quote(raw));
  });

  const json = freeze((value) => {
    const shown = encodeRoot(value, "value", false);
    emit("json", shown, shown);
  });

  const print = freeze((...parts) => {
    let line = "";
    for (let i = 0; i < parts.length; i++) line += (i === 0 ? "" : " ") + asText(parts[i]);
    emit("text", line, quote(line));
  });

  // ---- requests ----
  // Frames of this file are left out of a bridge error's stack.
  const trimStack = (stack) => {
    let kept = "";
    let at = 0;
    while (at < stack.length) {
      let end = indexOf(stack, "\n", at);
      if (end < 0) end = stack.length;
      const line = slice(stack, at, end);
      if (line !== "" && indexOf(line, "(codemode") < 0) kept += line + "\n";
      at = end + 1;
    }
    return kept;
  };

  const fillError = (error, name, message, code, toolId) => {
    const { stack } = error;
    const hidden = { value: undefined, writable: true, configurable: true, enumerable: false, __proto__: null };
    const put = (key, value) => {
      hidden.value = value;
      defineProperty(error, key, hidden);
    };
    put("name", name);
    put("message", message);
    put("stack", typeof stack === "string" ? trimStack(stack) : "");
    put("code", code);
    if (toolId !== null && toolId !== undefined) put("toolId", toolId);
    setCode(codeOf, error, code);
    return error;
  };

  // Not in an executor of a promise, which would catch the interrupt of the deadline as well.
  const rejected = (error, message, code = "nested_tool_failed", toolId = null) =>
    rejectedWith(fillError(error, "Error", message, code, toolId));

  const request = (error, row, kind, nested) => {
    if (nested ? openCalls >= maxCalls : openOthers >= MAX_OTHER_PENDING) {
      const bound = nested ? maxCalls : MAX_OTHER_PENDING;
      const what = nested ? "nested calls (maxPendingToolCalls)" : "searches, describes, timers and yields";
      return rejected(error, "too many pending requests: at most " + bound + " " + what + " may be open at once", "too_many_pending_tool_calls");
    }
    turnUnits += row.length;
    if (turnUnits > MAX_BRIDGE_UNITS) {
      turnUnits -= row.length;
      return rejected(error, "the arguments of one turn are larger than " + MAX_BRIDGE_UNITS + " bytes (this request: " + row.length + ")");
    }
    const id = ++lastId;
    if (nested) openCalls++;
    else openOthers++;
    record('["' + kind + '",' + id + row + "]");
    const { promise, resolve, reject } = withResolvers();
    table[id] = { resolve, reject, error, kind, nested };
    return promise;
  };

  // A guest's own throw while its arguments are read is its own rejection.
  const encodeInput = (input) => (input === undefined || input === null ? "{}" : encodeRoot(input, "input", true));

  const callTool = (error, id, quotedId, input) => {
    let shown;
    try {
      shown = encodeInput(input);
    } catch (thrown) {
      return rejectedWith(thrown);
    }
    if (shown[0] !== "{") return rejected(error, "the input of a tool is one object, not " + slice(shown, 0, 60), "nested_tool_failed", id);
    return request(error, "," + quotedId + "," + shown, "call", true);
  };

  const callPath = (error, path, args) => {
    let shown = "";
    try {
      for (let i = 0; i < args.length; i++) shown += (i === 0 ? "" : ",") + encodeRoot(args[i], "argument " + (i + 1), true);
    } catch (thrown) {
      return rejectedWith(thrown);
    }
    return request(error, "," + quote(path) + ',{"args":[' + shown + "]}", "namespace", true);
  };

  // ---- what a cell sees ----
  // Large texts are not given to a cell that never names what is made of them.
  const lazy = (name, textOf, build) => {
    let made;
    let done = false;
    return () => {
      if (!done) {
        const given = textOf();
        if (given === "") {
          throw new NativeReferenceError(name + " is not in this cell, which never names it; write " + name + " out in its source");
        }
        made = build(given);
        done = true;
      }
      return made;
    };
  };

  const deepFreeze = (value) => {
    if (typeof value === "object" && value !== null) {
      const names = keys(value);
      for (let i = 0; i < names.length; i++) deepFreeze(value[names[i]]);
      freeze(value);
    }
    return value;
  };

  const scope = { __proto__: null, tools: "[]", names: "{}", mcp: "null", files: "[]", namespaces: "[]" };

  const allTools = lazy("ALL_TOOLS", () => scope.tools, (source) => {
    scope.tools = "";
    return deepFreeze(parse(source));
  });

  const toolNames = lazy("tools", () => scope.names, (source) => {
    scope.names = "";
    const parsed = parse(source);
    const names = { __proto__: null };
    const found = keys(parsed);
    for (let i = 0; i < found.length; i++) names[found[i]] = parsed[found[i]];
    return names;
  });

  const search = freeze((query, options) => {
    const error = new NativeError();
    if (typeof query !== "string") return rejected(error, "tools.search takes a string to search for, not " + typeof query);
    const limit = options === undefined || options === null ? undefined : options.limit;
    if (limit !== undefined && !(isInteger(limit) && limit > 0)) {
      return rejected(error, "the limit of tools.search is a positive whole number, not " + asText(limit));
    }
    return request(error, "," + quote(query) + "," + (limit === undefined ? "null" : min(limit, 1000)), "search", false);
  });

  const describe = freeze((id) => {
    const error = new NativeError();
    if (typeof id !== "string") return rejected(error, "tools.describe takes a tool's id, not " + typeof id);
    return request(error, "," + quote(id), "describe", false);
  });

  const call = freeze((id, input) => {
    const error = new NativeError();
    return typeof id === "string" ? callTool(error, id, quote(id), input) : rejected(error, "a tool's id is a string, not " + typeof id);
  });

  // Ten thousand tools cost a cell nothing until it asks for one, or for all of them.
  const toolbox = { __proto__: null, search, describe, call };
  let complete = false;
  let missed = ""; // the last name that was asked for in vain, and of what: "tools", "MCP", "MCP.files"
  let missedOf = "";
  let missedIn;
  const install = (name) => {
    if (typeof name === "string" && !hasOwn(toolbox, name)) {
      const id = toolNames()[name];
      if (id === undefined) {
        missed = name;
        missedOf = "tools";
      } else if (!complete) {
        const quotedId = quote(id);
        const bound = freeze((input) => callTool(new NativeError(), id, quotedId, input));
        defineProperty(toolbox, name, { value: bound, enumerable: true, writable: false, configurable: false, __proto__: null });
      }
    }
  };
  const installAll = () => {
    if (complete) return;
    const found = keys(toolNames());
    for (let i = 0; i < found.length; i++) install(found[i]);
    complete = true;
    freeze(toolbox);
  };
  const tools = new NativeProxy(toolbox, {
    __proto__: null,
    get(target, name) {
      install(name);
      return target[name];
    },
    has(target, name) {
      install(name);
      return hasOwn(target, name);
    },
    getOwnPropertyDescriptor(target, name) {
      installAll();
      return getOwnPropertyDescriptor(target, name);
    },
    ownKeys(target) {
      installAll();
      return ownNames(target);
    },
    isExtensible() {
      installAll();
      return false;
    },
    preventExtensions() {
      installAll();
      return true;
    },
    set: () => false,
    defineProperty: () => false,
    deleteProperty: () => false,
    setPrototypeOf: () => false,
  });

  const setTimer = freeze((callback, delay, ...args) => {
    if (typeof callback !== "function") throw new NativeTypeError("setTimeout takes a function, not " + typeof callback);
    if (openOthers >= MAX_OTHER_PENDING) {
      throw fillError(new NativeError(), "Error", "too many pending requests: at most " + MAX_OTHER_PENDING + " searches, describes, timers and yields may be open at once", "too_many_pending_tool_calls");
    }
    const wanted = +delay;
    const ms = wanted >= 0 ? min(wanted, 2147483647) : 0;
    const id = ++lastId;
    openOthers++;
    table[id] = { timer: callback, args };
    record('["timer",' + id + "," + ms + "]");
    return id;
  });

  const clearTimer = freeze((id) => {
    const entry = typeof id === "number" ? table[id] : undefined;
    if (entry === undefined || entry.timer === undefined) return;
    delete table[id];
    openOthers--;
    record('["cancel",' + id + "]");
  });

  const yieldControl = freeze((reason) =>
    request(new NativeError(), "," + (reason === undefined || reason === null ? "null" : quote(asText(reason))), "yield", false),
  );

  const files = lazy("API", () => scope.files, (source) => {
    scope.files = "";
    return parse(source);
  });

  const badPath = (path) => {
    const parts = "/" + path + "/";
    return indexOf(parts, "//") >= 0 || indexOf(parts, "/./") >= 0 || indexOf(parts, "/../") >= 0;
  };

  const trimSlash = (path) => (path !== "" && path[path.length - 1] === "/" ? slice(path, 0, path.length - 1) : path);

  const list = freeze(async (prefix) => {
    if (prefix !== undefined && prefix !== null && typeof prefix !== "string") throw new NativeTypeError("API.list takes a path prefix");
    const under = trimSlash(prefix ?? "");
    if (under !== "" && badPath(under)) throw new NativeError('the path "' + prefix + '" is not allowed: no empty, "." or ".." segments');
    const found = files();
    const shown = [];
    let count = 0;
    for (let i = 0; i < found.length; i++) {
      const { path, description, bytes } = found[i];
      if (under === "" || path === under || startsWith(path, under + "/")) {
        defineProperty(shown, count++, { value: { path, description, bytes }, writable: true, enumerable: true, configurable: true, __proto__: null });
      }
    }
    if (under !== "" && count === 0) throw new NativeError('there is nothing under "' + prefix + '"' + near(under, found, "path"));
    return shown;
  });

  const read = freeze(async (path) => {
    if (typeof path !== "string") throw new NativeTypeError("API.read takes the path of a file that API.list shows");
    const wanted = trimSlash(path);
    if (badPath(wanted)) throw new NativeError('the path "' + path + '" is not allowed: no empty, "." or ".." segments');
    const found = files();
    for (let i = 0; i < found.length; i++) if (found[i].path === wanted) return found[i].text;
    throw new NativeError('there is no file "' + path + '"' + near(wanted, found, "path"));
  });

  // ---- near names ----
  const distance = (left, right) => {
    let row = { __proto__: null };
    for (let j = 0; j <= right.length; j++) row[j] = j;
    for (let i = 1; i <= left.length; i++) {
      const next = { __proto__: null, 0: i };
      for (let j = 1; j <= right.length; j++) {
        const same = charCode(left, i - 1) === charCode(right, j - 1) ? 0 : 1;
        next[j] = min(next[j - 1] + 1, row[j] + 1, row[j - 1] + same);
      }
      row = next;
    }
    return row[right.length];
  };

  const near = (wanted, rows, field) => {
    let best = "";
    let least = 1 + wanted.length / 3;
    const goal = lower(slice(wanted, 0, 64));
    for (let i = 0; i < rows.length && i < 500; i++) {
      const name = rows[i][field];
      const away = distance(goal, lower(slice(name, 0, 64)));
      if (away < least) {
        least = away;
        best = name;
      }
    }
    return best === "" ? "" : '; did you mean "' + best + '"?';
  };

  const GLOBALS = [
    { name: "ALL_TOOLS" }, { name: "tools" }, { name: "MCP" }, { name: "API" }, { name: "namespaces" }, { name: "text" },
    { name: "json" }, { name: "yield_control" }, { name: "console" }, { name: "setTimeout" }, { name: "clearTimeout" },
    { name: "queueMicrotask" },
  ];

  // ---- MCP and namespaces ----
  const SEPARATOR = "\x1f";
  const own = (target, name, value) =>
    defineProperty(target, name, { value, enumerable: true, writable: false, configurable: false, __proto__: null });

  const onePath = (path) =>
    freeze((...args) => {
      const error = new NativeError();
      const input = args[0];
      if (args.length > 1 || (input !== undefined && input !== null && (typeof input !== "object" || isArray(input)))) {
        return rejected(error, "an MCP function takes one object argument, or none");
      }
      return callPath(error, path, input === undefined || input === null ? [] : [input]);
    });

  const serverApi = (server) =>
    freeze(async (toolName, options) => {
      const withSchema = options !== undefined && options !== null && options.schema === true;
      let shown = server.tools;
      if (toolName !== undefined && toolName !== null) {
        let found;
        for (let i = 0; i < server.tools.length; i++) {
          const tool = server.tools[i];
          const isNamed = tool.ident === toolName || tool.name === toolName || tool.id === toolName;
          if (isNamed && (found === undefined || tool.ident === toolName)) found = tool;
        }
        if (found === undefined) {
          throw new NativeError('MCP.' + server.ident + ' has no tool "' + asText(toolName) + '"' + near(asText(toolName), server.tools, "ident"));
        }
        shown = [found];
      }
      const answer = { kind: "mcp", scope: shown === server.tools ? "server" : "tool", header: shown === server.tools ? server.header : shown[0].header };
      const names = [];
      const schemas = {};
      for (let i = 0; i < shown.length; i++) {
        own(names, i, shown[i].ident);
        if (withSchema) own(schemas, shown[i].ident, shown[i].parameters);
      }
      answer.tools = names;
      if (withSchema) answer.schemas = schemas;
      return answer;
    });

  // Remembers which of its names was asked for in vain: an error of the engine does not say.
  const watched = (face, shown) =>
    new NativeProxy(freeze(face), {
      __proto__: null,
      get(target, name) {
        const found = target[name];
        if (found === undefined && typeof name === "string") {
          missed = name;
          missedOf = shown;
          missedIn = target;
        }
        return found;
      },
    });

  const buildServer = (server) => {
    const face = { __proto__: null };
    const base = "MCP" + SEPARATOR + server.ident + SEPARATOR;
    own(face, "$api", serverApi(server));
    if (server.resources) {
      own(face, "resources", watched({ __proto__: null, list: onePath(base + "resources" + SEPARATOR + "list"), read: onePath(base + "resources" + SEPARATOR + "read") }, "MCP." + server.ident + ".resources"));
    }
    if (server.prompts) {
      own(face, "prompts", watched({ __proto__: null, list: onePath(base + "prompts" + SEPARATOR + "list"), get: onePath(base + "prompts" + SEPARATOR + "get") }, "MCP." + server.ident + ".prompts"));
    }
    for (let i = 0; i < server.tools.length; i++) own(face, server.tools[i].ident, onePath(base + server.tools[i].ident));
    return watched(face, "MCP." + server.ident);
  };

  const mcp = lazy("MCP", () => scope.mcp, (source) => {
    scope.mcp = "";
    const parsed = parse(source);
    const face = { __proto__: null };
    const names = [];
    for (let i = 0; i < parsed.servers.length; i++) {
      own(face, parsed.servers[i].ident, buildServer(parsed.servers[i]));
      own(names, i, parsed.servers[i].ident);
    }
    freeze(names);
    own(face, "$api", freeze(async () => ({ kind: "mcp", scope: "root", header: parsed.header, servers: names })));
    return watched(face, "MCP");
  });

  const buildNode = (node, path, shown) => {
    switch (node[0]) {
      case "f":
        return freeze((...args) => callPath(new NativeError(), path, args));
      case "v":
        return deepFreeze(node[1]);
      case "a": {
        const items = [];
        for (let i = 0; i < node[1].length; i++) own(items, i, buildNode(node[1][i], path + SEPARATOR + i, shown + "[" + i + "]"));
        return freeze(items);
      }
      default: {
        const face = { __proto__: null };
        const names = keys(node[1]);
        for (let i = 0; i < names.length; i++) own(face, names[i], buildNode(node[1][names[i]], path + SEPARATOR + names[i], shown + "." + names[i]));
        return watched(face, shown);
      }
    }
  };

  const namespaces = lazy("namespaces", () => scope.namespaces, (source) => {
    scope.namespaces = "";
    const face = { __proto__: null };
    const parsed = parse(source);
    for (let i = 0; i < parsed.length; i++) own(face, parsed[i].name, buildNode(parsed[i].node, parsed[i].name, parsed[i].name));
    return watched(face, "namespaces");
  });

  // ---- globals ----
  const fix = (target, name, value) =>
    defineProperty(target, name, { value, writable: false, enumerable: false, configurable: false, __proto__: null });
  const show = (name, get) => defineProperty(globalThis, name, { get, enumerable: true, configurable: false, __proto__: null });
  const expose = (name, value) => defineProperty(globalThis, name, { value, writable: false, enumerable: true, configurable: false, __proto__: null });

  expose("tools", tools);
  expose("API", watched({ list, read }, "API"));
  expose("text", text);
  expose("json", json);
  expose("yield_control", yieldControl);
  expose("console", watched({ log: print, info: print, warn: print, error: print, debug: print }, "console"));
  expose("setTimeout", setTimer);
  expose("clearTimeout", clearTimer);
  show("ALL_TOOLS", freeze(() => allTools()));
  show("namespaces", freeze(() => namespaces()));
  delete globalThis.performance;

  // An uncatchable InternalError is the engine's alone; the guest must not be able to forge one.
  const Internal = globalThis.InternalError;
  delete globalThis.InternalError;
  fix(Internal.prototype, "constructor", NativeError);
  fix(NativeError, "prepareStackTrace", undefined);

  // Every VM starts as a copy of one image: the seed makes them differ. (sfc32)
  let [seedA, seedB, seedC, seedD] = [1, 2, 3, 4];
  const next32 = () => {
    const sum = (((seedA + seedB) | 0) + seedD) | 0;
    seedD = (seedD + 1) | 0;
    seedA = seedB ^ (seedB >>> 9);
    seedB = (seedC + (seedC << 3)) | 0;
    seedC = (((seedC << 21) | (seedC >>> 11)) + sum) | 0;
    return sum >>> 0;
  };
  defineProperty(Math, "random", {
    value: { random: () => ((next32() >>> 5) * 67108864 + (next32() >>> 6)) / 9007199254740992 }.random,
    writable: true,
    enumerable: false,
    configurable: true,
  });

  // ---- the worker's entry points ----
  let installed = false;
  let knowsNames = false;

  // A cell of the REPL begins in the VM of the one before it: what was open there is forgotten.
  const begin = (config, toolsText, namesText, mcpText, filesText, namespacesText) => {
    const given = parse(config);
    ({ maxOutput, maxCalls } = given);
    table = { __proto__: null };
    openCalls = openOthers = turnUnits = outputUnits = omittedUnits = 0;
    queue = missed = "";
    sealed = undefined;
    seedA = given.seed[0];
    seedB = given.seed[1];
    seedC = given.seed[2];
    seedD = given.seed[3];
    for (let i = 0; i < 16; i++) next32();
    if (installed) return;
    installed = true;
    scope.tools = toolsText;
    scope.names = namesText;
    knowsNames = namesText !== "";
    scope.mcp = mcpText;
    scope.files = filesText;
    scope.namespaces = namespacesText;
    if (mcpText !== "null") show("MCP", freeze(() => mcp()));
    const { globals } = given;
    for (let i = 0; i < globals.length; i++) {
      const name = globals[i];
      show(name, freeze(() => namespaces()[name]));
    }
  };

  const take = () => {
    let rows = queue;
    queue = "";
    turnUnits = 0;
    if (omittedUnits > 0) rows += (rows === "" ? "" : ",") + '["omitted",' + omittedUnits + "]";
    const open = openCalls + openOthers;
    if (open === 0 && sealed !== undefined) rows += (rows === "" ? "" : ",") + '["value",' + sealed + "]";
    return open + ";[" + rows + "]";
  };

  const runTimer = (entry) => {
    nativeThen(settledPromise, () => {
      apply(entry.timer, undefined, entry.args);
    });
  };

  const resolveSearch = (entry, answer) => {
    const { entries, hint } = answer;
    if (hint !== null && hint !== undefined) {
      defineProperty(entries, "hint", { value: hint, enumerable: false, __proto__: null });
      if (entries.length === 0) text(hint);
    }
    entry.resolve(entries);
  };

  const settle = (entry, ok, value) => {
    if (entry.timer !== undefined) runTimer(entry);
    else if (!ok) entry.reject(fillError(entry.error, value.name, value.message, value.code, value.toolId));
    else if (entry.kind === "search") resolveSearch(entry, value);
    else if (entry.kind === "yield") entry.resolve(undefined);
    else entry.resolve(value);
  };

  const deliver = (source) => {
    const settlements = parse(source);
    for (let i = 0; i < settlements.length; i++) {
      const row = settlements[i];
      const entry = table[row[0]];
      if (entry === undefined) continue; // a timer that was cleared meanwhile
      delete table[row[0]];
      if (entry.nested === true) openCalls--;
      else openOthers--;
      settle(entry, row[1], row[2]);
    }
  };

  const finish = (value) => {
    const shown = encodeRoot(value, "value", false);
    if (shown.length + outputUnits > maxOutput) {
      omittedUnits += shown.length;
      sealed = "null";
    } else sealed = shown;
  };

  // What the author may have meant, for the two errors that a wrong name ends in.
  const hint = (reason, message) => {
    if (isInstance(NativeReferenceError, reason)) {
      const end = indexOf(message, " is not defined");
      if (end <= 0) return "";
      const name = slice(message, 0, end);
      if (knowsNames && toolNames()[name] !== undefined) return '; did you mean "tools.' + name + '"?';
      if (name === "MCP") return "; no MCP server is in the catalog";
      const close = near(name, GLOBALS, "name");
      return close === "" ? "; a cell has ECMAScript, tools, ALL_TOOLS, API, text, json, yield_control, console and setTimeout" : close;
    }
    // A tool that is not there is called in vain; a server is undefined, and it is what is read of it that fails.
    const isCalled = message === "not a function";
    if (isInstance(NativeTypeError, reason) && missed !== "" && (isCalled || indexOf(message, " of undefined") > 0)) {
      const isTool = missedOf === "tools";
      if (isTool && !isCalled) return "";
      const rows = [];
      const names = keys(isTool ? toolNames() : missedIn);
      for (let i = 0; i < names.length; i++) own(rows, i, { name: missedOf + "." + names[i] });
      const wanted = missedOf + "." + missed;
      const what = isTool ? "tool " : missedOf === "MCP" ? "MCP server " : "";
      return "; there is no " + what + '"' + wanted + '"' + near(wanted, rows, "name");
    }
    return "";
  };

  // What JSON has no form for is named, or it would be shown as null.
  const named = (value) => {
    switch (typeof value) {
      case "function":
        return "a function";
      case "undefined":
      case "symbol":
      case "number":
        return toString(value);
      default:
        return "";
    }
  };

  // The error of `Promise.any` says nothing by itself.
  const rejections = (reason) => {
    const errors = isInstance(NativeAggregateError, reason) ? reason.errors : undefined;
    if (!isArray(errors) || errors.length === 0) return "";
    let shown = "";
    for (let i = 0; i < errors.length && i < 3; i++) {
      const error = errors[i];
      shown += (i === 0 ? "" : "; ") + (isError(error) ? toString(error.message) : named(error) || encodeScalar(error));
    }
    return "every promise was rejected: " + shown + (errors.length > 3 ? "; and " + (errors.length - 3) + " more" : "");
  };

  const explain = (reason) => {
    if (!isError(reason) && !isInstance(NativeError, reason)) {
      const name = named(reason);
      if (name !== "") return '{"name":"","message":' + quote("the cell threw " + name + ", not an Error") + ',"stack":"","code":null}';
      return '{"thrown":' + encodeRoot(reason, "thrown", false) + "}";
    }
    const code = getCode(codeOf, reason);
    const { stack } = reason;
    const message = toString(reason.message) || rejections(reason);
    return (
      '{"name":' + quote(toString(reason.name)) +
      ',"message":' + quote(message + hint(reason, message)) +
      ',"stack":' + (typeof stack === "string" ? quote(stack) : '""') +
      ',"code":' + (code === undefined ? "null" : quote(code)) + "}"
    );
  };

  const finishScript = (result) => {
    const { value } = result;
    if (value !== undefined) {
      defineProperty(globalThis, "_", { value, writable: true, enumerable: false, configurable: true, __proto__: null });
    }
    finish(value);
  };

  return [begin, take, deliver, finish, explain, finishScript];
})()
