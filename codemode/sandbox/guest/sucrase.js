// The TypeScript side of the toolchain, bundled with sucrase into assets/sucrase.js.
//
// `transform` strips the types of one cell and keeps every line break; `mapPositions` leads
// positions in its result back to the author's source. Requests and answers are JSON texts:
//
//   transform    {"source"} → {"code"} | {"error": {"message", "line", "column"}}
//                           | {"denied": {"what", "line", "column"}}
//   mapPositions {"source", "positions": [[line, byte column]], "ran"} → {"positions": [[line, column]]}
//
// Lines and columns count from 1; columns of the author's source in code points, those of the
// result in UTF-8 bytes, as the engine reports them. sucrase drops or passes on, without a word,
// some syntax that it does not support: `refuse` finds it by token beforehand. Its inner modules
// are used, not its front door, so that one parse serves check and transform.

import TokenProcessor from "./node_modules/sucrase/dist/esm/TokenProcessor.js";
import { parse } from "./node_modules/sucrase/dist/esm/parser/index.js";
import { ContextualKeyword as word } from "./node_modules/sucrase/dist/esm/parser/tokenizer/keywords.js";
import { TokenType as tt } from "./node_modules/sucrase/dist/esm/parser/tokenizer/types.js";
import RootTransformer from "./node_modules/sucrase/dist/esm/transformers/RootTransformer.js";
import TypeScriptTransformer from "./node_modules/sucrase/dist/esm/transformers/TypeScriptTransformer.js";

globalThis.transform = (request) => {
  const { source } = JSON.parse(request);
  try {
    return JSON.stringify(strip(source));
  } catch (error) {
    return JSON.stringify({ error: explain(source, error) });
  }
};

globalThis.mapPositions = (request) => {
  const { source, positions, ran } = JSON.parse(request);
  const cell = parseCell(source);
  const { code, mappings } = new Stripper(cell, true).transform();
  return JSON.stringify({
    positions: positions.map(([line, column]) => {
      const at = offsetOf(code, line, column);
      const isShort = ran && line === 1 && !/[\w$\x80-\uffff]/.test(code[at] ?? "_"); // `_at_name` of toolchain.py says why
      const offset = originalOffset(isShort ? at + 1 : at, mappings, cell.tokens);
      const place = placeOf(source, Math.max(offset - cell.lead, 0));
      return [place.line, place.column];
    }),
  });
};

function strip(source) {
  const cell = parseCell(source);
  return firstRefusal(source, cell) ?? { code: new Stripper(cell, false).transform().code };
}

// A cell may be one expression that cannot be a statement, such as an unnamed function or
// `{a: 1, b: 2}`: it is read, and stays, in parentheses. `lead` is what they added before it.
function parseCell(source) {
  try {
    return { text: source, tokens: parseTokens(source), lead: 0 };
  } catch (error) {
    const text = `(${withoutEnd(source)}\n)`;
    const tokens = tokensOrNull(text);
    if (tokens === null || !isOneGroup(tokens)) throw error;
    return { text, tokens, lead: 1 };
  }
}

function tokensOrNull(text) {
  try {
    return parseTokens(text);
  } catch {
    return null;
  }
}

// Whether our parentheses close each other; those of `1)(); (2` do not.
function isOneGroup(tokens) {
  let depth = 0;
  const closed = tokens.findIndex(({ type }) => {
    if (type === tt.parenL) depth++;
    return type === tt.parenR && --depth === 0;
  });
  return tokens[closed + 1].type === tt.eof;
}

// Not `replace(/[\s;]+$/, "")`, which takes quadratic time on blanks that end in something else.
function withoutEnd(source) {
  let end = source.length;
  while (end > 0 && /[\s;]/.test(source[end - 1])) end--;
  return source.slice(0, end);
}

function parseTokens(text) {
  return parse(text, false, true, false).tokens;
}

// Types that ended a statement leave a semicolon, or the lines around them would run together:
// `const a = 1 \n interface B {} \n (c)` and `const a = 1 as B \n (c)` must not become `1(c)`.
// What stays as it is, most of every cell, is copied by runs of tokens: sucrase asks each of its
// transformers about each token, and a text that grows by tokens is copied for each.
class Stripper extends RootTransformer {
  constructor(cell, isMapped) {
    const tokens = new Tokens(cell, isMapped);
    super({ tokenProcessor: tokens, nameManager: NAMES }, [], false, { disableESTransforms: true });
    this.typescript = new Types(this, tokens, false);
    this.lead = cell.lead;
  }

  transform() {
    this.processBalancedCode();
    return this.tokens.finish();
  }

  processPossibleTypeRange() {
    const start = this.tokens.currentIndex();
    const removed = super.processPossibleTypeRange();
    if (removed && start > 0 && this.endsStatement(start, this.tokens.currentIndex())) this.tokens.appendCode(";");
    return removed;
  }

  processBalancedCode() {
    const { tokens } = this.tokens;
    let [braces, parens] = [0, 0];
    for (let index = this.tokens.currentIndex(); index < tokens.length; index++) {
      const { type, isType, contextualKeyword } = tokens[index];
      if (type === tt.parenL) parens++;
      else if (type === tt.braceL || type === tt.dollarBraceL) braces++;
      else if ((type === tt.parenR && parens-- === 0) || (type === tt.braceR && braces-- === 0)) {
        this.tokens.copyUntil(index);
        return;
      }
      const mayBeTyped = isType || contextualKeyword === word._async || TYPED[type >>> 10] > 0;
      if (mayBeTyped && isTyped(tokens, index)) {
        this.tokens.copyUntil(index);
        this.processToken();
        index = this.tokens.currentIndex() - 1;
      }
    }
    this.tokens.copyUntil(tokens.length);
  }

  processToken() {
    this.tokens.settle();
    if (!isTyped(this.tokens.tokens, this.tokens.currentIndex())) this.tokens.copyToken();
    else if (this.tokens.matches1(tt._class)) this.processClass();
    else if (!this.typescript.process()) this.tokens.copyToken();
  }

  endsStatement(start, end) {
    const { code, tokens } = this.tokens;
    const { contextualKeyword } = tokens[start];
    const isCast = contextualKeyword === word._as || contextualKeyword === word._satisfies;
    if (isCast && CONTINUING.includes(tokens[end].type) && !isOnSameLine(code, tokens, end - 1)) return true;
    for (let index = start; index < end; index++) {
      const { type, contextualKeyword } = tokens[index];
      const isAlias = contextualKeyword === word._interface || contextualKeyword === word._type;
      if (type === tt._declare || (isAlias && isNameOnSameLine(code, tokens, index))) return true;
    }
    return false;
  }
}

// sucrase maps every value of an enum back to its name but a plain text; of a text that is put
// together, as in `B = A + "b"` or a template, there is no way back either.
class Types extends TypeScriptTransformer {
  extractEnumKeyInfo(key) {
    if (!/[[`\d]/.test(this.tokens.code[key.start])) return super.extractEnumKeyInfo(key);
    const message = "a computed member of an enum is not supported; write its name";
    throw Object.assign(new SyntaxError(message), { pos: key.start - this.rootTransformer.lead });
  }

  processExplicitValueEnumMember(enumName, name, variable) {
    const { tokens, rootTransformer } = this;
    const member = `${enumName}[${name}]`;
    const { rhsEndIndex } = tokens.currentToken();
    tokens.appendCode(variable === null ? member : `const ${variable}`);
    tokens.copyToken();
    while (tokens.currentIndex() < rhsEndIndex) rootTransformer.processToken();
    if (variable !== null) tokens.appendCode(`; ${member} = ${variable}`);
    const value = variable ?? member;
    tokens.appendCode(`; if (typeof ${value} !== "string") ${enumName}[${value}] = ${name};`);
  }
}

// The names that it invents are those of helpers for old engines, and none is used.
const NAMES = { claimFreeName: (name) => name };

// The tokens and the text that they become. A text that grows by tokens is copied for each, so
// what is long enough is put aside, but where positions in it are wanted.
class Tokens extends TokenProcessor {
  constructor({ text, tokens }, isMapped) {
    super(text, tokens, false, true, null);
    this.isMapped = isMapped;
    this.settled = [];
    this.resultMappings = new Int32Array(tokens.length).fill(2 ** 31 - 1);
  }

  settle() {
    if (this.isMapped || this.resultCode.length < 1000) return;
    this.settled.push(this.resultCode);
    this.resultCode = "";
  }

  snapshot() {
    return { ...super.snapshot(), settled: this.settled.length };
  }

  restoreToSnapshot(snapshot) {
    super.restoreToSnapshot(snapshot);
    this.settled.length = snapshot.settled;
  }

  finish() {
    const { code, mappings } = super.finish();
    return { code: this.settled.join("") + code, mappings };
  }

  // Copies the tokens from the current one up to, not including, the one at `end`.
  copyUntil(end) {
    const { code, tokens, tokenIndex: start } = this;
    if (start === end) return;
    const from = start > 0 ? tokens[start - 1].end : 0;
    const shift = this.resultCode.length - from;
    for (let index = start; this.isMapped && index < end; index++) {
      this.resultMappings[index] = tokens[index].start + shift;
    }
    this.resultCode += code.slice(from, tokens[end - 1].end);
    this.tokenIndex = end;
  }

  // Of what stands before a removed token only line breaks stay.
  removeToken() {
    const { code, tokens, tokenIndex } = this;
    const from = tokenIndex > 0 ? tokens[tokenIndex - 1].end : 0;
    const before = code.slice(from, tokens[tokenIndex].start);
    if (before !== "" && before !== " ") this.resultCode += before.replace(/[^\r\n]/g, "");
    this.resultMappings[tokenIndex] = this.resultCode.length;
    this.tokenIndex++;
  }
}

// Whether a token may begin something typed: a type, or `class`, `) :`, `public`, `x!`, `enum`.
function isTyped(tokens, index) {
  const { type, isType, contextualKeyword } = tokens[index];
  if (isType || contextualKeyword === word._async) return true;
  if (type === tt.parenR) return tokens[index + 1].type === tt.colon;
  if (type === tt._const) return tokens[index + 1].type === tt._enum;
  return TYPED[type >>> 10] > 0;
}

// The bits below the tenth say what a type of token is like; those above, which one it is.
function tableOf(...types) {
  const table = new Uint8Array(128);
  for (const type of types) table[type >>> 10] = 1;
  return table;
}

const TYPED = tableOf(
  tt._class, tt.parenR, tt._async, tt._public, tt._protected, tt._private, tt._abstract, tt._readonly,
  tt._override, tt.nonNullAssertion, tt._enum, tt._const,
);
const CONTINUING = [tt.parenL, tt.bracketL, tt.backQuote];

function isOnSameLine(code, tokens, index) {
  return !/[\n\r]/.test(code.slice(tokens[index].end, tokens[index + 1].start));
}

function isNameOnSameLine(code, tokens, index) {
  return tokens[index + 1]?.type === tt.name && isOnSameLine(code, tokens, index);
}

// -- what is refused ----------------------------------------------------------------------

function firstRefusal(source, { text, tokens, lead }) {
  for (let index = 0; index < tokens.length; index++) {
    const { type, contextualKeyword } = tokens[index];
    if (contextualKeyword === word.NONE && REFUSABLE[type >>> 10] === 0) continue;
    if (type === tt._declare) index = endOfAmbientBlock(tokens, index);
    const refusal = refuse(text, tokens, index);
    if (refusal) return { [refusal.kind]: { ...refusal.said, ...placeOf(source, tokens[index].start - lead) } };
  }
  return null;
}

const REFUSABLE = tableOf(tt._declare, tt._import, tt._export, tt.at, tt._return, tt._throw, tt._yield);

function refuse(text, tokens, index) {
  const token = tokens[index];
  const next = tokens[index + 1];
  switch (token.type) {
    case tt._import: return refuseImport(token, tokens, index);
    case tt._export: return next.type === tt.eq ? unsupported("`export =`", "use `return`") : denied("export");
    case tt.at: return unsupported("a decorator", "call the function yourself");
    case tt._return: case tt._throw: case tt._yield: return refuseSplitCast(text, tokens, index);
    default: return refuseWord(text, tokens, index);
  }
}

function refuseImport(token, tokens, index) {
  const [next, afterName] = [tokens[index + 1], tokens[index + 2]];
  if (next.type === tt.parenL) return token.isType ? null : denied("import()");
  const alias = afterName.type === tt.eq || (afterName.type === tt.name && tokens[index + 3].type === tt.eq);
  return next.type === tt.name && alias ? unsupported("`import =`", "a cell has no modules") : denied("import");
}

const NAMESPACE_WORDS = [word._namespace, word._module];

function refuseWord(text, tokens, index) {
  const { contextualKeyword, isType } = tokens[index];
  if (contextualKeyword === word.NONE || !isOnSameLine(text, tokens, index)) return null;
  const [next, afterNext] = [tokens[index + 1], tokens[index + 2]];
  if (isType && NAMESPACE_WORDS.includes(contextualKeyword)) {
    const isNamed = [tt.name, tt.string].includes(next.type) || (next.type & tt.IS_KEYWORD) > 0;
    const opens = afterNext.type === tt.braceL || afterNext.type === tt.dot;
    return isNamed && opens ? unsupported("a namespace", "use a plain object") : null;
  }
  const isAccessor = contextualKeyword === word._accessor && next.type === tt.name && !next.isType;
  return isAccessor ? unsupported("`accessor`", "write a getter and a setter") : null;
}

// `return <T>` with its value on the next line would return nothing once the type is gone.
function refuseSplitCast(text, tokens, index) {
  let end = index + 1;
  while (tokens[end].isType) end++;
  const split = /[\n\r]/.test(text.slice(tokens[index].end, tokens[end].start));
  return end > index + 1 && split ? unsupported("a type assertion that is split over lines", "put it on one line") : null;
}

function unsupported(what, instead) {
  return { kind: "error", said: { message: `${what} is not supported; ${instead}` } };
}

function denied(what) {
  return { kind: "denied", said: { what } };
}

// `declare module "x" { … }`, `declare namespace N { … }` and `declare global { … }` are types from
// end to end; returns the index of the closing brace.
function endOfAmbientBlock(tokens, start) {
  const ambient = [...NAMESPACE_WORDS, word._global].includes(tokens[start + 1].contextualKeyword);
  if (!tokens[start].isType || !ambient) return start;
  let [index, depth] = [start + 1, 0];
  while (tokens[index].isType) {
    if (OPENING.includes(tokens[index].type)) depth++;
    if (tokens[index].type === tt.braceR && --depth === 0) return index;
    index++;
  }
  return start;
}

const OPENING = [tt.braceL, tt.dollarBraceL];

// -- positions ----------------------------------------------------------------------------

// `mappings` holds, for each token of the source, where it begins in the result.
function originalOffset(offset, mappings, tokens) {
  let nearest = 0;
  for (let index = 0; index < tokens.length; index++) {
    if (mappings[index] <= offset) nearest = index;
  }
  const { start, end } = tokens[nearest];
  return Math.min(start + Math.max(offset - mappings[nearest], 0), Math.max(start, end - 1));
}

function offsetOf(text, line, byteColumn) {
  let offset = 0;
  for (let rest = line; rest > 1; rest--) offset = text.indexOf("\n", offset) + 1;
  for (let bytes = 1; bytes < byteColumn && offset < text.length; ) {
    const point = text.codePointAt(offset);
    bytes += point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
    offset += point < 0x10000 ? 1 : 2;
  }
  return offset;
}

function placeOf(source, offset) {
  const before = source.slice(0, offset);
  const lineStart = before.lastIndexOf("\n") + 1;
  return { line: before.split("\n").length, column: [...before.slice(lineStart)].length + 1 };
}

function explain(source, error) {
  const message = error instanceof RangeError ? "nested too deeply to be parsed" : error.message;
  return { message: message.replace(/ \(\d+:\d+\)$/, ""), ...placeOf(source, error.pos ?? 0) };
}
