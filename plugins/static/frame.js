// What the pages need of the Airflow window around them: its theme, and a way to its own pages.
"use strict";

function followTheme() {
  document.documentElement.dataset.theme = localStorage.getItem("theme") ?? "system";
  document.dispatchEvent(new Event("theme"));
}

followTheme();
window.addEventListener("storage", followTheme);
window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", followTheme);

// Airflow's frame may not navigate the window around it, so a link to an Airflow page goes through Airflow's router.
document.addEventListener("click", (event) => {
  const link = event.target.closest('a[target="_top"]');
  if (!link || window.parent === window || event.ctrlKey || event.metaKey || event.shiftKey) {
    return;
  }
  event.preventDefault();
  window.parent.history.pushState(null, "", link.href);
  window.parent.dispatchEvent(new PopStateEvent("popstate", { state: null }));
});

// A link to a table that is folded away unfolds it.
document.addEventListener("click", (event) => {
  const link = event.target.closest('a[href^="#table-"]');
  const folded = link && document.querySelector(link.hash);
  if (folded) {
    folded.open = true;
  }
});
