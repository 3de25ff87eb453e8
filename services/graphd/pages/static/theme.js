// Light, dark, or as the system has it: put on the document before it is drawn. The button is `app.js`'s.
(() => {
  let kept = null;
  try {
    kept = localStorage.getItem("asterism-theme");
  } catch {
    // A browser that keeps nothing follows the system.
  }
  if (kept === "light" || kept === "dark") document.documentElement.dataset.theme = kept;
})();
