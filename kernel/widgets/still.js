// Hides the PNG of a picture while the page shows the picture itself: picture.js counts its views here, by id.
const views = (window["attnb-stills"] ??= new Map());
if (views.get(id)) for (const still of document.querySelectorAll(`[data-attnb-still="${id}"]`)) still.style.display = "none";
