// The syntax side of the toolchain: bundled with acorn into assets/acorn.js.
import { parse } from "acorn";

globalThis.inspect = (request) => {
  const { source } = JSON.parse(request);
  try {
    parse(source, { ecmaVersion: "latest", allowAwaitOutsideFunction: true, allowReturnOutsideFunction: true });
    return "{}";
  } catch (error) {
    return JSON.stringify({ error: error.message });
  }
};
