// What stands around the cells of a zooming picture, on its canvas: axes, colour bar, numbers in cells.

// Multiples of a round step (1, 2 or 5 times a power of ten) within lo and hi, about n.
function attnbRound(lo, hi, n, least) {
  let step = (hi - lo) / n;
  const p = 10 ** Math.floor(Math.log10(step));
  step = Math.max([1, 2, 5, 10].find(m => m * p >= step * 0.999) * p, least || 0);
  const out = [];
  for (let i = Math.ceil(lo / step); i * step <= hi && out.length < 4 * n; i++) out.push(i * step);
  return out;
}

const attnbShort = v => attnbExact(Number(v.toPrecision(3)));

// The values beside the colour bar: both ends exactly, round numbers between.
function attnbBarTicks(scale, high) {
  const { lo, hi, log, errors } = scale;
  let between = [];
  if (log) for (let p = Math.floor(Math.log10(lo)) + 1; 10 ** p < hi; p++) between.push(10 ** p);
  else if (errors && hi > 1) between = [1, ...attnbRound(0, 1, 2)];
  else between = attnbRound(lo, hi, 5);
  const out = [];
  for (const v of [hi, lo, ...between]) {
    const y = high * (1 - attnbPlace(scale, v));
    if (out.every(t => Math.abs(t.y - y) >= 13)) out.push({ y, text: (scale.open && v === lo ? "≤ " : "") + attnbShort(v) });
  }
  return out;
}

function attnbBar(g, box, scale, ramp, name, ink) {
  for (let y = 0; y < box.h; y++) {
    g.fillStyle = ramp[Math.min(Math.floor((1 - (y + 0.5) / box.h) * ramp.length), ramp.length - 1)];
    g.fillRect(box.x, box.y + y, box.w, 1.5);
  }
  g.fillStyle = ink;
  g.textAlign = "left";
  g.textBaseline = "middle";
  g.fillText(name, box.x, box.y - 11);
  for (const t of attnbBarTicks(scale, box.h)) {
    g.globalAlpha = 0.5;
    g.fillRect(box.x + box.w, box.y + t.y - 0.5, 4, 1);
    g.globalAlpha = 1;
    g.fillText(t.text, box.x + box.w + 7, box.y + t.y);
  }
}

// One axis: ticks of indices, of tokens where there is room for each. at and room run along the axis.
function attnbAxis(g, plot, from, to, upright, name, labels, ink) {
  const length = upright ? plot.h : plot.w, each = length / (to - from);
  const place = i => (upright ? plot.y : plot.x) + (i - from) * each;
  const named = labels && each >= 13;
  const ticks = named
    ? Array.from({ length: Math.ceil(to) - Math.floor(from) }, (_, i) => Math.floor(from) + i)
    : attnbRound(from, to - 1e-9, Math.max(2, length / (upright ? 45 : 75)), 1);
  g.fillStyle = ink;
  g.textBaseline = "middle";
  for (const i of ticks) {
    const at = place(each >= 3 ? i + 0.5 : i);
    if (at < (upright ? plot.y : plot.x) - 0.5 || at > (upright ? plot.y + plot.h : plot.x + plot.w) + 0.5) continue;
    const text = named && labels[i] !== undefined ? attnbClip(labels[i]) : String(i);
    g.globalAlpha = 0.5;
    if (upright) g.fillRect(plot.x - 5, at - 0.5, 4, 1);
    else g.fillRect(at - 0.5, plot.y + plot.h + 1, 1, 4);
    g.globalAlpha = 1;
    if (upright) {
      g.textAlign = "right";
      g.fillText(text, plot.x - 8, at);
    } else if (named) {
      g.save();
      g.translate(at, plot.y + plot.h + 8);
      g.rotate(-Math.PI / (each < 30 ? 2 : 3.5));
      g.textAlign = "right";
      g.fillText(text, 0, 0);
      g.restore();
    } else {
      g.textAlign = "center";
      g.fillText(text, at, plot.y + plot.h + 13);
    }
  }
  g.save();
  g.font = g.font.replace(/^\S+px/, "12px");
  g.textAlign = "center";
  if (upright) {
    g.translate(10, plot.y + plot.h / 2);
    g.rotate(-Math.PI / 2);
    g.fillText(name, 0, 0);
  } else {
    g.fillText(name, plot.x + plot.w / 2, plot.foot);
  }
  g.restore();
}

const attnbClip = s => (s.length > 14 ? [...s].slice(0, 13).join("") + "…" : s);

// The values in cells that have room for them. each calls back with every cell that shows: its box, value and whether it is masked.
function attnbNumbers(g, each, scale, ramp) {
  const dark = hex => {
    const [r, gr, b] = [1, 3, 5].map(k => parseInt(hex.slice(k, k + 2), 16) / 255).map(x => (x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * gr + 0.0722 * b <= 0.22;
  };
  g.textAlign = "center";
  g.textBaseline = "middle";
  each((x, y, v, masked) => {
    if (masked) return;
    const step = ramp[Math.min(Math.floor(attnbPlace(scale, v) * ramp.length), ramp.length - 1)];
    const special = !Number.isFinite(v) || (scale.log && v === 0);
    g.fillStyle = (special ? v === Infinity || v === -Infinity : dark(step)) ? "#fff" : "#0c0d10";
    g.fillText(Number.isFinite(v) ? attnbShort(v) : v !== v ? "NaN" : v > 0 ? "+Inf" : "-Inf", x, y);
  });
}
