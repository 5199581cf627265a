// The TypeScript side of the toolchain: bundled with sucrase into assets/sucrase.js.
import { parse } from "./node_modules/sucrase/dist/esm/parser/index.js";
import TokenProcessor from "./node_modules/sucrase/dist/esm/TokenProcessor.js";
import RootTransformer from "./node_modules/sucrase/dist/esm/transformers/RootTransformer.js";
import NameManager from "./node_modules/sucrase/dist/esm/NameManager.js";
import { HelperManager } from "./node_modules/sucrase/dist/esm/HelperManager.js";

globalThis.transform = (request) => {
  const { source } = JSON.parse(request);
  const { tokens } = parse(source, false, true, false);
  const nameManager = new NameManager(source, tokens);
  const helperManager = new HelperManager(nameManager);
  const tokenProcessor = new TokenProcessor(source, tokens, false, true, helperManager);
  const context = { tokenProcessor, nameManager, helperManager, importProcessor: null };
  const options = { transforms: ["typescript"], disableESTransforms: true, keepUnusedImports: true };
  return JSON.stringify(new RootTransformer(context, options.transforms, false, options).transform());
};
