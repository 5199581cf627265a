// Bundles one glue file with its parser: `node bundle.mjs sucrase` packs sucrase.js in place, and
// sucrase.meta.json says what went in. `hatch_build.py` runs it in a folder where npm has been.
//
// sucrase was written for engines that compile what is hot; ours interprets all. Its parser is
// rewritten on the way in, without a change of what it accepts, says or gives: names of numbers
// become the numbers, dialects that no cell is written in go, as does what only their transforms
// read, and calls and objects are saved where every token or expression made several. A rewriting
// that does not apply exactly once ends the build, so that no other version slips through.

import { readFileSync, writeFileSync } from "node:fs";
import { build } from "esbuild";

const PARSER = "node_modules/sucrase/dist/esm/parser/";

// -- numbers for names --------------------------------------------------------------------

const ENUM = /export var (\w+); \(function \(\1\) \{[\s\S]*?\n\}\)\(\1 \|\| \(\1 = \{\}\)\);/g;
const ENUM_FILES = ["tokenizer/types.js", "tokenizer/keywords.js", "tokenizer/index.js", "util/charcodes.js"];
const ENUMS = {};
for (const file of ENUM_FILES) {
  for (const [text, name] of readFileSync(PARSER + file, "utf8").matchAll(ENUM)) {
    ENUMS[name] = new Function(`${text.replace("export ", "")} return ${name};`)();
  }
}
Object.assign(ENUMS, { tt: ENUMS.TokenType, word: ENUMS.ContextualKeyword }); // as they are imported
const MEMBER = new RegExp(`(?<![\\w.])(${Object.keys(ENUMS).join("|")})\\.(\\w+)\\b`, "g");

function inlineNumbers(text) {
  return text.replace(ENUM, "export const $1 = undefined;").replace(MEMBER, (member, name, key) => {
    const value = ENUMS[name][key];
    if (typeof value !== "number") throw new Error(`sucrase has no ${member}`);
    return value;
  });
}

// -- one dialect --------------------------------------------------------------------------

const DIALECT = { isJSXEnabled: "false", isFlowEnabled: "false", isTypeScriptEnabled: "true" };
const FOREIGN_IMPORT = /^import [^;]* from "(?:\.\/|\.\.\/plugins\/)(?:flow|jsx|jsx\/index)";$/gm;
const FOREIGN_TRANSFORMER = new RegExp(
  "(Flow|JSX|JestHoist|CJSImport|ESMImport|NumericSeparator|OptionalCatchBinding|OptionalChainingNullish" +
    "|ReactDisplayName|ReactHotLoader)Transformer\\.js$",
);

function inlineDialect(text) {
  const [head, ...statements] = text.replace(FOREIGN_IMPORT, "").split(/(?=^(?:export )?(?:function|class|const) )/m);
  return head + statements.join("").replace(/\bis(?:JSX|Flow|TypeScript)Enabled\b/g, (name) => DIALECT[name]);
}

// -- calls and objects --------------------------------------------------------------------

const LAST_TOKEN_FIELDS = "identifierRole|subscriptStartIndex|nullishStartIndex|isOptionalChain(?:Start|End)";
const EVERYWHERE = [
  // The cheaper question first: neither changes anything.
  [/!(hasPrecedingLineBreak|canInsertSemicolon)\(\) && ((?:eat|match)\((tt\.\w+)\))/g, "match($3) && !$1() && $2"],
  // Questions that are asked two thousand times of a small cell.
  [/\bmatch\((tt\.\w+)\)/g, "(state.type === $1)"],
  [/\beat\((tt\.\w+)\)/g, "(state.type === $1 && (next(), true))"],
  [/\bisContextual\((ContextualKeyword\.\w+)\)/g, "(state.contextualKeyword === $1)"],
  // A default that is false is no other than none, and costs as much as a call.
  [/(?<=^(?:export )?function \w+\([^)]*\w) = false\b/gm, ""],
  // What only transforms of modules, of JSX and for old engines read.
  [/^ *state\.scopes\.push\(new Scope\([^;]*\)\);$/gm, ""],
  [new RegExp(`^ *state\\.tokens\\[[^;]*\\]\\.(?:${LAST_TOKEN_FIELDS}) = [^;]*;$`, "gm"), ""],
  [/^ *state\.tokens\[[^;]*\]\.numNullishCoalesce\w+\+\+;$/gm, ""],
];

// Adds the two imports that the questions, written out, need and a file may lack.
function importNeeded(text) {
  const known = text.match(/^ *(?:import [^;]*;|export (?:let|function) \w+)/gm)?.join() ?? "";
  const isNeeded = (name) => new RegExp(`\\b${name}\\b`).test(text) && !new RegExp(`\\b${name}\\b`).test(known);
  const imports = [["state", "../traverser/base"], ["next", "../tokenizer/index"]].filter(([name]) => isNeeded(name));
  return imports.map(([name, file]) => `import {${name}} from "${file}";\n`).join("") + text;
}

const SNAPSHOT = [
  "tokens.length", "potentialArrowAt", "noAnonFunctionType", "inDisallowConditionalTypesContext", "pos", "type",
  "contextualKeyword", "start", "end", "isType", "scopeDepth", "error",
];

// file → [what is there once, what takes its place]
const REWRITES = {
  "traverser/base.js": [[/( {2}is\w+Enabled = is\w+Arg;\n){3}/, ""]],
  // An error keeps a trace, which costs most in deep recursion, and most are thrown away.
  "traverser/util.js": [["const err = new SyntaxError(message);\n  err.pos = pos;", "const err = {message, pos};"]],
  "index.js": [
    [
      "throw augmentError(state.error);",
      "throw augmentError(Object.assign(new SyntaxError(state.error.message), {pos: state.error.pos}));",
    ],
  ],
  // A fresh array costs a quarter of a fresh object with as many properties.
  "tokenizer/state.js": [
    [/return new StateSnapshot\([\s\S]*?\);/, `return [${SNAPSHOT.map((name) => `this.${name}`)}];`],
    [
      /(restoreFromSnapshot\(snapshot\) \{)[\s\S]*?\n {2}\}/,
      `$1 ${SNAPSHOT.map((name, index) => `this.${name} = snapshot[${index}];`).join(" ")} }`,
    ],
  ],
  "traverser/expression.js": [
    [/\n {2}if \(state\.tokens\.length > startTokenIndex && [^{]*\.isOptionalChainStart\) \{[^}]*\}/, ""],
    ["    !hasPrecedingLineBreak() &&\n    (eat", "    state.contextualKeyword > 0 &&\n    !hasPrecedingLineBreak() &&\n    (eat"],
    // Most expressions are one name: they went through seven functions that found nothing to do.
    [/(export function parseMaybeAssign\([^)]*\) \{)[\s\S]*?\n\}\n/, `$1
  if (match(tt.lessThan)) return tsParseMaybeAssign(noIn, isWithinParens);
  return baseParseMaybeAssign(noIn, isWithinParens);
}
`],
    [/(export function baseParseMaybeAssign\([^)]*\) \{)[\s\S]*?\n\}\n/, `$1
  const at = state;
  if (at.type === tt._yield) {
    parseYield();
    return false;
  }
  if (at.type === tt.parenL || at.type === tt.name) at.potentialArrowAt = at.start;
  const startTokenIndex = at.tokens.length;
  const wasArrow = parseMaybeUnary();
  if (!wasArrow) {
    const mayGoOn = (at.type & TokenType.PRECEDENCE_MASK) > 0 || at.contextualKeyword > 0;
    if (mayGoOn) parseExprOp(startTokenIndex, -1, noIn);
    if (at.type === tt.question) parseConditional(noIn);
  }
  if (isWithinParens && (at.type === tt.question || at.type === tt.colon)) parseParenItem();
  if (at.type & TokenType.IS_ASSIGN) {
    next();
    parseMaybeAssign(noIn);
    return false;
  }
  return wasArrow;
}
`],
    [/function parseMaybeConditional\([\s\S]*?\n\}\n/, ""],
    [/function parseExprOps\([\s\S]*?\n\}\n/, ""],
    [/export function baseParseSubscripts\([\s\S]*?\n\}\n/, ""],
    [/(function parseSubscripts\([^)]*\) \{)[\s\S]*?\n\}\n/, `
const SUBSCRIPTS = new Uint8Array(128);
for (const type of [
  tt.dot, tt.questionDot, tt.parenL, tt.bracketL, tt.backQuote, tt.bang, tt.lessThan, tt.bitShiftL, tt.doubleColon,
]) {
  SUBSCRIPTS[type >>> 10] = 1;
}

$1
  if (SUBSCRIPTS[state.type >>> 10] === 0) return;
  const stopState = new StopState(false);
  do {
    tsParseSubscript(startTokenIndex, noCalls, stopState);
  } while (!stopState.stop && SUBSCRIPTS[state.type >>> 10] === 1);
}
`],
  ],
  "plugins/typescript.js": [
    ["if (tsIsStartOfFunctionType())", "if ((match(tt.lessThan) || match(tt.parenL)) && tsIsStartOfFunctionType())"],
    ["(isAbstractConstructorSignature())", "(isContextual(ContextualKeyword._abstract) && isAbstractConstructorSignature())"],
    ["|| hasPrecedingLineBreak() || !", "|| !match(tt._extends) || hasPrecedingLineBreak() || !"],
  ],
  "tokenizer/index.js": [
    // The first tokens are in the image already: making one costs five times as much as filling it.
    [/(class Token \{\n {2}constructor\(\) \{)[\s\S]*?\n {2}\}\n/, `$1
    this.type = 0;
    this.contextualKeyword = 0;
    this.start = 0;
    this.end = 0;
    this.isType = false;
    this.contextId = null;
    this.rhsEndIndex = null;
    this.isExpression = false;
  }
`],
    [/(export function next\(\) \{\n)  state\.tokens\.push\(new Token\(\)\);/, `
const MADE = Array.from({length: 1024}, () => new Token());

function pushToken() {
  const at = state;
  const {tokens} = at;
  const index = tokens.length;
  const token = index < 1024 ? MADE[index] : new Token();
  token.type = at.type;
  token.contextualKeyword = at.contextualKeyword;
  token.start = at.start;
  token.end = at.end;
  token.isType = at.isType;
  token.contextId = null;
  token.rhsEndIndex = null;
  token.isExpression = false;
  tokens[index] = token;
}

$1  pushToken();`],
    ["state.tokens.push(new Token());\n  state.start", "pushToken();\n  state.start"],
    // What begins with an ASCII character is told by one look: a word (1), an operator or a literal
    // (2), or a token that is no more than its character.
    [/(export function nextToken\(\) \{)/, `
const BEGINS = new Uint16Array(128).fill(1, 65, 91).fill(1, 97, 123).fill(2, 48, 58);
for (const character of "$$_") BEGINS[character.charCodeAt(0)] = 1;
for (const character of "\\"'\`.:?%*|&^+-<>=!~#") BEGINS[character.charCodeAt(0)] = 2;
for (const [character, type] of Object.entries({
  "(": tt.parenL, ")": tt.parenR, "[": tt.bracketL, "]": tt.bracketR, "{": tt.braceL, "}": tt.braceR,
  ";": tt.semi, ",": tt.comma,
})) {
  BEGINS[character.charCodeAt(0)] = type;
}

$1
  const at = state;
  const text = input;
  let pos = at.pos;
  let code = text.charCodeAt(pos);
  while (code === 32 || code === 10) code = text.charCodeAt(++pos);
  at.pos = pos;
  const begins = BEGINS[code];
  if (begins > 0) {
    at.start = pos;
    if (begins === 1) {
      readWord();
    } else if (begins === 2) {
      getTokenFromCode(code);
    } else {
      at.pos = at.end = pos + 1;
      at.type = begins;
      at.contextualKeyword = 0;
    }
    return;
  }`],
    ["contextualKeyword = ContextualKeyword.NONE,", "contextualKeyword,"],
    ["state.contextualKeyword = contextualKeyword;\n}", "state.contextualKeyword = contextualKeyword | 0;\n}"],
  ],
  // As it was, but for one look at each character. At the very end of the input there is none, and
  // a keyword was never seen there.
  "tokenizer/readWord.js": [
    [/(export default function readWord\(\) \{)[\s\S]*\n\}\n/, `$1
  const at = state;
  const text = input;
  let treePos = 0;
  let pos = at.pos;
  let code = text.charCodeAt(pos);
  while (code >= 97 && code <= 122) {
    const next = READ_WORD_TREE[treePos + code - 96];
    if (next === -1) break;
    treePos = next;
    code = text.charCodeAt(++pos);
  }
  const keyword = READ_WORD_TREE[treePos];
  if (keyword > -1 && code >= 0 && !IS_IDENTIFIER_CHAR[code]) {
    at.pos = at.end = pos;
    at.type = keyword & 1 ? keyword >>> 1 : tt.name;
    at.contextualKeyword = keyword & 1 ? 0 : keyword >>> 1;
    return;
  }
  for (;;) {
    while (IS_IDENTIFIER_CHAR[code]) code = text.charCodeAt(++pos);
    if (code === charCodes.backslash) {
      pos += 2;
      if (text.charCodeAt(pos) === charCodes.leftCurlyBrace) {
        while (pos < text.length && text.charCodeAt(pos) !== charCodes.rightCurlyBrace) pos++;
        pos++;
      }
    } else if (code === charCodes.atSign && text.charCodeAt(pos + 1) === charCodes.atSign) {
      pos += 2;
    } else {
      break;
    }
    code = text.charCodeAt(pos);
  }
  at.pos = at.end = pos;
  at.type = tt.name;
  at.contextualKeyword = 0;
}
`],
  ],
};

function rewriteParser(file, text) {
  let result = text;
  for (const [what, instead] of REWRITES[file] ?? []) {
    const count = typeof what === "string" ? result.split(what).length - 1 : (result.match(new RegExp(what, "g")) ?? []).length;
    if (count !== 1) throw new Error(`sucrase's ${file} has ${count} of ${what}`);
    result = result.replace(what, instead);
  }
  for (const [what, instead] of EVERYWHERE) result = result.replace(what, instead);
  return importNeeded(file === "index.js" || file === "traverser/base.js" ? result : inlineDialect(result));
}

function rewrite(path) {
  if (FOREIGN_TRANSFORMER.test(path)) return "export default class {}";
  const text = readFileSync(path, "utf8");
  const file = path.split(PARSER)[1];
  return inlineNumbers(file === undefined ? text : rewriteParser(file, text));
}

// -- the bundle ---------------------------------------------------------------------------

const plugin = {
  name: "sucrase",
  setup(bundler) {
    bundler.onLoad({ filter: /[\\/]sucrase(\.js$|[\\/]dist[\\/])/ }, ({ path }) => ({
      contents: rewrite(path.replaceAll("\\", "/")),
    }));
  },
};

const [name] = process.argv.slice(2);
const { metafile } = await build({
  entryPoints: [`${name}.js`],
  outfile: `${name}.js`,
  allowOverwrite: true,
  bundle: true,
  minify: true,
  format: "iife",
  target: "es2020",
  charset: "utf8",
  logLevel: "error",
  metafile: true,
  plugins: [plugin],
});
writeFileSync(`${name}.meta.json`, JSON.stringify(metafile));
