// Runs before the first paint: otherwise the page flashes in the other theme. The class `js` marks that scripts run.
"use strict";
document.documentElement.classList.add("js");
try {
  const chosen = localStorage.getItem("theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
} catch {
  // Without storage there is no saved choice.
}
