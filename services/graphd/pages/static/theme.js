// Apply the color theme (light, dark or the system's) before the first paint. `app.js` has the button.
(() => {
  let kept = null;
  try {
    kept = localStorage.getItem("asterism-theme");
  } catch {
    // Without storage, follow the system.
  }
  if (kept === "light" || kept === "dark") document.documentElement.dataset.theme = kept;
})();
