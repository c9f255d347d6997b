// Sheets: rectangles of cells that a zooming picture is drawn from. A sheet stands for the rows r0 up to r1 and the columns c0
// up to c1 of the matrix, in h x w cells, of which (i, j) stands for the rows from r0 + floor(i*(r1-r0)/h) up to the next.
// value is an f32 a cell; hidden is 1 where a cell is masked. Values that are not exact were read off a palette.

const attnbEdge = (from, to, n, i) => from + Math.floor((i * (to - from)) / n);
const attnbCell = (from, to, n, at) => Math.min(Math.floor(((at - from + 1) * n - 1) / (to - from)), n - 1);

// A stored sheet: the extent and the numbers as they came, and where the cells are.
async function attnbStored(s, view, image) {
  const sheet = { r0: s.rows[0], r1: s.rows[1], c0: s.cols[0], c1: s.cols[1], h: s.h, w: s.w, exact: s.form === "f32" };
  const n = s.h * s.w;
  sheet.hidden = new Uint8Array(n);
  if (s.form === "f32") {
    const raw = await attnbUnpack(attnbBytes(s.data), "gzip");
    sheet.value = new Float32Array(raw.buffer, 0, n);
    for (let k = 0; k < n && raw.length > 4 * n; k++) sheet.hidden[k] = (raw[4 * n + (k >> 3)] >> (k & 7)) & 1;
    return sheet;
  }
  sheet.value = new Float32Array(n);
  const { colours, codes } = view, scale = s.scale || view.scale;
  const of = new Float32Array(256), hides = new Uint8Array(256);
  for (let c = 0; c < 256; c++) {
    if (c < colours.ramp.length) of[c] = attnbValue(scale, (c + 0.5) / colours.ramp.length);
    else hides[c] = codes.masked.includes(c) ? 1 : 0;
  }
  of[codes.nan] = NaN;
  of[codes.posInf] = Infinity;
  of[codes.negInf] = -Infinity;
  const put = (k, c) => {
    sheet.value[k] = of[c];
    sheet.hidden[k] = hides[c];
  };
  if (s.form === "picture") { // the cells of the labelled picture itself
    const p = await image();
    for (let i = 0; i < s.h; i++) {
      for (let j = 0; j < s.w; j++) put(i * s.w + j, p.pixels[(s.y + i * s.dy) * p.width + s.x + j * s.dx]);
    }
    return sheet;
  }
  (await attnbUnpack(attnbBytes(s.data), "gzip")).forEach((c, k) => put(k, c));
  return sheet;
}

// The inverse of attnbPlace.
function attnbValue({ errors, log, steps, lo, hi, belowOne }, t) {
  if (steps) return Math.sinh((2 * t - 1) * Math.asinh(hi));
  if (log) return Math.exp(Math.log(lo) + t * (Math.log(hi) - Math.log(lo)));
  if (!errors) return 2 * (lo / 2 + t * (hi / 2 - lo / 2));
  return t < 0.5 ? lo + ((2 * t) / belowOne) * (1 - lo) : Math.exp((2 * t - 1) * Math.log(hi));
}

// The palette indices of a PNG of 8 bits a pixel: what a canvas gives back may have passed through colour management.
async function attnbPixels(png) {
  const at = new DataView(png.buffer, png.byteOffset);
  const parts = [];
  let width = 0, height = 0;
  for (let p = 8; p < png.length; ) {
    const n = at.getUint32(p), kind = String.fromCharCode(...png.subarray(p + 4, p + 8));
    if (kind === "IHDR") [width, height] = [at.getUint32(p + 8), at.getUint32(p + 12)];
    if (kind === "IDAT") parts.push(png.subarray(p + 8, p + 8 + n));
    p += 12 + n;
  }
  const lines = await attnbUnpack(new Uint8Array(await new Blob(parts).arrayBuffer()), "deflate");
  const pixels = new Uint8Array(width * height);
  for (let y = 0; y < height; y++) {
    const form = lines[y * (width + 1)], line = lines.subarray(y * (width + 1) + 1, (y + 1) * (width + 1));
    for (let x = 0; x < width; x++) {
      const left = x ? pixels[y * width + x - 1] : 0, above = y ? pixels[(y - 1) * width + x] : 0;
      if (form > 2) throw new Error("a PNG that is not ours");
      pixels[y * width + x] = line[x] + (form === 1 ? left : form === 2 ? above : 0);
    }
  }
  return { width, height, pixels };
}

// The sheet with half of the cells along an axis that has more than it has pixels, reduced as the picture says. Of masked cells
// and others the others count; NaN, +Inf and -Inf, in this order, hide nowhere.
function attnbFitted(s, by, high, wide) {
  // Where cells stand for several indices each, only pairs of them are cells of a coarser sheet.
  const even = (n, room, span) => n > room && (n % 2 === 0 || n === span);
  for (; even(s.h, high, s.r1 - s.r0) || even(s.w, wide, s.c1 - s.c0); s = s.coarser) {
    const h = even(s.h, high, s.r1 - s.r0) ? Math.ceil(s.h / 2) : s.h, w = even(s.w, wide, s.c1 - s.c0) ? Math.ceil(s.w / 2) : s.w;
    if (!s.coarser || s.coarser.h !== h || s.coarser.w !== w) s.coarser = attnbCoarser(s, by, h, w);
  }
  return s;
}

function attnbCoarser(s, by, h, w) {
  const n = h * w, out = { r0: s.r0, r1: s.r1, c0: s.c0, c1: s.c1, h, w, value: new Float32Array(n), hidden: new Uint8Array(n), exact: false };
  const rank = v => (v !== v ? 3 : v === Infinity ? 2 : v === -Infinity ? 1 : 0);
  const rows = Array.from({ length: h + 1 }, (_, i) => attnbEdge(0, s.h, h, i)), cols = Array.from({ length: w + 1 }, (_, j) => attnbEdge(0, s.w, w, j));
  for (let i = 0; i < h; i++) {
    for (let j = 0; j < w; j++) {
      let value = 0, n = 0, first = 0;
      for (let y = rows[i]; y < rows[i + 1]; y++) {
        for (let k = y * s.w + cols[j]; k < y * s.w + cols[j + 1]; k++) {
          if (s.hidden[k]) continue;
          const v = s.value[k], r = rank(v);
          if (n && r < first) continue;
          if (!n || r > first) {
            value = v;
            n = 1;
            first = r;
            continue;
          }
          n++;
          if (r) continue;
          if (by === "mean" || by === "sum") value += v;
          else if (by === "largest") value = Math.max(value, v);
          else if (by === "smallest") value = Math.min(value, v);
          else if (Math.abs(v) > Math.abs(value)) value = v;
        }
      }
      out.value[i * w + j] = by === "mean" && n && !first ? value / n : value;
      out.hidden[i * w + j] = n ? 0 : 1;
    }
  }
  return out;
}

// What cells without a place on the scale are, as the legend has them.
const attnbClasses = ["masked", "zero", "NaN", "+Inf", "-Inf"];

// How many cells of each class there are, in the sheets that are given, among those that meet the window.
function attnbCount(sheets, shown, log) {
  const n = Object.fromEntries(attnbClasses.map(name => [name, 0]));
  for (const s of sheets) {
    const [i0, i1, j0, j1] = attnbWithin(s, shown);
    for (let i = i0; i <= i1; i++) {
      for (let k = i * s.w + j0; k <= i * s.w + j1; k++) {
        const v = s.value[k];
        if (s.hidden[k]) n.masked++;
        else if (v !== v) n.NaN++;
        else if (v === Infinity) n["+Inf"]++;
        else if (v === -Infinity) n["-Inf"]++;
        else if (log && v === 0) n.zero++;
      }
    }
  }
  return n;
}

// The first and last row and column of a sheet's cells that meet a window.
function attnbWithin(s, shown) {
  const first = (from, to, n, at) => (from >= at ? 0 : attnbCell(from, to, n, Math.floor(at)));
  const last = (from, to, n, at) => (to <= at ? n - 1 : attnbCell(from, to, n, Math.ceil(at) - 1));
  return [first(s.r0, s.r1, s.h, shown.r0), last(s.r0, s.r1, s.h, shown.r1), first(s.c0, s.c1, s.w, shown.c0), last(s.c0, s.c1, s.w, shown.c1)];
}

// A sheet as a canvas of one pixel a cell; masked cells are transparent. It is kept with the sheet as long as the scale is the same.
function attnbPainted(sheet, scale, ramp, fixed) {
  const key = `${scale.lo} ${scale.hi}`;
  if (sheet.painted && sheet.paintedIn === key) return sheet.painted;
  const rgba = hex => (0xff000000 | (parseInt(hex.slice(5, 7), 16) << 16) | (parseInt(hex.slice(3, 5), 16) << 8) | parseInt(hex.slice(1, 3), 16)) >>> 0;
  const steps = ramp.map(rgba), nan = rgba(fixed.NaN), pos = rgba(fixed["+Inf"]), neg = rgba(fixed["-Inf"]), zero = rgba(fixed.zero);
  const canvas = sheet.painted || document.createElement("canvas");
  canvas.width = sheet.w;
  canvas.height = sheet.h;
  const g = canvas.getContext("2d"), data = g.createImageData(sheet.w, sheet.h), out = new Uint32Array(data.data.buffer);
  for (let k = 0; k < out.length; k++) {
    if (sheet.hidden[k]) continue;
    const v = sheet.value[k];
    if (v !== v) out[k] = nan;
    else if (v === Infinity) out[k] = pos;
    else if (v === -Infinity) out[k] = neg;
    else if (scale.log && v === 0) out[k] = zero;
    else out[k] = steps[Math.min(Math.floor(attnbPlace(scale, v) * steps.length), steps.length - 1)];
  }
  g.putImageData(data, 0, 0);
  sheet.painted = canvas;
  sheet.paintedIn = key;
  return canvas;
}
