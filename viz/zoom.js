// Draws a heatmap of any size into host, which holds its labelled PNG; that stays when anything here fails.
//
// view: what zoom.go sends. What is drawn comes from stored sheets, and from tiles of a supply where a kernel offers one for
// view.id: an object whose ask({head, rows: [from, to], cols: [from, to], h, w, both}) promises {value, hidden, score,
// probability}. The two find each other in the page, whichever comes first. All text is text: labels run nothing.
async function attnbZoom(host, view) {
  const png = host.firstElementChild, element = attnbElement;
  const { colours, heads } = view;
  const tileSide = 256, most = 48, speed = 1.0015;
  let pixels;
  const image = () => (pixels ??= attnbPixels(attnbBytes(png.src.slice(png.src.indexOf(",") + 1))));
  let head = 0, stored = []; // of the head that shows, coarse to fine
  const whole = view.heads[0].sheets[0].form === "f32" && view.rows[1] - view.rows[0] === view.size[0] && view.cols[1] - view.cols[0] === view.size[1];
  let supply = null, why = whole ? "" : view.id ? "Finer detail needs the kernel: run the cell again." : "Zooms as far as cells are stored.";
  let scale = view.scale, fit = false; // fit: the scale is that of what shows
  let at = null; // the pointer, in the plot
  let parts = null; // of the page, while it is drawn
  const extent = () => ({ r0: view.rows[0], r1: view.rows[1], c0: view.cols[0], c1: view.cols[1] });
  let shown = extent();

  // Tiles: 256 x 256 cells of 2^z indices each way, by key.
  const tiles = new Map(), points = new Map(), failed = new Set(), asked = new Set();
  let wanted = [], busy = 0, message = "";

  async function choose(n) {
    const sheets = await Promise.all(heads[n].sheets.map(s => attnbStored(s, view, image)));
    [head, stored] = [n, sheets];
    fitScale();
    draw();
  }

  // The indices that can be looked at: without a supply those that are stored.
  const bounds = () => (supply ? { r0: 0, r1: view.size[0], c0: 0, c1: view.size[1] } : extent());

  function clampView(v) {
    const b = bounds(), out = { ...v };
    for (const [from, to] of [["r0", "r1"], ["c0", "c1"]]) {
      const room = b[to] - b[from], least = Math.min(room, 4), span = Math.min(Math.max(v[to] - v[from], least), room);
      const start = Math.min(Math.max((v[from] + v[to] - span) / 2, b[from]), b[to] - span);
      [out[from], out[to]] = [start, start + span];
    }
    return out;
  }

  function show(v) {
    shown = clampView(v);
    failed.clear();
    if (!at) message = "";
    fitScale();
    draw();
  }

  // Zoom by a factor around a place (0 to 1 along the plot).
  function zoom(factor, x = 0.5, y = 0.5) {
    const h = shown.r1 - shown.r0, w = shown.c1 - shown.c0;
    const r = shown.r0 + y * h, c = shown.c0 + x * w;
    show({ r0: r - y * h * factor, r1: r + (1 - y) * h * factor, c0: c - x * w * factor, c1: c + (1 - x) * w * factor });
  }

  const move = (x, y) => {
    const h = (shown.r1 - shown.r0) * y, w = (shown.c1 - shown.c0) * x, b = bounds();
    const dr = Math.min(Math.max(h, b.r0 - shown.r0), b.r1 - shown.r1), dc = Math.min(Math.max(w, b.c0 - shown.c0), b.c1 - shown.c1);
    show({ r0: shown.r0 + dr, r1: shown.r1 + dr, c0: shown.c0 + dc, c1: shown.c1 + dc });
  };

  // Which tiles the view needs, nearest to the pointer first.
  const level = (span, room) => Math.max(0, Math.ceil(Math.log2(span / room) - 1e-9));
  const want = () => [level(shown.r1 - shown.r0, parts.plot.h), level(shown.c1 - shown.c0, parts.plot.w)];
  const enough = ([zr, zc]) => stored.some(s => covers(s) && (s.r1 - s.r0) / s.h <= 2 ** zr && (s.c1 - s.c0) / s.w <= 2 ** zc && (s.exact || zr + zc > 0));
  const covers = s => s.r0 <= shown.r0 && s.r1 >= shown.r1 && s.c0 <= shown.c0 && s.c1 >= shown.c1;

  function request() {
    wanted = [];
    const z = want();
    if (!supply || enough(z)) return;
    const [high, wide] = z.map(n => tileSide * 2 ** n);
    const [x, y] = at ? [at.x, at.y] : [0.5, 0.5];
    const row = shown.r0 + y * (shown.r1 - shown.r0), col = shown.c0 + x * (shown.c1 - shown.c0);
    for (let i = Math.floor(shown.r0 / high); i * high < shown.r1; i++) {
      for (let j = Math.floor(shown.c0 / wide); j * wide < shown.c1; j++) {
        const key = `${head} ${z[0]} ${z[1]} ${i} ${j}`;
        if (tiles.has(key) || failed.has(key) || asked.has(key)) continue;
        const rows = [i * high, Math.min((i + 1) * high, view.size[0])], cols = [j * wide, Math.min((j + 1) * wide, view.size[1])];
        const cells = ([from, to], n) => Math.ceil((to - from) / 2 ** n);
        wanted.push({ key, z, rows, cols, h: cells(rows, z[0]), w: cells(cols, z[1]), far: Math.hypot(((i + 0.5) * high - row) / high, ((j + 0.5) * wide - col) / wide) });
      }
    }
    wanted.sort((a, b) => a.far - b.far);
    next();
  }

  // Two requests are under way at most; what the view needs no more is never asked for.
  async function next() {
    while (busy < 2 && wanted.length && supply) {
      const t = wanted.shift(), from = supply;
      busy++;
      asked.add(t.key);
      from.ask({ head: heads[head].index, rows: t.rows, cols: t.cols, h: t.h, w: t.w, both: t.z[0] + t.z[1] === 0 })
        .then(a => {
          if (tiles.size >= most) tiles.delete(tiles.keys().next().value);
          tiles.set(t.key, { r0: t.rows[0], r1: t.rows[1], c0: t.cols[0], c1: t.cols[1], h: t.h, w: t.w, z: t.z, head: t.key.split(" ")[0], exact: true, ...a });
          fitScale();
        })
        .catch(err => (failed.add(t.key), (message = String(err.message || err))))
        .finally(() => {
          busy--;
          asked.delete(t.key);
          draw();
        });
    }
    tell();
  }

  // The sheets to draw, in order: what is coarse lies below what is fine.
  function layers() {
    const [zr, zc] = want(), out = [];
    const fitted = s => attnbFitted(s, view.by, ((s.r1 - s.r0) / (shown.r1 - shown.r0)) * parts.plot.h * 1.01 * ratio(), ((s.c1 - s.c0) / (shown.c1 - shown.c0)) * parts.plot.w * 1.01 * ratio());
    for (const s of stored) out.push(fitted(s));
    const mine = [...tiles.values()].filter(t => t.head === String(head) && t.z[0] >= zr && t.z[1] >= zc && meets(t));
    const base = out[0] ? (out[0].r1 - out[0].r0) / out[0].h : Infinity;
    mine.sort((a, b) => b.z[0] + b.z[1] - a.z[0] - a.z[1]);
    return out.concat(mine.filter(t => 2 ** t.z[0] <= base || !out.length || !covers(out[0])));
  }
  const meets = s => s.r0 < shown.r1 && s.r1 > shown.r0 && s.c0 < shown.c1 && s.c1 > shown.c0;
  const ratio = () => Math.min(window.devicePixelRatio || 1, 2);

  // A scale over what shows, for those who ask for it, and where finer cells have larger values than coarse ones, as means do.
  function fitScale() {
    if (!parts) return;
    let lo = Infinity, hi = -Infinity;
    if (fit) {
      for (const s of layers()) {
        const [i0, i1, j0, j1] = attnbWithin(s, shown);
        if (s === stored[0] && covers(s) && layers().length > 1) continue; // finer ones lie over it
        for (let i = i0; i <= i1; i++) {
          for (let k = i * s.w + j0; k <= i * s.w + j1; k++) {
            const v = s.value[k];
            if (s.hidden[k] || !Number.isFinite(v) || (scale.log && v === 0)) continue;
            lo = Math.min(lo, v);
            hi = Math.max(hi, v);
          }
        }
      }
    }
    if (!(lo <= hi)) scale = view.scale;
    else if (scale.log) scale = { ...view.scale, hi, lo: Math.max(lo < hi ? lo : hi / 10, hi * 1e-12), open: lo < hi * 1e-12 };
    else if (view.diverging) [lo, hi] = [-Math.max(-lo, hi, 1e-45), Math.max(-lo, hi, 1e-45)], (scale = { ...view.scale, lo, hi });
    else scale = { ...view.scale, lo: Math.min(lo, 0), hi: hi > 0 ? hi : 1 };
  }

  const pixel = v => ({
    x: parts.plot.x + ((v.c - shown.c0) / (shown.c1 - shown.c0)) * parts.plot.w,
    y: parts.plot.y + ((v.r - shown.r0) / (shown.r1 - shown.r0)) * parts.plot.h,
  });

  let frame = 0;
  function draw() {
    if (parts && !frame) frame = requestAnimationFrame(() => ((frame = 0), parts && paint()));
  }

  function paint() {
    const { g, plot, theme } = parts, n = ratio();
    g.setTransform(n, 0, 0, n, 0, 0);
    g.clearRect(0, 0, parts.width, parts.height);
    g.font = `11px ${parts.font}`;
    g.save();
    g.beginPath();
    g.rect(plot.x, plot.y, plot.w, plot.h);
    g.clip();
    g.fillStyle = "#8883";
    g.fillRect(plot.x, plot.y, plot.w, plot.h);
    g.imageSmoothingEnabled = false;
    const sheets = layers();
    for (const s of sheets) {
      const a = pixel({ r: s.r0, c: s.c0 }), b = pixel({ r: s.r1, c: s.c1 });
      g.fillStyle = parts.hatch;
      g.fillRect(a.x, a.y, b.x - a.x, b.y - a.y);
      g.drawImage(attnbPainted(s, scale, colours.ramp, colours.fixed), a.x, a.y, b.x - a.x, b.y - a.y);
    }
    const each = Math.min(plot.w / (shown.c1 - shown.c0), plot.h / (shown.r1 - shown.r0));
    const top = sheets.findLast(s => meets(s) && covers(s) && s.r1 - s.r0 === s.h && s.c1 - s.c0 === s.w);
    if (plot.w / (shown.c1 - shown.c0) >= 46 && each >= 17 && top) {
      attnbNumbers(g, cell => {
        for (let r = Math.floor(shown.r0); r < shown.r1; r++) {
          for (let c = Math.floor(shown.c0); c < shown.c1; c++) {
            const k = (r - top.r0) * top.w + c - top.c0, p = pixel({ r: r + 0.5, c: c + 0.5 });
            cell(p.x, p.y, top.value[k], top.hidden[k]);
          }
        }
      }, scale, colours.ramp);
    }
    if (!supply) { // where there are single cells to zoom into
      g.strokeStyle = "#ff8c00";
      g.lineWidth = 1;
      g.setLineDash([4, 3]);
      for (const s of details()) {
        const a = pixel({ r: s.r0, c: s.c0 }), b = pixel({ r: s.r1, c: s.c1 });
        g.strokeRect(a.x - 1, a.y - 1, b.x - a.x + 2, b.y - a.y + 2);
      }
      g.setLineDash([]);
    }
    const cell = at && under();
    if (cell) {
      const a = pixel({ r: cell.rows[0], c: cell.cols[0] }), b = pixel({ r: cell.rows[1], c: cell.cols[1] });
      g.strokeStyle = "#ff8c00";
      g.lineWidth = 2;
      g.strokeRect(a.x, a.y, b.x - a.x, b.y - a.y);
    }
    g.restore();
    g.strokeStyle = theme.ink;
    g.globalAlpha = 0.5;
    g.lineWidth = 1;
    g.strokeRect(plot.x - 0.5, plot.y - 0.5, plot.w + 1, plot.h + 1);
    g.globalAlpha = 1;
    attnbAxis(g, plot, shown.r0, shown.r1, true, view.rowAxis, view.rowLabels, theme.ink);
    attnbAxis(g, plot, shown.c0, shown.c1, false, view.colAxis, view.colLabels, theme.ink);
    attnbBar(g, parts.bar, scale, colours.ramp, view.quantity, theme.ink);
    request();
    tell();
    parts.tip(cell);
  }

  // Stored parts of exact cells.
  const details = () => stored.filter(s => s.exact && !(s.r0 === view.rows[0] && s.r1 === view.rows[1] && s.c0 === view.cols[0] && s.c1 === view.cols[1]));
  const detailWords = () => details().map(s => ` Exact cells are stored of ${view.rowAxis} ${s.r0}–${s.r1 - 1}, ${view.colAxis} ${s.c0}–${s.c1 - 1} (dashed).`).join("");

  // The cell under the pointer, of the finest sheet that shows there.
  function under() {
    const r = Math.floor(shown.r0 + at.y * (shown.r1 - shown.r0)), c = Math.floor(shown.c0 + at.x * (shown.c1 - shown.c0));
    const s = layers().findLast(s => r >= s.r0 && r < s.r1 && c >= s.c0 && c < s.c1);
    if (!s) return null;
    const i = attnbCell(s.r0, s.r1, s.h, r), j = attnbCell(s.c0, s.c1, s.w, c), k = i * s.w + j;
    const rows = [attnbEdge(s.r0, s.r1, s.h, i), attnbEdge(s.r0, s.r1, s.h, i + 1)], cols = [attnbEdge(s.c0, s.c1, s.w, j), attnbEdge(s.c0, s.c1, s.w, j + 1)];
    const cell = { rows, cols, masked: !!s.hidden[k], value: s.value[k], exact: s.exact, score: s.score?.[k], probability: s.probability?.[k] };
    const single = rows[1] - rows[0] === 1 && cols[1] - cols[0] === 1;
    cell.key = `${head} ${rows} ${cols}`;
    const point = points.get(cell.key);
    if (point) Object.assign(cell, point);
    else if (supply && (!cell.exact || (single && !s.score && view.both))) ask(cell, single);
    return cell;
  }

  // The exact values of one cell, soon after the pointer has come to rest on it.
  let rest = 0;
  function ask(cell, single) {
    clearTimeout(rest);
    rest = setTimeout(async () => {
      const from = supply;
      if (!from || !at) return;
      try {
        const a = await from.ask({ head: heads[head].index, rows: cell.rows, cols: cell.cols, h: 1, w: 1, both: single });
        if (points.size > 4096) points.clear();
        points.set(cell.key, { exact: true, value: a.value[0], masked: !!a.hidden[0], score: a.score?.[0], probability: a.probability?.[0] });
      } catch (err) {
        points.set(cell.key, {});
        message = String(err.message || err);
      }
      draw();
      tell();
    }, 40);
  }

  // The Go line for what shows.
  function line() {
    const whole = (from, to, n) => from <= 0 && to >= n, b = [shown.r0, shown.c0].map(Math.floor), e = [shown.r1, shown.c1].map(Math.ceil);
    const more = [];
    if (heads.length > 1 || view.call.head) more.push(`attn.OnlyHead(${heads[head].index})`);
    if (!whole(b[0], e[0], view.size[0])) more.push(`attn.Queries(${b[0]}, ${e[0]})`);
    if (!whole(b[1], e[1], view.size[1])) more.push(`attn.Keys(${b[1]}, ${e[1]})`);
    return view.call.before + more.map(s => ", " + s).join("").replace(/^, /, view.call.before.endsWith("(") ? "" : ", ") + ")";
  }

  // The legend, of the finest cells that show all of the window.
  let counted = "";
  function count() {
    const all = layers(), z = want(), area = s => (Math.min(s.r1, shown.r1) - Math.max(s.r0, shown.r0)) * (Math.min(s.c1, shown.c1) - Math.max(s.c0, shown.c0));
    const finest = all.filter(s => s.z && s.z[0] === z[0] && s.z[1] === z[1]);
    const whole = finest.reduce((sum, s) => sum + area(s), 0) >= (shown.r1 - shown.r0) * (shown.c1 - shown.c0) * (1 - 1e-9);
    const sheets = whole ? finest : [all.findLast(covers)].filter(s => s);
    const key = JSON.stringify([head, shown, sheets.map(s => [s.r0, s.c0, s.h, s.w])]);
    if (key === counted) return;
    counted = key;
    const pooled = sheets.some(s => s.r1 - s.r0 > s.h || s.c1 - s.c0 > s.w) ? "pooled " : "";
    for (const [name, n] of Object.entries(attnbCount(sheets, shown, scale.log))) {
      const { entry, text } = parts.legend.get(name);
      entry.style.display = n ? "" : "none";
      text.textContent = `${name}: ${n} ${pooled}cell${n === 1 ? "" : "s"}`;
    }
  }

  function tell() {
    if (!parts) return;
    count();
    const waits = supply && (busy > 0 || wanted.length > 0);
    parts.status.textContent = message || (waits ? "computing finer cells …" : supply ? "Zooms down to single cells, with exact values." : why && why + detailWords());
    host.dataset.state = waits ? "waits" : supply ? "live" : "stored";
    const z = want();
    parts.detail.textContent = attnbDetail(view, shown, layers().at(-1), z);
  }

  function use(s, reason) {
    supply = s;
    if (!s && reason && !whole) why = reason;
    if (s) [message, why] = ["", whole ? "" : "The kernel that made this picture is gone. Finer detail: run the cell again."];
    points.clear();
    shown = clampView(shown);
    draw();
    tell();
  }

  // Where viewers and supplies find each other, by ID.
  const meet = (window["attnb-zoom"] ??= { supplies: new Map(), viewers: new Map() });
  function attend(yes) {
    if (!view.id) return;
    const mine = meet.viewers.get(view.id) || new Set();
    if (yes) mine.add(use);
    else mine.delete(use);
    if (mine.size) meet.viewers.set(view.id, mine);
    else meet.viewers.delete(view.id);
    if (yes && meet.supplies.has(view.id)) use(meet.supplies.get(view.id));
  }

  function undraw() {
    if (parts) parts.frame.remove();
    attend(false);
    parts = supply = at = null;
    tiles.clear();
    png.style.display = "";
    counted = "";
  }

  await choose(0);
  attnbWatch(host, () => {
    undraw();
    parts = attnbFrame(host, view, {
      zoom, move, line,
      all: () => show(bounds()),
      drag: (from, dx, dy) => show(moved(from, dx, dy)),
      now: () => ({ ...shown }),
      point: p => ((at = p), draw()),
      head: n => choose(n),
      fit: on => ((fit = on), fitScale(), draw()),
      say: text => ((message = text), tell()),
      wheel: (delta, p) => zoom(speed ** delta, p.x, p.y),
    });
    parts.fit.checked = fit = fit || view.by === "mean" || view.by === "sum" || view.by === "smallest";
    png.style.display = "none";
    attend(true);
    fitScale();
    paint();
    tell();
  }, undraw);

  function moved(v, dx, dy) {
    const w = ((v.c1 - v.c0) * dx) / parts.plot.w, h = ((v.r1 - v.r0) * dy) / parts.plot.h, b = bounds();
    const dc = Math.min(Math.max(-w, b.c0 - v.c0), b.c1 - v.c1), dr = Math.min(Math.max(-h, b.r0 - v.r0), b.r1 - v.r1);
    return { r0: v.r0 + dr, r1: v.r1 + dr, c0: v.c0 + dc, c1: v.c1 + dc };
  }
}
