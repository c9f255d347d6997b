// Rebuilds echarts.min.js.gz and manifest.json from the packages that package-lock.json pins:
//
//	npm ci --ignore-scripts && npm run build
import { createHash } from "node:crypto";
import { copyFileSync, readFileSync, writeFileSync } from "node:fs";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";

const version = name => JSON.parse(readFileSync(`node_modules/${name}/package.json`)).version;
const sha256 = bytes => createHash("sha256").update(bytes).digest("hex");

const { outputFiles } = await build({
  entryPoints: ["entry.mjs"],
  bundle: true,
  minify: true,
  format: "iife",
  target: "es2020",
  legalComments: "none",
  charset: "ascii",
  write: false,
  banner: {
    js: `/*! Parts of Apache ECharts ${version("echarts")} (Apache-2.0, The Apache Software Foundation, https://echarts.apache.org), ` +
      `zrender ${version("zrender")} (BSD-3-Clause, Baidu Inc.), d3 (BSD-3-Clause, Michael Bostock), tslib (0BSD, Microsoft); ` +
      `bundled and minified for attnb */`,
  },
});
const script = outputFiles[0].contents;
const packed = gzipSync(script, { level: 9 });
packed[9] = 255; // the system that packed it is nobody's business, and would change the file

copyFileSync("node_modules/echarts/LICENSE", "LICENSE");
copyFileSync("node_modules/echarts/NOTICE", "NOTICE");
copyFileSync("node_modules/echarts/licenses/LICENSE-d3", "LICENSE-d3");
copyFileSync("node_modules/zrender/LICENSE", "LICENSE-zrender");
copyFileSync("node_modules/tslib/LICENSE.txt", "LICENSE-tslib");
writeFileSync("echarts.min.js.gz", packed);
writeFileSync("manifest.json", JSON.stringify({
  echarts: version("echarts"),
  zrender: version("zrender"),
  tslib: version("tslib"),
  esbuild: version("esbuild"),
  script: { bytes: script.length, sha256: sha256(script) },
  packed: { bytes: packed.length, sha256: sha256(packed) },
}, null, 2) + "\n");
console.log(`${script.length} bytes, packed ${packed.length}`);
