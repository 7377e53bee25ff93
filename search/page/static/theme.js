// Runs before the first paint, so that a chosen theme does not flash. Marks that scripts run.
"use strict";
document.documentElement.classList.add("js");
try {
  const chosen = localStorage.getItem("theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
} catch {
  // no storage, no memory of it
}
