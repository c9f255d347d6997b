// What the scripts of all interactive pictures share.

function attnbBytes(b64) {
  return Uint8Array.from(atob(b64), c => c.charCodeAt(0));
}

// form: "gzip" or "deflate" (zlib).
async function attnbUnpack(bytes, form) {
  const unpacked = new Blob([bytes]).stream().pipeThrough(new DecompressionStream(form));
  return new Uint8Array(await new Response(unpacked).arrayBuffer());
}

function attnbElement(tag, style, text) {
  const e = document.createElement(tag);
  if (style) e.style.cssText = style;
  if (text !== undefined) e.textContent = text;
  return e;
}

// The place of a value in the colour map, as the PNG has it.
const attnbClamp = t => Math.min(Math.max(t, 0), 1);
function attnbPlace({ errors, log, steps, lo, hi, belowOne }, v) {
  if (steps) return attnbClamp(0.5 + Math.asinh(v) / Math.asinh(hi) / 2);
  if (log) return attnbClamp((Math.log(v) - Math.log(lo)) / (Math.log(hi) - Math.log(lo)));
  if (!errors) return attnbClamp((v / 2 - lo / 2) / (hi / 2 - lo / 2));
  if (v <= 1) return (attnbClamp((v - lo) / (1 - lo)) / 2) * belowOne;
  return 0.5 + attnbClamp(Math.log(v) / Math.log(hi)) / 2;
}

// %.9g: nine digits name an f32 exactly.
function attnbExact(v) {
  if (v === 0) return Object.is(v, -0) ? "-0" : "0";
  const [digits, exponent] = v.toExponential(8).split("e");
  if (exponent < -4 || exponent >= 9) return `${Number(digits)}e${exponent}`;
  return String(Number(v.toPrecision(9)));
}

// Colours that follow the page: its text colour says whether it is dark.
function attnbTheme(host, colours) {
  const ink = getComputedStyle(host).color;
  const [r, g, b] = (ink.match(/[\d.]+/g) || [0, 0, 0]).map(Number);
  const dark = 0.2126 * r + 0.7152 * g + 0.0722 * b > 128;
  return { ink, dark, masked: dark ? colours.maskedDark : colours.masked, ...colours.fixed };
}

function attnbHatch([back, line]) {
  const tile = document.createElement("canvas"), side = 8;
  tile.width = tile.height = side;
  const g = tile.getContext("2d");
  g.fillStyle = back;
  g.fillRect(0, 0, side, side);
  g.strokeStyle = line;
  g.beginPath();
  for (const x of [-side, 0, side]) g.moveTo(x, side), g.lineTo(x + side, 0);
  g.stroke();
  return tile;
}

// The legend under a picture: what has no place on the scale.
function attnbLegend(entries, colours) {
  const legend = attnbElement("div", "padding:0 14px;display:flex;flex-wrap:wrap;gap:4px 20px;font-size:12px");
  for (const e of entries) {
    const text = attnbElement("bdi", "", e.text);
    const [back, line] = e.class === "masked" ? colours.masked : [colours[e.class] || "transparent", ""];
    const css = "display:inline-block;width:13px;height:13px;vertical-align:-2px;margin-right:6px;box-sizing:border-box;" +
      (line ? `background:repeating-linear-gradient(-45deg,${line} 0 1px,${back} 1px 4.5px);` : `background:${back};`) +
      `border:${e.class ? "1px" : "2.5px"} solid ${e.class ? "#8888" : "currentColor"}`;
    const entry = attnbElement("span");
    entry.append(attnbElement("span", css), text);
    legend.append(entry);
    (legend.entries ??= new Map()).set(e.class, { entry, text });
  }
  return legend;
}

// Calls draw when host is shown or the page's theme has changed, and undraw when it is hidden or taken out of the page: what is
// not seen holds no canvas and is held by nothing.
function attnbWatch(host, draw, undraw) {
  let drawnIn = "";
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const themes = new MutationObserver(() => (update(), setTimeout(update, 500))); // a theme's style sheet may come late
  function update() {
    if (host.isConnected && host.clientWidth > 0) {
      for (const e of [document.documentElement, document.body]) themes.observe(e, { attributes: true });
      dark.addEventListener("change", update);
      const ink = getComputedStyle(host).color;
      if (drawnIn !== ink) draw();
      drawnIn = ink;
    } else {
      themes.disconnect();
      dark.removeEventListener("change", update);
      drawnIn = "";
      undraw();
    }
  }
  new ResizeObserver(update).observe(host);
  update();
}
