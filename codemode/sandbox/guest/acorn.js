// The syntax side of the toolchain, bundled with acorn into assets/acorn.js.
//
// `inspect` answers questions about one cell with the parser's word, in a VM of its own.
// Request and answer are JSON texts:
//
//   {"source", "wants": ["guard" | "form" | "names" | "script"]} →
//     {"error": {"message", "line", "column", "incomplete", "typescript"}}   not JavaScript
//     {"denied": {"what", "line", "column"}}                                 asks for a module
//     {"form": "statements" | "expression" | "function", "tail": characters, "names": [..],
//      "script": source as a global script whose declarations may be repeated, "returns": boolean}
//
// `tail` counts the code points after a sole expression: a semicolon, comments, white space.
// Lines and columns count from 1, columns in code points; only "\n" ends a line, as in QuickJS.

import { parse, parseExpressionAt, tokTypes, tokenizer } from "acorn";

const OPTIONS = {
  ecmaVersion: "latest",
  allowAwaitOutsideFunction: true,
  allowReturnOutsideFunction: true,
  allowImportExportEverywhere: true, // so that the guard, not the grammar, refuses them
  preserveParens: true, // a sole `(expression)` ends after its parenthesis
};
const GUARDED = new Set(["require", "module", "exports"]);

globalThis.inspect = (request) => {
  const { source, wants } = JSON.parse(request);
  try {
    return JSON.stringify(answer(source, wants));
  } catch (error) {
    return JSON.stringify({ error: explain(source, error) });
  }
};

function answer(source, wants) {
  const { form, tree, end } = readForm(source);
  const denied = wants.includes("guard") ? new Guard(source).check(tree) : null;
  if (denied) return { denied };
  return {
    form,
    tail: [...source.slice(end)].length,
    names: wants.includes("names") && form === "statements" ? declaredNames(tree.body) : [],
    ...(wants.includes("script") ? asScript(source) : {}),
  };
}

// -- source forms -------------------------------------------------------------------------

// A cell is read as one expression first, because a model that writes `{a: 1}` or an unnamed
// function means the value. A declaration followed by something, `function f() {} (1)`, keeps
// the meaning that it has as statements.
function readForm(source) {
  const tree = soleExpression(source);
  if (tree === null) return { form: "statements", tree: parse(source, OPTIONS), end: source.length };
  if (startsLikeStatement(tree) && isProgram(source)) {
    return { form: "statements", tree: parse(source, OPTIONS), end: source.length };
  }
  return { form: isCallable(withoutParens(tree)) ? "function" : "expression", tree, end: tree.end };
}

function soleExpression(source) {
  try {
    const tree = parseExpressionAt(source, 0, OPTIONS);
    for (const token of tokenizer(source.slice(tree.end), OPTIONS)) {
      if (token.type !== tokTypes.semi) return null;
    }
    return tree;
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}

function isProgram(source) {
  try {
    return Boolean(parse(source, OPTIONS));
  } catch (error) {
    if (error instanceof SyntaxError) return false;
    throw error;
  }
}

const STATEMENT_LIKE = new Set(["FunctionExpression", "ClassExpression", "ObjectExpression"]);

// True where the expression only begins with a function, a class or an object.
function startsLikeStatement(tree) {
  let node = tree;
  while (!STATEMENT_LIKE.has(node.type)) {
    const first = Object.values(node).find((child) => child?.type && child.start === tree.start);
    if (!first) return false;
    node = first;
  }
  return node !== tree;
}

function withoutParens(node) {
  return node.type === "ParenthesizedExpression" ? withoutParens(node.expression) : node;
}

function isCallable(node) {
  return node.type === "ArrowFunctionExpression" || (node.type === "FunctionExpression" && !node.generator);
}

// -- module guard -------------------------------------------------------------------------

// Walks the tree with the scopes of the guarded names only, and keeps the first violation.
class Guard {
  constructor(source) {
    this.source = source;
    this.scopes = [];
    this.found = null;
  }

  check(tree) {
    if (tree.type === "Program") this.varScope(tree);
    else this.visit(tree);
    return this.found;
  }

  deny(what, node) {
    if (!this.found || node.start < this.found.start) {
      this.found = { what, start: node.start, ...placeOf(this.source, node.start) };
    }
  }

  inScope(names, walk) {
    this.scopes.push(new Set(names.filter((name) => GUARDED.has(name))));
    walk();
    this.scopes.pop();
  }

  visit(node) {
    const rule = RULES[node.type];
    if (rule) rule(this, node);
    else this.children(node);
  }

  children(node) {
    for (const child of childrenOf(node)) this.visit(child);
  }

  identifier(node) {
    if (GUARDED.has(node.name) && !this.scopes.some((scope) => scope.has(node.name))) this.deny(node.name, node);
  }

  // `typeof require` is how portable code asks, and the answer is "undefined".
  unary(node) {
    const operand = withoutParens(node.argument);
    if (node.operator !== "typeof" || operand.type !== "Identifier") this.visit(node.argument);
  }

  // Properties, methods and fields: a name that is not computed is no reference.
  keyed(node) {
    if (node.computed) this.visit(node.key);
    if (node.value) this.visit(node.value);
  }

  member(node) {
    this.visit(node.object);
    if (node.computed) this.visit(node.property);
  }

  func(node) {
    const own = node.type === "FunctionExpression" && node.id ? [node.id.name] : [];
    this.inScope([...own, ...node.params.flatMap(patternNames)], () => {
      for (const param of node.params) this.visit(param);
      if (node.body.type === "BlockStatement") this.varScope(node.body);
      else this.visit(node.body);
    });
  }

  varScope(node) {
    this.inScope([...varNames(node.body), ...lexicalNames(node.body)], () => this.children(node));
  }

  block(node, statements) {
    this.inScope(lexicalNames(statements), () => this.children(node));
  }
}

const RULES = {
  ImportDeclaration: (guard, node) => guard.deny("import", node),
  ExportNamedDeclaration: (guard, node) => guard.deny("export", node),
  ExportDefaultDeclaration: (guard, node) => guard.deny("export", node),
  ExportAllDeclaration: (guard, node) => guard.deny("export", node),
  ImportExpression: (guard, node) => guard.deny("import()", node),
  MetaProperty: (guard, node) => node.meta.name === "import" && guard.deny("import.meta", node),
  Identifier: (guard, node) => guard.identifier(node),
  UnaryExpression: (guard, node) => guard.unary(node),
  MemberExpression: (guard, node) => guard.member(node),
  Property: (guard, node) => guard.keyed(node),
  MethodDefinition: (guard, node) => guard.keyed(node),
  PropertyDefinition: (guard, node) => guard.keyed(node),
  LabeledStatement: (guard, node) => guard.visit(node.body),
  BreakStatement: () => {},
  ContinueStatement: () => {},
  FunctionDeclaration: (guard, node) => guard.func(node),
  FunctionExpression: (guard, node) => guard.func(node),
  ArrowFunctionExpression: (guard, node) => guard.func(node),
  ClassDeclaration: (guard, node) => guard.inScope(node.id ? [node.id.name] : [], () => guard.children(node)),
  ClassExpression: (guard, node) => guard.inScope(node.id ? [node.id.name] : [], () => guard.children(node)),
  StaticBlock: (guard, node) => guard.varScope(node),
  BlockStatement: (guard, node) => guard.block(node, node.body),
  SwitchStatement: (guard, node) => guard.block(node, node.cases.flatMap((branch) => branch.consequent)),
  ForStatement: (guard, node) => guard.block(node, node.init ? [node.init] : []),
  ForInStatement: (guard, node) => guard.block(node, [node.left]),
  ForOfStatement: (guard, node) => guard.block(node, [node.left]),
  CatchClause: (guard, node) =>
    guard.inScope(node.param ? patternNames(node.param) : [], () => guard.children(node)),
};

function childrenOf(node) {
  return Object.values(node).flat().filter((child) => child && typeof child.type === "string");
}

// -- declared names -----------------------------------------------------------------------

function patternNames(node) {
  switch (node?.type) {
    case "Identifier": return [node.name];
    case "MemberExpression": return [];
    case "AssignmentPattern": return patternNames(node.left);
    case "Property": return patternNames(node.value);
    case "RestElement": return patternNames(node.argument);
    case "ArrayPattern": return node.elements.flatMap(patternNames);
    case "ObjectPattern": return node.properties.flatMap(patternNames);
    default: return [];
  }
}

function lexicalNames(statements) {
  return statements.flatMap((node) => {
    if (node.type === "VariableDeclaration") return node.declarations.flatMap(({ id }) => patternNames(id));
    return /^(Function|Class)Declaration$/.test(node.type) && node.id ? [node.id.name] : [];
  });
}

// Names that `var`, and functions in blocks, hoist to the enclosing function.
function varNames(statements) {
  return statements.flatMap(function hoisted(node) {
    if (node.type === "VariableDeclaration" && node.kind === "var") return lexicalNames([node]);
    if (node.type === "FunctionDeclaration") return [node.id.name];
    const inside = /Statement$|^SwitchCase$|^CatchClause$|^VariableDeclaration$/.test(node.type);
    return inside && node.type !== "ExpressionStatement" ? childrenOf(node).flatMap(hoisted) : [];
  });
}

function declaredNames(statements) {
  return [...new Set([...lexicalNames(statements), ...varNames(statements)])];
}

// -- scripts of the REPL ------------------------------------------------------------------

// `const` and `let` become `var`, at their own length, and a class a `var` that holds it: the
// next cell may declare the same name again. A source that returns can be no script.
function asScript(source) {
  let tree;
  try {
    tree = parse(source, { ...OPTIONS, allowReturnOutsideFunction: false });
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    return { script: source, returns: true };
  }
  let script = "";
  let end = 0;
  for (const node of tree.body) {
    const { type, kind, start } = node;
    if (type === "ClassDeclaration") {
      script += source.slice(end, start) + `var ${node.id.name}=` + source.slice(start, node.end) + ";";
      end = node.end;
    } else if (type === "VariableDeclaration" && kind !== "var") {
      script += source.slice(end, start) + "var".padEnd(kind.length);
      end = start + kind.length;
    }
  }
  return { script: script + source.slice(end), returns: false };
}

// -- errors -------------------------------------------------------------------------------

function placeOf(source, offset) {
  const before = source.slice(0, offset);
  const lineStart = before.lastIndexOf("\n") + 1;
  return { line: before.split("\n").length, column: [...before.slice(lineStart)].length + 1 };
}

function explain(source, error) {
  const message = error.message.replace(/ \(\d+:\d+\)$/, "");
  if (!(error instanceof SyntaxError) || message.startsWith("Not enough stack space")) {
    return { message: "nested too deeply to be parsed", ...placeOf(source, error.pos ?? 0) };
  }
  const unfinished = /^Unterminated (template|comment)/.test(message);
  return {
    message,
    ...placeOf(source, error.pos),
    incomplete: unfinished || error.pos >= source.trimEnd().length,
    typescript: looksTyped(source, error.pos),
  };
}

const TYPED_BEFORE = [
  /\b(interface|type|namespace|declare|abstract|enum|private|public|protected|readonly|override)\s+$/,
  /<[\w$\s,.|&[\]{}:;'"]+>\s*\($/, // new Map<string, number>(
];
const TYPED_AT = [
  /^:\s*[\w${["'(]/, // const x: number
  /^(as|satisfies)\s+[\w${["'(]/,
  /^!\s*[-+*/<>&|?:.;,)\]=[]/, // x!.y
  /^\?\s*[:,)]/, // optional parameter
  /^<[\w$\s,.|&[\]{}]+>/, // function f<T>
  /^(enum|implements)\b/,
  /^(private|public|protected|override|type|interface|abstract)\s+[\w$]/, // constructor(private x)
  /^this\s*:/, // function f(this: Foo)
];
const TYPED_AROUND = [/[\w$]<[^<>()]*$/, /^[\w$\s,.|&[\]{}'"]*>+\s*\(/]; // new Map<string, number>(

// Whether what stopped the parser is something that TypeScript would read on from.
function looksTyped(source, pos) {
  const before = source.slice(0, pos);
  const at = source.slice(pos);
  return TYPED_BEFORE.some((rule) => rule.test(before)) ||
    TYPED_AT.some((rule) => rule.test(at)) ||
    (TYPED_AROUND[0].test(before) && TYPED_AROUND[1].test(at));
}
