// Keys of the review page. Without this file its buttons do the same.
"use strict";
document.addEventListener("keydown", (event) => {
  const form = document.getElementById("review");
  if (!form || event.ctrlKey || event.metaKey || event.altKey) return;
  const inText = event.target instanceof HTMLTextAreaElement || event.target instanceof HTMLInputElement || event.target instanceof HTMLSelectElement;
  if (event.key === "Escape" && inText) { event.target.blur(); return; }
  if (inText) return;
  if (event.key === "e") {
    event.preventDefault();
    form.querySelector("#question").focus();
    return;
  }
  const button = form.querySelector(`button[aria-keyshortcuts="${CSS.escape(event.key)}"]`);
  if (button) { event.preventDefault(); button.click(); }
});
