// Small comforts. Every page works without this file.
"use strict";
document.documentElement.classList.add("scripted");

document.addEventListener("click", async (event) => {
  const button = event.target.closest("button[data-copy]");
  if (!button) return;
  const said = button.textContent;
  try {
    await navigator.clipboard.writeText(button.dataset.copy);
    button.textContent = "copied";
  } catch {
    button.textContent = "not allowed here";
  }
  setTimeout(() => { button.textContent = said; }, 1500);
});
