// Small comforts. Every page works without this file.
"use strict";
document.documentElement.classList.add("scripted");

// On a narrow screen the navigation is a strip: where one is should be seen.
const strip = document.querySelector(".side .stay");
const current = strip && strip.querySelector("[aria-current]");
if (current && strip.scrollWidth > strip.clientWidth) {
  strip.scrollLeft = current.offsetLeft - (strip.clientWidth - current.offsetWidth) / 2;
}

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

// ---- files and folders dropped on an upload form, sent in batches with their paths
const BATCH_FILES = 50;
const BATCH_BYTES = 32 * 1024 * 1024;

async function filesOf(entry, before) {
  const path = before ? `${before}/${entry.name}` : entry.name;
  if (entry.isFile) {
    const file = await new Promise((done, failed) => entry.file(done, failed));
    return [{ file, path }];
  }
  const reader = entry.createReader();
  const found = [];
  for (;;) {
    // A reader gives a hundred entries at a time, and none at the end.
    const part = await new Promise((done, failed) => reader.readEntries(done, failed));
    if (!part.length) return found;
    for (const one of part) found.push(...await filesOf(one, path));
  }
}

function batches(files) {
  const found = [[]];
  let bytes = 0;
  for (const one of files) {
    const last = found[found.length - 1];
    if (last.length && (last.length >= BATCH_FILES || bytes + one.file.size > BATCH_BYTES)) {
      found.push([]);
      bytes = 0;
    }
    found[found.length - 1].push(one);
    bytes += one.file.size;
  }
  return found;
}

function send(form, batch, progress) {
  const data = new FormData();
  for (const name of ["csrfmiddlewaretoken", "source", "collection"]) {
    data.append(name, form.elements[name].value);
  }
  for (const one of batch) {
    data.append("path", one.path);
    data.append("file", one.file, one.file.name);
  }
  return new Promise((done, failed) => {
    const request = new XMLHttpRequest();
    request.open("POST", form.action);
    request.setRequestHeader("X-Upload", "batch");
    request.upload.addEventListener("progress", (event) => progress(event.loaded));
    request.addEventListener("load", () => {
      let said = {};
      try { said = JSON.parse(request.responseText); } catch { /* a page, not an answer */ }
      if (request.status === 200) done(said);
      else failed(new Error(said.error || `The server answered ${request.status}.`));
    });
    request.addEventListener("error", () => failed(new Error("The server cannot be reached.")));
    request.send(data);
  });
}

async function upload(form, files) {
  const place = form.querySelector("[data-drop-progress]");
  const bar = place.querySelector("progress");
  const said = place.querySelector("[role=status]");
  const total = files.reduce((sum, one) => sum + one.file.size, 0) || 1;
  const parts = batches(files);
  let before = 0;
  place.hidden = false;
  form.querySelector("button[type=submit]").disabled = true;
  try {
    for (const [number, batch] of parts.entries()) {
      said.textContent = `Sending ${files.length} files${parts.length > 1 ? `, part ${number + 1} of ${parts.length}` : ""}…`;
      await send(form, batch, (loaded) => { bar.value = Math.min(1, (before + loaded) / total); });
      before += batch.reduce((sum, one) => sum + one.file.size, 0);
      bar.value = Math.min(1, before / total);
    }
    window.location.reload();
  } catch (error) {
    said.textContent = error.message;
    form.querySelector("button[type=submit]").disabled = false;
  }
}

for (const form of document.querySelectorAll("form[data-drop]")) {
  form.addEventListener("dragover", (event) => { event.preventDefault(); form.classList.add("over"); });
  form.addEventListener("dragleave", () => form.classList.remove("over"));
  form.addEventListener("drop", async (event) => {
    event.preventDefault();
    form.classList.remove("over");
    // Entries are gone after the first wait: all are taken first.
    const entries = [...event.dataTransfer.items].map((item) => item.webkitGetAsEntry && item.webkitGetAsEntry());
    const plain = [...event.dataTransfer.files];
    const found = [];
    for (const entry of entries) if (entry) found.push(...await filesOf(entry, ""));
    const files = found.length ? found : plain.map((file) => ({ file, path: file.name }));
    if (files.length) upload(form, files);
  });
  form.addEventListener("submit", (event) => {
    const files = [...form.elements.file.files];
    if (!files.length) return;
    event.preventDefault();
    upload(form, files.map((file) => ({ file, path: file.webkitRelativePath || file.name })));
  });
}
