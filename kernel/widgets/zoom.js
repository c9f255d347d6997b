// What supplies a zooming picture, somewhere on the page, with cells that the kernel computes: a model without a view.
// State: map, the picture's ID. The two find each other in the page, whichever comes first (viz/zoom.js).
function initialize({ model }) {
  const id = model.get("map");
  const gone = "The kernel that made this picture is gone. Finer detail: run the cell again.";
  const meet = (window["attnb-zoom"] ??= { supplies: new Map(), viewers: new Map() });
  const waiting = new Map();
  let last = 0;

  const supply = {
    ask(request) {
      return new Promise((resolve, reject) => {
        const seq = ++last;
        waiting.set(seq, { resolve, reject, request });
        try {
          model.send({ type: "tile", seq, ...request });
        } catch (err) {
          end(gone);
        }
      });
    },
  };

  // Buffers may lie anywhere in a message: aligned copies are read.
  const floats = view => new Float32Array(view.buffer.slice(view.byteOffset, view.byteOffset + view.byteLength));
  model.on("msg:custom", (m, buffers) => {
    if (m.type === "end") return end(m.why);
    const one = waiting.get(m.seq);
    if (!one) return;
    waiting.delete(m.seq);
    if (m.error) return one.reject(new Error(m.error));
    const { h, w } = one.request, hidden = new Uint8Array(h * w);
    for (let i = 0; i + 1 < m.hidden.length; i += 2) hidden.fill(1, m.hidden[i], m.hidden[i + 1]);
    const answer = { value: floats(buffers[0]), hidden };
    if (m.both) {
      answer.score = floats(buffers[1]);
      answer.probability = floats(buffers[2]);
    }
    one.resolve(answer);
  });

  function end(why) {
    if (meet.supplies.get(id) === supply) {
      meet.supplies.delete(id);
      for (const use of meet.viewers.get(id) || []) use(null, why);
    }
    for (const one of waiting.values()) one.reject(new Error(why));
    waiting.clear();
  }

  model.on("comm_live_update", () => end(gone)); // the kernel restarts

  meet.supplies.set(id, supply);
  for (const use of meet.viewers.get(id) || []) use(supply);
  return () => end(gone);
}

export default { initialize };
