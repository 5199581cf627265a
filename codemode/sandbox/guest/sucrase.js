// The TypeScript side of the toolchain, bundled with sucrase into assets/sucrase.js.
//
// `transform` strips the types of one cell and keeps every line break; `mapPositions` leads
// positions in its result back to the author's source. Requests and answers are JSON texts:
//
//   transform    {"source"} → {"code"} | {"error": {"message", "line", "column"}}
//                           | {"denied": {"what", "line", "column"}}
//   mapPositions {"source", "positions": [[line, byte column]]} → {"positions": [[line, column]]}
//
// Lines and columns count from 1; columns of the author's source in code points, those of the
// result in UTF-8 bytes, as the engine reports them. sucrase drops or passes on, without a word,
// some syntax that it does not support: `refuse` finds it by token beforehand. Its inner modules
// are used, not its front door, so that one parse serves check and transform.

import { HelperManager } from "./node_modules/sucrase/dist/esm/HelperManager.js";
import NameManager from "./node_modules/sucrase/dist/esm/NameManager.js";
import TokenProcessor from "./node_modules/sucrase/dist/esm/TokenProcessor.js";
import { parse } from "./node_modules/sucrase/dist/esm/parser/index.js";
import { ContextualKeyword as word } from "./node_modules/sucrase/dist/esm/parser/tokenizer/keywords.js";
import { TokenType as tt } from "./node_modules/sucrase/dist/esm/parser/tokenizer/types.js";
import RootTransformer from "./node_modules/sucrase/dist/esm/transformers/RootTransformer.js";

globalThis.transform = (request) => {
  const { source } = JSON.parse(request);
  try {
    return JSON.stringify(strip(source));
  } catch (error) {
    return JSON.stringify({ error: explain(source, error) });
  }
};

globalThis.mapPositions = (request) => {
  const { source, positions } = JSON.parse(request);
  const cell = parseCell(source);
  const { code, mappings } = runTransform(cell);
  return JSON.stringify({
    positions: positions.map(([line, column]) => {
      const offset = originalOffset(offsetOf(code, line, column), mappings, cell.tokens);
      const place = placeOf(source, Math.max(offset - cell.lead, 0));
      return [place.line, place.column];
    }),
  });
};

function strip(source) {
  const cell = parseCell(source);
  return firstRefusal(source, cell) ?? { code: runTransform(cell).code };
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
class Stripper extends RootTransformer {
  processPossibleTypeRange() {
    const start = this.tokens.currentIndex();
    const removed = super.processPossibleTypeRange();
    if (removed && start > 0 && this.endsStatement(start, this.tokens.currentIndex())) this.tokens.appendCode(";");
    return removed;
  }

  // Most tokens are copied: asking each transformer about each of them took half of the time.
  processToken() {
    const { type, isType, contextualKeyword } = this.tokens.currentToken();
    if (isType || TYPED.has(type) || contextualKeyword === word._async) super.processToken();
    else this.tokens.copyToken();
  }

  endsStatement(start, end) {
    const { code, tokens } = this.tokens;
    const isCast = [word._as, word._satisfies].includes(tokens[start].contextualKeyword);
    const goesOn = CONTINUING.includes(tokens[end].type) && !isOnSameLine(code, tokens, end - 1);
    return (isCast && goesOn) || tokens.slice(start, end).some((token, index) => {
      const isAlias = [word._interface, word._type].includes(token.contextualKeyword);
      return token.type === tt._declare || (isAlias && isNameOnSameLine(code, tokens, start + index));
    });
  }
}

// Tokens that can begin something typed although they are no type: `class`, `) :`, `public`, `x!`.
const TYPED = new Set([
  tt._class, tt.parenR, tt._async, tt._public, tt._protected, tt._private, tt._abstract, tt._readonly,
  tt._override, tt.nonNullAssertion, tt._enum, tt._const,
]);
const CONTINUING = [tt.parenL, tt.bracketL, tt.backQuote];

function isOnSameLine(code, tokens, index) {
  return !/[\n\r]/.test(code.slice(tokens[index].end, tokens[index + 1].start));
}

function isNameOnSameLine(code, tokens, index) {
  return tokens[index + 1]?.type === tt.name && isOnSameLine(code, tokens, index);
}

function runTransform({ text, tokens }) {
  const nameManager = new NameManager(text, tokens);
  const helperManager = new HelperManager(nameManager);
  const tokenProcessor = new TokenProcessor(text, tokens, false, true, helperManager);
  const context = { tokenProcessor, nameManager, helperManager, importProcessor: null };
  const options = { disableESTransforms: true, keepUnusedImports: true };
  return new Stripper(context, ["typescript"], false, options).transform();
}

// -- what is refused ----------------------------------------------------------------------

function firstRefusal(source, { text, tokens, lead }) {
  for (let index = 0; index < tokens.length; index++) {
    if (tokens[index].type === tt._declare) index = endOfAmbientBlock(tokens, index);
    const refusal = refuse(text, tokens, index);
    if (refusal) return { [refusal.kind]: { ...refusal.said, ...placeOf(source, tokens[index].start - lead) } };
  }
  return null;
}

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
  if (contextualKeyword === word.NONE || !isNameOnSameLine(text, tokens, index)) return null;
  const [next, afterNext] = [tokens[index + 1], tokens[index + 2]];
  if (isType && NAMESPACE_WORDS.includes(contextualKeyword)) {
    const opens = afterNext.type === tt.braceL || afterNext.type === tt.dot;
    return opens ? unsupported("a namespace", "use a plain object") : null;
  }
  const isAccessor = contextualKeyword === word._accessor && !next.isType;
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
