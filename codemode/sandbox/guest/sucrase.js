// The TypeScript side of the toolchain, bundled with sucrase into assets/sucrase.js.
//
// `transform` strips the types of one cell and keeps every line break; `mapPositions` leads
// positions in its result back to the author's source. Requests and answers are JSON texts:
//
//   transform    {"source"} → {"code"} | {"error": {"message", "line", "column"}}
//                           | {"denied": {"what", "line", "column"}}
//   mapPositions {"source", "positions": [[line, column]]} → {"positions": [[line, column]]}
//
// Lines and columns count from 1, columns in code points. sucrase drops or passes on, without
// a word, some syntax that it does not support: `refuse` finds it by token beforehand. Its
// inner modules are used, not its front door, so that one parse serves check and transform.

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
  const tokens = parseTokens(source);
  const { code, mappings } = runTransform(source, tokens);
  return JSON.stringify({
    positions: positions.map(([line, column]) => {
      const offset = originalOffset(offsetOf(code, line, column), mappings, tokens);
      const place = placeOf(source, offset ?? 0);
      return offset !== null && place.line === line ? [line, place.column] : [line, column];
    }),
  });
};

function strip(source) {
  const tokens = parseTokens(source);
  const refusal = firstRefusal(source, tokens);
  return refusal ?? { code: runTransform(source, tokens).code };
}

function parseTokens(source) {
  return parse(source, false, true, false).tokens;
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

const CONTINUING = [tt.parenL, tt.bracketL, tt.backQuote];

function isOnSameLine(code, tokens, index) {
  return !/[\n\r]/.test(code.slice(tokens[index].end, tokens[index + 1].start));
}

function isNameOnSameLine(code, tokens, index) {
  return tokens[index + 1]?.type === tt.name && isOnSameLine(code, tokens, index);
}

function runTransform(source, tokens) {
  const nameManager = new NameManager(source, tokens);
  const helperManager = new HelperManager(nameManager);
  const tokenProcessor = new TokenProcessor(source, tokens, false, true, helperManager);
  const context = { tokenProcessor, nameManager, helperManager, importProcessor: null };
  const options = { disableESTransforms: true, keepUnusedImports: true };
  return new Stripper(context, ["typescript"], false, options).transform();
}

// -- what is refused ----------------------------------------------------------------------

function firstRefusal(source, tokens) {
  for (let index = 0; index < tokens.length; index++) {
    if (tokens[index].type === tt._declare) index = endOfAmbientBlock(tokens, index);
    const refusal = refuse(source, tokens, index);
    if (refusal) {
      const [kind, what] = refusal;
      const place = placeOf(source, tokens[index].start);
      return kind === "denied" ? { denied: { what, ...place } } : { error: { message: what, ...place } };
    }
  }
  return null;
}

function refuse(source, tokens, index) {
  const token = tokens[index];
  const next = tokens[index + 1];
  switch (token.type) {
    case tt._import: return refuseImport(token, tokens, index);
    case tt._export: return next.type === tt.eq ? unsupported("`export =`") : ["denied", "export"];
    case tt.at: return unsupported("a decorator");
    case tt._return: case tt._throw: case tt._yield: return refuseSplitCast(source, tokens, index);
    default: return refuseWord(source, tokens, index);
  }
}

function refuseImport(token, tokens, index) {
  const [next, afterName] = [tokens[index + 1], tokens[index + 2]];
  if (next.type === tt.parenL) return token.isType ? null : ["denied", "import()"];
  const alias = afterName.type === tt.eq || (afterName.type === tt.name && tokens[index + 3].type === tt.eq);
  return next.type === tt.name && alias ? unsupported("`import =`") : ["denied", "import"];
}

const NAMESPACE_WORDS = [word._namespace, word._module];
const RUNTIME_WORDS = [word._using, word._accessor];

function refuseWord(source, tokens, index) {
  const { contextualKeyword, isType } = tokens[index];
  if (contextualKeyword === word.NONE || !isNameOnSameLine(source, tokens, index)) return null;
  const [next, afterNext] = [tokens[index + 1], tokens[index + 2]];
  if (isType && NAMESPACE_WORDS.includes(contextualKeyword)) {
    return [tt.braceL, tt.dot].includes(afterNext.type) ? unsupported("a namespace") : null;
  }
  const passedOn = RUNTIME_WORDS.includes(contextualKeyword) && !next.isType && next.contextualKeyword !== word._of;
  return passedOn ? unsupported(`\`${source.slice(tokens[index].start, tokens[index].end)}\``) : null;
}

// `return <T>` with its value on the next line would return nothing once the type is gone.
function refuseSplitCast(source, tokens, index) {
  let end = index + 1;
  while (tokens[end].isType) end++;
  const split = /[\n\r]/.test(source.slice(tokens[index].end, tokens[end].start));
  return end > index + 1 && split ? unsupported("a type assertion that is split over lines") : null;
}

function unsupported(what) {
  return ["error", `${what} is not supported`];
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
  let nearest = null;
  for (let index = 0; index < tokens.length; index++) {
    if (mappings[index] <= offset) nearest = index;
  }
  if (nearest === null) return null;
  const { start, end } = tokens[nearest];
  return Math.min(start + offset - mappings[nearest], Math.max(start, end));
}

function offsetOf(text, line, column) {
  let start = 0;
  for (let rest = line; rest > 1; rest--) start = text.indexOf("\n", start) + 1;
  return start + [...text.slice(start)].slice(0, column - 1).join("").length;
}

function placeOf(source, offset) {
  const before = source.slice(0, offset);
  const lineStart = before.lastIndexOf("\n") + 1;
  return { line: before.split("\n").length, column: [...before.slice(lineStart)].length + 1 };
}

function explain(source, error) {
  if (error.pos === undefined) return { message: error.message, ...placeOf(source, 0) };
  return { message: error.message.replace(/ \(\d+:\d+\)$/, ""), ...placeOf(source, error.pos) };
}
